"""What is read of an answer in OpenAI's protocol, strictly: the parts that count, each of its one type.

The client's own models are not used: they take any shape for an answer, and a second for each ten thousand wrong rows.
"""

import gc
import json
from decimal import Decimal
from typing import Annotated, Any, TypeVar

from django.conf import settings
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory.llm.replies import Items, MalformedReply, explain

BATCH_TEXTS = 256  # the most that one call asks vectors for
MOST_CHOICES = 16  # one is asked for
MOST_TOKENS = 10_000_000  # no model reads or writes as much in one call
MOST_COST_USD = Decimal(10_000)  # what the ledger's column does not hold any more
_MILLION = Decimal(1_000_000)

Count = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


class _Told(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Usage(_Told):
    """Tokens of one call as its server counted them; None where it told nothing."""

    prompt_tokens: Count | None = None
    completion_tokens: Count | None = None


class _Message(_Told):
    content: str | None = None
    refusal: str | None = None


class _Choice(_Told):
    message: _Message


class ChatAnswer(_Told):
    """An answer in words."""

    choices: Annotated[Items[_Choice], Field(min_length=1, max_length=MOST_CHOICES)]
    usage: Usage | None = None

    @property
    def text(self) -> str:
        """Return the words; those that refuse where there are no others."""
        message = self.choices[0].message
        return message.content or message.refusal or ""


class _Row(_Told):
    index: int
    embedding: Any  # base64, or numbers that numpy looks at: a batch has hundreds of thousands of them


class VectorsAnswer(_Told):
    """An answer in vectors."""

    data: Annotated[Items[_Row], Field(max_length=BATCH_TEXTS)]
    usage: Usage | None = None


AnyAnswer = TypeVar("AnyAnswer", ChatAnswer, VectorsAnswer)


def read_answer(kind: type[AnyAnswer], body: bytes, *, model: str) -> AnyAnswer:
    """Read a body as an answer of a kind; raise MalformedReply, also for counts and costs that no call can have."""
    try:
        answer = kind.model_validate(_load(body))
    except (ValueError, RecursionError) as error:
        told = explain(error) if isinstance(error, ValidationError) else "not JSON"
        raise MalformedReply(f"the server's answer: {told}") from error
    usage = answer.usage or Usage()
    cost = cost_of(model=model, input_tokens=usage.prompt_tokens or 0, output_tokens=usage.completion_tokens or 0)
    if cost >= MOST_COST_USD:
        raise MalformedReply(f"the server's counts of tokens make {cost:.0f} US dollars for one call")
    return answer


def _load(body: bytes) -> Any:
    """Parse JSON with the collector at rest: it would look at five million new lists again and again, for seconds."""
    is_collecting = gc.isenabled()
    gc.disable()
    try:
        return json.loads(body)
    finally:
        if is_collecting:
            gc.enable()


def cost_of(*, model: str, input_tokens: int, output_tokens: int) -> Decimal:
    """Return the price of a call in US dollars; a model without a price costs nothing."""
    sent, received = (Decimal(str(price)) for price in settings.ENGRAM_PRICES.get(model, (0, 0)))
    return (sent * input_tokens + received * output_tokens) / _MILLION
