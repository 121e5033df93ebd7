"""Every setting of the project, read once from the environment (and .env) and typed here."""

import gc
import math
import os
import sys
from pathlib import Path
from typing import Any

import django_stubs_ext
import environ
from django.core.exceptions import ImproperlyConfigured

from beliefsite.embedded import broker_url, database_settings
from beliefsite.environment import (
    read_count,
    read_flag,
    read_folder,
    read_folders,
    read_json,
    read_list,
    read_or_make_secret,
    read_prices,
    read_text,
)
from beliefsite.observability import configure_structlog, logging_config
from memory import VERSION
from memory.domain.policy import PolicyError, policy_from_environment
from memory.domain.time_limits import task_limits
from memory.language.explicit_requests import BadCue, load_cues
from memory.redaction.detectors import BadPattern, compile_patterns

gc.disable()  # loading makes no garbage, and the search for it takes a fifth of a start; `workers.apps` ends this
django_stubs_ext.monkeypatch()  # makes ModelAdmin[Belief] and friends subscriptable at run time

BASE_DIR = Path(__file__).resolve().parent.parent

if (BASE_DIR / ".env").exists():
    environ.Env.read_env(str(BASE_DIR / ".env"))

DATA_DIR = read_folder("ENGRAM_DATA_DIR", default=BASE_DIR / ".data")


# --- Where this runs ---------------------------------------------------------------------------

DEBUG = read_flag("DEBUG", default=False)
ALLOWED_HOSTS = read_list("ALLOWED_HOSTS", default=["127.0.0.1", "localhost", "[::1]"])
IS_LOOPBACK = set(ALLOWED_HOSTS) <= {"127.0.0.1", "localhost", "[::1]", "testserver"}
ENGRAM_HTTPS = read_flag("ENGRAM_HTTPS", default=not DEBUG and not IS_LOOPBACK)
DATABASE_URL = read_text("DATABASE_URL")
REDIS_URL = read_text("REDIS_URL")


SECRET_KEY = read_text("SECRET_KEY")
if not SECRET_KEY:
    if DATABASE_URL and not DEBUG:
        raise ImproperlyConfigured("SECRET_KEY must be given where DATABASE_URL is set and DEBUG is off")
    SECRET_KEY = read_or_make_secret(path=DATA_DIR / "secret-key", bytes_of_chance=64)

SECURE_SSL_REDIRECT = SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = ENGRAM_HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if ENGRAM_HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = ENGRAM_HTTPS
ENGRAM_BEHIND_PROXY = read_flag("ENGRAM_BEHIND_PROXY", default=False)
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if ENGRAM_BEHIND_PROXY else None
SECURE_REDIRECT_EXEMPT = [r"^healthz$", r"^readyz$", r"^metrics$"]
X_FRAME_OPTIONS = "DENY"


# --- Applications ------------------------------------------------------------------------------

INSTALLED_APPS = [
    "unfold",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "pgtrigger",
    "pghistory",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_structlog",
    "memory",
    "workers",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "beliefsite.observability.RequestLog",
    "memory.api.responses.require_length",
]

ROOT_URLCONF = "beliefsite.urls"
WSGI_APPLICATION = "beliefsite.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
FORMAT_MODULE_PATH = "beliefsite.formats"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
WHITENOISE_USE_FINDERS = True  # serves the admin's files without a collectstatic step on a laptop

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in ("UserAttributeSimilarityValidator", "MinimumLengthValidator", "CommonPasswordValidator")
]


# --- Database and broker -----------------------------------------------------------------------

EMBEDDED_DATABASE = not DATABASE_URL
EMBEDDED_BROKER = not REDIS_URL


def _database() -> dict[str, Any]:
    """Read DATABASE_URL, or name the socket of the embedded server."""
    if EMBEDDED_DATABASE:
        return {"ENGINE": "beliefsite.database", **database_settings(DATA_DIR)}
    parsed: dict[str, Any] = environ.Env.db_url_config(DATABASE_URL)
    if parsed.get("ENGINE") != "django.db.backends.postgresql":
        raise ImproperlyConfigured("DATABASE_URL must name a PostgreSQL database (postgresql://…)")
    return parsed | {"ENGINE": "beliefsite.database"}


DATABASES = {"default": _database()}
DATABASES["default"]["CONN_MAX_AGE"] = read_count("ENGRAM_CONN_MAX_AGE", default=60)
DATABASES["default"]["CONN_HEALTH_CHECKS"] = True
# Only what asks for it is prepared; PgBouncer before 1.21 cannot have that when it pools transactions.
if read_flag("ENGRAM_PREPARED_STATEMENTS", default=True):
    DATABASES["default"].setdefault("OPTIONS", {})["prepare_threshold"] = sys.maxsize
# A new connection costs the server some 30 ms, spread over the first look at each table. Where many workers share one
# server, connections are the scarcer thing: they are given back during model calls and between tasks.
ENGRAM_KEEP_CONNECTIONS = read_flag("ENGRAM_KEEP_CONNECTIONS", default=EMBEDDED_DATABASE)
ENGRAM_BELIEFS = read_flag("ENGRAM_BELIEFS", default=True)
ENGRAM_CATCH_UP = read_flag("ENGRAM_CATCH_UP", default=True)
DATABASES["default"].setdefault("TEST", {})["NAME"] = read_text("ENGRAM_TEST_DATABASE", default="test_engram")

