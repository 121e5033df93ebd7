"""The project's settings for a fault suite in a hurry: messages come again sooner than a task might need."""

from beliefsite.settings import *  # noqa: F403  (all of them, as Django reads them)

SILENCED_SYSTEM_CHECKS = ["engram.E011"]
