"""System checks that name the setting which is wrong, before anything runs on it."""

import os
from collections.abc import Callable, Iterable
from difflib import get_close_matches
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from memory.domain.policy import FORMER_NAMES
from memory.domain.time_limits import (
    ANSWER_SECONDS,
    CALL_SECONDS,
    TaskLimits,
    find_too_short,
    holds_a_call,
    room_for_a_call,
    task_limits,
)
from memory.environment import CLIENT_VARIABLES, PREFIX, known_variables
from memory.llm.local import read_sentence_model
from memory.llm.onnx_models import INSTALL_EXTRA, ModelUnavailable, read_classifier, read_reranker
from memory.models import DIMENSIONS, BeliefEmbedding, EpisodeEmbedding

_LANGUAGE_MODELS = ("openai", "offline")
_EMBEDDING_MODELS = ("openai", "local", "offline", "static")
_VERDICTS = ("llm", "local")
_SECRET_LENGTH = 50
_SECRET_VARIETY = 5


@register(Tags.compatibility)
def check_models(**_: Any) -> list[CheckMessage]:
    """Refuse a kind of model that there is none of, and a remote one that cannot be reached."""
    return [
        *_check_choice("ENGRAM_LLM", settings.ENGRAM_LLM, _LANGUAGE_MODELS, "engram.E001"),
        *_check_choice("ENGRAM_EMBEDDINGS", settings.ENGRAM_EMBEDDINGS, _EMBEDDING_MODELS, "engram.E002"),
        *_check_choice("ENGRAM_VERDICTS", settings.ENGRAM_VERDICTS, _VERDICTS, "engram.E012"),
        *_check_folders(),
        *_check_reachable("ENGRAM_LLM", settings.ENGRAM_LLM, settings.OPENAI_BASE_URL, "engram.E003"),
        *_check_reachable(
            "ENGRAM_EMBEDDINGS", settings.ENGRAM_EMBEDDINGS, settings.ENGRAM_EMBEDDING_BASE_URL, "engram.E004"
        ),
    ]


def _check_choice(name: str, value: str, choices: tuple[str, ...], number: str) -> list[CheckMessage]:
    if value in choices:
        return []
    return [Error(f"{name} is {value!r}.", hint=f"Choose one of: {', '.join(choices)}.", id=number)]


def _check_reachable(name: str, value: str, base_url: str, number: str) -> list[CheckMessage]:
    if value != "openai" or settings.OPENAI_API_KEY or base_url:
        return []
    hint = "Give OPENAI_API_KEY, or OPENAI_BASE_URL for a server that needs no key, or choose offline."
    return [Error(f"{name} is 'openai', but there is neither a key nor a server of your own.", hint=hint, id=number)]


def _check_folders() -> list[CheckMessage]:
    """Refuse models on this machine whose packages are missing, or whose folder is not whole; nothing is loaded."""
    asked: list[tuple[bool, Callable[..., object], str]] = [
        (settings.ENGRAM_EMBEDDINGS == "local", read_sentence_model, settings.ENGRAM_EMBEDDING_MODEL),
        (bool(settings.ENGRAM_RERANKER), read_reranker, settings.ENGRAM_RERANKER),
        (settings.ENGRAM_VERDICTS == "local", read_classifier, settings.ENGRAM_VERDICT_MODEL),
    ]
    folders = [(read, named) for is_asked, read, named in asked if is_asked]
    if folders and not find_spec("onnxruntime"):
        message = "A model in a folder is asked for, but the extra `local` is missing."
        return [Error(message, hint=INSTALL_EXTRA, id="engram.E008")]
    return [error for read, named in folders for error in _check_folder(read, named)]


def _check_folder(read: Callable[..., object], named: str) -> list[CheckMessage]:
    try:
        read(named=named)
    except ModelUnavailable as error:
        return [Error(str(error), hint="docs/operations/embeddings.md says what a folder holds.", id="engram.E009")]
    return []


@register(Tags.security)
def check_secret_key(**_: Any) -> list[CheckMessage]:
    """Warn of a key that can be guessed, on every start and not only when asked about deployment."""
    key = settings.SECRET_KEY
    is_weak = len(key) < _SECRET_LENGTH or len(set(key)) < _SECRET_VARIETY or key.startswith("django-insecure-")
    if settings.DEBUG or not is_weak:
        return []
    hint = "python -c 'import secrets; print(secrets.token_urlsafe(64))' makes a good one."
    message = f"SECRET_KEY can be guessed: it needs {_SECRET_LENGTH} characters drawn at random."
    return [Warning(message, hint=hint, id="engram.W001")]


@register(Tags.compatibility)
def check_environment(**_: Any) -> list[CheckMessage]:
    """Warn of a variable that means nothing to the project, most often one that is misspelt, and of a former name."""
    known = known_variables()
    meant = known | CLIENT_VARIABLES | FORMER_NAMES.keys()
    unknown = sorted(name for name in os.environ if name.startswith(PREFIX) and name not in meant)
    former = sorted(FORMER_NAMES.keys() & os.environ.keys())
    return [*(_unknown_variable(name, known) for name in unknown), *(_former_variable(name) for name in former)]


