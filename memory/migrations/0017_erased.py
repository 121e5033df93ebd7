import django.db.models.deletion
import memory.domain.lifecycle
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0016_use_of_memories'),
    ]

    operations = [
        migrations.CreateModel(
            name='Erased',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('digest', models.CharField(help_text="Under the workspace's own key.", max_length=64)),
            ],
            options={
                'verbose_name_plural': 'erased',
            },
        ),
        migrations.AddField(
            model_name='workspace',
            name='erasure_key',
            field=models.BinaryField(help_text='Of the hashes of what was erased; drawn when first needed.', max_length=32, null=True),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(condition=models.Q(('status', memory.domain.lifecycle.EpisodeStatus['FORGOTTEN'])), fields=['workspace', 'content_hash'], name='episode_forgotten'),
        ),
        migrations.AddField(
            model_name='erased',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.workspace'),
        ),
        migrations.AddConstraint(
            model_name='erased',
            constraint=models.UniqueConstraint(fields=('workspace', 'digest'), name='erased_once'),
        ),
    ]
