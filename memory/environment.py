"""The environment variables of the project: those that a person may want, by what they are for, and the rest.

`python -m memory.environment > .env.example` writes the example. docs/settings.md lists every variable; a test keeps
both, the settings and this list in step.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass

from memory.domain.policy import Setting, iter_settings

PREFIX = "ENGRAM_"


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable, the value to show for it, what it does, and what holds where it is unset, if not that value."""

    name: str
    example: str
    description: str
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Number:
    """A number of the policy that a person may want to change, in plain words; its annotation says the rest."""

    name: str
    description: str


GROUPS: tuple[tuple[str, tuple[Variable | Number, ...]], ...] = (
    (
        "Run it for others",
        (
            Variable("ALLOWED_HOSTS", "127.0.0.1,localhost,[::1]", "Host names that it answers to"),
            Variable(
                "ENGRAM_HTTPS", "1", "Secure cookies, redirects, HSTS; by default on, off loopback without DEBUG", ""
            ),
            Variable(
                "ENGRAM_BEHIND_PROXY",
                "0",
                "1 trusts X-Forwarded-Proto and X-Forwarded-For: only behind a proxy that sets them",
            ),
            Variable("SECRET_KEY", "", "Signs sessions; made in .data/ where unset, but to be given with DATABASE_URL"),
            Variable("DEBUG", "0", "1 shows traces to whoever asks: never where others can reach it"),
            Number("ENGRAM_THROTTLE_RECALL_PER_MINUTE", "Recalls a minute that one key may make; 0 for no limit"),
            Number("ENGRAM_THROTTLE_WRITE_PER_MINUTE", "Writes a minute that one key may make; 0 for no limit"),
        ),
    ),
    (
        "Use your own database and broker",
        (
            Variable(
                "DATABASE_URL", "postgresql://engram:password@localhost:5432/engram", "Unset: an embedded one", ""
            ),
            Variable(
                "REDIS_URL", "redis://localhost:6379/0", "The broker, any Redis protocol; unset: an embedded one", ""
            ),
            Variable("ENGRAM_PREPARED_STATEMENTS", "1", "0 behind a pooler of connections that cannot keep them"),
            Variable(
                "ENGRAM_KEEP_CONNECTIONS", "1", "0 gives them back during model calls; 1 with the embedded database"
            ),
        ),
    ),
    (
        "Use a model server",
        (
            Variable("OPENAI_API_KEY", "", "A key makes openai the default for language and embeddings"),
            Variable(
                "OPENAI_BASE_URL", "http://localhost:11434/v1", "Any compatible server: Ollama, vLLM, llama.cpp", ""
            ),
            Variable("ENGRAM_LLM", "offline", "openai or offline (the small reader that ships with it)"),
            Variable(
                "ENGRAM_SYNTHESIS_MODEL",
                "gpt-4.1-mini",
                "Reads what was said against what is believed, and words a belief out of a cluster",
            ),
            Variable("ENGRAM_CLASSIFICATION_MODEL", "gpt-4.1-mini", "Judges episodes against beliefs"),
            Variable(
                "ENGRAM_EMBEDDINGS",
                "offline",
                "openai, local (a sentence model on this machine), offline (the small models that ship with it) or "
                "static (the smaller of the two: 0.05 ms a text)",
            ),
            Variable(
                "ENGRAM_EMBEDDING_MODEL",
                "text-embedding-3-small",
                "A server's model; with local a folder with model.onnx and tokenizer.json, or a file in one",
            ),
            Variable("ENGRAM_EMBEDDING_BASE_URL", "", "A server of its own for embeddings; unset: OPENAI_BASE_URL"),
            Number("ENGRAM_BUDGET_CALL_SECONDS", "Longest call; for a slow model see docs/operations/models.md"),
            Number("ENGRAM_BUDGET_CALLS_IN_FLIGHT", "Calls at the same time; 1 for a server that answers one by one"),
            Number("ENGRAM_BUDGET_REPLY_TOKENS", "Most tokens of a reply; a model that thinks first needs more"),
        ),
    ),
    (
        "Use models on this machine",
        (
            Variable(
                "ENGRAM_RERANKER", "", "The folder of a cross-encoder that re-ranks what recall finds; unset: none"
            ),
            Variable(
                "ENGRAM_VERDICTS",
                "llm",
                "Who judges pairs of texts: llm (whatever ENGRAM_LLM is), or local (a classifier on this machine)",
            ),
            Variable("ENGRAM_VERDICT_MODEL", "", "With local verdicts the folder of a classifier of pairs (NLI)"),
        ),
    ),
    (
        "Spend less",
        (
            Variable(
                "ENGRAM_PRICES",
                '{"gpt-4.1-mini": [0.40, 1.60], "text-embedding-3-small": [0.02, 0.0]}',
                "US dollars per million tokens in and out, by model; a model that is not named costs nothing",
            ),
            Number("ENGRAM_CONSOLIDATION_EVERY_HOURS", "Hours between scheduled cycles, which make beliefs"),
            Number("ENGRAM_CONSOLIDATION_TRIGGER_EPISODES", "New memories that start a cycle before its time"),
            Number("ENGRAM_CONSOLIDATION_CLUSTERS", "Most groups of memories that a cycle takes; each costs calls"),
            Number("ENGRAM_BUDGET_CALL_ATTEMPTS", "Tries of one call before it counts as failed"),
            Number("ENGRAM_TURNS_BUFFER", "Turns of a conversation that are read together; more make fewer calls"),
            Number("ENGRAM_RECALL_DAILY_TOKENS", "Tokens a day that each workspace may use to embed its queries"),
            Variable("ENGRAM_CATCH_UP", "1", "0 leaves a cycle that is due when a worker starts to the schedule"),
        ),
    ),
    (
        "Remember more or less",
        (
            Variable("ENGRAM_BELIEFS", "on", "off keeps no beliefs in any workspace: no cycles, episodes alone"),
            Variable("ENGRAM_SIGNAL_LANGUAGES", "en", "Languages whose cues turns are scanned for: en, de"),
            Variable("ENGRAM_SIGNAL_CUES", "", "A file of your own cues (TOML), for other languages and other words"),
            Number("ENGRAM_TURNS_AGE_MINUTES", "Minutes after which what was said in a conversation is read"),
            Number("ENGRAM_CONSOLIDATION_CLUSTER_MIN", "Fewest similar memories of which a cycle may make a belief"),
            Number("ENGRAM_CONSOLIDATION_BIRTH_SUPPORTS", "Fewest memories that must support a new belief"),
            Number("ENGRAM_INGEST_TEXT_BYTES", "Longest text of a memory, in bytes"),
        ),
    ),
    (
        "Recall more or less",
        (
            Number("ENGRAM_RECALL_LIMIT", "Results where a caller asks for no number"),
            Number("ENGRAM_RECALL_MIN_CONFIDENCE", "Confidence that a belief must exceed to be recalled"),
            Number("ENGRAM_RELEVANCE_FLOOR", "From where on a memory counts as relevant to a query; less lets more in"),
            Number("ENGRAM_RECOLLECTION_EPISODES", "Most memories that are put before a prompt"),
            Number("ENGRAM_RECOLLECTION_BELIEFS", "Most beliefs that are put before a prompt"),
            Number("ENGRAM_RECOLLECTION_TOKENS", "Most tokens that are put before a prompt"),
            Number("ENGRAM_CONTEXT_TOKENS", "Most tokens of a context, which is put before a task"),
        ),
    ),
    (
        "Keep or forget",
        (
            Number("ENGRAM_STRENGTH_DECAY_DAYS", "Days in which a belief that nobody asks for fades to a third (1/e)"),
            Number("ENGRAM_GATE_ARCHIVE_CONFIDENCE", "Confidence below which a belief is archived"),
            Number(
                "ENGRAM_GATE_ARCHIVE_STALE_DAYS", "Days after which a weak belief that nothing supports is archived"
            ),
            Number("ENGRAM_GATE_ARCHIVE_TOLD_DAYS", "The same for a belief that somebody told plainly"),
            Number("ENGRAM_CONSOLIDATION_POOLED_DAYS", "Days that a memory unlike all others waits for similar ones"),
        ),
    ),
    (
        "Publish into MEMORY.md",
        (
            Variable(
                "ENGRAM_MEMORY_MD_ROOTS",
                "~/.claude-memory,~/projects",
                "Folders below which MEMORY.md files may be written; unset: none (manage.py write_memory_md)",
                "",
            ),
            Number("ENGRAM_PUBLISHING_CONFIDENCE", "Confidence from which a belief stands in such a file"),
            Number("ENGRAM_PUBLISHING_BELIEFS", "Most beliefs in a file"),
        ),
    ),
    (
        "Redact secrets",
        (
            Variable(
                "ENGRAM_REDACTION_PATTERNS",
                '{"badge number": "BADGE-[0-9]{6}"}',
                "Further secrets to take out of texts: regular expressions by name; of one with a group, the group",
                "",
            ),
        ),
    ),
    (
        "Choose ports and processes",
        (
            Variable("PORT", "8000", "Of the web process that `make up` starts"),
            Variable("MCP_PORT", "8001", "Of the tools for agents, which `make up` starts beside it"),
            Variable("FLOWER_PORT", "5555", "Of Flower, which `make up` starts beside it"),
            Variable("ENGRAM_WORKERS", "4", "Tasks that the worker of `make up` runs at once"),
            Variable("ENGRAM_API_KEY", "", "The key of `manage.py mcp`, which serves one agent"),
        ),
    ),
    (
        "Back up: `manage.py backup` writes one file of it all (docs/operations/backups.md)",
        (Variable("ENGRAM_DATA_DIR", ".data", "Embedded servers, the secret key and beat's schedule live here"),),
    ),
    (
        "Watch it",
        (
            Variable("ENGRAM_LOG_LEVEL", "INFO", "DEBUG, INFO, WARNING or ERROR; by default WARNING for commands", ""),
            Variable(
                "ENGRAM_LOG_FORMAT", "json", "json or console; by default console for commands and on a terminal", ""
            ),
            Variable("ENGRAM_METRICS_TOKEN", "", "Bearer token that /metrics asks for; unset: loopback callers only"),
            Variable(
                "OTEL_EXPORTER_OTLP_ENDPOINT", "http://localhost:4318", "Where traces go; unset: there are none", ""
            ),
        ),
    ),
)

