from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memory', '0007_replay_evidence'),
    ]

    operations = [
        migrations.AddField(
            model_name='cycle',
            name='undone_at',
            field=models.DateTimeField(blank=True, help_text='Domain time: when all that it did was taken back.', null=True),
        ),
        migrations.AddField(
            model_name='cycle',
            name='undone_by',
            field=models.CharField(blank=True, db_default='', default='', help_text='Who took it back.', max_length=200),
        ),
    ]
