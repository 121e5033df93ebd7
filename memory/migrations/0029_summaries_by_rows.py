from django.db import migrations, models
from django.db.models import F


def leave_summed_up(apps, schema_editor):
    """Let conversations stand as summed up so far."""
    apps.get_model("memory", "Conversation").objects.update(summed_up=F("turn_count"))


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0027_links_of_duplicates'),
    ]

    operations = [
        migrations.AddField(
            model_name='conversation',
            name='summed_up',
            field=models.PositiveIntegerField(db_default=0, help_text='The last turn that is summed up, or was let be.'),
        ),
        migrations.AddField(
            model_name='conversation',
            name='sum_due_at',
            field=models.DateTimeField(blank=True, help_text='When it is looked what can be summed up.', null=True),
        ),
        migrations.AddField(
            model_name='conversation',
            name='sum_tries',
            field=models.PositiveIntegerField(db_default=0, help_text='Failures of the next summary.'),
        ),
        migrations.AddIndex(
            model_name='conversation',
            index=models.Index(condition=models.Q(('sum_due_at__isnull', False)), fields=['sum_due_at'], name='conversation_sum_due'),
        ),
        migrations.RunPython(leave_summed_up, migrations.RunPython.noop),
    ]
