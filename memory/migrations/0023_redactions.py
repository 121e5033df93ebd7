"""Count the secrets that are taken out of texts."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0022_conversations'),
    ]

    operations = [
        migrations.CreateModel(
            name='Redaction',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=40)),
                ('count', models.PositiveBigIntegerField()),
                ('last_at', models.DateTimeField(help_text="By the database's clock.")),
                ('workspace', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='memory.workspace')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('workspace', 'kind'), name='one_redaction_per_kind')],
            },
        ),
    ]
