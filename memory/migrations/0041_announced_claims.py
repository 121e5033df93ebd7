"""What was announced for a day is found when the day comes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0040_one_ledger")]

    operations = [
        migrations.AddIndex(
            model_name="claim",
            index=models.Index(
                condition=models.Q(mode="change"), fields=["workspace", "holds_from"], name="claim_announced"
            ),
        )
    ]
