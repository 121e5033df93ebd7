"""Whether enough new episodes wait is told by an index, however many do."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memory", "0043_idempotency_keys_of_projects")]

    operations = [
        migrations.AddIndex(
            model_name="episode",
            index=models.Index(
                condition=models.Q(("state", "new"), ("status", "active")),
                fields=["workspace", "created_at"],
                name="episode_new",
            ),
        )
    ]
