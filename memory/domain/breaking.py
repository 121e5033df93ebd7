"""What our own code raises over a text that nobody foresaw (E6).

Neither a database that is away, nor memory or time that has run out: those are no text's fault.
"""

OWN_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, RecursionError, TypeError, ValueError)

# What one workspace's share of a round may raise while those after it go on. A task whose time is up raises none of it.
OF_ONE_WORKSPACE = (OSError, RuntimeError, *OWN_ERRORS)

OURS = "our own error"  # how every such reason begins


def describe_own(error: BaseException | str) -> str:
    """Say in one line what broke, as a reason to be kept."""
    told = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return f"{OURS}: {' '.join(told.split())}"[:200]
