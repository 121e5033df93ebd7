"""What an extraction knows of an episode: how sure it is, why, in which words, how surprising, and what confirmed it."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("memory", "0019_moving_vectors")]

    operations = [
        migrations.AddField(
            model_name="episode",
            name="confidence",
            field=models.FloatField(
                blank=True, help_text="An extraction's, 0 to 1; empty: none made it.", null=True
            ),
        ),
        migrations.AddField(
            model_name="episode",
            name="causes",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.TextField(),
                blank=True,
                db_default=[],
                default=list,
                help_text="Why it is so.",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="episode",
            name="verbatim",
            field=models.TextField(
                blank=True, db_default="", default="", help_text="The words a fact was read from."
            ),
        ),
        migrations.AddField(
            model_name="episode",
            name="confirmations",
            field=models.PositiveIntegerField(
                db_default=0, default=0, help_text="Later facts that said the same."
            ),
        ),
        migrations.AddField(
            model_name="episode",
            name="confirmed_at",
            field=models.DateTimeField(
                blank=True, help_text="When what last confirmed it was said.", null=True
            ),
        ),
        migrations.AddField(
            model_name="episode",
            name="distance",
            field=models.FloatField(
                blank=True, help_text="Mean distance to the nearest, when it was stored.", null=True
            ),
        ),
        migrations.AddField(
            model_name="episode",
            name="surprise",
            field=models.FloatField(blank=True, help_text="Surprise in that distance, 0 to 1.", null=True),
        ),
        migrations.AddField(
            model_name="episode",
            name="is_near_duplicate",
            field=models.BooleanField(
                db_default=False, default=False, help_text="When it was stored, another said nearly the same."
            ),
        ),
        migrations.AddConstraint(
            model_name="episode",
            constraint=models.CheckConstraint(
                condition=models.Q(("confidence__range", (0, 1))), name="episode_confidence_in_0_1"
            ),
        ),
    ]
