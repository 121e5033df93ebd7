"""Every environment variable of the project, with one line on each.

`python -m memory.environment > .env.example` writes the example; a test keeps it, the settings and this list in step.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from memory.domain.policy import Setting, iter_settings

PREFIX = "ENGRAM_"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, the value to show for it, and what it does."""

    name: str
    example: str
    description: str


GROUPS: tuple[tuple[str, tuple[Variable, ...]], ...] = (
    (
        "Where it runs",
        (
            Variable("DATABASE_URL", "postgresql://engram:password@localhost:5432/engram", "Unset: an embedded one"),
            Variable("REDIS_URL", "redis://localhost:6379/0", "The broker, any Redis protocol; unset: an embedded one"),
            Variable("SECRET_KEY", "", "Signs sessions; made in .data/ where unset, but to be given with DATABASE_URL"),
            Variable("DEBUG", "0", "1 shows traces to whoever asks: never where others can reach it"),
            Variable("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]", "Host names that it answers to"),
            Variable("PORT", "8000", "Of the web process that `make up` starts"),
            Variable("FLOWER_PORT", "5555", "Of Flower, which `make up` starts beside it"),
            Variable("MCP_PORT", "8001", "Of the tools for agents, which `make up` starts beside it"),
            Variable("ENGRAM_API_KEY", "", "The key of `manage.py mcp`, which serves one agent"),
            Variable("ENGRAM_DATA_DIR", ".data", "Embedded servers, the secret key and beat's schedule live here"),
            Variable("ENGRAM_HTTPS", "1", "Secure cookies, redirects, HSTS; by default on, off loopback without DEBUG"),
            Variable(
                "ENGRAM_BEHIND_PROXY",
                "0",
                "1 trusts X-Forwarded-Proto and X-Forwarded-For: only behind a proxy that sets them",
            ),
            Variable("ENGRAM_CONN_MAX_AGE", "60", "Seconds that a process keeps a database connection"),
            Variable("ENGRAM_PREPARED_STATEMENTS", "1", "0 behind a pooler of connections that cannot keep them"),
            Variable(
                "ENGRAM_KEEP_CONNECTIONS", "1", "0 gives them back during model calls; 1 with the embedded database"
            ),
            Variable("ENGRAM_BELIEFS", "on", "off keeps no beliefs in any workspace: no cycles, episodes alone"),
            Variable("ENGRAM_WORKERS", "4", "Tasks that the worker of `make up` runs at once"),
            Variable("ENGRAM_CATCH_UP", "1", "0 leaves a cycle that is due when a worker starts to the schedule"),
            Variable(
                "ENGRAM_VISIBILITY_TIMEOUT",
                "180",
                "Seconds after which an unanswered message comes again; unset: beyond what any task may take",
            ),
            Variable("ENGRAM_LOG_LEVEL", "INFO", "DEBUG, INFO, WARNING or ERROR; by default WARNING for commands"),
            Variable("ENGRAM_LOG_FORMAT", "json", "json or console; by default console for commands and on a terminal"),
            Variable("OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318", "Where traces go; unset: there are none"),
            Variable("ENGRAM_METRICS_TOKEN", "", "Bearer token that /metrics asks for; unset: loopback callers only"),
        ),
    ),
    (
        "Models",
        (
            Variable("OPENAI_API_KEY", "", "A key makes openai the default for language and embeddings"),
            Variable("OPENAI_BASE_URL", "http://localhost:11434/v1", "Any compatible server: Ollama, vLLM, llama.cpp"),
            Variable("ENGRAM_LLM", "offline", "openai or offline (rules, no language model)"),
            Variable(
                "ENGRAM_EMBEDDINGS",
                "offline",
                "openai, local (a sentence model on this machine) or offline (a small static one that ships with it)",
            ),
            Variable(
                "ENGRAM_SYNTHESIS_MODEL",
                "gpt-4.1-mini",
                "Words a belief out of a cluster, and reads facts out of conversations",
            ),
            Variable("ENGRAM_CLASSIFICATION_MODEL", "gpt-4.1-mini", "Judges episodes against beliefs"),
            Variable(
                "ENGRAM_EMBEDDING_MODEL",
                "text-embedding-3-small",
                "A server's model; with local a folder with model.onnx and tokenizer.json, or a file in one",
            ),
            Variable("ENGRAM_EMBEDDING_BASE_URL", "", "A server of its own for embeddings; unset: OPENAI_BASE_URL"),
            Variable(
                "ENGRAM_RERANKER", "", "The folder of a cross-encoder that re-ranks what recall finds; unset: none"
            ),
            Variable(
                "ENGRAM_VERDICTS",
                "llm",
                "Who judges pairs of texts: llm (whatever ENGRAM_LLM is), or local (a classifier on this machine)",
            ),
            Variable("ENGRAM_VERDICT_MODEL", "", "With local verdicts the folder of a classifier of pairs (NLI)"),
            Variable(
                "ENGRAM_PRICES",
                '{"gpt-4.1-mini": [0.40, 1.60]}',
                "US dollars per million tokens in and out, by model; a model that is not named costs nothing",
            ),
        ),
    ),
    (
        "Secrets",
        (
            Variable(
                "ENGRAM_REDACTION_PATTERNS",
                '{"badge number": "BADGE-[0-9]{6}"}',
                "Further secrets to take out of texts: regular expressions by name; of one with a group, the group",
            ),
        ),
    ),
    (
        "What turns ask to be remembered",
        (
            Variable("ENGRAM_SIGNAL_LANGUAGES", "en", "Languages whose cues turns are scanned for: en, de"),
            Variable("ENGRAM_SIGNAL_CUES", "", "A file of your own cues (TOML), for other languages and other words"),
        ),
    ),
    (
        "Tests",
        (
            Variable("ENGRAM_TEST_DATABASE", "test_engram", "Name of the suite's database"),
            Variable("ENGRAM_REAL_TIMEOUTS", "0", "1 runs the fault suite at the time-outs of production"),
        ),
    ),
)


