"""Vectors of claims are counted, too."""

from django.db import migrations, models


class Migration(migrations.Migration):
    replaces = [("memory", "0046_count_claim_vectors")]

    dependencies = [("memory", "0001_schema")]

    operations = [
        migrations.AlterField(
            model_name="vectorcount",
            name="kind",
            field=models.CharField(
                choices=[("episode", "episode"), ("belief", "belief"), ("claim", "claim")], max_length=7
            ),
        ),
    ]
