"""The reader before training: the lowest layers of multilingual-e5-small with a trimmed vocabulary, heads untrained.

    PYTHONPATH=. python training/reader_start.py --out runs/start --layers 8

Writes start.safetensors and tokenizer.json. `rarity` is the inverse document frequency of each piece over the training
passages, 0 … 1.
"""

from __future__ import annotations

import argparse
import math
from collections import Counter
from pathlib import Path

import torch
from corpus import load_corpus
from e5_weights import E5Weights, packaged_weights
from reader_model import WIDTH, EncoderLayer, Reader
from safetensors.torch import save_file
from tokenizers import Tokenizer
from torch import Tensor
from trim_vocabulary import build_tokenizer, select_pieces


def rarity(tokenizer: Tokenizer, *, texts: list[str], vocabulary: int) -> Tensor:
    """Inverse document frequency of each piece on the scale 0 (everywhere) … 1 (nowhere or once)."""
    counts: Counter[int] = Counter()
    for encoding in tokenizer.encode_batch(texts, add_special_tokens=False):
        counts.update(set(encoding.ids))
    documents = len(texts)
    values = [math.log((documents + 1) / (counts[n] + 0.5)) / math.log(documents) for n in range(vocabulary)]
    return torch.tensor(values).clamp(0, 1)


def copy_layer(layer: EncoderLayer, weights: E5Weights, *, number: int) -> None:
    """Fill one layer with the weights of the encoder's layer of that number."""

    def tensor(name: str, *shape: int) -> Tensor:
        return torch.from_numpy(weights.floats(f"l{number}.{name}")).view(*shape)

    layer.attend.weight.data = torch.cat([tensor(f"{name}.w", WIDTH, WIDTH) for name in "qkv"])
    layer.attend.bias.data = torch.cat([tensor(f"{name}.b", WIDTH) for name in "qkv"])
    for module, name in ((layer.mix, "ao"), (layer.widen, "fi"), (layer.narrow, "fo")):
        module.weight.data = tensor(f"{name}.w", *module.weight.shape)
        module.bias.data = tensor(f"{name}.b", *module.bias.shape)
    for norm, name in ((layer.mix_norm, "aln"), (layer.narrow_norm, "oln")):
        norm.weight.data = tensor(f"{name}.w", WIDTH)
        norm.bias.data = tensor(f"{name}.b", WIDTH)


def start(*, layers: int, seed: int) -> tuple[Reader, Tokenizer]:
    """The untrained reader and its tokenizer."""
    torch.manual_seed(seed)
    weights = E5Weights(packaged_weights())
    whole = build_tokenizer(weights.pieces, scores=weights.scores, unknown=weights.unknown)
    kept = select_pieces(whole, pieces=weights.pieces)
    tokenizer = build_tokenizer(
        [weights.pieces[n] for n in kept], scores=[weights.scores[n] for n in kept], unknown=weights.unknown
    )
    reader = Reader(vocabulary=len(kept), layers=layers)
    words = torch.from_numpy(weights.floats("emb.word")).view(-1, WIDTH)
    positions = torch.from_numpy(weights.floats("emb.pos")).view(-1, WIDTH)
    reader.word.weight.data = words[kept].clone()
    reader.position.weight.data = positions + torch.from_numpy(weights.floats("emb.type")).view(-1, WIDTH)[0]
    reader.norm.weight.data = torch.from_numpy(weights.floats("emb.ln.w"))
    reader.norm.bias.data = torch.from_numpy(weights.floats("emb.ln.b"))
    for number, layer in enumerate(reader.layers):
        assert isinstance(layer, EncoderLayer)
        copy_layer(layer, weights, number=number)
    texts = [passage.text for passage in load_corpus().passages.values()]
    reader.rarity.copy_(rarity(tokenizer, texts=texts, vocabulary=len(kept)))
    return reader, tokenizer


def main() -> None:
    """Parse the command line and write both files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    reader, tokenizer = start(layers=arguments.layers, seed=arguments.seed)
    tensors = {name: tensor.half().contiguous() for name, tensor in reader.state_dict().items()}
    save_file(tensors, arguments.out / "start.safetensors")
    tokenizer.save(str(arguments.out / "tokenizer.json"), pretty=False)
    print(f"{len(reader.word.weight)} pieces, {arguments.layers} layers")


if __name__ == "__main__":
    main()
