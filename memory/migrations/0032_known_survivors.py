"""What was merged before rows said into what: the reason of its last transition does."""

from django.db import migrations

_SURVIVORS = """
UPDATE memory_episode e SET merged_into_id = survivor.id
FROM (
    SELECT DISTINCT ON (episode_id) episode_id, substring(reason FROM '^merged into (ep_[0-9a-f]+)$') AS into_id
    FROM memory_transition WHERE new = 'merged' AND episode_id IS NOT NULL ORDER BY episode_id, id DESC
) last
JOIN memory_episode survivor ON survivor.id = last.into_id
WHERE e.id = last.episode_id AND e.status IN ('merged', 'forgotten')
    AND survivor.workspace_id = e.workspace_id AND survivor.id <> e.id
"""
# Of what was merged into something that was merged itself, the last survivor.
_LAST = """
WITH RECURSIVE way AS (
    SELECT id AS began, merged_into_id AS id, 1 AS steps FROM memory_episode WHERE merged_into_id IS NOT NULL
    UNION ALL
    SELECT way.began, e.merged_into_id, way.steps + 1
    FROM way JOIN memory_episode e ON e.id = way.id WHERE e.merged_into_id IS NOT NULL AND way.steps < 100
), last AS (SELECT DISTINCT ON (began) began, id FROM way ORDER BY began, steps DESC)
UPDATE memory_episode e SET merged_into_id = last.id
FROM last WHERE e.id = last.began AND e.merged_into_id <> last.id AND last.id <> e.id
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0031_merged_into'),
    ]

    operations = [
        migrations.RunSQL(_SURVIVORS, migrations.RunSQL.noop),
        migrations.RunSQL(_LAST, migrations.RunSQL.noop),
    ]
