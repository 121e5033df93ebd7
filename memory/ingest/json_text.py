"""Read JSON that somebody else wrote, and say in their words why it is none."""

import json

# The parser's own words are kept where they speak of JSON; these do not.
_WORDS = {
    "Extra data": "there is more after its end",
    "Expecting value": "a value is missing, or is none that JSON knows",
}


class NotJson(ValueError):
    """Bytes that are no JSON; the text says where and why."""


def read_json(raw: bytes) -> object:
    """Parse UTF-8 bytes; NaN and infinity get through, and whoever checks the fields refuses them by name."""
    try:
        return json.loads(raw.decode())
    except UnicodeDecodeError as error:
        raise NotJson(f"byte {error.start + 1} is no UTF-8") from None
    except json.JSONDecodeError as error:
        place = f"{f'line {error.lineno}, ' if error.lineno > 1 else ''}column {error.colno}"
        raise NotJson(f"{place}: {_WORDS.get(error.msg, error.msg[:1].lower() + error.msg[1:])}") from None
    except RecursionError:
        raise NotJson("it is nested too deeply") from None
    except ValueError:  # what is left: Python reads no number of more than 4,300 digits
        raise NotJson("a number in it has too many digits") from None
