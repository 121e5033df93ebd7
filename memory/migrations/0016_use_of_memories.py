"""Keep what agents say of memories, what was surfaced to whom, and what a lifecycle policy thinks of episodes."""

import django.db.models.deletion
import memory.domain.lifecycle_policy
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0014_recall'),
    ]

    operations = [
        migrations.CreateModel(
            name='Surfaced',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('session', models.CharField(max_length=200)),
                ('surfaced_at', models.DateTimeField()),
            ],
            options={
                'verbose_name_plural': 'surfaced',
            },
        ),
        migrations.AddField(
            model_name='belief',
            name='feedback',
            field=models.FloatField(db_default=0.0, default=0.0, help_text='From -1, wrong, to 1, useful; never moves the confidence.'),
        ),
        migrations.AddField(
            model_name='episode',
            name='feedback',
            field=models.FloatField(db_default=0.0, default=0.0, help_text='From -1, wrong, to 1, useful.'),
        ),
        migrations.AddField(
            model_name='episode',
            name='lifecycle_state',
            field=models.CharField(blank=True, choices=[('candidate', 'candidate'), ('validated', 'validated'), ('active', 'active'), ('stale', 'stale'), ('archived', 'archived')], db_default='', default='', help_text='Empty: never judged.', max_length=9),
        ),
        migrations.AddField(
            model_name='episode',
            name='resolved_at',
            field=models.DateTimeField(blank=True, help_text='When a commitment was done with.', null=True),
        ),
        migrations.AddField(
            model_name='episode',
            name='verification',
            field=models.CharField(blank=True, choices=[('unverified', 'unverified'), ('user_confirmed', 'user confirmed'), ('system_inferred', 'system inferred'), ('disputed', 'disputed')], db_default='', default='', max_length=15),
        ),
        migrations.AddConstraint(
            model_name='belief',
            constraint=models.CheckConstraint(condition=models.Q(('feedback__range', (-1, 1))), name='belief_feedback_in_range'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(('feedback__range', (-1, 1))), name='episode_feedback_in_range'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(('lifecycle_state__in', ['', memory.domain.lifecycle_policy.LifecycleState['CANDIDATE'], memory.domain.lifecycle_policy.LifecycleState['VALIDATED'], memory.domain.lifecycle_policy.LifecycleState['ACTIVE'], memory.domain.lifecycle_policy.LifecycleState['STALE'], memory.domain.lifecycle_policy.LifecycleState['ARCHIVED']])), name='episode_lifecycle_state_known'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(('verification__in', ['', memory.domain.lifecycle_policy.Verification['UNVERIFIED'], memory.domain.lifecycle_policy.Verification['USER_CONFIRMED'], memory.domain.lifecycle_policy.Verification['SYSTEM_INFERRED'], memory.domain.lifecycle_policy.Verification['DISPUTED']])), name='episode_verification_known'),
        ),
        migrations.AddField(
            model_name='surfaced',
            name='belief',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.belief'),
        ),
        migrations.AddField(
            model_name='surfaced',
            name='episode',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.episode'),
        ),
        migrations.AddField(
            model_name='surfaced',
            name='workspace',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.workspace'),
        ),
        migrations.AddConstraint(
            model_name='surfaced',
            constraint=models.CheckConstraint(condition=models.Q(('belief__isnull', True), ('episode__isnull', True), _connector='XOR'), name='surfaced_one_memory'),
        ),
        migrations.AddConstraint(
            model_name='surfaced',
            constraint=models.CheckConstraint(condition=models.Q(('session', ''), _negated=True), name='surfaced_to_a_session'),
        ),
        migrations.AddConstraint(
            model_name='surfaced',
            constraint=models.UniqueConstraint(fields=('workspace', 'session', 'belief'), name='belief_surfaced_once'),
        ),
        migrations.AddConstraint(
            model_name='surfaced',
            constraint=models.UniqueConstraint(fields=('workspace', 'session', 'episode'), name='episode_surfaced_once'),
        ),
    ]