BROKER_URL = REDIS_URL or broker_url(DATA_DIR)


OTEL_EXPORTER_OTLP_ENDPOINT = read_text("OTEL_EXPORTER_OTLP_ENDPOINT")  # unset: no traces
ENGRAM_MEMORY_MD_ROOTS = read_folders("ENGRAM_MEMORY_MD_ROOTS")
DEMO_DIR = DATA_DIR / "demo"  # nothing else of the server lies there, so that a MEMORY.md may always
ENGRAM_METRICS_TOKEN = read_text("ENGRAM_METRICS_TOKEN")
ENGRAM_API_KEY = read_text("ENGRAM_API_KEY")  # of `manage.py mcp`


# --- The project's own rules and models --------------------------------------------------------

try:
    POLICY = policy_from_environment(os.environ)
except PolicyError as error:
    raise ImproperlyConfigured(str(error)) from error

try:
    SIGNAL_CUES = load_cues(
        languages=tuple(read_list("ENGRAM_SIGNAL_LANGUAGES", default=["en"])),
        own=read_text("ENGRAM_SIGNAL_CUES"),
    )
except BadCue as error:
    raise ImproperlyConfigured(f"ENGRAM_SIGNAL_LANGUAGES, ENGRAM_SIGNAL_CUES: {error}") from error

OPENAI_API_KEY = read_text("OPENAI_API_KEY")
OPENAI_BASE_URL = read_text("OPENAI_BASE_URL")
_HAS_SERVER = bool(OPENAI_API_KEY or OPENAI_BASE_URL)
ENGRAM_LLM = read_text("ENGRAM_LLM", default="openai" if _HAS_SERVER else "offline")
ENGRAM_EMBEDDINGS = read_text("ENGRAM_EMBEDDINGS", default="openai" if _HAS_SERVER else "offline")
ENGRAM_SYNTHESIS_MODEL = read_text("ENGRAM_SYNTHESIS_MODEL", default="gpt-4.1-mini")
ENGRAM_CLASSIFICATION_MODEL = read_text("ENGRAM_CLASSIFICATION_MODEL", default="gpt-4.1-mini")
_USUAL_EMBEDDING_MODEL = "" if ENGRAM_EMBEDDINGS == "local" else "text-embedding-3-small"
ENGRAM_EMBEDDING_MODEL = read_text("ENGRAM_EMBEDDING_MODEL", default=_USUAL_EMBEDDING_MODEL)
ENGRAM_EMBEDDING_BASE_URL = read_text("ENGRAM_EMBEDDING_BASE_URL", default=OPENAI_BASE_URL)
ENGRAM_RERANKER = read_text("ENGRAM_RERANKER")
ENGRAM_VERDICTS = read_text("ENGRAM_VERDICTS", default="llm")
ENGRAM_VERDICT_MODEL = read_text("ENGRAM_VERDICT_MODEL")
# A model that is not named costs nothing.
ENGRAM_PRICES = read_prices(
    "ENGRAM_PRICES", default={"gpt-4.1-mini": [0.40, 1.60], "text-embedding-3-small": [0.02, 0.0]}
)
# Secrets of this place, by the name that stands in their marker: {"badge number": "BADGE-\\d{6}"}.
try:
    ENGRAM_REDACTION_PATTERNS = compile_patterns(read_json("ENGRAM_REDACTION_PATTERNS", default={}))
except BadPattern as error:
    raise ImproperlyConfigured(f"ENGRAM_REDACTION_PATTERNS: {error}") from None


# --- Celery ------------------------------------------------------------------------------------
# Chosen by killing workers, brokers and databases and watching what was lost.

_TASK_LIMITS = task_limits(policy=POLICY)  # beyond what its own times allow any task
_VISIBILITY_SECONDS = read_count("ENGRAM_VISIBILITY_TIMEOUT", default=_TASK_LIMITS.redelivery)
_REDIS_TRANSPORT = {
    "visibility_timeout": _VISIBILITY_SECONDS,
    "health_check_interval": 25,
    "socket_timeout": 30,
}
_HAS_TCP_BROKER = not BROKER_URL.startswith(("redis+socket:", "unix:"))
if _HAS_TCP_BROKER:
    _REDIS_TRANSPORT["socket_keepalive"] = True  # a Unix socket has none, and refuses the option

