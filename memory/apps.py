from django.apps import AppConfig


class MemoryConfig(AppConfig):
    name = "memory"
    verbose_name = "Engram"

    def ready(self) -> None:
        """Register the system checks, which ask for the models and so cannot be loaded earlier."""
        from memory import checks  # noqa: F401
