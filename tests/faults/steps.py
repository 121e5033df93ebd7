"""Hold a real worker inside a step of its own choosing: no hook in the product, only locks and slow replies."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.consolidation.world import World
from tests.faults.windows import HeldReply, LockedTable, locked

STEPS = ("extract", "cluster", "synthesize", "classify", "gate", "finish")

# What a step writes that no step before it does; the finish is told apart by when it comes.
_TABLES = {"extract": "memory_episodeembedding", "cluster": "memory_clusterjob", "gate": "memory_evidence"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A step that a worker is in the middle of."""

    await_worker: Callable[[], None]
    let_go: Callable[[], None]
    forget: Callable[[], None]  # what a killed process asked of the database last


@contextmanager
def held_in(step: str, world: World) -> Iterator[Window]:
    """Hold whichever worker comes to a step; open a cycle in the body."""
    if step in ("synthesize", "classify"):
        held = HeldReply(world.server, purpose=step)
        try:
            yield Window(await_worker=held.await_call, let_go=held.let_go, forget=lambda: None)
        finally:
            held.let_go()
        return
    with _held_by_a_lock(step) as window:
        yield window


@contextmanager
def _held_by_a_lock(step: str) -> Iterator[Window]:
    if step == "finish":
        with _held_finish() as window:
            yield window
        return
    with locked(_TABLES[step]) as table:
        yield Window(await_worker=table.await_writer, let_go=table.open, forget=table.forget_writers)


@contextmanager
def _held_finish() -> Iterator[Window]:
    """Stop the gate's walk first, and lock what only the finish still writes while nobody else works."""
    with ExitStack() as locks:
        walk = locks.enter_context(locked("memory_gatedecision"))
        taken: list[LockedTable] = []

        def await_worker() -> None:
            walk.await_writer()
            taken.append(locks.enter_context(locked("memory_cyclestep")))
            walk.open()
            taken[0].await_writer()

        yield Window(
            await_worker=await_worker,
            let_go=lambda: taken[0].open(),
            forget=lambda: taken[0].forget_writers(),
        )
