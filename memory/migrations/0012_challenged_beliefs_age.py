"""Look at challenged beliefs, too, for what time archives, and name the verdicts that a merge united."""

import memory.domain.lifecycle
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0010_joined_twins'),
    ]

    operations = [
        migrations.RemoveIndex(
            model_name='belief',
            name='belief_archive_due',
        ),
        migrations.AlterField(
            model_name='childverdict',
            name='basis',
            field=models.CharField(choices=[('guard', 'near-identical, and the polarity guard passed'), ('model', "a model's verdict"), ('person', "a person's word"), ('united', 'two verdicts that clash, united by a merge')], max_length=6),
        ),
        migrations.AlterField(
            model_name='evidence',
            name='basis',
            field=models.CharField(choices=[('guard', 'near-identical, and the polarity guard passed'), ('model', "a model's verdict"), ('person', "a person's word"), ('united', 'two verdicts that clash, united by a merge')], max_length=6),
        ),
        migrations.AlterField(
            model_name='jobverdict',
            name='basis',
            field=models.CharField(choices=[('guard', 'near-identical, and the polarity guard passed'), ('model', "a model's verdict"), ('person', "a person's word"), ('united', 'two verdicts that clash, united by a merge')], max_length=6),
        ),
        migrations.AddIndex(
            model_name='belief',
            index=models.Index(condition=models.Q(('archive_due_at__isnull', False), ('status__in', [memory.domain.lifecycle.BeliefStatus['ACTIVE'], memory.domain.lifecycle.BeliefStatus['CHALLENGED']])), fields=['workspace', 'archive_due_at'], name='belief_archive_due'),
        ),
    ]
