"""What beat sends, and when; a second beat is harmless, since both only look at rows."""

from django.conf import settings

_HOURS = settings.POLICY.consolidation.every_hours

BEAT_SCHEDULE = {
    "cycles": {"task": "workers.tick", "schedule": _HOURS * 3600.0},
    "sweep": {
        "task": "workers.sweep",
        "schedule": settings.POLICY.budget.sweep_seconds,
        "options": {"expires": settings.POLICY.budget.sweep_seconds},
    },
}
