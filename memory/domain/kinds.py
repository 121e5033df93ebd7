"""Whether a memory tells what happened or notes what holds (L5), and which newer note puts an older one aside (L18)."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory.domain.category import Category
from memory.domain.lexicon import words
from memory.domain.matching import Claim, check_polarity
from memory.domain.policy_conversations import ExtractionPolicy
from memory.domain.tiers import Tier, tier_of
from memory.domain.turns import Turn, leave_name_out, list_claims
from memory.domain.verdicts import Verdict, judge_by_rules


class Kind(StrEnum):
    """L5: what a memory is to those who maintain it; notes may be superseded, episodes stay as they were."""

    EPISODE = "episode"
    NOTE = "note"


_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|"
    r"oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_MONAT = r"(?:Januar|Februar|März|April|Mai|Juni|Juli|August|September|Oktober|November|Dezember)"
# True markers place something in time once: "on Fridays" and "every Monday" are habits, "in May" may come again.
_MARKERS = re.compile(
    rf"\b(?:yesterday|today|tonight|tomorrow|just now|the other day|(?:an?|one|two|three|few|some|\d+) "
    rf"(?:\w+ )?(?:minute|hour|day|week|month|year)s? ago|"
    rf"(?:last|this past|this|next) (?:{_WEEKDAY}|night|week|weekend|month|year|spring|summer|fall|autumn|winter)|"
    rf"this (?:morning|afternoon|evening)|on (?:{_WEEKDAY})(?!s)|"
    rf"\d{{4}}-\d{{2}}-\d{{2}}|\d{{1,2}}\.\d{{1,2}}\.\d{{2,4}}|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}|"
    rf"{_MONTH}\.? \d{{1,2}}(?:st|nd|rd|th)?(?:,? \d{{4}})?(?!\w)|\d{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}|"
    rf"(?:in|since) {_MONTH} \d{{4}}|"
    rf"gestern|vorgestern|heute|neulich|vorhin|gerade eben|vor (?:einem|einer|zwei|drei|\d+) \w+|"
    rf"letzte[nrs]? \w+|am (?:Montag|Dienstag|Mittwoch|Donnerstag|Freitag|Samstag|Sonntag)|\d{{1,2}}\. {_MONAT})\b",
    re.IGNORECASE,
)
_BY_CATEGORY = {
    Category.PREFERENCE: Kind.NOTE,
    Category.DECISION: Kind.NOTE,
    Category.COMMITMENT: Kind.NOTE,
    Category.PRINCIPLE: Kind.NOTE,
    Category.CORRECTION: Kind.NOTE,
    Category.RELATIONSHIP: Kind.NOTE,
    Category.SKILL: Kind.NOTE,
    Category.MOMENT: Kind.EPISODE,
}
_NOTE_TAGS = words("note preference decision rule principle policy convention profile skill howto reference")
_EPISODE_TAGS = words("episode event moment incident session meeting log diary trip")
_DONE = re.compile(
    r"\b(?:deployed|merged|fixed|released|shipped|installed|upgraded|migrated|refactored|reverted|renamed|removed|"
    r"added|created|wrote|built|tested|reviewed|pushed|committed|finished|completed|launched|opened|closed|started|"
    r"visited|met|went|bought|sold|moved|joined|attended|called|told|saw|ran|broke|crashed|failed|happened|"
    r"deployt|gemergt|behoben|installiert|veröffentlicht|umgezogen|besucht|getroffen|gekauft|verkauft|begonnen|"
    r"abgeschlossen|geschrieben|gebaut|passiert|ausgefallen)\b",
    re.IGNORECASE,
)
_NOTED = re.compile(
    r"\b(?:prefers?|always|never|must|should|usually|likes?|loves?|hates?|uses|(?:i|we) use|wants?|needs?|requires?|"
    r"avoids?|believes?|values?|(?:is|am) allergic|rules?|convention|policy|only|by default|favou?rite|"
    r"bevorzugt|immer|nie|niemals|muss|müssen|soll|sollen|mag|liebt|hasst|nutzt|braucht|grundsätzlich|stets|nur|"
    r"(?:ich|wir) (?:bevorzuge|liebe|hasse|nutze|brauche)n?)\b",
    re.IGNORECASE,
)


def kind_of(*, text: str, category: str = "", tags: Collection[str] = ()) -> Kind:
    """L5: return the kind of a memory by the first of these that speaks.

    True temporal markers, the category, tags (note tags beat episode tags), past-tense verbs of action, note words.
    """
    if _MARKERS.search(text):
        return Kind.EPISODE
    if category in _BY_CATEGORY:
        return _BY_CATEGORY[Category(category)]
    named = {tag.casefold() for tag in tags}
    if named & _NOTE_TAGS:
        return Kind.NOTE
    if named & _EPISODE_TAGS or _DONE.search(text):
        return Kind.EPISODE
    return Kind.NOTE if _NOTED.search(text) else Kind.EPISODE


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """A memory as the rule of supersession sees it; `trust` is that of its source, `confidence` the extraction's.

    `is_correction`: it says itself that something else was wrong.
    """

    text: str
    kind: Kind
    speaker: str
    language: str
    occurred_at: datetime
    trust: float
    confidence: float
    is_correction: bool = False


def supersedes(*, newer: Note, older: Note, similarity: float, policy: ExtractionPolicy) -> bool:
    """L18: tell whether a note puts an older one aside: same speaker, near enough, and they cannot both hold.

    A correction does so to what was told of an event, too: "on Thursday, not Friday". Never what is only guessed, nor
    what a source says that is trusted less: a model does not correct its user. Nor does what says several things fall
    with one of them.
    """
    are_notes = newer.kind is Kind.NOTE and older.kind is Kind.NOTE
    if not (newer.is_correction or are_notes) or newer.occurred_at <= older.occurred_at:
        return False
    if newer.speaker != older.speaker or newer.trust < older.trust or similarity < policy.conflict_similarity:
        return False
    if tier_of(confidence=newer.confidence, policy=policy) is Tier.SPECULATIVE:
        return False
    left, right = _as_claim(newer), _as_claim(older)
    if check_polarity(left=left, right=right).passed or _says_several_things(older):
        return False
    return judge_by_rules(episode=left, belief=right, similarity=similarity).verdict is Verdict.CONTRADICTS


def _says_several_things(note: Note) -> bool:
    return len(list_claims(Turn(text=note.text, speaker=note.speaker, language=note.language))) > 1


def confirms(*, newer: Note, older: Note, similarity: float, policy: ExtractionPolicy) -> bool:
    """L15: tell whether a later memory says what an older one of the same speaker said, by all that can be asked."""
    if newer.speaker != older.speaker or similarity <= policy.confirm_similarity:
        return False
    left, right = _as_claim(newer), _as_claim(older)
    if not check_polarity(left=left, right=right).passed:
        return False
    return judge_by_rules(episode=left, belief=right, similarity=similarity).verdict is Verdict.SUPPORTS


def _as_claim(note: Note) -> Claim:
    """Leave the speaker's name out, which all that they say has in common."""
    return Claim(text=leave_name_out(note.text, name=note.speaker), speaker=note.speaker, language=note.language)
