"""Decide whether two texts may be taken for one claim on their cosine alone."""

from memory.domain.language import could_be_either
from memory.domain.matching.analysis import Analysis, analyse, analyse_as
from memory.domain.matching.checks import CHECKS
from memory.domain.matching.claims import Claim, GuardReason, GuardResult
from memory.domain.matching.lexicon import STEMMERS

PASSED = GuardResult(passed=True, reason=None)


def analyse_pair(*, left: Claim, right: Claim) -> tuple[Analysis, Analysis] | None:
    """Analyse two claims in their one language; None where there is none. An unsure one follows the other."""
    first, second = analyse(left), analyse(right)
    if not first.language and could_be_either(left.text):
        first = analyse_as(left, language=second.language)
    elif not second.language and could_be_either(right.text):
        second = analyse_as(right, language=first.language)
    if first.language != second.language or first.language not in STEMMERS:
        return None
    return first, second


def check_polarity(*, left: Claim, right: Claim) -> GuardResult:
    """Pass two texts of one language in which no check finds a difference, else name the first that does; symmetric."""
    pair = analyse_pair(left=left, right=right)
    if pair is None:
        return GuardResult(passed=False, reason=GuardReason.LANGUAGE)
    return compare(*pair)


def compare(left: Analysis, right: Analysis) -> GuardResult:
    """Run the checks over two analysed claims of one language."""
    for reason, fails in CHECKS:
        if fails(left, right):
            return GuardResult(passed=False, reason=reason)
    return PASSED
