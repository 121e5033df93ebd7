"""A workspace has an embedding model of its own, and may have vectors of two while it moves from one to the other."""

import django.db.models.deletion
from django.db import migrations, models

_PIN = """
UPDATE memory_workspace w SET embedding_model = most.model FROM (
    SELECT DISTINCT ON (workspace_id) workspace_id, model FROM (
        SELECT workspace_id, model FROM memory_episodeembedding
        UNION ALL
        SELECT workspace_id, model FROM memory_beliefembedding
    ) one GROUP BY workspace_id, model ORDER BY workspace_id, count(*) DESC, model
) most WHERE most.workspace_id = w.id
"""


def _widen_key(table: str, owner: str) -> migrations.RunSQL:
    key = f"{table}_pkey"
    return migrations.RunSQL(
        f"ALTER TABLE {table} DROP CONSTRAINT {key}, ADD CONSTRAINT {key} PRIMARY KEY ({owner}, model)",
        f"""
        DELETE FROM {table} v USING memory_workspace w
            WHERE w.id = v.workspace_id AND w.embedding_model NOT IN ('', v.model);
        ALTER TABLE {table} DROP CONSTRAINT {key}, ADD CONSTRAINT {key} PRIMARY KEY ({owner})
        """,
    )


def _name_key(model: str, owner: str, to: str) -> list:
    return [
        migrations.AlterField(
            model_name=model,
            name=owner,
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="embeddings",
                related_query_name="embedding",
                to=to,
            ),
        ),
        migrations.AddField(
            model_name=model,
            name="pk",
            field=models.CompositePrimaryKey(owner, "model", blank=True, editable=False, primary_key=True, serialize=False),
        ),
    ]


class Migration(migrations.Migration):

    dependencies = [("memory", "0015_vector_indexes")]

    operations = [
        migrations.AddField(
            model_name="workspace",
            name="embedding_model",
            field=models.CharField(
                blank=True, default="", help_text="Whose vectors it compares; empty until it has any.", max_length=100
            ),
        ),
        migrations.RunSQL(_PIN, migrations.RunSQL.noop),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                _widen_key("memory_episodeembedding", "episode_id"),
                _widen_key("memory_beliefembedding", "belief_id"),
            ],
            state_operations=[
                *_name_key("episodeembedding", "episode", "memory.episode"),
                *_name_key("beliefembedding", "belief", "memory.belief"),
            ],
        ),
    ]
