from django.db import migrations

# As ledger/confidence.py computes it: the last curator's word that bears a belief out, of its time.
_FILL = """
UPDATE memory_belief b SET last_verified_at = words.at FROM (
    SELECT v.belief_id, max(e.occurred_at) AS at FROM memory_evidence v
    JOIN memory_episode e ON e.id = v.episode_id JOIN memory_belief o ON o.id = v.belief_id
    WHERE v.kind = 'curator' AND v.verdict = 'SUPPORTS' AND v.base_weight > 0
      AND e.status NOT IN ('forgotten', 'invalidated')
      AND (o.valid_from IS NULL OR coalesce(v.valid_at, e.occurred_at) >= o.valid_from)
      AND (o.valid_until IS NULL OR coalesce(v.valid_at, e.occurred_at) < o.valid_until)
    GROUP BY v.belief_id
) words WHERE words.belief_id = b.id
"""


class Migration(migrations.Migration):
    """Fill in when curators last bore beliefs out, which nobody wrote before."""

    dependencies = [
        ("memory", "0008_readings"),
        ("pghistory", "0007_auto_20250421_0444"),  # the functions that its triggers call
    ]

    operations = [migrations.RunSQL(_FILL, migrations.RunSQL.noop)]
