"""Keep which twin took a candidate's evidence, and find it for the jobs that were there before by that evidence."""

import django.db.models.deletion
from django.db import migrations, models

# An episode is in one cluster a cycle; what the same job said of the belief itself came as evidence before.
FIND = """
UPDATE memory_clusterjob j SET joined_belief_id = (
    SELECT e.belief_id FROM memory_jobverdict v
    JOIN memory_evidence e ON e.episode_id = v.episode_id AND e.cycle_id = j.cycle_id AND e.verdict = v.verdict
    WHERE v.job_id = j.id AND v.belief_id IS NULL AND NOT e.is_founding
      AND NOT EXISTS (SELECT FROM memory_jobverdict w
                      WHERE w.job_id = j.id AND w.belief_id = e.belief_id AND w.episode_id = e.episode_id)
    GROUP BY e.belief_id ORDER BY count(*) DESC, e.belief_id LIMIT 1)
WHERE j.outcome = 'joined'
"""


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0008_undone_cycles'),
    ]

    operations = [
        migrations.AddField(
            model_name='clusterjob',
            name='joined_belief',
            field=models.ForeignKey(blank=True, help_text="The twin that took the candidate's evidence.", null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='memory.belief'),
        ),
        migrations.RunSQL(FIND, reverse_sql=migrations.RunSQL.noop),  # the way back drops the column next
    ]
