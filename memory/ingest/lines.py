"""An episode line as people and programs send it, checked before anything is stored."""

import hashlib
import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeVar

from django.conf import settings
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from memory.domain.category import Category
from memory.redaction.redact import has_known_secret

INGEST = settings.POLICY.ingest

_TOO_LONG = "text_too_long"
_MOST_REASONS = 20
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)?", re.ASCII)
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")
_SLUG_PATTERN = r"^[-\w]+$"
_LANGUAGE_PATTERN = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$"

# What is wrong, in words of JSON, by the checker's name for it; of a pattern, by the pattern.
_WORDS = {
    "missing": "This field is required.",
    "extra_forbidden": "There is no such field.",
    "string_type": "A text is expected.",
    "list_type": "A list is expected.",
    "float_type": "A number is expected.",
    "finite_number": "A number from 0 to 1 is expected.",
    "greater_than_equal": "A number from 0 to 1 is expected.",
    "less_than_equal": "A number from 0 to 1 is expected.",
    "string_too_short": "It is empty.",
    "string_too_long": "At most {max_length} characters are allowed.",
    "too_long": "At most {max_length} are allowed.",
    "literal_error": "One of these is expected: {expected}.",
    _SLUG_PATTERN: "One or more letters, digits, - and _ are expected.",
    _LANGUAGE_PATTERN: "A language is expected, such as en or de-AT.",
}


class BadLine(ValueError):
    """A line that is refused, with the status that HTTP has for it and the reasons by field."""

    def __init__(self, *, status: int, detail: str, errors: Mapping[str, list[str]]) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.errors = errors


def _refuse_unstorable(text: str) -> str:
    if _UNSTORABLE.search(text):
        raise PydanticCustomError("unstorable", "NUL and halves of surrogate pairs are not allowed.")
    return text


def _refuse_secret(slug: str) -> str:
    """Refuse what nobody meant as a name: a slug is kept as it is sent, and stands in lists for all to see."""
    if has_known_secret(slug):
        raise PydanticCustomError("secret", "This looks like a key or a token, which must not name a project.")
    return slug


