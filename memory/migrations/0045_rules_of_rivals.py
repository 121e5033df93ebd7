"""A pair says by which rule both of its beliefs cannot hold; what stood on the list was only alike."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0044_index_new_episodes")]

    operations = [
        migrations.AddField(
            model_name="rival",
            name="rule",
            field=models.CharField(
                blank=True,
                default="",
                help_text="By which rule both cannot hold; empty where they are only alike.",
                max_length=200,
            ),
        )
    ]
