"""What is said of an address under the API's prefix that names nothing: how far it leads, and what could follow."""

import re
from collections.abc import Iterator, Sequence

from django.http import HttpRequest, JsonResponse
from django.urls import URLPattern
from django.views.decorators.csrf import csrf_exempt

from memory.api.problems import API_PREFIX, plain_problem
from memory.api.urls import urlpatterns
from memory.redaction.redact import redact

_ROOT = f"{API_PREFIX}v1"
_LONGEST = 300  # characters of an address that are repeated


@csrf_exempt
def unknown_route(request: HttpRequest) -> JsonResponse:
    """Answer for every address under the API's prefix that names nothing."""
    return plain_problem(status=404, detail=redact(_describe(request.path)).text)


def _describe(path: str) -> str:
    nothing = f"There is nothing at {path[:_LONGEST]}"
    if path != _ROOT and not path.startswith(f"{_ROOT}/"):
        return f"{nothing}: the API is at {_ROOT}, and /api/docs describes it."
    known = [_parts_of(pattern) for pattern in urlpatterns]
    led = _ROOT
    for place, word in enumerate(path.removeprefix(_ROOT).split("/")[1:]):
        fitting = [parts for parts in known if len(parts) > place and parts[place].fits(word)]
        if not fitting:
            return f"{nothing}: {_what_follows(led, known, place)}"
        known, led = fitting, f"{led}/{word}"
    return f"{nothing}: {_what_follows(led, known, led.count('/') - _ROOT.count('/'))}"


class _Part:
    """A part of a route: a word, or what a converter takes."""

    def __init__(self, text: str, pattern: URLPattern) -> None:
        self._converter = pattern.pattern.converters.get(text.strip("<>").rpartition(":")[2]) if "<" in text else None
        self._word = text

    def fits(self, word: str) -> bool:
        if self._converter is None:
            return word == self._word
        return re.fullmatch(self._converter.regex, word) is not None

    def expected(self) -> Sequence[str]:
        """Name what can stand here."""
        return (self._word,) if self._converter is None else getattr(self._converter, "expected", ("a number",))


def _parts_of(pattern: URLPattern) -> list[_Part]:
    return [_Part(text, pattern) for text in str(pattern.pattern).split("/")]


def _what_follows(led: str, known: Sequence[Sequence[_Part]], place: int) -> str:
    found = dict.fromkeys(_expected_at(known, place))
    if not found:
        return f"nothing follows {led}."
    *others, last = found
    return f"{led} is followed by {', '.join(others)}{' or ' if others else ''}{last}."


def _expected_at(known: Sequence[Sequence[_Part]], place: int) -> Iterator[str]:
    for parts in known:
        if len(parts) > place:
            yield from parts[place].expected()
