"""What beat sends, and when; a second beat is harmless, since both only look at rows."""

from django.conf import settings

_HOURS = settings.POLICY.consolidation.every_hours

# Sweeps must not pile up while no worker takes them. Yet whether one has expired is told by the worker's clock, and one
# that runs minutes ahead of the beat's must go on sweeping.
_SWEEP_EXPIRES_SECONDS = 3600.0

# What somebody forgets or corrects is gone from files within five.
_PUBLICATION_SECONDS = 2.0

BEAT_SCHEDULE = {
    "cycles": {"task": "workers.tick", "schedule": _HOURS * 3600.0},
    "words": {
        "task": "workers.count_words",
        "schedule": settings.POLICY.budget.sweep_seconds,
        "options": {"expires": 60.0},
    },
    "links": {
        "task": "workers.link_memories",
        "schedule": settings.POLICY.budget.sweep_seconds,
        "options": {"expires": 60.0},
    },
    "maintenance": {
        "task": "workers.maintain_memory",
        "schedule": settings.POLICY.maintenance.look_seconds,
        "options": {"expires": 60.0},
    },
    "indexes": {
        "task": "workers.keep_indexes",
        "schedule": settings.POLICY.recall.index_seconds,
        "options": {"expires": 60.0},
    },
    "publications": {
        "task": "workers.publish_beliefs",
        "schedule": _PUBLICATION_SECONDS,
        "options": {"expires": 30.0},
    },
    "sweep": {
        "task": "workers.sweep",
        "schedule": settings.POLICY.budget.sweep_seconds,
        "options": {"expires": _SWEEP_EXPIRES_SECONDS},
    },
}