# docs/settings.md lists them, .env.example does not.
RARE = (
    Variable("ENGRAM_CONN_MAX_AGE", "60", "Seconds that a process keeps a database connection"),
    Variable(
        "ENGRAM_VISIBILITY_TIMEOUT",
        "180",
        "Seconds after which an unanswered message comes again; unset: beyond what any task may take",
        "",
    ),
    Variable("ENGRAM_TEST_DATABASE", "test_engram", "Name of the suite's database"),
    Variable("ENGRAM_REAL_TIMEOUTS", "0", "1 runs the fault suite at the time-outs of production"),
)


# Read by who calls a server, not by the server: the plugin's hooks, the Python client.
CLIENT_VARIABLES = frozenset(
    {
        "ENGRAM_API_KEY", "ENGRAM_HOOK_DEBUG", "ENGRAM_MCP_URL", "ENGRAM_MEMORY_MD", "ENGRAM_PROJECT",
        "ENGRAM_PROJECT_FROM_FOLDER", "ENGRAM_RECOLLECTIONS_TIMEOUT_MS", "ENGRAM_STATUS_TIMEOUT_MS",
        "ENGRAM_TURNS_TIMEOUT_MS", "ENGRAM_URL", "ENGRAM_USER",
    }
)  # fmt: skip


def known_variables() -> set[str]:
    """Return every name that means something to the project."""
    return {variable.name for variable in iter_variables()} | {setting.name for setting in iter_settings()}


def iter_variables() -> Iterator[Variable]:
    """Yield every variable that is no number of the policy."""
    for _, shown in GROUPS:
        yield from (variable for variable in shown if isinstance(variable, Variable))
    yield from RARE


def default_of(setting: Setting) -> str:
    """Return a number's default as the environment spells it."""
    return str(int(setting.default)) if isinstance(setting.default, bool) else str(setting.default)


def render_example() -> str:
    """Render .env.example: what a person may want to set, commented out, under one line that describes it."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Copy to .env and uncomment what you change. The process's own environment wins over .env."
    yield "# docs/settings.md lists every variable, with defaults and ranges."
    defaults = {setting.name: default_of(setting) for setting in iter_settings()}
    for title, shown in GROUPS:
        yield from ("", "", f"## {title}")
        for variable in shown:
            value = variable.example if isinstance(variable, Variable) else defaults[variable.name]
            yield from ("", f"# {variable.description}", f"#{variable.name}={value}")


if __name__ == "__main__":
    sys.stdout.write(render_example())
