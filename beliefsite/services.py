"""Start the embedded services that this configuration asks for, and name the services in use."""

from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from beliefsite import embedded


def ensure_services() -> None:
    """Start the embedded database and broker unless the environment names others."""
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # WhiteNoise warns of a folder that is not there
    embedded.ensure(data_dir=settings.DATA_DIR, database=settings.EMBEDDED_DATABASE, broker=settings.EMBEDDED_BROKER)


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