def _unknown_variable(name: str, known: set[str]) -> CheckMessage:
    meant = get_close_matches(name, sorted(known), n=1)
    hint = f"Did you mean {meant[0]}?" if meant else "docs/settings.md lists every variable."
    return Warning(f"{name} is set in the environment, but nothing reads it.", hint=hint, id="engram.W002")


def _former_variable(name: str) -> CheckMessage:
    hint = "Rename it; the former name is still read."
    return Warning(f"{name} is now called {FORMER_NAMES[name]}.", hint=hint, id="engram.W004")


@register(Tags.compatibility)
def check_limits(**_: Any) -> list[CheckMessage]:
    """Refuse times that cannot hold a model call, and messages that come again while their task still runs (B9)."""
    budget, limits = settings.POLICY.budget, task_limits(policy=settings.POLICY)
    room, call = room_for_a_call(budget=budget), f"{CALL_SECONDS} is {budget.call_seconds:g}"
    errors: list[CheckMessage] = [
        Error(
            f"{short.setting} is {short.seconds:g}, and {call}: {short.who} would never have the time for one.",
            hint=f"Set {short.setting} to more than {room:g}, or lower {CALL_SECONDS}.",
            id="engram.E010",
        )
        for short in find_too_short(policy=settings.POLICY)
    ]
    if limits.hard >= settings.CELERY_VISIBILITY_TIMEOUT:
        errors.append(_message_too_early(limits))
    return errors


def _message_too_early(limits: TaskLimits) -> CheckMessage:
    longest = limits.longest
    return Error(
        f"ENGRAM_VISIBILITY_TIMEOUT is {settings.CELERY_VISIBILITY_TIMEOUT}, and a task may take {limits.hard} s:"
        f" {longest.task} may, by {' and '.join(longest.settings)}. Its message would come again while it runs.",
        hint=f"Leave ENGRAM_VISIBILITY_TIMEOUT out, or set it to {limits.redelivery}; or lower {longest.settings[0]}.",
        id="engram.E011",
    )


@register(Tags.compatibility, deploy=True)
def check_answer(**_: Any) -> list[CheckMessage]:
    """Warn where whoever has something remembered never gets more than a promise: that may be as it is meant (R1)."""
    seconds, budget = settings.POLICY.remember.answer_seconds, settings.POLICY.budget
    if holds_a_call(seconds=seconds, budget=budget):
        return []
    return [
        Warning(
            f"{ANSWER_SECONDS} is {seconds:g}, and {CALL_SECONDS} is {budget.call_seconds:g}:"
            " what is to be remembered is always answered as queued, and a worker goes on.",
            hint=f"Leave it so for a slow model, or set {ANSWER_SECONDS} to more than"
            f" {room_for_a_call(budget=budget):g}, which callers then wait.",
            id="engram.W003",
        )
    ]


@register(Tags.database)
def check_database(databases: Iterable[str] | None = None, **_: Any) -> list[CheckMessage]:
    """Refuse a database that does not answer, has no pgvector, or holds vectors of another size."""
    return [message for alias in databases or () for message in _check_connection(connections[alias])]


def _check_connection(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    try:
        connection.ensure_connection()
    except OperationalError as error:
        hint = "See DATABASE_URL; without it, any command but `check` starts the embedded server first."
        return [Error(f"The database does not answer: {_first_line(error)}", hint=hint, id="engram.E005")]
    return [*_check_extension(connection), *_check_dimensions(connection)]


def _check_extension(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_available_extensions WHERE name = 'vector'")
        if cursor.fetchone():
            return []
    hint = "Install pgvector 0.8 or newer on the server that DATABASE_URL names."
    return [Error("The database server has no pgvector.", hint=hint, id="engram.E006")]


def _check_dimensions(connection: BaseDatabaseWrapper) -> list[CheckMessage]:
    """Compare the columns' declared size; tables that are still to be made have none."""
    tables = (EpisodeEmbedding._meta.db_table, BeliefEmbedding._meta.db_table)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT attrelid::regclass::text, atttypmod FROM pg_attribute WHERE attname = 'vector'"
            " AND attrelid IN (SELECT to_regclass(name) FROM unnest(%s::text[]) AS name) AND atttypmod <> %s",
            [list(tables), DIMENSIONS],
        )
        wrong = cursor.fetchall()
    hint = "This is a database of another version: restore a backup, or start with an empty one."
    return [
        Error(f"{table}.vector has {size} dimensions instead of {DIMENSIONS}.", hint=hint, id="engram.E007")
        for table, size in wrong
    ]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def refuse_unfit_limits() -> None:
    """Raise ImproperlyConfigured where times do not hold each other, naming both settings and how to mend it (B9).

    Commands have their system checks; web, tools, worker and beat have this.
    """
    errors = [error for error in check_limits() if not error.is_silenced()]
    if errors:
        raise ImproperlyConfigured("\n".join(f"{error.msg} {error.hint}" for error in errors))
