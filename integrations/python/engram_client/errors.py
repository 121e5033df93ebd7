"""What a call may end with instead of an answer."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpx

from engram_client.request import Call, join_answers


class EngramError(Exception):
    """Any failure of a call."""


class Unreachable(EngramError):
    """No answer came: the server is not there, or did not answer in time."""


class Closed(EngramError):
    """The client was closed before."""


class PartlyRefused(EngramError):
    """Of a batch, some lines were refused and the others stored.

    `answer` is the whole answer, in the order of the lines; `refused` has the refusals alone, each with the `index` of
    its line, a `status`, a `detail` and, where fields do not fit, `errors`. Where all were refused, it is an ApiError.
    """

    def __init__(self, *, name: str, answer: Mapping[str, Any]) -> None:
        self.answer = answer
        lines = answer[name]
        self.refused: Sequence[Mapping[str, Any]] = [line["error"] for line in lines if "error" in line]
        first = self.refused[0]
        super().__init__(
            f"{len(self.refused)} of {len(lines)} {name} were refused, the others are stored; "
            f"number {first['index']}: {first['status']}, {_told(str(first['detail']), first.get('errors') or {})}"
        )


def checked(name: str, answer: Any) -> Any:
    """Return an answer; raise PartlyRefused if some of the lines that it answers under a name were refused."""
    if name and any("error" in line for line in answer.get(name, ())):
        raise PartlyRefused(name=name, answer=answer)
    return answer


class ApiError(EngramError):
    """An answer that says what is wrong, as application/problem+json (RFC 9457) has it.

    `errors` has reasons by field; `problem` is the whole answer; `retry_after` are the seconds that it asks to wait.
    Of a batch that was refused as a whole, `detail` and `errors` tell of the first line; `problem` has them all.
    """

    def __init__(self, *, status: int, problem: Mapping[str, Any], retry_after: float | None = None) -> None:
        self.status = status
        self.problem = problem
        self.title = str(problem.get("title", ""))
        line = _first_refusal(problem)
        self.detail = " ".join(str(one["detail"]) for one in (problem, line) if one.get("detail"))
        self.errors: Mapping[str, Any] = problem.get("errors") or line.get("errors") or {}
        self.retry_after = retry_after
        super().__init__(f"{status} {self.title}: {_told(self.detail, self.errors)}")


def _told(detail: str, errors: Mapping[str, Any]) -> str:
    """Say what is wrong, with the fields that do not fit; what `detail` says already is not repeated."""
    fields = [f"{field}: {reason}" for field, reason in _by_field(errors) if reason not in detail]
    return " ".join([detail, *fields])


def _by_field(errors: object, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield each reason behind the field that it is about, named by its way through lists and objects."""
    if isinstance(errors, Mapping):
        for name, inner in errors.items():
            yield from _by_field(inner, f"{path}.{name}" if path else str(name))
    elif isinstance(errors, (list, tuple)):
        for inner in errors:
            yield from _by_field(inner, path)
    else:
        yield path, str(errors)


def _first_refusal(problem: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what is wrong with the first line of a batch that was refused as a whole; nothing of other problems."""
    lines = [line for told in problem.values() if isinstance(told, list) for line in told if isinstance(line, dict)]
    return next((line["error"] for line in lines if isinstance(line.get("error"), dict)), {})


class Answers:
    """The answers to the requests of one batch, some of which may be refused as a whole."""

    def __init__(self, call: Call[Any]) -> None:
        self._call, self._lines, self._refused = call, list[Mapping[str, Any]](), list[ApiError]()

    def add(self, answer: Mapping[str, Any]) -> None:
        """Add what a request was answered with."""
        self._lines += answer[self._call.lines]

    def add_refused(self, refused: ApiError) -> None:
        """Add the lines of a request of which none was stored; raise what is no answer to lines."""
        lines = refused.problem.get(self._call.lines)
        if not isinstance(lines, list):
            raise refused
        self._lines += lines
        self._refused.append(refused)

    def whole(self) -> Any:
        """Return one answer to the batch; raise PartlyRefused, or the ApiError if nothing of it was stored."""
        name, is_stored = self._call.lines, any("error" not in line for line in self._lines)
        answer = {name: join_answers(self._lines, parts=self._call.parts)}
        if is_stored or not self._refused:
            return checked(name, answer)
        first = self._refused[0]
        raise type(first)(status=first.status, problem={**first.problem, **answer}, retry_after=first.retry_after)


class BadRequest(ApiError):
    """400: what was sent cannot be read."""


class Unauthorized(ApiError):
    """401: no key, or one that opens nothing."""


class Forbidden(ApiError):
    """403: the key lacks a permission, which is named, or is limited to other projects."""


class NotFound(ApiError):
    """404: no such thing, or none that this key may see."""


class Conflict(ApiError):
    """409: it stands against what is there; `problem["id"]` may name it."""


class TooLarge(ApiError):
    """413: a text or a body is too long."""


class Invalid(ApiError):
    """422: `errors` says which fields do not fit, and why."""


class RateLimited(ApiError):
    """429: the key's rate is used up; `retry_after` says for how long."""


class ServerFailed(ApiError):
    """5xx: something went wrong on the other side."""


class Unavailable(ServerFailed):
    """503: not now; `retry_after` may say when."""


_BY_STATUS: Mapping[int, type[ApiError]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: Invalid,
    429: RateLimited,
    503: Unavailable,
}


def error_of(response: httpx.Response) -> ApiError:
    """Return the error that a response tells of; a page of a proxy is told as it is."""
    kind = _BY_STATUS.get(response.status_code) or (ServerFailed if response.status_code >= 500 else ApiError)
    return kind(
        status=response.status_code,
        problem=_problem_of(response),
        retry_after=_seconds(response.headers.get("Retry-After", "")),
    )


def _problem_of(response: httpx.Response) -> Mapping[str, Any]:
    try:
        told = response.json()
    except ValueError:
        told = None
    return told if isinstance(told, dict) else {"title": response.reason_phrase, "detail": response.text[:500]}


def _seconds(given: str) -> float | None:
    """Return how long Retry-After says to wait: it has seconds, or a moment."""
    try:
        return max(float(given), 0.0)
    except ValueError:
        pass
    try:
        moment = parsedate_to_datetime(given)
    except ValueError:
        return None
    return max((moment.astimezone(UTC) - datetime.now(UTC)).total_seconds(), 0.0)
