"""Read JSON that somebody else wrote, within bounded memory, and say in their words why it is none."""

import json
from collections.abc import Iterator
from itertools import accumulate
from typing import Protocol

LONGEST = 64 * 2**20  # bytes of a line, or of a conversation in an export
TOO_LONG = f"it is longer than {LONGEST // 2**20} MiB"
TOO_DEEP = "it is nested too deeply"
LONGEST_TEXT = 16 * 2**20  # bytes of a text in an export: the parser looks at it anew with every block that it reads
_LONG_TEXT = f"a text in it is longer than {LONGEST_TEXT // 2**20} MiB"
_DEEPEST = 100  # levels; exports have ten
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))

# The parser's own words are kept where they speak of JSON; these do not.
_WORDS = {
    "Extra data": "there is more after its end",
    "Expecting value": "a value is missing, or is none that JSON knows",
    "Invalid control character at": "a control character stands in a text",
}


class NotJson(ValueError):
    """Bytes that are no JSON; the text says where and why."""


def read_json(raw: bytes) -> object:
    """Parse UTF-8 bytes, unless they are too many.

    NaN and infinity get through, and whoever checks the fields refuses them by name.
    """
    if len(raw) > LONGEST:
        raise NotJson(TOO_LONG)
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start + 1} is no UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"{f'line {error.lineno}, ' if error.lineno > 1 else ''}column {error.colno}"
        raise NotJson(f"{place}: {_WORDS.get(error.msg, error.msg[:1].lower() + error.msg[1:])}") from None
    except RecursionError:
        raise NotJson(TOO_DEEP) from None
    except ValueError:  # what is left: Python reads no number of more than 4,300 digits
        raise NotJson("a number in it has too many digits") from None


class Readable(Protocol):
    """What bytes come from."""

    def read(self, size: int = -1, /) -> bytes:
        """Return so many bytes, or fewer."""


class BoundedJson:
    """A stream of JSON that is read no further where it would take too much memory: it raises NotJson.

    A parser keeps a value until it ends, and the path to it: 64 MiB of opening brackets would take it 19 GB.
    """

    def __init__(self, stream: Readable) -> None:
        self._stream, self._since_begin = stream, 0
        self._depth, self._is_text, self._is_escaped, self._text_bytes = 0, False, False, 0

    def begin(self) -> None:
        """Count the bytes of a new value."""
        self._since_begin = 0

    def read(self, size: int = -1) -> bytes:
        """Return so many bytes, or fewer."""
        block = self._stream.read(size)
        self._since_begin += len(block)
        if self._since_begin > LONGEST:
            raise NotJson(TOO_LONG)
        if block and self._deepest_in(block) > _DEEPEST:
            raise NotJson(TOO_DEEP)
        if self._text_bytes > LONGEST_TEXT:
            raise NotJson(_LONG_TEXT)
        return block

    def _deepest_in(self, block: bytes) -> int:
        """Return how deep a block leads, brackets within texts left out."""
        size = len(block)
        if self._is_escaped:
            block = block[1:]
        block = block.replace(b"\\\\", b"")
        self._is_escaped = block.endswith(b"\\")
        pieces = block.replace(b'\\"', b"").split(b'"')
        outside = b"".join(pieces[self._is_text :: 2])
        before = self._text_bytes + size if len(pieces) == 1 else len(pieces[-1])
        self._is_text ^= len(pieces) % 2 == 0
        self._text_bytes = before if self._is_text else 0
        changes = (1 if bracket in b"[{" else -1 for bracket in outside.translate(None, _NO_BRACKETS))
        depths = list(accumulate(changes, initial=self._depth))
        self._depth = depths[-1]
        return max(depths)


class HasLines(Protocol):
    """What lines come from."""

    def readline(self, size: int = -1, /) -> bytes:
        """Return a line, or so many bytes of it."""


def read_lines(stream: HasLines) -> Iterator[bytes]:
    """Read a stream line by line; of one that is too long, what is over is passed over."""
    while line := stream.readline(LONGEST + 1):
        end = line[-1:]
        while len(line) > LONGEST and end not in (b"\n", b""):
            end = stream.readline(LONGEST)[-1:]
        yield line if len(line) <= LONGEST else line + b"\n"
