"""Let the history of the beliefs that are there already begin with how they stand."""

from django.db import migrations

_FIRST_EVENTS = """
INSERT INTO memory_beliefevent (
    pgh_obj_id, pgh_label, pgh_created_at, workspace_id, project_id, scope, "user", statement, subject, predicate,
    context, timeframe, fact_type, language, importance, alpha, beta, peak_confidence, prediction_error,
    evidence_count, storage_strength, status, status_reason, is_pinned, created_at, updated_at, last_reinforced_at,
    last_verified_at, valid_until
)
SELECT
    id, 'found', now(), workspace_id, project_id, scope, "user", statement, subject, predicate,
    context, timeframe, fact_type, language, importance, alpha, beta, peak_confidence, prediction_error,
    evidence_count, storage_strength, status, status_reason, is_pinned, created_at, updated_at, last_reinforced_at,
    last_verified_at, valid_until
FROM memory_belief ORDER BY created_at, id
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0002_history'),
    ]

    operations = [
        migrations.RunSQL(_FIRST_EVENTS, reverse_sql=migrations.RunSQL.noop),  # the way back drops the table next
    ]
