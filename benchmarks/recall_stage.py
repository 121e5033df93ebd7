"""What benchmarks of recall run on: workspaces full of memories, a web server as the Procfile starts it, clients."""

import hashlib
import http.client
import json
import os
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np

from benchmarks.memories import START, Drawn
from benchmarks.stage import ROOT, free_port, wait_until

if TYPE_CHECKING:
    from memory.models import Workspace

BELIEF_EVERY = 50  # episodes


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """What one key, and within its workspace one project, may find."""

    name: str
    workspace_id: int
    key: str
    drawn: Sequence[Drawn]
    project: str | None = None
    project_id: int | None = None


def clear() -> None:
    """Empty the database of the benchmarks, whose size is what is measured; rows go into an index 50 times slower."""
    from django.db import connection

    from memory.models.fields import VectorKind
    from memory.search.vectors import drop_index, stored_indexes

    for kind in VectorKind:
        for index in stored_indexes(kind=kind):
            drop_index(name=index.name)
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE memory_workspace CASCADE")


def fill(*, name: str, drawn: Sequence[Drawn], shares: Sequence[float] = ()) -> list[Scope]:
    """Store memories in a workspace of their own; return its scope and one for each project with such a share of it."""
    from memory.llm.offline import static_embedder
    from memory.models import Permission
    from tests import factories

    workspace = factories.workspace(name=f"{name} {uuid4().hex[:6]}", embedding_model=static_embedder().name)
    _, key = factories.key(Permission.OWNER, workspace=workspace)
    scopes = [Scope(name=name, workspace_id=workspace.pk, key=key, drawn=drawn)]
    sizes = [round(share * len(drawn)) for share in shares]
    start = 0
    for share, size in zip((*shares, None), (*sizes, len(drawn) - sum(sizes)), strict=True):
        part = drawn[start : start + size]
        project = factories.project(workspace=workspace, slug="rest" if share is None else f"share-{size}")
        _store_episodes(workspace, project.pk, part)
        if share is not None:
            scopes.append(
                Scope(
                    name=f"{name}, project of {share:.0%}", workspace_id=workspace.pk, key=key, drawn=part,
                    project=project.slug, project_id=project.pk,
                )
            )  # fmt: skip
        start += size
    _store_beliefs(workspace, drawn[::BELIEF_EVERY])
    return scopes


def settle() -> None:
    """Do what goes on beside recall: count words and vectors, build indexes, and gather the planner's statistics."""
    from django.conf import settings
    from django.db import connection

    from memory.search.plan import keep_indexes
    from memory.search.words import count_due_words

    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")
    count_due_words(policy=settings.POLICY.recall)
    keep_indexes(policy=settings.POLICY.recall)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE")


def _store_episodes(workspace: "Workspace", project_id: int, drawn: Sequence[Drawn]) -> None:
    from pgvector import HalfVector

    from memory.llm.offline import static_embedder
    from memory.search.prepared import raw_cursor

    model = static_embedder()
    vectors = model.embed([one.text for one in drawn]).astype(np.float16)
    ids = [f"ep_{uuid4().hex[:12]}" for _ in drawn]
    with raw_cursor() as cursor:
        row = _defaults() | {"workspace_id": workspace.pk, "project_id": project_id}
        columns = ", ".join(f'"{column}"' for column in row)
        with cursor.copy(f"COPY memory_episode ({columns}) FROM STDIN") as copy:
            for number, (key, one) in enumerate(zip(ids, drawn, strict=True)):
                copy.write_row(list((row | _episode(key, one, number)).values()))
        with cursor.copy(f"COPY memory_episodeembedding ({', '.join(_EMBEDDING)}) FROM STDIN (FORMAT binary)") as copy:
            copy.set_types(["varchar", "varchar", "bool", "varchar", "bool", "halfvec", "int8", "int8"])
            for key, vector in zip(ids, vectors, strict=True):
                copy.write_row((key, "", True, model.name, False, HalfVector(vector), project_id, workspace.pk))


def _defaults() -> dict[str, Any]:
    """Return what an episode's columns hold unless something else is given; the database fills in the others."""
    from django.db.models import NOT_PROVIDED

    from memory.models import Episode

    columns = [field for field in Episode._meta.concrete_fields if not field.generated]
    return {str(field.column): field.get_default() for field in columns if field.db_default is NOT_PROVIDED}


