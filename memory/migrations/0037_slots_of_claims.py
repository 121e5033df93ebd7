"""A claim may fill several slots: what a question asks for is found by any of them (E1)."""

import django.contrib.postgres.fields
from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor


def keep_the_one_that_is_known(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("memory", "Claim").objects.exclude(slot="").update(
        slots=models.Func(models.F("slot"), template="ARRAY[%(expressions)s]::varchar[]")
    )


class Migration(migrations.Migration):
    dependencies = [("memory", "0036_backlog_cycles")]

    operations = [
        migrations.AddField(
            model_name="claim",
            name="slots",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(max_length=40),
                blank=True,
                db_default=[],
                default=list,
                help_text="All that it fills; `slot` is one of them.",
                size=None,
            ),
        ),
        migrations.RunPython(keep_the_one_that_is_known, migrations.RunPython.noop),
    ]
