"""The errors that a caller can act on: the API, the tools and the commands read from each how to answer."""

from http import HTTPStatus
from typing import Any, ClassVar


class EngramError(Exception):
    """An error that is told to the caller in its own words; any other is a failure of ours and goes to the log.

    Each subclass stands beside the code that raises it. It derives from a builtin, too, where one is caught: an error
    of one workspace must not end a round for the others.
    """

    status: ClassVar[HTTPStatus] = HTTPStatus.CONFLICT
    field: ClassVar[str] = ""  # of the request, where the error is about one
    exit_status: ClassVar[int] = 1  # of a command; 2 is for bad usage
    wait: float | None = None  # seconds after which to try again

    @property
    def title(self) -> str:
        """Return the name of the status."""
        return self.status.phrase

    def members(self) -> dict[str, Any]:
        """Return what stands beside the standard members of a problem, such as `id` or `line`."""
        return {"errors": {self.field: [str(self)]}} if self.field else {}
