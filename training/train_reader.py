"""Train the reader from a warm start until a given time; resumable, seeded, learning rate falling to zero.

    PYTHONPATH=. python training/train_reader.py --start warm.safetensors --tokenizer tokenizer.json \\
        --out runs/reader --until 11:05

Writes `OUT.pt` (checkpoint, resumed from when it exists), `OUT.jsonl` (learning curve) and `OUT.safetensors`.
"""

from __future__ import annotations

import argparse
import datetime
import json
import random
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from corpus import load_corpus
from reader_model import EncoderLayer, Reader, load_weights
from safetensors.torch import save_file
from samples import Sample, SampleMaker
from sklearn.metrics import roc_auc_score
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional
from written_samples import WrittenMaker

from benchmarks.labelled import read_lines

START_ID, PAD_ID, END_ID = 0, 1, 2
QUESTION_TOKENS = 64
TOTAL_TOKENS = 256
IGNORED = -100
NEVER_TRAINED = ("popqa", "ohr-bench", "rgb")


@dataclass(frozen=True, slots=True)
class Encoded:
    """Token ids of a pair, where its passage stands, its label and its span (token positions)."""

    ids: list[int]
    first: int
    count: int
    answered: float
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded tensors of some pairs."""

    ids: Tensor
    attention: Tensor
    passage: Tensor
    answered: Tensor
    start: Tensor
    end: Tensor


def encode(samples: Sequence[Sample], *, tokenizer: Tokenizer) -> list[Encoded]:
    """Samples as token ids `<s> question </s></s> passage </s>`, cut at TOTAL_TOKENS."""
    questions = tokenizer.encode_batch([s.question for s in samples], add_special_tokens=False)
    passages = tokenizer.encode_batch([s.passage for s in samples], add_special_tokens=False)
    found = []
    for sample, asked, given in zip(samples, questions, passages, strict=True):
        question_ids = asked.ids[:QUESTION_TOKENS]
        room = TOTAL_TOKENS - len(question_ids) - 4
        first = len(question_ids) + 3
        start = end = IGNORED if sample.answered else 0
        answered = sample.answered
        if sample.answered and sample.span:
            low, high = sample.span
            inside = [n for n, (a, b) in enumerate(given.offsets) if b > low and a < high and b > a]
            if inside and inside[-1] < room:
                start, end = first + inside[0], first + inside[-1]
            elif inside:
                answered, start, end = False, 0, 0
        ids = [START_ID, *question_ids, END_ID, END_ID, *given.ids[:room], END_ID]
        found.append(Encoded(ids, first, min(room, len(given.ids)), float(answered), start, end))
    return found


def collate(pairs: Sequence[Encoded]) -> Batch:
    """Pairs padded to the longest."""
    length = max(len(pair.ids) for pair in pairs)
    ids = np.full((len(pairs), length), PAD_ID, dtype=np.int64)
    attention = np.zeros_like(ids)
    passage = np.zeros_like(ids)
    for row, pair in enumerate(pairs):
        ids[row, : len(pair.ids)] = pair.ids
        attention[row, : len(pair.ids)] = 1
        passage[row, pair.first : pair.first + pair.count] = 1
    return Batch(
        ids=torch.from_numpy(ids),
        attention=torch.from_numpy(attention),
        passage=torch.from_numpy(passage),
        answered=torch.tensor([pair.answered for pair in pairs]),
        start=torch.tensor([pair.start for pair in pairs]),
        end=torch.tensor([pair.end for pair in pairs]),
    )


def batches(maker: SampleMaker, *, tokenizer: Tokenizer, size: int) -> Iterator[tuple[list[str], Batch]]:
    """Endless batches of pairs of like length, with the kinds of their samples."""
    while True:
        drawn = [maker.draw() for _ in range(size * 24)]
        pairs = list(zip(encode(drawn, tokenizer=tokenizer), (s.kind for s in drawn), strict=True))
        pairs.sort(key=lambda pair: len(pair[0].ids) + maker.chance.random() * 4)
        groups = [pairs[i : i + size] for i in range(0, len(pairs), size)]
        maker.chance.shuffle(groups)
        for group in groups:
            yield [kind for _, kind in group], collate([pair for pair, _ in group])


def unseen_pairs(*, count: int) -> list[Sample]:
    """Labelled pairs of sources that are never trained on, as many of each language."""
    found = []
    for language in ("en", "zh"):
        rows = [r for r in read_lines(f"evaluator/pairs_{language}.jsonl") if r["source"].startswith(NEVER_TRAINED)]
        random.Random(5).shuffle(rows)
        found += [
            Sample(r["question"], r["passage"], bool(r["label"]), None, str(r["neg_type"]), language)
            for r in rows[:count]
        ]
    return found


def measure(reader: Reader, samples: Sequence[Sample], *, tokenizer: Tokenizer) -> dict[str, float]:
    """AUC by language over the samples."""
    pairs = encode(samples, tokenizer=tokenizer)
    order = sorted(range(len(pairs)), key=lambda n: len(pairs[n].ids))
    scores = np.zeros(len(pairs))
    reader.eval()
    with torch.inference_mode():
        for i in range(0, len(order), 16):
            chosen = order[i : i + 16]
            batch = collate([pairs[n] for n in chosen])
            scores[chosen] = reader.read(batch.ids, batch.attention, batch.passage).relevance.numpy()
    reader.train()
    labels = np.array([s.answered for s in samples])
    languages = np.array([s.language for s in samples])
    return {
        language: round(float(roc_auc_score(labels[languages == language], scores[languages == language])), 4)
        for language in ("en", "zh")
    }


def optimizer_for(reader: Reader, *, rate: float, frozen_layers: int) -> torch.optim.AdamW:
    """AdamW over all but the embeddings and the lowest layers; heads learn faster, biases don't decay."""
    for module in (reader.word, reader.position, reader.norm, *reader.layers[:frozen_layers]):
        for parameter in module.parameters():
            parameter.requires_grad = False
    heads = {id(p) for m in (reader.feature, reader.span, reader.relevance) for p in m.parameters()}
    heads.add(id(reader.span_weight))
    learned = [p for p in reader.parameters() if p.requires_grad]
    groups = [
        {"params": [p for p in learned if id(p) not in heads and p.dim() > 1], "peak": rate, "weight_decay": 0.01},
        {"params": [p for p in learned if id(p) not in heads and p.dim() <= 1], "peak": rate, "weight_decay": 0.0},
        {"params": [p for p in learned if id(p) in heads], "peak": rate * 3, "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=rate, betas=(0.9, 0.98), fused=True)


def loss_of(reader: Reader, batch: Batch, *, half: bool) -> tuple[Tensor, float, float]:
    """Loss to minimise, and its answerability and span parts."""
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=half):
        reading = reader.read(batch.ids, batch.attention, batch.passage)
    answerability = functional.binary_cross_entropy_with_logits(reading.relevance.float(), batch.answered)
    start, end = reading.start.float(), reading.end.float()
    span = functional.cross_entropy(start, batch.start) + functional.cross_entropy(end, batch.end)
    return answerability + 0.5 * span, answerability.item(), span.item() / 2


@dataclass(slots=True)
class Progress:
    """Where a run stands; saved with its checkpoint."""

    steps: int = 0
    samples: int = 0
    begun: float = 0.0


class Run:
    """One training run with its files."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        torch.set_flush_denormal(True)
        torch.set_num_threads(arguments.threads)
        torch.manual_seed(arguments.seed)
        self.out: Path = arguments.out
        self.half: bool = arguments.half
        self.out.parent.mkdir(parents=True, exist_ok=True)
        self.tokenizer = Tokenizer.from_file(str(arguments.tokenizer))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        corpus = load_corpus()
        self.maker = WrittenMaker(corpus, seed=arguments.seed, long=arguments.long, share=arguments.written)
        held_out = SampleMaker(corpus, seed=777, held_out=True)
        written = WrittenMaker(corpus, seed=778, held_out=True, share=1.0)
        self.checks = {
            "held_out": [held_out.draw() for _ in range(200)],
            "written": [written.draw() for _ in range(300)],
            "unseen": unseen_pairs(count=120),
        }
        self.reader = load_weights(arguments.start)
        for layer in self.reader.layers:
            assert isinstance(layer, EncoderLayer)
            layer.dropout = arguments.dropout
            layer.explicit = arguments.half
        self.optimizer = optimizer_for(self.reader, rate=arguments.rate, frozen_layers=arguments.frozen)
        self.progress = Progress(begun=time.time())
        if self.checkpoint.exists():
            self._resume()

    @property
    def checkpoint(self) -> Path:
        """Where the run resumes from."""
        return self.out.with_suffix(".pt")

    def _resume(self) -> None:
        saved: dict[str, Any] = torch.load(self.checkpoint, weights_only=False)
        self.reader.load_state_dict(saved["reader"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.maker.chance.setstate(saved["chance"])
        self.progress = Progress(**saved["progress"])

    def save(self) -> None:
        """Write the checkpoint, replacing the last one only when complete."""
        part = self.out.with_suffix(".part")
        saved = {
            "reader": self.reader.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "chance": self.maker.chance.getstate(),
            "progress": asdict(self.progress),
        }
        torch.save(saved, part)
        part.replace(self.checkpoint)
        tensors = {name: tensor.half().contiguous() for name, tensor in self.reader.state_dict().items()}
        save_file(tensors, self.out.with_suffix(".safetensors"))

    def log(self, **values: object) -> None:
        """Add a line to the learning curve."""
        line = json.dumps({"time": round(time.time() - self.progress.begun), **asdict(self.progress), **values})
        with self.out.with_suffix(".jsonl").open("a", encoding="utf-8") as curve:
            curve.write(line + "\n")
        print(line, flush=True)

    def measure(self) -> None:
        """Measure all checks into the learning curve."""
        found = {n: measure(self.reader, s, tokenizer=self.tokenizer) for n, s in self.checks.items()}
        self.log(auc=found)

    def train(self, *, until: float, size: int, warm_up: int, check_minutes: float) -> None:
        """Train until the given time (seconds since the epoch)."""
        kinds: Counter[str] = Counter()
        losses: list[tuple[float, float]] = []
        checked = saved = time.time()
        self.reader.train()
        for names, batch in batches(self.maker, tokenizer=self.tokenizer, size=size):
            now = time.time()
            if now >= until:
                break
            left = (until - now) / (until - self.progress.begun)
            for group in self.optimizer.param_groups:
                group["lr"] = group["peak"] * left * min(1.0, (self.progress.steps + 1) / warm_up)
            loss, answerability, span = loss_of(self.reader, batch, half=self.half)
            loss.backward()
            torch.nn.utils.clip_grad_norm_([p for p in self.reader.parameters() if p.requires_grad], 1.0)
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
            kinds.update(names)
            losses.append((answerability, span))
            self.progress.steps += 1
            self.progress.samples += len(names)
            if self.progress.steps % 50 == 0:
                mean = np.mean(losses[-50:], axis=0)
                self.log(answerability=round(float(mean[0]), 4), span=round(float(mean[1]), 4), left=round(left, 3))
            if now - saved > 150:
                self.save()
                saved = now
            if now - checked > check_minutes * 60:
                self.measure()
                checked = time.time()
        self.measure()
        self.save()
        self.log(kinds=dict(kinds))


def clock(text: str) -> float:
    """HH:MM of today (UTC) as seconds since the epoch."""
    hour, minute = (int(part) for part in text.split(":"))
    now = datetime.datetime.now(tz=datetime.UTC)
    return now.replace(hour=hour, minute=minute, second=0).timestamp()


def main() -> None:
    """Parse the command line and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--start", type=Path, required=True, help="warm start (safetensors)")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--until", type=clock, required=True, help="HH:MM, UTC, today")
    parser.add_argument("--rate", type=float, default=1.2e-4)
    parser.add_argument("--size", type=int, default=16)
    parser.add_argument("--frozen", type=int, default=2)
    parser.add_argument("--dropout", type=float, default=0.0, help="share of each layer's outputs; 0.1 in later runs")
    parser.add_argument("--written", type=float, default=0.6, help="share of samples from the written documents")
    parser.add_argument("--warm-up", type=int, default=60)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--check-minutes", type=float, default=15.0)
    parser.add_argument("--half", action="store_true", help="products in bfloat16; faster where the processor has them")
    parser.add_argument("--long", action="store_true", help="longer passages; for the second half of a run")
    parser.add_argument("--check-first", action="store_true", help="measure the warm start too")
    arguments = parser.parse_args()
    run = Run(arguments)
    if arguments.check_first:
        run.measure()
    run.train(
        until=arguments.until,
        size=arguments.size,
        warm_up=arguments.warm_up,
        check_minutes=arguments.check_minutes,
    )


if __name__ == "__main__":
    main()
