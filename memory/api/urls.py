"""The routes of version 1 with their converters, and the answer to an address that leads nowhere."""

import re
from collections.abc import Iterator, Sequence

from django.http import HttpRequest, JsonResponse
from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter
from django.views.decorators.csrf import csrf_exempt

from memory.api.beliefs import BeliefHistoryView, BeliefView, ClaimsView, LineageView
from memory.api.consolidations import CycleCancelView, CycleListView, CycleReleaseView, CycleUndoView, CycleView
from memory.api.curation import ACTS, BeliefsView, CorrectionView, CurationView, MergeView, SplitView
from memory.api.forgetting import EraseView
from memory.api.ingest import EpisodesView, RememberView, TurnsView
from memory.api.memories import FeedbackView, MemoryView, ResolveView
from memory.api.operations import ExportView, ImportView, StatusView
from memory.api.recall import ContextView, MemoryMdView, ProjectMemoryMdView, RecallView, RecollectionView
from memory.api.reflection import (
    PAIR_ACTIONS,
    ContradictionsView,
    ContradictionView,
    MergesView,
    MetaBeliefsView,
    PruneView,
    ReflectionView,
    SubjectsView,
)
from memory.api.responses import API_PREFIX, plain_problem
from memory.domain.identity import IdKind, beginning_pattern, id_pattern
from memory.redaction.redact import redact


class BeliefIdConverter(StringConverter):
    """A belief's id; anything else names nothing."""

    regex = id_pattern(IdKind.BELIEF)
    expected = ("an id such as bl_3f9a1c0b77de",)


class MemoryIdConverter(StringConverter):
    """An episode's id, or a belief's."""

    regex = id_pattern(IdKind.EPISODE, IdKind.BELIEF)
    expected = ("an id such as ep_3f9a1c0b77de",)


class MemoryNameConverter(StringConverter):
    """Such an id, or the beginning of one; or that of a turn that waits to be read."""

    regex = beginning_pattern(IdKind.EPISODE, IdKind.BELIEF, IdKind.TURN)
    expected = ("an id such as ep_3f9a1c0b77de",)


class ProjectSlugConverter(StringConverter):
    """A project's slug; anything else names nothing."""

    regex = r"[-\w]{1,100}"
    expected = ("a project's slug",)


class CycleIdConverter(StringConverter):
    """A cycle's id."""

    regex = id_pattern(IdKind.CYCLE)
    expected = ("an id such as cy_3f9a1c0b77de",)


class CurationActConverter(StringConverter):
    """What may be done to a belief by hand."""

    regex = "|".join(ACTS)
    expected = tuple(ACTS)


class PairActionConverter(StringConverter):
    """What may be said of a pair of beliefs."""

    regex = "|".join(PAIR_ACTIONS)
    expected = tuple(PAIR_ACTIONS)


register_converter(CurationActConverter, "act")
register_converter(BeliefIdConverter, "belief_id")
register_converter(CycleIdConverter, "cycle_id")
register_converter(MemoryIdConverter, "memory_id")
register_converter(MemoryNameConverter, "memory_name")
register_converter(ProjectSlugConverter, "project_slug")
register_converter(PairActionConverter, "settling")