CELERY_BROKER_URL = BROKER_URL
CELERY_RESULT_BACKEND = BROKER_URL
CELERY_TASK_SERIALIZER = CELERY_RESULT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "consolidation"
CELERY_TASK_CREATE_MISSING_QUEUES = True
CELERY_TASK_ROUTES = {
    "workers.read_messages": {"queue": "llm"},
    "workers.synthesize": {"queue": "llm"},
    "workers.restructure": {"queue": "llm"},
    "workers.classify": {"queue": "llm"},
    "workers.remember": {"queue": "llm"},
    "workers.extract_turns": {"queue": "llm"},
    "workers.sweep": {"queue": "maintenance"},
    "workers.tick": {"queue": "maintenance"},
    "workers.catch_up": {"queue": "maintenance"},
    "workers.count_words": {"queue": "maintenance"},
    "workers.keep_indexes": {"queue": "maintenance"},
    "workers.link_memories": {"queue": "maintenance"},
    "workers.maintain_memory": {"queue": "maintenance"},
    "workers.publish_beliefs": {"queue": "maintenance"},
}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_RETRY_ON_WORKER_LOST = True  # counts the loss, so that a poison task ends
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = False  # cancelling only wasted model calls
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_WORKER_SOFT_SHUTDOWN_TIMEOUT = max(20, math.ceil(2 * POLICY.budget.call_seconds))  # calls under way end first
CELERY_VISIBILITY_TIMEOUT = _VISIBILITY_SECONDS
CELERY_BROKER_TRANSPORT_OPTIONS = {
    **_REDIS_TRANSPORT,
    "unacked_restore_interval": 5,
    "unacked_restore_throttle": 1,
}
CELERY_RESULT_BACKEND_TRANSPORT_OPTIONS = _REDIS_TRANSPORT
CELERY_RESULT_BACKEND_ALWAYS_RETRY = True  # else a finished task counts as failed while Redis restarts
CELERY_RESULT_BACKEND_MAX_RETRIES = 30
CELERY_RESULT_BACKEND_MAX_SLEEP_BETWEEN_RETRIES_MS = 1000
CELERY_RESULT_EXPIRES = 3600
CELERY_REDIS_BACKEND_HEALTH_CHECK_INTERVAL = 25
CELERY_REDIS_SOCKET_KEEPALIVE = _HAS_TCP_BROKER
CELERY_REDIS_SOCKET_TIMEOUT = 30.0
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_MAX_RETRIES = None
CELERY_TASK_SOFT_TIME_LIMIT = _TASK_LIMITS.soft
CELERY_TASK_TIME_LIMIT = _TASK_LIMITS.hard  # both under the visibility timeout, or a slow task would be delivered twice
CELERY_BEAT_SCHEDULE_FILENAME = str(DATA_DIR / "beat-schedule")
CELERY_WORKER_SEND_TASK_EVENTS = False  # Flower switches them on while it watches
CELERY_TASK_SEND_SENT_EVENT = False
if ENGRAM_KEEP_CONNECTIONS:
    CELERY_DB_REUSE_MAX = 10_000  # tasks; each begins with a look at its connection's age and health
CELERY_TIMEZONE = "UTC"


# --- API ---------------------------------------------------------------------------------------

DATA_UPLOAD_MAX_MEMORY_SIZE = POLICY.ingest.body_bytes
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["memory.api.requests.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["memory.api.requests.DenyUnlessDeclared"],
    "DEFAULT_THROTTLE_CLASSES": ["memory.api.requests.KeyRateThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["memory.api.responses.AnswerRenderer"],
    "DEFAULT_PARSER_CLASSES": ["memory.api.requests.BoundedJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "memory.api.responses.problem_response",
    "UNAUTHENTICATED_USER": None,
    "COERCE_DECIMAL_TO_STRING": False,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Engram",
    "DESCRIPTION": "A belief memory for AI agents.",
    "VERSION": VERSION,
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "OAS_VERSION": "3.1.0",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "memory.api.responses.declare_retry_after",
    ],
    "ENUM_NAME_OVERRIDES": {
        "BeliefStatus": "memory.api.responses.BELIEF_STATUSES",
        "EpisodeStatus": "memory.api.responses.EPISODE_STATUSES",
        "EpisodeState": "memory.api.responses.EPISODE_STATES",
        "EpisodeKind": "memory.api.responses.KINDS",
        "ClaimMode": "memory.api.responses.CLAIM_MODES",
        "EdgeKind": "memory.api.responses.EDGE_KINDS",
        "ModeEnum": "memory.api.responses.RECALL_MODES",
        "Tier": "memory.api.responses.TIERS",
        "CycleState": "memory.api.responses.CYCLE_STATES",
        "Signal": "memory.api.responses.SIGNALS",
        "MemoryType": "memory.api.responses.MEMORY_TYPES",
    },
}
UNFOLD = {
    "SITE_TITLE": "Engram",
    "SITE_HEADER": "Engram",
    "SITE_SUBHEADER": VERSION,
    "SITE_SYMBOL": "neurology",
    "SITE_URL": None,  # the admin is all that people have; a link to a site would lead back here
    "ENVIRONMENT": "memory.admin.presentation.environment_label",
    "GLOBAL_CALLBACK": "memory.admin.presentation.shared_context",
    "DASHBOARD_CALLBACK": "memory.admin.presentation.with_overview",
    "SIDEBAR": {"navigation": "memory.admin.presentation.sections"},
}


# --- Logs --------------------------------------------------------------------------------------

LOGGING = logging_config(argv=sys.argv, is_terminal=sys.stderr.isatty())
configure_structlog()
