"""Keep what undoing takes away, so that it can be told how things stood before (R10, B22)."""

import django.db.models.deletion
import memory.domain.verdicts
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0012_challenged_beliefs_age'),
    ]

    operations = [
        migrations.CreateModel(
            name='UndoneEvidence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('verdict', models.CharField(choices=[(memory.domain.verdicts.Verdict['SUPPORTS'], 'supports'), (memory.domain.verdicts.Verdict['CONTRADICTS'], 'contradicts'), (memory.domain.verdicts.Verdict['PARTIAL'], 'partial')], max_length=11)),
                ('kind', models.CharField(choices=[('ordinary', 'ordinary'), ('curator', "a curator's word"), ('echo', 'echo of what was surfaced')], max_length=8)),
                ('base_weight', models.FloatField()),
                ('basis', models.CharField(choices=[('guard', 'near-identical, and the polarity guard passed'), ('model', "a model's verdict"), ('person', "a person's word"), ('united', 'two verdicts that clash, united by a merge')], max_length=6)),
                ('reason', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField()),
                ('undone_at', models.DateTimeField()),
                ('belief', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.belief')),
                ('cycle', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='memory.cycle')),
                ('episode', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.episode')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.workspace')),
            ],
        ),
        migrations.CreateModel(
            name='UndoneLineage',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(choices=[('revision', 'revision'), ('split', 'split'), ('merge', 'merge'), ('supersession', 'supersession'), ('synthesis', 'synthesis')], max_length=12)),
                ('reason', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField()),
                ('undone_at', models.DateTimeField()),
                ('child', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.belief')),
                ('cycle', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='memory.cycle')),
                ('parent', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.belief')),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.workspace')),
            ],
        ),
    ]
