"""What is leased has the columns of a lease alike: jobs of cycles, remembered texts, conversations."""

from django.db import migrations, models

COLUMNS: dict[str, models.Field] = {
    "lease_owner": models.CharField(blank=True, db_default="", default="", max_length=64),
    "claims": models.PositiveIntegerField(
        db_default=0, default=0, help_text="Workers that took it up and never gave it back."
    ),
    "state_reason": models.CharField(
        blank=True, db_default="", default="", help_text="Why it waits, or failed.", max_length=200
    ),
}
NOT_BEFORE = models.DateTimeField(blank=True, help_text="A model server asked us to wait until then.", null=True)
POSTPONABLE = ("clusterjob", "structuraljob", "conversation")


class Migration(migrations.Migration):
    dependencies = [("memory", "0003_plain_names")]

    operations = [
        *(
            migrations.AlterField(model_name=table, name=name, field=field.clone())
            for table in (*POSTPONABLE, "rememberjob")
            for name, field in COLUMNS.items()
        ),
        *(
            migrations.AlterField(model_name=table, name="not_before", field=NOT_BEFORE.clone())
            for table in POSTPONABLE
        ),
    ]
