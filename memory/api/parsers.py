"""Bodies: JSON, of bounded size."""

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from memory.ingest.json_lines import NotJson, read_json


class BodyTooLarge(APIException):
    """A body that is longer than the policy allows."""

    status_code = 413


class BoundedJSONParser(BaseParser):
    """Read JSON up to the greatest size of a body.

    NaN and infinity get through: whoever checks the fields refuses them by name, in their item of a batch.
    """

    media_type = "application/json"

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        most = settings.POLICY.ingest.body_bytes
        body = stream.read(most + 1)
        if len(body) > most:
            raise BodyTooLarge(f"The body is longer than {most} bytes.")
        try:
            return read_json(body)
        except NotJson as error:
            raise ParseError(f"The body is not JSON; {error}.") from None
