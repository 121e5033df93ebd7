"""The admin: every row of the project, shown to the members of its workspace and to nobody else."""

from memory.admin import belief_changes, beliefs, cycles, episodes, memory_files, presentation, tenancy

__all__ = ["belief_changes", "beliefs", "cycles", "episodes", "memory_files", "presentation", "tenancy"]
