"""Bodies that are one line, or many under a name: each line is answered for itself, and the good ones are kept."""

from collections.abc import Callable, Sequence
from typing import Any, Literal

from pydantic import BaseModel
from rest_framework.response import Response

from memory.api.problems import CONTENT_TYPE, problem, without_secrets
from memory.ingest.schemas import INGEST, Rejected


class LineError(BaseModel):
    """Why a line was not stored."""

    index: int
    status: Literal[403, 409, 413, 422]
    detail: str
    errors: dict[str, list[str]] | None = None


def answer_lines(
    *,
    body: object,
    name: str,
    take: Callable[[Sequence[object]], Sequence[Any]],
    as_json: Callable[[Any], dict[str, Any]],
    status: int,
) -> Response:
    """Take one line, or those under the name of a batch, and answer with this status; a single bad one is a problem."""
    if not isinstance(body, dict) or name not in body:
        outcome = take([body])[0]
        if isinstance(outcome, Rejected):
            return _problem(status=outcome.status, detail=outcome.detail, **_errors(outcome))
        return Response({name: [as_json(outcome)]}, status=status)
    return _refuse_batch(body, name) or _answer_many(take(body[name]), name, as_json, status)


def _refuse_batch(body: dict[str, Any], name: str) -> Response | None:
    """Refuse a batch that is none as a whole."""
    lines, errors = body[name], {}
    if not isinstance(lines, list):
        errors[name] = ["A list is expected."]
    elif len(lines) > INGEST.bulk_items:
        errors[name] = [f"At most {INGEST.bulk_items} {name} fit into one request."]
    if len(body) > 1:
        errors["line"] = [f"Beside `{name}` there is no other field."]
    return _problem(status=422, detail="The batch is not valid.", errors=errors) if errors else None


def _answer_many(outcomes: Sequence[Any], name: str, as_json: Callable[[Any], dict[str, Any]], status: int) -> Response:
    """Answer each line; a batch of which nothing was stored is a problem, of its lines' common status if any."""
    answers = [_answer(index, outcome, as_json) for index, outcome in enumerate(outcomes)]
    statuses = {outcome.status for outcome in outcomes if isinstance(outcome, Rejected)}
    if not outcomes or any(not isinstance(outcome, Rejected) for outcome in outcomes):
        return Response({name: answers}, status=status)
    common = statuses.pop() if len(statuses) == 1 else 422
    return _problem(status=common, detail=f"None of the {name} was stored.", **{name: answers})


def _answer(index: int, outcome: Any, as_json: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    if isinstance(outcome, Rejected):
        told = without_secrets({"detail": outcome.detail, **_errors(outcome)})
        return {"error": {"index": index, "status": outcome.status, **told}}
    return as_json(outcome)


def _errors(outcome: Rejected) -> dict[str, Any]:
    return {"errors": outcome.errors} if outcome.errors else {}


def _problem(*, status: int, detail: str, **members: Any) -> Response:
    body = without_secrets(problem(status=status, detail=detail, **members))
    return Response(body, status=status, content_type=CONTENT_TYPE)
