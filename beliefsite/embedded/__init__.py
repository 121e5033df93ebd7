"""The default database and broker: real servers that come in wheels, run from a data folder of this checkout.

Importing this package starts nothing and imports neither Django nor a driver, so settings may use it.
"""

from beliefsite.embedded.broker import EmbeddedBroker, broker_url
from beliefsite.embedded.errors import EmbeddedServiceError
from beliefsite.embedded.postgres import EmbeddedPostgres, database_settings
from beliefsite.embedded.running import describe, ensure, release
from beliefsite.embedded.server import EmbeddedServer, ServerFacts

__all__ = [
    "EmbeddedBroker",
    "EmbeddedPostgres",
    "EmbeddedServer",
    "EmbeddedServiceError",
    "ServerFacts",
    "broker_url",
    "database_settings",
    "describe",
    "ensure",
    "release",
]
