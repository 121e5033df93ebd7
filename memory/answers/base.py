"""What all answers share: an answer, and a number as people read it."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

DIGITS = 4  # further ones say nothing


class Answer(BaseModel):
    """An answer, read from the attributes of what it tells of.

    A field that is None by default is left out over HTTP, and null in the structured output of a tool.
    """

    model_config = ConfigDict(frozen=True, from_attributes=True)

    def as_text(self) -> str:
        """Return the answer as a text for a model: JSON without what is not there, unless there is a better one."""
        return self.model_dump_json(exclude_none=True)


def shorten_number(value: float) -> float:
    """Round a number to the digits that are shown."""
    return round(value, DIGITS)


Rounded = Annotated[float, AfterValidator(shorten_number)]
