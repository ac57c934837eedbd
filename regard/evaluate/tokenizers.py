"""Which of sacreBLEU's tokenizers BLEU needs, by the target language: words between spaces are no measure of a language
that is written without them."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Sequence
from functools import cache

from sacrebleu.metrics.bleu import BLEU

USUAL = "13a"
PREFERRED = {"zh": ("zh",), "ja": ("ja-mecab", "char"), "ko": ("ko-mecab", "char"), "unspaced": ("char",)}
"""The best first; one that needs a package which is not installed is passed over."""
FAMILIES = {
    "zh": "zh cmn zho chi yue wuu lzh nan hak",
    "ja": "ja jpn",
    "ko": "ko kor",
    "unspaced": "th tha lo lao km khm my mya bur bo bod tib dz dzo",
}
"""Codes of ISO 639 by what they need; any other language has spaces."""
SCRIPTS = {
    "CJK": "zh",
    "HIRAGANA": "ja",
    "KATAKANA": "ja",
    "HANGUL": "ko",
    "THAI": "unspaced",
    "LAO": "unspaced",
    "KHMER": "unspaced",
    "MYANMAR": "unspaced",
    "TIBETAN": "unspaced",
}
"""First words of the Unicode names of letters."""
SAMPLE = 20_000
"""Characters that are enough to tell a script."""
KANA = 0.1
"""Share of the letters from which Chinese characters are Japanese."""


def tokenizer_for(language: str, texts: Sequence[str] = ()) -> str:
    """sacreBLEU's, by a code such as `ja` or `zh-CN`; for any other code, or none, by the script of the texts."""
    base = language.replace("_", "-").partition("-")[0].lower()
    named = next((family for family, codes in FAMILIES.items() if base in codes.split()), None)
    family = named or family_of(texts)
    return USUAL if family is None else next(name for name in PREFERRED[family] if is_installed(name))


def family_of(texts: Sequence[str]) -> str | None:
    """By the script of most of their letters; None where it is one with spaces."""
    letters = Counter(filter(str.isalpha, sample_of(texts)))
    found: Counter[str | None] = Counter()
    for letter, count in letters.items():
        found[SCRIPTS.get(unicodedata.name(letter, "").partition(" ")[0])] += count
    if found["ja"] >= KANA * max(found.total(), 1):
        found["ja"] += found.pop("zh", 0)
    return found.most_common(1)[0][0] if found else None


def sample_of(texts: Sequence[str]) -> str:
    """The beginnings of texts from all over the corpus."""
    step = max(1, len(texts) // 200)
    return "".join(text[: SAMPLE // 200] for text in texts[::step])[:SAMPLE]


@cache
def is_installed(name: str) -> bool:
    """Whether sacreBLEU has what the tokenizer needs; those by MeCab are extras of it."""
    try:
        BLEU(tokenize=name)
    except Exception:  # each complains in its own way
        return False
    return True
