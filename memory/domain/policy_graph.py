"""The numbers of what links memories with each other; `policy` gathers them with all others."""

from dataclasses import dataclass
from typing import Annotated

from memory.domain.policy_ranges import Amount, Count, Positive, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphPolicy:
    """How memories are linked, how links fade, and how far recall follows them."""

    entity_neighbours: Annotated[Count, "L19: earlier memories that one is linked with for each name they share"] = 6
    entity_reach: Annotated[Count, "L19: latest memories with a name among which those are chosen"] = 40
    entity_counted: Annotated[Count, "L19: memories with a name up to which they are counted"] = 1_000
    time_neighbours: Annotated[Count, "L19: memories before it in its session, and after, that one is linked with"] = 2
    cause_candidates: Annotated[Count, "L19: latest memories of a session among which a cause is looked for"] = 200
    cause_overlap: Annotated[Share, "L19: share of a cause's words that a memory must have to be it"] = 0.6
    entity_confidence: Annotated[Share, "L19: confidence of a new edge between memories that name the same"] = 0.7
    time_confidence: Annotated[Share, "L19: confidence of a new edge between neighbours in time"] = 0.6
    causal_confidence: Annotated[Share, "L19: confidence of a new edge from a cause"] = 0.8
    reinforcement: Annotated[Share, "L19: confidence that an edge gains when it is seen again"] = 0.05
    cap: Annotated[Share, "L19: greatest confidence of an edge"] = 1.0
    grace_days: Annotated[Amount, "L19: days without being seen that cost an edge nothing"] = 90.0
    window_days: Annotated[Positive, "L19: days of a further window, each of which costs confidence"] = 90.0
    decay: Annotated[Share, "L19: confidence that an edge loses for each such window"] = 0.1
    floor: Annotated[Share, "L19: confidence below which no edge decays"] = 0.1
    cut: Annotated[Share, "L19: confidence below which recall does not follow an edge"] = 0.2
    hops: Annotated[Count, "L19: most edges that recall follows one after another"] = 3
    hop_decay: Annotated[Share, "L19: share that each hop leaves of a contribution"] = 0.7
    rounds: Annotated[Count, "L19: rounds of passing scores along edges"] = 8
    damping: Annotated[Share, "L19: share of a score that is passed on in a round"] = 0.85
    seeds: Annotated[Count, "L19: best episodes of the other channels that recall starts from"] = 8
    fanout: Annotated[Count, "L19: strongest edges that are followed from one memory"] = 12
    frontier: Annotated[Count, "L19: edges that are followed in one hop altogether"] = 120
    found: Annotated[Count, "L19: most memories that the graph adds to the candidates"] = 30
    share: Annotated[Share, "L19, B17: share of what a score lacks to 1 that the graph's best memory gains"] = 0.05
    batch: Annotated[Count, "L19: new memories that are linked in one transaction"] = 500
    seconds: Annotated[Positive, "L19: time that linking takes before others get their turn"] = 20.0
    settle_minutes: Annotated[Positive, "L19: minutes in which whoever stores memories is done at the latest"] = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BoxPolicy:
    """How memories are put into boxes by topic, and boxes on one trace."""

    shift_overlap: Annotated[Share, "L7: overlap of topics below which a memory does not belong in an open box"] = 0.35
    idle_minutes: Annotated[Positive, "L7: minutes without a memory after which a box is sealed"] = 30.0
    memories: Annotated[Count, "L7: memories with which a box is full"] = 50
    trace_overlap: Annotated[Share, "L7: overlap of topics from which two boxes are on one trace"] = 0.4
    trace_days: Annotated[Positive, "L7: days between two boxes of one trace"] = 7.0
    traces: Annotated[Count, "L7: earlier boxes that a sealed one is linked with"] = 3
    trace_reach: Annotated[Count, "L7: latest sealed boxes among which those are looked for"] = 50
    keywords: Annotated[Count, "L7: words that stand for a text that names nobody"] = 8
    topics: Annotated[Count, "L7: latest topics that a box is known by"] = 48


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePolicy:
    """When memories are maintained, and how much of it at once."""

    extractions: Annotated[Count, "L8: extractions after which a workspace is maintained"] = 3
    hours: Annotated[Positive, "L8: hours after which it is maintained in any case, if anything is due"] = 24.0
    look_seconds: Annotated[Positive, "L8: time between two looks which workspaces are due"] = 60.0
    seconds: Annotated[Positive, "L8: time that the steps of one workspace may take together"] = 30.0
    notes: Annotated[Count, "L8: latest settled memories of which notes are compared with older ones"] = 400
    notes_at_once: Annotated[Count, "L8: notes for which these are looked for before the time is looked at"] = 50
    neighbours: Annotated[Count, "L8: nearest older memories that a note is compared with"] = 5
    batch: Annotated[Count, "L8: edges that are looked at in one transaction"] = 2_000
