"""Hold a real worker inside a step of its own choosing: no hook in the product, only locks and slow replies."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from tests.consolidation.world import World
from tests.faults.changes import KILN_SIX
from tests.faults.windows import HeldReply, HeldVectors, LockedTable, locked

JUDGING_STEPS = ("extract", "cluster", "synthesize", "classify", "gate")
CHANGING_STEPS = ("revise", "split", "merge", "embed anew", "judge anew", "apply")  # of the step restructure
STEPS = (*JUDGING_STEPS, *CHANGING_STEPS, "finish")

# What a step writes that no step before it does; the finish is told apart by when it comes.
_TABLES = {
    "extract": "memory_episodeembedding",
    "cluster": "memory_clusterjob",
    "gate": "memory_evidence",
    "apply": "memory_lineage",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A step that a worker is in the middle of."""

    await_worker: Callable[[], None]
    let_go: Callable[[], None]
    forget: Callable[[], None]  # what a killed process asked of the database last


def name_step(step: str) -> str:
    """Return a step's name for the table of faults."""
    return f"restructure: {step}" if step in CHANGING_STEPS else step


def purpose_of(step: str) -> str:
    """Return the purpose of the calls that are made in a step; its own name where none are."""
    return "classify" if step == "judge anew" else step


@contextmanager
def held_in(step: str, world: World) -> Iterator[Window]:
    """Hold whichever worker comes to a step; open a cycle in the body."""
    if step == "finish":
        with _held_finish() as window:
            yield window
    elif step in _TABLES:
        with locked(_TABLES[step]) as table:
            yield Window(await_worker=table.await_writer, let_go=table.open, forget=table.forget_writers)
    else:
        held = _hold_call(step, world)
        try:
            yield Window(await_worker=held.await_call, let_go=held.let_go, forget=lambda: None)
        finally:
            held.let_go()


def _hold_call(step: str, world: World) -> HeldReply | HeldVectors:
    """Hold the calls of a step; what comes of the revision stands for all children."""
    if step == "embed anew":
        return HeldVectors(world.server, text=KILN_SIX)
    about = KILN_SIX if step == "judge anew" else ""
    return HeldReply(world.server, purpose=purpose_of(step), about=about)


@contextmanager
def _held_finish() -> Iterator[Window]:
    """Stop the first change first, and lock what only the finish still writes while nobody else works."""
    with ExitStack() as locks:
        lineage = locks.enter_context(locked(_TABLES["apply"]))
        taken: list[LockedTable] = []

        def await_worker() -> None:
            lineage.await_writer()
            taken.append(locks.enter_context(locked("memory_cyclestep")))
            lineage.open()
            taken[0].await_writer()

        yield Window(
            await_worker=await_worker,
            let_go=lambda: taken[0].open(),
            forget=lambda: taken[0].forget_writers(),
        )
