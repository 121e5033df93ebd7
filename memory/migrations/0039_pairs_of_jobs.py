"""One call may judge single episodes against several beliefs: a job keeps which against which (B8.3)."""

import django.contrib.postgres.indexes
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0038_own_words")]

    operations = [
        migrations.AddField(
            model_name="clusterjob",
            name="pairs",
            field=models.JSONField(
                blank=True,
                db_default={},
                default=dict,
                help_text="Of a singles job: by belief, or claim of the cycle, the episodes to be judged against it.",
            ),
        ),
        migrations.AlterField(
            model_name="clusterjob",
            name="belief",
            field=models.ForeignKey(
                blank=True,
                help_text="Of a singles job about one.",
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="memory.belief",
            ),
        ),
        migrations.AlterField(
            model_name="clusterjob",
            name="kind",
            field=models.CharField(
                choices=[
                    ("cluster", "cluster of three or more"),
                    ("singles", "single episodes near beliefs"),
                    ("claim", "one claim, as it was told"),
                ],
                max_length=7,
            ),
        ),
        migrations.AddIndex(
            model_name="clusterjob",
            index=django.contrib.postgres.indexes.GinIndex(fields=["pairs"], name="job_asks_about"),
        ),
        migrations.AddField(
            model_name="jobverdict",
            name="claim",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="memory.claim",
            ),
        ),
        migrations.RemoveConstraint(model_name="jobverdict", name="one_verdict_per_pair"),
        migrations.AddConstraint(
            model_name="jobverdict",
            constraint=models.UniqueConstraint(
                fields=("job", "belief", "claim", "episode"), name="one_verdict_per_pair", nulls_distinct=False
            ),
        ),
    ]
