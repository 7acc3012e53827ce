"""The reader as a torch module: a small cross-encoder with an answerability head and a span head.

Input: `<s> question </s></s> passage </s>`. Outputs: an answerability logit, and start and end logits over the
tokens where position 0 stands for "no answer here". Start and end of all tokens but the passage's are masked.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from torch.nn import functional

WIDTH = 384
HEADS = 12
INNER = 1536
POSITIONS = 512
SPECIAL_IDS = 4
MASKED = -1e4


@dataclass(frozen=True, slots=True)
class Reading:
    """What one forward pass says: answerability logit [B], start logits [B, L], end logits [B, L]."""

    relevance: Tensor
    start: Tensor
    end: Tensor


class EncoderLayer(nn.Module):  # type: ignore[misc]
    """One post-norm BERT layer with fused query, key and value."""

    def __init__(self) -> None:
        super().__init__()
        self.dropout = 0.0
        self.attend = nn.Linear(WIDTH, 3 * WIDTH)
        self.mix = nn.Linear(WIDTH, WIDTH)
        self.mix_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.widen = nn.Linear(WIDTH, INNER)
        self.narrow = nn.Linear(INNER, WIDTH)
        self.narrow_norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.explicit = False

    def forward(self, hidden: Tensor, mask: Tensor) -> Tensor:
        """Hidden states [B, L, WIDTH] to hidden states; `mask` [B, 1, 1, L] is added to attention logits."""
        batch, length, _ = hidden.shape
        projected = self.attend(hidden).view(batch, length, 3, HEADS, WIDTH // HEADS)
        query, key, value = projected.permute(2, 0, 3, 1, 4).unbind(0)
        if self.explicit:
            logits = query @ key.transpose(-1, -2) * (WIDTH // HEADS) ** -0.5 + mask
            heads = torch.softmax(logits, -1) @ value
        else:
            heads = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = self.mix(heads.transpose(1, 2).reshape(batch, length, WIDTH))
        hidden = self.mix_norm(hidden + self._dropped(mixed))
        wide = functional.gelu(self.widen(hidden))
        return self.narrow_norm(hidden + self._dropped(self.narrow(wide)))

    def _dropped(self, values: Tensor) -> Tensor:
        if not (self.training and self.dropout):
            return values
        chance = torch.empty(-(-values.numel() // 8), dtype=torch.int64).random_(-(2**63), None).view(torch.uint8)
        kept = chance[: values.numel()].view(values.shape) >= round(self.dropout * 256)
        return values * (kept.to(values.dtype) / (1 - round(self.dropout * 256) / 256))


class Reader(nn.Module):  # type: ignore[misc]
    """Cross-encoder over question and passage; lexical matches are told to it as embeddings.

    `rarity` [vocabulary] weighs a matched token by how rare it is; it is data, not learned.
    """

    rarity: Tensor

    def __init__(self, *, vocabulary: int, layers: int) -> None:
        super().__init__()
        self.word = nn.Embedding(vocabulary, WIDTH)
        self.position = nn.Embedding(POSITIONS, WIDTH)
        self.feature = nn.Embedding(4, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=1e-12)
        self.layers = nn.ModuleList(EncoderLayer() for _ in range(layers))
        self.span = nn.Linear(WIDTH, 2)
        self.relevance = nn.Sequential(nn.Linear(2 * WIDTH, WIDTH), nn.GELU(), nn.Linear(WIDTH, 1))
        self.span_weight = nn.Parameter(torch.tensor(0.25))
        self.register_buffer("rarity", torch.ones(vocabulary))
        nn.init.zeros_(self.feature.weight)

    def embed(self, ids: Tensor, present: Tensor, in_passage: Tensor) -> Tensor:
        """Word, position and match embeddings of every token; float masks [B, L]."""
        in_question = (present - in_passage) * (ids >= SPECIAL_IDS).to(present.dtype)
        same = (ids.unsqueeze(2) == ids.unsqueeze(1)).to(present.dtype)
        asked = (same * in_question.unsqueeze(1)).amax(2) * in_passage
        said = (same * in_passage.unsqueeze(1)).amax(2) * in_question
        unsaid = (1 - said) * (present - in_passage)
        weight = self.rarity[ids]
        features = torch.stack((in_passage, asked * weight, said * weight, unsaid * weight), -1)
        summed = self.word(ids) + self.position.weight[: ids.shape[1]].unsqueeze(0) + features @ self.feature.weight
        return self.norm(summed)

    def forward(self, ids: Tensor, attention_mask: Tensor, passage_mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Token ids and 0/1 masks, all int64 [B, L], to (relevance, start, end) as in `Reading`."""
        present = attention_mask.to(self.rarity.dtype)
        in_passage = passage_mask.to(self.rarity.dtype)
        hidden = self.embed(ids, present, in_passage)
        mask = ((1 - present) * MASKED).view(ids.shape[0], 1, 1, ids.shape[1])
        for layer in self.layers:
            hidden = layer(hidden, mask)
        allowed = torch.cat([torch.ones_like(in_passage[:, :1]), in_passage[:, 1:]], 1)
        edges = self.span(hidden) + ((1 - allowed) * MASKED).unsqueeze(2)
        start, end = edges[:, :, 0], edges[:, :, 1]
        margin = (start[:, 1:].amax(1) - start[:, 0] + end[:, 1:].amax(1) - end[:, 0]) / 2
        mean = (hidden * present.unsqueeze(2)).sum(1) / present.sum(1, keepdim=True)
        relevance = self.relevance(torch.cat([hidden[:, 0], mean], 1)).squeeze(1) + self.span_weight * margin
        return relevance, start, end

    def read(self, ids: Tensor, attention_mask: Tensor, passage_mask: Tensor) -> Reading:
        """The forward pass with named results."""
        return Reading(*self(ids, attention_mask, passage_mask))


WARM_START_NAMES = {
    "word.": "word.",
    "pos.": "position.",
    "feat.": "feature.",
    "ln.": "norm.",
    "rel.": "relevance.",
    "span.": "span.",
    "alpha": "span_weight",
    "idf": "rarity",
}
WARM_START_LAYER_NAMES = {
    "qkv": "attend",
    "o": "mix",
    "ln1": "mix_norm",
    "fi": "widen",
    "fo": "narrow",
    "ln2": "narrow_norm",
}


def _renamed(name: str) -> str:
    if name.startswith("layers."):
        _, number, part, kind = name.split(".")
        return f"layers.{number}.{WARM_START_LAYER_NAMES[part]}.{kind}"
    for old, new in WARM_START_NAMES.items():
        if name.startswith(old):
            return new + name[len(old) :]
    raise KeyError(name)


def load_weights(path: Path) -> Reader:
    """A reader from a safetensors file: this module's names, or those of the first experiment."""
    tensors = {name: tensor.float() for name, tensor in load_file(path).items()}
    if "word.weight" in tensors and "position.weight" not in tensors:
        tensors = {_renamed(name): tensor for name, tensor in tensors.items()}
    layers = 1 + max(int(name.split(".")[1]) for name in tensors if name.startswith("layers."))
    reader = Reader(vocabulary=tensors["word.weight"].shape[0], layers=layers)
    reader.load_state_dict(tensors)
    return reader
