"""The vocabulary of multilingual-e5-small trimmed to what Chinese and English text uses.

Kept: special pieces, every piece the tokenizer uses on frequent words of both languages (wordfreq, Apache-2.0), every
single character (so that nothing becomes unknown that was not before), every piece of Chinese characters, digits and
punctuation, and short Latin ones.
The other pieces are dropped; a word that used one is spelt with several kept ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
from wordfreq import top_n_list

ENGLISH_WORDS = 150_000
CHINESE_WORDS = 150_000
BATCH = 4000
_ALWAYS = re.compile(r"▁?[A-Za-z0-9]{1,3}|[㐀-鿿々〇0-9\W▁]+")


def build_tokenizer(pieces: Sequence[str], *, scores: Sequence[float], unknown: int) -> Tokenizer:
    """Return the XLM-RoBERTa tokenizer (`<s> text </s>`) over the given unigram pieces; 0..3 are special."""
    tokenizer = Tokenizer(models.Unigram(list(zip(pieces, scores, strict=True)), unk_id=unknown, byte_fallback=False))
    spaces = [normalizers.Replace(Regex(pattern), " ") for pattern in (r"[\n\t\r]", " {2,}")]
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFKC(), *spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always", split=False)
    tokenizer.add_special_tokens([AddedToken(piece, special=True) for piece in pieces[:4]])
    begin, end = pieces[0], pieces[2]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} {end} $B {end}",
        special_tokens=[(begin, 0), (end, 2)],
    )
    return tokenizer


def select_pieces(tokenizer: Tokenizer, *, pieces: Sequence[str]) -> list[int]:
    """Return the kept piece ids, ascending; `tokenizer` is the untrimmed one over `pieces`."""
    english = top_n_list("en", ENGLISH_WORDS)
    chinese = top_n_list("zh", CHINESE_WORDS)
    texts = [*english, *map(str.capitalize, english), *map(str.upper, english[:10_000])]
    texts += [*chinese, *("的" + word for word in chinese)]
    kept = {0, 1, 2, 3} | _used(tokenizer, texts=texts)
    kept |= {number for number, piece in enumerate(pieces) if len(piece.removeprefix("▁")) <= 1}
    kept |= {number for number, piece in enumerate(pieces) if _ALWAYS.fullmatch(piece)}
    return sorted(kept)


def _used(tokenizer: Tokenizer, *, texts: Sequence[str]) -> set[int]:
    found: set[int] = set()
    for start in range(0, len(texts), BATCH):
        for encoding in tokenizer.encode_batch(texts[start : start + BATCH], add_special_tokens=False):
            found.update(encoding.ids)
    return found
