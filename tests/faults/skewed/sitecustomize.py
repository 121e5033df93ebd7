"""Let Python's clock run ahead: loaded before all else by any process that has this folder on its PYTHONPATH.

Only a process of its own can have a clock of its own without a library that is not there everywhere. What asks the
kernel past Python (libpq, OpenSSL) sees the true time.
"""

import datetime as _datetime
import os
import time as _time
from typing import Any

_AHEAD = float(os.environ.get("ENGRAM_TEST_CLOCK_AHEAD", "0"))
_DELTA = _datetime.timedelta(seconds=_AHEAD)
_true_time, _true_time_ns, _true_datetime = _time.time, _time.time_ns, _datetime.datetime


class _AnyDatetime(type):
    """Take every true datetime for one of ours."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, _true_datetime)

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, _true_datetime)


class _Datetime(_true_datetime, metaclass=_AnyDatetime):  # type: ignore[valid-type,misc]  # a name bound above
    @classmethod
    def now(cls, tz: Any = None) -> Any:
        return _true_datetime.now(tz) + _DELTA

    @classmethod
    def utcnow(cls) -> Any:
        return _true_datetime.now(_datetime.UTC).replace(tzinfo=None) + _DELTA

    @classmethod
    def today(cls) -> Any:
        return cls.now()


if _AHEAD:
    _time.time = lambda: _true_time() + _AHEAD
    _time.time_ns = lambda: _true_time_ns() + round(_AHEAD * 1e9)
    _datetime.datetime = _Datetime  # type: ignore[misc]  # a class, replaced on purpose