# Read by who calls a server, not by the server: the plugin's hooks, the Python client.
CLIENT_VARIABLES = frozenset(
    {
        "ENGRAM_API_KEY", "ENGRAM_HOOK_DEBUG", "ENGRAM_MCP_URL", "ENGRAM_PROJECT", "ENGRAM_PROJECT_FROM_FOLDER",
        "ENGRAM_RECOLLECTIONS_TIMEOUT_MS", "ENGRAM_STATUS_TIMEOUT_MS", "ENGRAM_TURNS_TIMEOUT_MS", "ENGRAM_URL",
        "ENGRAM_USER",
    }
)  # fmt: skip


def known_variables() -> set[str]:
    """Return every name that means something to the project."""
    named = {variable.name for _, variables in GROUPS for variable in variables}
    return named | {setting.name for setting in iter_settings()}


def render_example() -> str:
    """Render .env.example: every variable commented out, under one line that describes it."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Copy to .env and uncomment what you change. The process's own environment wins over .env."
    for title, variables in GROUPS:
        yield from ("", "", f"## {title}")
        for variable in variables:
            yield from _block(variable)
    stage = ""
    for setting in iter_settings():
        if setting.stage != stage:
            stage = setting.stage
            yield from ("", "", f"## The rules' numbers: {stage}")
        yield from _block(_variable_of(setting))


def _block(variable: Variable) -> tuple[str, ...]:
    return "", f"# {variable.description}", f"#{variable.name}={variable.example}"


def _variable_of(setting: Setting) -> Variable:
    example = str(int(setting.default)) if isinstance(setting.default, bool) else str(setting.default)
    return Variable(setting.name, example, setting.description)


if __name__ == "__main__":
    sys.stdout.write(render_example())
