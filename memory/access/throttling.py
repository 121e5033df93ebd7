"""How often a key may call: counted in the broker, so that all processes of all hosts count together."""

import time
from enum import StrEnum
from functools import cache

import redis
import structlog
from django.conf import settings
from redis.backoff import NoBackoff
from redis.retry import Retry

from memory.models import ApiKey, Permission

_MINUTE = 60.0
_TIMEOUT_SECONDS = 0.2
_REST_SECONDS = 5.0  # without counting, after the broker did not answer

# The generic cell rate algorithm (ATM Forum, 1996): the key holds when the bucket will be full again, by the broker's
# clock. Returns the seconds to wait, '0' where the call may go on.
_TAKE = """
local time = redis.call('TIME')
local now = time[1] + time[2] / 1000000
local full_at = math.max(now, tonumber(redis.call('GET', KEYS[1]) or '0')) + tonumber(ARGV[1])
local wait = full_at - now - tonumber(ARGV[2])
if wait > 0 then return string.format('%.3f', math.max(wait, 0.001)) end
redis.call('SET', KEYS[1], string.format('%.6f', full_at), 'PX', math.ceil((full_at - now) * 1000))
return '0'
"""

log = structlog.get_logger(__name__)


class Usage(StrEnum):
    """What a call is for; each kind has a rate of its own."""

    RECALL = "recall"
    READ = "read"
    WRITE = "write"
    CURATE = "curate"
    OWNER = "owner"


class TooOften(Exception):
    """A key calls more often than it may; `wait` says for how many seconds it should not."""

    def __init__(self, *, usage: Usage, wait: float) -> None:
        super().__init__(f"This key's rate of {usage} calls is used up; come back in {wait:.1f} s.")
        self.wait = wait


class _Counter:
    """The broker's count, left alone for a while where it does not answer: then calls pass uncounted."""

    def __init__(self, url: str) -> None:
        timeouts = {"socket_timeout": _TIMEOUT_SECONDS, "socket_connect_timeout": _TIMEOUT_SECONDS}
        self._client: redis.Redis = redis.Redis.from_url(url, retry=Retry(NoBackoff(), 0), **timeouts)
        self._take = self._client.register_script(_TAKE)
        self._rests_until = 0.0

    def take(self, *, name: str, per_minute: float) -> float:
        """Take one call out of a bucket; return the seconds to wait if it is empty."""
        if time.monotonic() < self._rests_until:
            return 0.0
        try:
            return float(self._take(keys=[f"engram:rate:{name}"], args=[_MINUTE / per_minute, _MINUTE]))
        except redis.RedisError as error:
            self._rests_until = time.monotonic() + _REST_SECONDS
            log.warning("throttle.broker_away", error=str(error))
            return 0.0


@cache
def _counter(url: str) -> _Counter:
    return _Counter(url)


def check_rate(*, key: ApiKey, usage: Usage) -> None:
    """Count a call of a key; raise TooOften where it has had its share of this minute."""
    per_minute: float = getattr(settings.POLICY.throttle, f"{usage}_per_minute")
    if not per_minute:
        return
    url = settings.BROKER_URL.replace("redis+socket://", "unix://", 1)
    wait = _counter(url).take(name=f"{key.hash[:16]}:{usage}", per_minute=per_minute)
    if wait:
        raise TooOften(usage=usage, wait=wait)


def usage_of(*, permission: Permission) -> Usage:
    """Return what a call that needs a permission is for; a recall is told apart by whoever serves it."""
    return Usage(permission.value)
