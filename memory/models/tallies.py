"""What is counted and leaves no other row behind."""

from django.db import models
from django.db.models import F

REDELIVERIES = "redeliveries"
REDELIVERY_REASONS = ("redelivered", "retried")  # by the broker; after a lost worker or an outage


class TallyQuerySet(models.QuerySet["Tally"]):
    def add(self, *, name: str, label: str) -> None:
        """Count one more; any number of processes may do so at once."""
        self.bulk_create([Tally(name=name, label=label)], ignore_conflicts=True)
        self.filter(name=name, label=label).update(count=F("count") + 1)


class Tally(models.Model):
    """A count by name and label. Belongs to no workspace."""

    name = models.CharField(max_length=40)
    label = models.CharField(max_length=100)
    count = models.PositiveBigIntegerField(default=0)

    objects = TallyQuerySet.as_manager()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["name", "label"], name="one_tally_per_label")]

    def __str__(self) -> str:
        return f"{self.name} {self.label}"