def _read_time(value: object) -> object:
    """Turn an RFC 3339 time into a moment of UTC."""
    if value is None:
        return None
    if not isinstance(value, str) or not _RFC_3339.fullmatch(value):
        raise PydanticCustomError("time", "A time as RFC 3339 has it is expected, such as 2026-03-01T12:00:00Z.")
    if value[-1] not in "zZ" and value[-6] not in "+-":
        raise PydanticCustomError("naive_time", "The time needs an offset, such as Z or +01:00.")
    try:
        return datetime.fromisoformat(value.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise PydanticCustomError("time", "There is no such time.") from None


def _refuse_far_future(moment: datetime | None, info: ValidationInfo) -> datetime | None:
    latest = (info.context or {})["now"] + timedelta(days=settings.POLICY.ingest.future_days)
    if moment is not None and moment > latest:
        raise PydanticCustomError("future", "The time lies too far in the future.")
    return moment


def _check_text(text: str) -> str:
    if not text.strip():
        raise PydanticCustomError("empty", "The text is empty.")
    most = settings.POLICY.ingest.text_bytes
    if len(text.encode()) > most:
        raise PydanticCustomError(_TOO_LONG, "The text is longer than {most} bytes.", {"most": most})
    return text


def _check_category(name: str) -> str:
    if name and name not in set(Category):
        raise PydanticCustomError("category", "One of these is expected: {names}.", {"names": ", ".join(Category)})
    return name


def _main_language(tag: str) -> str:
    """Keep the language of a tag such as de-AT."""
    return tag.partition("-")[0].lower()


Line = TypeVar("Line", bound="EpisodeLine")
STORABLE = AfterValidator(_refuse_unstorable)
Name = Annotated[str, Field(max_length=200), STORABLE]
Slug = Annotated[str, Field(max_length=100, pattern=_SLUG_PATTERN), STORABLE, AfterValidator(_refuse_secret)]
Entity = Annotated[str, Field(min_length=1, max_length=200), STORABLE]
_SLUG: TypeAdapter[str] = TypeAdapter(Slug)
Tag = Annotated[str, Field(min_length=1, max_length=100), STORABLE]
Language = Annotated[str, Field(max_length=35, pattern=_LANGUAGE_PATTERN), AfterValidator(_main_language)]
Time = Annotated[datetime, BeforeValidator(_read_time, json_schema_input_type=datetime)]
PastTime = Annotated[Time | None, AfterValidator(_refuse_far_future)]
Text = Annotated[str, STORABLE, AfterValidator(_check_text)]
Key = Annotated[str, Field(min_length=1, max_length=200), STORABLE]


class EpisodeLine(BaseModel):
    """One thing that happened or was said. All but the text may be left out, or null."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)

    text: Text
    project: Slug | None = None
    user: Name | None = None
    agent: Name | None = None
    session: Name | None = None
    document: Annotated[str, Field(max_length=400), STORABLE] | None = None
    speaker: Name | None = None
    source: Literal["human", "ai", "interaction", "ingest"] | None = None
    occurred_at: PastTime = None
    valid_until: Time | None = None
    entities: Annotated[list[Entity], Field(max_length=INGEST.entities)] | None = None
    category: Annotated[str, AfterValidator(_check_category)] | None = None
    importance: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    tags: Annotated[list[Tag], Field(max_length=INGEST.tags)] | None = None
    language: Language | None = None
    idempotency_key: Key | None = None

    def fingerprint(self) -> str:
        """Return the SHA-256 of the line's canonical JSON: keys sorted, what was left out or null not there."""
        return fingerprint(self.model_dump(mode="json", exclude_none=True))


def fingerprint(given: Mapping[str, object]) -> str:
    """Return the SHA-256 of an object's canonical JSON."""
    canonical = json.dumps(given, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class ExtractedLine(EpisodeLine):
    """A line made of turns; what it has beside an episode line is no caller's to send."""

    confidence: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] | None = None
    valence: Annotated[float, Field(ge=-1, le=1, allow_inf_nan=False)] = 0.0
    causes: list[Annotated[str, STORABLE]] = []
    is_derived: bool = False


def read_line(*, raw: object, now: datetime) -> EpisodeLine:
    """Check one line as JSON gave it; raise BadLine with every reason."""
    return _read(EpisodeLine, raw, now)


def read_extracted_line(*, raw: object, now: datetime) -> ExtractedLine:
    """Check a line made of turns; raise BadLine with every reason."""
    return _read(ExtractedLine, raw, now)


def _read(kind: type[Line], raw: object, now: datetime) -> Line:
    if not isinstance(raw, dict):
        raise BadLine(status=422, detail="An episode is a JSON object.", errors={})
    try:
        return kind.model_validate(raw, context={"now": now})
    except ValidationError as error:
        raise bad_line(error.errors(include_url=False, include_input=False)) from None


def is_slug(text: str) -> bool:
    """Tell whether a text can name a project."""
    try:
        return bool(_SLUG.validate_python(text))
    except ValidationError:
        return False


def bad_line(reasons: list[ErrorDetails]) -> BadLine:
    """Say in words what a checker found wrong with a line."""
    errors: dict[str, list[str]] = {}
    for reason in reasons[:_MOST_REASONS]:
        errors.setdefault(_field_name(reason), []).append(_in_words(reason))
    is_too_long = any(reason["type"] == _TOO_LONG for reason in reasons)
    detail = "; ".join(f"{field}: {words}" for field, all_words in errors.items() for words in all_words)
    return BadLine(status=413 if is_too_long else 422, detail=detail, errors=errors)


def _in_words(reason: ErrorDetails) -> str:
    context = reason.get("ctx", {})
    words = _WORDS.get(reason["type"]) or _WORDS.get(context.get("pattern", "")) or reason["msg"]
    return words.format_map(context) if reason["type"] in _WORDS else words


def _field_name(reason: ErrorDetails) -> str:
    """Name the field in characters that can be sent back."""
    name = ".".join(str(part) for part in reason["loc"])
    return name[:100].encode("utf-8", "replace").decode() or "line"
