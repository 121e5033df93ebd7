"""Say which rows founded their beliefs, and replay the additive confidence of beliefs that were there before (R10a)."""

from dataclasses import replace
from itertools import groupby
from operator import attrgetter

from django.conf import settings
from django.db import migrations

from memory.domain.additive import additive_confidence
from memory.domain.evidence import EvidenceRow
from memory.domain.verdicts import Verdict

FOUND = """
UPDATE memory_evidence e SET is_founding = true
FROM memory_clusterjob j JOIN memory_jobverdict v ON v.job_id = j.id AND v.belief_id IS NULL
WHERE j.created_belief_id = e.belief_id AND v.episode_id = e.episode_id
"""


def replay(apps, schema_editor):
    """Compute the additive confidence of every belief from its rows, as every later change of them will."""
    Belief, Evidence = apps.get_model("memory", "Belief"), apps.get_model("memory", "Evidence")
    counts_origins = dict(apps.get_model("memory", "Workspace").objects.values_list("pk", "counts_origins"))
    Belief.objects.filter(additive_confidence=None).update(additive_confidence=settings.POLICY.additive.birth)
    rows = Evidence.objects.exclude(episode__status__in=("forgotten", "invalidated")).select_related("episode")
    ordered = rows.order_by("belief_id", "pk").iterator(chunk_size=1000)
    for belief_id, group in groupby(ordered, key=attrgetter("belief_id")):
        evidence = list(group)
        independence = counts_origins[evidence[0].workspace_id]
        Belief.objects.filter(pk=belief_id).update(additive_confidence=_replay(evidence, independence))


def _replay(evidence, independence):
    policy = settings.POLICY.confidence
    rows = [
        EvidenceRow(
            episode_id=row.episode_id,
            verdict=Verdict(row.verdict),
            base_weight=row.base_weight,
            origin=row.episode.origin,
            occurred_at=row.episode.occurred_at,
            is_founding=row.is_founding,
        )
        for row in evidence
    ]
    return additive_confidence(
        rows=rows,
        confidence=replace(policy, independence=policy.independence and independence),
        policy=settings.POLICY.additive,
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0006_restructure")]

    operations = [
        migrations.RunSQL(FOUND, migrations.RunSQL.noop),
        migrations.RunPython(replay, migrations.RunPython.noop),
    ]