urlpatterns: list[URLPattern] = [
    path("episodes", EpisodesView.as_view()),
    path("beliefs", BeliefsView.as_view()),
    path("beliefs/merge", MergeView.as_view()),
    path("beliefs/<belief_id:belief_id>", BeliefView.as_view()),
    path("beliefs/<belief_id:belief_id>/history", BeliefHistoryView.as_view()),
    path("beliefs/<belief_id:belief_id>/lineage", LineageView.as_view()),
    path("beliefs/<belief_id:belief_id>/split", SplitView.as_view()),
    path("beliefs/<belief_id:belief_id>/correct", CorrectionView.as_view()),
    path("beliefs/<belief_id:belief_id>/<act:act>", CurationView.as_view()),
    path("consolidations", CycleListView.as_view()),
    path("consolidations/<cycle_id:cycle_id>", CycleView.as_view()),
    path("consolidations/<cycle_id:cycle_id>/cancel", CycleCancelView.as_view()),
    path("consolidations/<cycle_id:cycle_id>/undo", CycleUndoView.as_view()),
    path("consolidations/<cycle_id:cycle_id>/release", CycleReleaseView.as_view()),
    path("memories/<memory_name:memory_id>", MemoryView.as_view()),
    path("memories/<memory_id:memory_id>/claims", ClaimsView.as_view()),
    path("memories/<memory_id:memory_id>/feedback", FeedbackView.as_view()),
    path("memories/<memory_id:memory_id>/resolve", ResolveView.as_view()),
    path("contradictions", ContradictionsView.as_view()),
    path("contradictions/<int:pair_id>/<settling:settling>", ContradictionView.as_view()),
    path("erase", EraseView.as_view()),
    path("export", ExportView.as_view()),
    path("import", ImportView.as_view()),
    path("context", ContextView.as_view()),
    path("memory.md", MemoryMdView.as_view()),
    path("projects/<project_slug:slug>/memory.md", ProjectMemoryMdView.as_view()),
    path("recall", RecallView.as_view()),
    path("recollections", RecollectionView.as_view()),
    path("reflection", ReflectionView.as_view()),
    path("reflection/merges", MergesView.as_view()),
    path("reflection/meta-beliefs", MetaBeliefsView.as_view()),
    path("reflection/prune", PruneView.as_view()),
    path("reflection/subjects", SubjectsView.as_view()),
    path("remember", RememberView.as_view()),
    path("status", StatusView.as_view()),
    path("turns", TurnsView.as_view()),
]
_ROOT = f"{API_PREFIX}v1"
_LONGEST_ADDRESS = 300  # characters of an address that are repeated


@csrf_exempt
def unknown_route(request: HttpRequest) -> JsonResponse:
    """Answer for every address under the API's prefix that names nothing."""
    return plain_problem(status=404, detail=redact(_describe_address(request.path)).text)


def _describe_address(path: str) -> str:
    nothing = f"There is nothing at {path[:_LONGEST_ADDRESS]}"
    if path != _ROOT and not path.startswith(f"{_ROOT}/"):
        return f"{nothing}: the API is at {_ROOT}, and /api/docs describes it."
    known = [_parts_of(pattern) for pattern in urlpatterns]
    led = _ROOT
    for place, word in enumerate(path.removeprefix(_ROOT).split("/")[1:]):
        fitting = [parts for parts in known if len(parts) > place and parts[place].fits(word)]
        if not fitting:
            return f"{nothing}: {_what_follows(led, known, place)}"
        known, led = fitting, f"{led}/{word}"
    return f"{nothing}: {_what_follows(led, known, led.count('/') - _ROOT.count('/'))}"


class _Part:
    """A part of a route: a word, or what a converter takes."""

    def __init__(self, text: str, pattern: URLPattern) -> None:
        self._converter = pattern.pattern.converters.get(text.strip("<>").rpartition(":")[2]) if "<" in text else None
        self._word = text

    def fits(self, word: str) -> bool:
        if self._converter is None:
            return word == self._word
        return re.fullmatch(self._converter.regex, word) is not None

    def expected(self) -> Sequence[str]:
        """Name what can stand here."""
        return (self._word,) if self._converter is None else getattr(self._converter, "expected", ("a number",))


def _parts_of(pattern: URLPattern) -> list[_Part]:
    return [_Part(text, pattern) for text in str(pattern.pattern).split("/")]


def _what_follows(led: str, known: Sequence[Sequence[_Part]], place: int) -> str:
    found = dict.fromkeys(_expected_at(known, place))
    if not found:
        return f"nothing follows {led}."
    *others, last = found
    return f"{led} is followed by {', '.join(others)}{' or ' if others else ''}{last}."


def _expected_at(known: Sequence[Sequence[_Part]], place: int) -> Iterator[str]:
    for parts in known:
        if len(parts) > place:
            yield from parts[place].expected()
