import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0030_rivals'),
    ]

    operations = [
        migrations.AddField(
            model_name='episode',
            name='merged_into',
            field=models.ForeignKey(blank=True, db_index=False, help_text='What it became one with, as long as that is there.', null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='merged', to='memory.episode'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(condition=models.Q(('merged_into__isnull', False)), fields=['merged_into'], name='episode_merged_into'),
        ),
    ]
