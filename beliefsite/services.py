"""Start the embedded services that this configuration asks for, and name the services in use."""

from django.conf import settings

from beliefsite import embedded


def ensure_services() -> None:
    """Start the embedded database and broker unless the environment names others."""
    embedded.ensure(data_dir=settings.DATA_DIR, database=settings.EMBEDDED_DATABASE, broker=settings.EMBEDDED_BROKER)
