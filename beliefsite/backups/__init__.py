"""Backups: the database and the settings in one file, and the way back."""

from beliefsite.backups.archive import BackupError, Manifest, inspect_backup
from beliefsite.backups.restoring import Restored, restore_backup
from beliefsite.backups.writing import write_backup

__all__ = ["BackupError", "Manifest", "Restored", "inspect_backup", "restore_backup", "write_backup"]
