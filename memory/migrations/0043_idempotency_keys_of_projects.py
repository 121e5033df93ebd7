"""An idempotency key is a project's own; back again only while no two projects use the same."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0042_edges_of_one_user")]

    operations = [
        migrations.RemoveConstraint(model_name="episode", name="one_episode_per_idempotency_key"),
        migrations.AddConstraint(
            model_name="episode",
            constraint=models.UniqueConstraint(
                condition=models.Q(idempotency_key__isnull=False),
                fields=("workspace", "idempotency_key", "project"),
                name="one_episode_per_idempotency_key",
                nulls_distinct=False,
            ),
        ),
    ]
