"""Start the embedded services that this configuration asks for, or make sure of the ones that it names."""

from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import OperationalError, connection
from redis import Redis, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

from beliefsite import embedded
from beliefsite.environment import unusable_folder

_BROKER_SECONDS = 5


class ServiceUnusable(RuntimeError):
    """A server or folder that the environment names and that cannot be used; nothing else is used in its place."""


def ensure_services() -> None:
    """Start the embedded database and broker, or make sure that those which the environment names can be used.

    Raise EmbeddedServiceError or ServiceUnusable, each saying what is wrong with which server or folder.
    """
    data_dir = settings.DATA_DIR
    try:
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns of a folder that is not there
        embedded.ensure(data_dir=data_dir, database=settings.EMBEDDED_DATABASE, broker=settings.EMBEDDED_BROKER)
    except OSError as error:
        raise ServiceUnusable(str(unusable_folder("ENGRAM_DATA_DIR", data_dir, error))) from error
    if not settings.EMBEDDED_DATABASE:
        _check_database()
    if not settings.EMBEDDED_BROKER:
        _check_broker()


def _check_database() -> None:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
            has_vectors = cursor.fetchone()
    except OperationalError as error:
        raise ServiceUnusable(f"DATABASE_URL: the database cannot be reached: {error}") from error
    finally:
        connection.close()
    if not has_vectors:
        raise ServiceUnusable("DATABASE_URL: the server has no pgvector; install the extension `vector` there.")


def _check_broker() -> None:
    once = Retry(NoBackoff(), 0)
    try:
        with Redis.from_url(settings.REDIS_URL, retry=once, socket_connect_timeout=_BROKER_SECONDS) as broker:
            broker.ping()
    except (RedisError, OSError, ValueError) as error:
        raise ServiceUnusable(f"REDIS_URL: the broker cannot be reached: {error}") from error


def describe_services() -> list[str]:
    """Name the database and the broker in use, one line each, without a password."""
    found = {facts.name.lower(): str(facts) for facts in embedded.describe()}
    database = next((line for name, line in found.items() if "postgres" in name), None)
    broker = next((line for name, line in found.items() if "postgres" not in name), None)
    return [
        f"database   {f'embedded {database}' if database else _describe_database()}",
        f"broker     {f'embedded {broker}' if broker else _without_password(settings.REDIS_URL)}",
    ]


def _describe_database() -> str:
    """Ask the server named by DATABASE_URL what it is."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT split_part(version(), ' ', 2), current_database()")
        version, name = cursor.fetchone()
    return f"PostgreSQL {version}, database {name} on {connection.settings_dict['HOST'] or 'the local socket'}"


def _without_password(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
