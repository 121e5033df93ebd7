"""Fields are named for what they hold: whether beliefs are kept, whether repeats weigh less, which cycle made it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0004_leases")]

    operations = [
        migrations.RenameField("workspace", "is_believing", "beliefs_enabled"),
        migrations.RenameField("workspace", "counts_origins", "discount_repeats"),
        migrations.RenameField("belief", "born_in", "created_in"),
        migrations.AlterField(
            "belief",
            "created_in",
            models.ForeignKey(
                "memory.Cycle", on_delete=models.SET_NULL, null=True, blank=True, related_name="created_beliefs"
            ),
        ),
    ]
