"""Tell what nobody said: what programs print, and frames round what was taken out of a text (L3)."""

import re

from memory.domain.lexicon import ENGLISH_STOPS, GERMAN_STOPS, words
from memory.domain.sentences import list_words

_LEVEL = r"(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|FATAL|CRITICAL)"
_CLOCK = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"
_KEY = r"(?:\"[^\"\n]{1,80}\"|'[^'\n]{1,80}')"
_VALUE = r"(?:[\"'\[{]|-?\d|(?:true|false|null|True|False|None)\b)"
_TRACEBACK = re.compile(
    r"^[ \t]*Traceback \(most recent call last\)[^\n]*(?:\n[ \t]+[^\n]*)*(?:\n[\w.]+(?:: [^\n]*)?(?=\n|\Z))?",
    re.MULTILINE,
)
_LINE = re.compile(
    r"^[ \t]*(?:"
    r"File \"[^\"\n]+\", line \d+"
    r"|at [\w$.<>]+(?: \[as \w+\])? ?\([^)\s]*:\d+(?::\d+)?\)"
    r"|(?:[a-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)(?:: |[ \t]*$)"
    r"|(?:Caused by: |Exception in thread |panic: |goroutine \d+ \[)"
    rf"|{_KEY}[ \t]*:[ \t]*{_VALUE}"
    rf"|\{{[ \t]*{_KEY}[ \t]*:(?:.*\}}[,;. \t]*$|[^}}\n]*$)"
    rf"|\[[ \t]*(?:{_KEY}[ \t]*[,\]]|\{{[ \t]*{_KEY}|\[[ \t]*[\d\"'\[-]).*\][,;. \t]*$"
    rf"|\[?{_LEVEL}\]?[: \t][^\n]*{_CLOCK}|\[?{_CLOCK}[^\n]* \[?{_LEVEL}\b"
    r"|\$ [a-z]|diff --git |@@ -\d|[d-][rwx-]{9}[ \t]"
    r")[^\n]*$",
    re.MULTILINE,
)
_OBJECT = re.compile(rf"\{{[ \t]*{_KEY}[ \t]*:[^{{}}]*\}}")
# A marker may have been cut off where a sentence was shortened.
_CUT_MARKER = r"\[redacted(?:: [^\]\n]{0,60})?(?:\]|$)"
_MARKER = re.compile(_CUT_MARKER)
# "The code of the safe is [redacted: …]", in one clause.
_VALUELESS = re.compile(
    r"(?:(?! (?:and|but|und|aber) )[^,;.!?])*(?:\b(?:is|are|was|were|be|to|ist|war|lautet|heißt)|[:=]) "
    rf"?(?:now |still |jetzt )?[\"'`]?{_CUT_MARKER}[\"'`.! ]*",
    re.IGNORECASE,
)
_FRAME = words(
    "user user's users assistant assistant's nutzer assistent password passwords passphrase passcode pin api key keys "
    "token tokens secret secrets credential credentials login private access card number code passwort kennwort "
    "schlüssel geheimnis use uses used set redacted tool tools result results output response json returned returns "
    "printed answered says said please remember"
)


def drop_output(text: str) -> str:
    """Drop the lines that programs print: tracebacks, JSON, logs with a time, diffs, and commands typed at a prompt."""
    return _LINE.sub("", _TRACEBACK.sub("", text))


def is_output(text: str) -> bool:
    """Tell a text that is nothing but what a program printed, or a frame round it ("The tool returned {…}")."""
    return not any(map(str.isalnum, drop_output(text))) or _is_frame(text, _OBJECT)


def is_redacted_away(text: str) -> bool:
    """Tell a text that says nothing any more since its secret was taken out ("My password is [redacted: …].")."""
    return _VALUELESS.fullmatch(text.strip()) is not None or _is_frame(text, _MARKER)


def _is_frame(text: str, hole: re.Pattern[str]) -> bool:
    """Tell whether next to nothing is left of a text beside its holes."""
    rest, holes = hole.subn(" ", text)
    told = [word for word in map(str.lower, list_words(rest)) if word not in ENGLISH_STOPS | GERMAN_STOPS | _FRAME]
    return holes > 0 and len(told) < 2
