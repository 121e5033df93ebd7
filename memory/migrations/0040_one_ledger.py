"""The one ledger: when each piece of evidence is so, since and until when a belief holds, and what is due for the gates."""

import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models


# What contradicts is so from when its claim says that things changed; what supports, from when it was said.
_VALID_AT = """
UPDATE memory_evidence v SET valid_at = c.holds_from::timestamp AT TIME ZONE 'UTC'
FROM memory_claim c, memory_episode e
WHERE c.id = v.claim_id AND e.id = v.episode_id AND c.holds_from IS NOT NULL
  AND (v.verdict <> 'SUPPORTS' OR c.holds_from::timestamp AT TIME ZONE 'UTC' > e.occurred_at)
"""

# What came in by no cycle was never shown to the gates.
_DUE = """
UPDATE memory_belief b SET is_due = true WHERE b.status IN ('active', 'challenged')
  AND EXISTS (SELECT FROM memory_evidence e WHERE e.belief_id = b.id AND e.cycle_id IS NULL)
"""

# Strength and reinforcement follow from the rows that there are, and from nothing else.
_REMEMBERED = """
UPDATE memory_belief b SET storage_strength = found.rows, last_reinforced_at = found.reinforced_at
FROM (
    SELECT b.id, count(v.id) AS rows,
           max(v.created_at) FILTER (WHERE v.verdict = 'SUPPORTS' AND e.status NOT IN ('forgotten', 'invalidated'))
               AS reinforced_at
    FROM memory_belief b
    LEFT JOIN memory_evidence v ON v.belief_id = b.id AND v.base_weight > 0
    LEFT JOIN memory_episode e ON e.id = v.episode_id
    GROUP BY b.id
) found
WHERE found.id = b.id
"""

# What a verdict was about is told with the context that the prompt has.
_HASH = "encode(sha256(convert_to({subject} || E'\\n' || {statement} || E'\\n' || {context}, 'UTF8')), 'hex')"
_OF_ROW = _HASH.format(subject="subject", statement="statement", context="context")
_OF_CANDIDATE = _HASH.format(
    subject="(candidate->>'subject')", statement="(candidate->>'statement')", context="(candidate->>'context')"
)
_OF_BELIEF = _HASH.format(subject="b.subject", statement="b.statement", context="b.context")
_HASHED = [
    f"UPDATE memory_jobverdict v SET statement_hash = {_OF_BELIEF} FROM memory_belief b "
    "WHERE b.id = v.belief_id AND v.statement_hash = b.statement_hash",
    f"UPDATE memory_belief SET statement_hash = {_OF_ROW}",
    f"UPDATE memory_structuralchild SET statement_hash = {_OF_ROW}",
    f"UPDATE memory_clusterjob SET candidate_hash = {_OF_CANDIDATE} WHERE candidate IS NOT NULL",
]

