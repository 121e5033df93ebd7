"""When two texts count as the same words (L4)."""

import hashlib
import re
import unicodedata

# A sentence ends after a letter: beside a digit or a symbol a mark may carry meaning (1.5, C++., C#:).
_MARKS = re.compile(r"[.,;:!?]+(?=\s|$)")
_ENDS_A_SENTENCE = frozenset(".!?")


def content_hash(text: str) -> str:
    """Return the SHA-256, in hexadecimal, of a text's words: NFKC, casefold, white space collapsed, no end marks."""
    return hashlib.sha256((_words_of(text) or text).encode()).hexdigest()


def holds_words(*, text: str, said: str) -> bool:
    """Tell whether a text holds all that was said, word for word and in one piece."""
    return f" {_words_of(said)} " in f" {_words_of(text)} "


def _words_of(text: str) -> str:
    return _drop_end_marks(" ".join(unicodedata.normalize("NFKC", text).casefold().split()))


def _drop_end_marks(words: str) -> str:
    """Remove the marks that end a sentence, or the whole text, directly after a letter."""
    return _MARKS.sub(lambda marks: "" if _is_final(words, marks) else marks.group(), words)


def _is_final(words: str, marks: re.Match[str]) -> bool:
    ends = marks.end() == len(words) or not _ENDS_A_SENTENCE.isdisjoint(marks.group())
    # Combining marks are the vowels of many scripts.
    return ends and marks.start() > 0 and unicodedata.category(words[marks.start() - 1])[0] in "LM"
