import django.db.models.deletion
import memory.models.episodes
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0013_undone_rows'),
    ]

    operations = [
        migrations.RunSQL("CREATE SEQUENCE memory_episode_number", "DROP SEQUENCE memory_episode_number"),
        migrations.CreateModel(
            name='TermFrequency',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('lexeme', models.TextField()),
                ('documents', models.PositiveIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='TextStatistics',
            fields=[
                ('workspace', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='text_statistics', serialize=False, to='memory.workspace')),
                ('documents', models.PositiveIntegerField()),
                ('mean_length', models.FloatField(help_text='Different lexemes of a text, on average.')),
                ('last_number', models.BigIntegerField(help_text='Of the newest episode counted.')),
                ('counted_at', models.DateTimeField(help_text="By the database's clock.")),
            ],
        ),
        migrations.RemoveIndex(
            model_name='episode',
            name='episode_session',
        ),
        migrations.AddField(
            model_name='episode',
            name='number',
            field=models.BigIntegerField(db_default=memory.models.episodes.NextNumber(), editable=False, help_text='In the order of storing, over all workspaces.'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(condition=models.Q(('session', ''), _negated=True), fields=['workspace', 'session', 'occurred_at', 'number'], name='episode_turns'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(fields=['workspace', 'number'], name='episode_number'),
        ),
        migrations.AddField(
            model_name='termfrequency',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.workspace'),
        ),
        migrations.AddConstraint(
            model_name='termfrequency',
            constraint=models.UniqueConstraint(fields=('workspace', 'lexeme'), name='one_frequency_per_lexeme'),
        ),
    ]
