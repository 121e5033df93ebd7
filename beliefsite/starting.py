"""What every process asks of its settings before it does anything."""

from django.core.exceptions import ImproperlyConfigured

from memory.checks import check_limits


def refuse_unfit_limits() -> None:
    """Raise ImproperlyConfigured where times do not hold each other, naming both settings and how to mend it (B9).

    Commands have their system checks; web, tools, worker and beat have this.
    """
    errors = [error for error in check_limits() if not error.is_silenced()]
    if errors:
        raise ImproperlyConfigured("\n".join(f"{error.msg} {error.hint}" for error in errors))