# A belief that evidence brought back from the archive was restored by nobody.
_BROUGHT_BACK = """
UPDATE memory_belief b SET restored_by_person_at = NULL FROM memory_transition t
WHERE t.belief_id = b.id AND t.at = b.restored_by_person_at AND t.old = 'archived' AND t.new = 'active'
  AND t.reason IN ('fresh_support', 'confident_again')
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0039_pairs_of_jobs'),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name='belief',
            name='created_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='belief',
            name='changed_update',
        ),
        migrations.RemoveConstraint(
            model_name='structuraljob',
            name='structural_kind_known',
        ),
        migrations.AddField(
            model_name='belief',
            name='is_due',
            field=models.BooleanField(db_default=False, default=False, help_text='Its counted evidence changed, and no gates have seen it since.'),
        ),
        migrations.AddField(
            model_name='belief',
            name='valid_from',
            field=models.DateTimeField(blank=True, help_text='Evidence of earlier times counts nothing.', null=True),
        ),
        migrations.AddField(
            model_name='beliefevent',
            name='valid_from',
            field=models.DateTimeField(blank=True, help_text='Evidence of earlier times counts nothing.', null=True),
        ),
        migrations.AddField(
            model_name='evidence',
            name='valid_at',
            field=models.DateTimeField(blank=True, help_text="When it is so, where its claim names another time than its episode's.", null=True),
        ),
        migrations.AddField(
            model_name='jobverdict',
            name='has_challenged',
            field=models.BooleanField(db_default=False, default=False, help_text='What the claim founds takes the place of the belief.'),
        ),
        migrations.AddField(
            model_name='structuralchild',
            name='is_joined',
            field=models.BooleanField(db_default=False, default=False, help_text='A belief said it already, and took its evidence.'),
        ),
        migrations.AddField(
            model_name='undoneevidence',
            name='valid_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.AlterField(
            model_name='belief',
            name='valid_until',
            field=models.DateTimeField(blank=True, help_text='Nor does evidence of this time or later.', null=True),
        ),
        migrations.AlterField(
            model_name='beliefevent',
            name='valid_until',
            field=models.DateTimeField(blank=True, help_text='Nor does evidence of this time or later.', null=True),
        ),
        migrations.AlterField(
            model_name='childverdict',
            name='kind',
            field=models.CharField(choices=[('ordinary', 'ordinary'), ('curator', "a curator's word"), ('announced', 'an announced change'), ('echo', 'echo of what was surfaced')], default='ordinary', max_length=9),
        ),
        migrations.AlterField(
            model_name='evidence',
            name='base_weight',
            field=models.FloatField(default=1.0, help_text="Before the origin's series: 0 echo, 1 ordinary, 3 announced, 5 curator."),
        ),
        migrations.AlterField(
            model_name='evidence',
            name='kind',
            field=models.CharField(choices=[('ordinary', 'ordinary'), ('curator', "a curator's word"), ('announced', 'an announced change'), ('echo', 'echo of what was surfaced')], default='ordinary', max_length=9),
        ),
        migrations.AlterField(
            model_name='gatedecision',
            name='cycle',
            field=models.ForeignKey(blank=True, help_text='In which it was decided; empty where evidence that came by another way asked for it.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='memory.cycle'),
        ),
        migrations.AlterField(
            model_name='structuraljob',
            name='kind',
            field=models.CharField(choices=[('revise', 'revision'), ('split', 'split'), ('merge', 'merge'), ('close', 'change')], max_length=6),
        ),
        migrations.AlterField(
            model_name='undoneevidence',
            name='kind',
            field=models.CharField(choices=[('ordinary', 'ordinary'), ('curator', "a curator's word"), ('announced', 'an announced change'), ('echo', 'echo of what was surfaced')], max_length=9),
        ),
        migrations.AddIndex(
            model_name='belief',
            index=models.Index(condition=models.Q(('is_due', True)), fields=['workspace'], name='belief_due'),
        ),
        migrations.RunSQL([_VALID_AT, _DUE, _REMEMBERED, *_HASHED, _BROUGHT_BACK], migrations.RunSQL.noop),
        pgtrigger.migrations.AddTrigger(
            model_name='belief',
            trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "memory_beliefevent" ("alpha", "beta", "context", "created_at", "evidence_count", "fact_type", "importance", "is_pinned", "language", "last_reinforced_at", "last_verified_at", "peak_confidence", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "predicate", "prediction_error", "project_id", "scope", "statement", "status", "status_reason", "storage_strength", "subject", "timeframe", "updated_at", "user", "valid_from", "valid_until", "workspace_id") SELECT new_values."alpha", new_values."beta", new_values."context", new_values."created_at", new_values."evidence_count", new_values."fact_type", new_values."importance", new_values."is_pinned", new_values."language", new_values."last_reinforced_at", new_values."last_verified_at", new_values."peak_confidence", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, NOW(), \'created\', new_values."id", new_values."predicate", new_values."prediction_error", new_values."project_id", new_values."scope", new_values."statement", new_values."status", new_values."status_reason", new_values."storage_strength", new_values."subject", new_values."timeframe", new_values."updated_at", new_values."user", new_values."valid_from", new_values."valid_until", new_values."workspace_id" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='0aa259483b34df7fb59489f8255399879bbc4ed6', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_2ed36', referencing='REFERENCING NEW TABLE AS new_values ', table='memory_belief', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='belief',
            trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "memory_beliefevent" ("alpha", "beta", "context", "created_at", "evidence_count", "fact_type", "importance", "is_pinned", "language", "last_reinforced_at", "last_verified_at", "peak_confidence", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "predicate", "prediction_error", "project_id", "scope", "statement", "status", "status_reason", "storage_strength", "subject", "timeframe", "updated_at", "user", "valid_from", "valid_until", "workspace_id") SELECT new_values."alpha", new_values."beta", new_values."context", new_values."created_at", new_values."evidence_count", new_values."fact_type", new_values."importance", new_values."is_pinned", new_values."language", new_values."last_reinforced_at", new_values."last_verified_at", new_values."peak_confidence", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, NOW(), \'changed\', new_values."id", new_values."predicate", new_values."prediction_error", new_values."project_id", new_values."scope", new_values."statement", new_values."status", new_values."status_reason", new_values."storage_strength", new_values."subject", new_values."timeframe", new_values."updated_at", new_values."user", new_values."valid_from", new_values."valid_until", new_values."workspace_id" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."alpha" IS DISTINCT FROM (new_values."alpha") OR old_values."beta" IS DISTINCT FROM (new_values."beta") OR old_values."context" IS DISTINCT FROM (new_values."context") OR old_values."is_pinned" IS DISTINCT FROM (new_values."is_pinned") OR old_values."predicate" IS DISTINCT FROM (new_values."predicate") OR old_values."statement" IS DISTINCT FROM (new_values."statement") OR old_values."status" IS DISTINCT FROM (new_values."status") OR old_values."status_reason" IS DISTINCT FROM (new_values."status_reason") OR old_values."subject" IS DISTINCT FROM (new_values."subject") OR old_values."timeframe" IS DISTINCT FROM (new_values."timeframe") OR old_values."valid_from" IS DISTINCT FROM (new_values."valid_from") OR old_values."valid_until" IS DISTINCT FROM (new_values."valid_until")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='c381f8ad054a5d244e770820a1c19a8296e4ea18', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_02863', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='memory_belief', when='AFTER')),
        ),
        migrations.AddConstraint(
            model_name='structuraljob',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['revise', 'split', 'merge', 'close'])), name='structural_kind_known'),
        ),
    ]
