"""Routes of version 1."""

from django.urls import URLPattern, path, register_converter
from django.urls.converters import StringConverter

from memory.api.beliefs import BeliefHistoryView, BeliefView
from memory.api.claims import ClaimsView
from memory.api.consolidations import CycleCancelView, CycleListView, CycleView
from memory.api.contradictions import SETTLINGS, ContradictionsView, ContradictionView
from memory.api.curation import ACTS, CurationView
from memory.api.episodes import EpisodesView
from memory.api.feedback import FeedbackView, ResolveView
from memory.api.forgetting import EraseView
from memory.api.lineage import LineageView
from memory.api.memories import MemoryView
from memory.api.recall import ContextView, RecallView, RecollectionView
from memory.api.reflection import MergesView, MetaBeliefsView, PruneView, ReflectionView, SubjectsView
from memory.api.remember import RememberView
from memory.api.reshaping import BeliefsView, CorrectionView, MergeView, SplitView
from memory.api.status import StatusView
from memory.api.transfer import ExportView, ImportView
from memory.api.turns import TurnsView
from memory.api.undoing import CycleReleaseView, CycleUndoView
from memory.domain.ids import IdKind, beginning_pattern, id_pattern


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


class CycleIdConverter(StringConverter):
    """A cycle's id."""

    regex = id_pattern(IdKind.CYCLE)
    expected = ("an id such as cy_3f9a1c0b77de",)


class ActConverter(StringConverter):
    """What may be done to a belief by hand."""

    regex = "|".join(ACTS)
    expected = tuple(ACTS)


class SettlingConverter(StringConverter):
    """What may be said of a pair of beliefs."""

    regex = "|".join(SETTLINGS)
    expected = tuple(SETTLINGS)


register_converter(ActConverter, "act")
register_converter(BeliefIdConverter, "belief_id")
register_converter(CycleIdConverter, "cycle_id")
register_converter(MemoryIdConverter, "memory_id")
register_converter(MemoryNameConverter, "memory_name")
register_converter(SettlingConverter, "settling")

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
