"""Rows are named for what they are: jobs, candidates, counters."""

from django.db import migrations

NAMES = {
    "Remembrance": "RememberJob",
    "Rival": "ContradictionCandidate",
    "Surfaced": "ShownMemory",
    "Upkeep": "MaintenanceState",
    "Tally": "MetricCounter",
    "Pause": "WorkspacePause",
    "UndoneEvidence": "RevokedEvidence",
    "UndoneLineage": "RevokedLineage",
}


class Migration(migrations.Migration):
    dependencies = [("memory", "0002_claim_vectors")]

    operations = [migrations.RenameModel(old_name=old, new_name=new) for old, new in NAMES.items()]
