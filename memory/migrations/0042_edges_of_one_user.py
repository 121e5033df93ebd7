"""Edges in time and between causes that join sessions of different users, since these share a name, go."""

from django.db import migrations

_GO = """
    DELETE FROM memory_edge edge USING memory_episode source, memory_episode target
    WHERE source.id = edge.source_id AND target.id = edge.target_id AND source."user" <> target."user"
        AND edge.kind IN ('time', 'causal')
"""


class Migration(migrations.Migration):
    dependencies = [("memory", "0041_announced_claims")]

    operations = [migrations.RunSQL(_GO, migrations.RunSQL.noop)]