def _episode(key: str, one: Drawn, number: int) -> dict[str, Any]:
    moment = START + timedelta(minutes=number)
    return {
        "id": key, "session": one.session, "speaker": one.speaker, "language": "en", "text": one.text,
        "origin": one.session, "content_hash": hashlib.sha256(f"{number} {one.text}".encode()).hexdigest(),
        "state": "settled", "created_at": moment, "occurred_at": moment,
    }  # fmt: skip


def _store_beliefs(workspace: "Workspace", drawn: Sequence[Drawn]) -> None:
    from memory.llm.offline import static_embedder
    from memory.models import Belief
    from memory.search.vectors import store_belief_vectors

    beliefs = [
        Belief(
            workspace=workspace, statement=f"{one.speaker} holds: {one.text}", language="en", alpha=6.0, beta=1.0,
            statement_hash=hashlib.sha256(f"{number} {one.text}".encode()).hexdigest(),
            created_at=START, updated_at=START, statement_changed_at=START,
        )
        for number, one in enumerate(drawn)
    ]  # fmt: skip
    stored = Belief.objects.bulk_create(beliefs)
    model = static_embedder()
    vectors = model.embed([belief.statement for belief in stored])
    store_belief_vectors(
        workspace_id=workspace.pk,
        model=model.name,
        vectors={belief.pk: vector for belief, vector in zip(stored, vectors, strict=True)},
    )


@contextmanager
def web_server() -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    """Run the web process of the Procfile; yield its port and its parent once it answers."""
    port = free_port()
    line = next(line for line in (ROOT / "Procfile").read_text().splitlines() if line.startswith("web:"))
    command = f"exec {line.removeprefix('web:').strip()}"
    log = Path(os.environ["ENGRAM_DATA_DIR"]) / "web.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            ["/bin/sh", "-c", command], cwd=ROOT, env=os.environ | {"PORT": str(port)}, stdout=out, stderr=out
        )
    try:
        wait_until(lambda: _is_well(port), what="the web server")
        yield port, process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _is_well(port: int) -> bool:
    with suppress(OSError):
        client = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        client.request("GET", "/healthz")
        return client.getresponse().status == 200
    return False


class Poster:
    """One caller with a connection of its own."""

    def __init__(self, *, port: int, key: str) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}

    def post(self, path: str, body: Any) -> tuple[int, Any]:
        """Return the status and the answer."""
        return self._ask("POST", path, json.dumps(body).encode())

    def get(self, path: str) -> tuple[int, Any]:
        """Return the status and the answer."""
        return self._ask("GET", path, None)

    def _ask(self, method: str, path: str, body: bytes | None) -> tuple[int, Any]:
        self._connection.request(method, path, body, self._headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")

    def close(self) -> None:
        """Close the connection; a further call opens another."""
        self._connection.close()


class Client(Poster):
    """A caller that recalls in a scope."""

    def __init__(self, *, port: int, scope: Scope) -> None:
        super().__init__(port=port, key=scope.key)
        self._scope = scope

    def recall(self, query: str) -> tuple[int, Any]:
        """Return the status and the answer."""
        asked: dict[str, Any] = {"query": query, "limit": 10, "types": ["episode", "belief"]}
        if self._scope.project:
            asked["project"] = self._scope.project
        return self.post("/api/v1/recall", asked)


def recall_at_once(*, port: int, scope: Scope, queries: Sequence[str], clients: int) -> list[float]:
    """Ask the queries through so many clients at once; return the milliseconds that each answer took."""
    taken: list[float] = []

    def ask(own: Sequence[str]) -> None:
        client = Client(port=port, scope=scope)
        for query in own:
            began = time.perf_counter()
            status, _ = client.recall(query)
            assert status == 200, status
            taken.append((time.perf_counter() - began) * 1000)

    threads = [threading.Thread(target=ask, args=(queries[start::clients],)) for start in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


_EMBEDDING = ("episode_id", '"user"', "is_active", "model", "is_chunked", "vector", "project_id", "workspace_id")
