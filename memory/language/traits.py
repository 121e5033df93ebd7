"""What a text is like: its category, how sure it is, how it feels (L3), event or note (L5), how general it reads (B10).

Two notes that cannot both hold or say the same are compared here, too (L15, L18).
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from memory.domain.evidence import Verdict
from memory.domain.policy_memories import ExtractionPolicy
from memory.domain.taxonomy import Category, Kind, Tier, tier_of
from memory.language.analysis import SpokenText
from memory.language.first_person import Utterance, leave_name_out, list_claims
from memory.language.guard import check_polarity
from memory.language.subjects import is_past
from memory.language.verdicts import judge_by_rules
from memory.language.words import word_set


@dataclass(frozen=True, slots=True, kw_only=True)
class Certainty:
    """How sure an extraction by rules is; the tiers of L3 are met by each."""

    outright: float = 0.95
    by_model: float = 0.80  # what an assistant says, it says often without knowing
    wished: float = 0.75
    hedged: float = 0.55
    guessed: float = 0.35


CERTAINTY = Certainty()

IMPORTANCE: Mapping[Category, float] = {
    Category.CORRECTION: 0.8,
    Category.DECISION: 0.7,
    Category.COMMITMENT: 0.7,
    Category.PRINCIPLE: 0.7,
    Category.PREFERENCE: 0.6,
    Category.RELATIONSHIP: 0.6,
    Category.SKILL: 0.6,
    Category.FACT: 0.5,
    Category.ENTITY: 0.5,
    Category.MOMENT: 0.4,
}
GENERAL_IMPORTANCE = 0.3  # of what somebody in a chat says of nobody and nothing by name
_I = r"(?:i|we)"
_ICH = r"(?:ich|wir)"

# The first that fits is the category; each is looked for in the sentence as it was said.
_RULES: tuple[tuple[Category, re.Pattern[str]], ...] = tuple(
    (category, re.compile(pattern, re.IGNORECASE))
    for category, pattern in (
        (
            Category.CORRECTION,
            r"^(?:no,|nope,|actually,? (?!i (?:love|like))|correction\b|sorry, i meant|i meant\b|not quite)|"
            r"\b(?:that(?:'s| is| was) (?:wrong|incorrect|not right|not what i)|i was wrong|i misspoke|you got .{1,30} "
            r"wrong|not \w+ but \w+|it(?:'s| is) \w+, not \w+|no longer|not anymore|not any more)\b|"
            r"^(?:nein,|korrektur\b|eigentlich\b)|\b(?:das stimmt nicht|ich meinte|nicht mehr|ich habe mich geirrt)\b",
        ),
        (
            Category.DECISION,
            rf"\b{_I}(?:'ve| have)? (?:finally |just |both |all )?(?:decided|chose|settled on|agreed|opted|went with|"
            rf"made up (?:my|our) mind|picked)\b|\b{_I}(?:'re| are|'m| am) (?:going with|switching to|moving to)\b|"
            rf"\blet's (?:go with|use|switch to|stick (?:to|with))\b|\bthe decision is\b|"
            rf"\b{_ICH} (?:habe?n? (?:uns |mich )?.{{0,40}}(?:entschieden|beschlossen)|nehmen|wechseln zu)\b|"
            r"\bentscheidung (?:ist|fiel|steht)\b",
        ),
        (
            Category.COMMITMENT,
            rf"\b{_I}(?:'ll| will| promise| am going to|'m going to|'re going to| are going to|'m gonna| shall)\b"
            rf"(?! (?:never )?(?:always|miss|remember|love|forget))|\bcount on me\b|"
            rf"\b{_ICH} (?:werde|werden|verspreche|kümmere)\b",
        ),
        (
            Category.PRINCIPLE,
            r"^(?:always|never|don't ever|make sure|be sure to|do not|don't)\b|\b(?:must(?: not|n't)?|should always|"
            r"should never|the rule is|as a rule|we always|we never|is (?:not )?allowed|is forbidden|from now on|"
            r"in (?:the )?future, (?:use|write|always|never|do|don't))\b|"
            r"^(?:immer|nie|niemals)\b|\b(?:grundsätzlich|die regel ist|muss immer|darf nicht|dürfen nicht|"
            r"ab jetzt|künftig|soll(?:en)? (?:immer|nie|niemals|stets))\b",
        ),
        (
            Category.PREFERENCE,
            rf"\b{_I}(?:'d| would)? (?:\w+ ){{0,2}}?(?:prefer|like|love|hate|enjoy|dislike|adore|rather|favou?r|"
            r"can't stand|don't (?:like|want|enjoy)|want|wish|appreciate)\b|\bfavou?rite\b|"
            r"\b(?:'m| am) (?:\w+ )?(?:into|fond of|passionate about|a fan of|a big fan)\b|\bi(?:'m| am) not a fan\b|"
            rf"\b{_ICH} (?:bevorzuge|mag|mögen|liebe|lieben|hasse|will|möchte|trinke lieber)\b|\blieber\b|"
            r"\blieblings\w+",
        ),
        (
            Category.RELATIONSHIP,
            r"\bmy (?:\w+ )?(?:wife|husband|partner|girlfriend|boyfriend|mother|mom|mum|father|dad|sister|brother|son|"
            r"daughter|boss|manager|colleague|coworker|co-worker|best friend|friend|fianc[ée]e?|aunt|uncle|cousin|"
            r"grandma|grandmother|grandpa|grandfather|mentor|teammate)\b.{0,20}\b(?:is|was|named|called|works|lives|'s)\b|"
            r"\b(?:married to|engaged to|reports to|is the (?:boss|manager|mother|father|wife|husband) of)\b|"
            r"\bmeine? (?:\w+ )?(?:frau|mann|partner(?:in)?|mutter|vater|schwester|bruder|sohn|tochter|chef(?:in)?|"
            r"kolleg(?:e|in)|freund(?:in)?) (?:ist|heißt|arbeitet|wohnt)\b",
        ),
        (
            Category.SKILL,
            r"^to \w+[^,]*, (?:\w+ )?(?:run|use|call|open|press|set|type|add|click)\b|\bhow to\b|"
            r"\bi (?:can (?:speak|play|code|cook|drive|swim|write|read|sing|sew|knit|juggle)|know how to|"
            r"learned (?:how )?to|learnt (?:how )?to|am able to|speak)\b|"
            r"\bi(?:'m| am) (?:good|great|skilled|fluent|an expert) (?:at|in|with)\b|"
            r"^um .{3,60} zu \w+,|\bich (?:kann|spreche|beherrsche)\b",
        ),
        (
            Category.ENTITY,
            r"^(?!(?:it|that|this|there|he|she|they|i|we|you|my|our|your|his|her|their)\b)"
            r"(?:the |die |der |das )?[\w.+#/-]+(?: [\w.+#/-]+)? (?:is|are|ist|sind) "
            r"(?:an?|the|our|my|ein|eine|unser|unsere|der|die|das) \w+",
        ),
    )
)

_HAPPENED = re.compile(
    r"\b(?:yesterday|today|tonight|last (?:night|week|weekend|month|year|summer|winter|spring|fall|\w+day)|"
    r"(?:the other|this) (?:day|morning|week|weekend|month)|ago|gestern|heute|neulich|"
    r"letzte\w* (?:woche|nacht|monat))\b|"
    r"\b(?:i|we)(?:'ve| have)? (?:just |finally |recently |also |even )*(?:\w{2,}ed|went|got|took|had|made|saw|met|"
    r"bought|found|ran|came|began|did|gave|won|lost|wrote|read|built|been)\b|"
    r"\b(?:ich|wir) (?:habe?n?|bin|sind|war|waren) .{2,60}(?:ge\w+t|ge\w+en|\w+iert)\b",
    re.IGNORECASE,
)

_HEDGED = re.compile(
    r"\b(?:i (?:think|guess|suppose|believe|feel like)|maybe|perhaps|probably|possibly|might|may be|could be|"
    r"not sure|kind of|sort of|seems?|apparently|i'd say|looks like|"
    r"ich (?:glaube|denke|vermute)|vielleicht|wahrscheinlich|vermutlich|eventuell|scheint)\b",
    re.IGNORECASE,
)

_GUESSED = re.compile(
    r"\b(?:no idea|who knows|wonder(?:ing)? (?:if|whether)|i might be wrong|for all i know|keine ahnung|mal sehen)\b",
    re.IGNORECASE,
)

_WISHED = re.compile(
    r"\b(?:hop(?:e|ing)|wish|dream of|would (?:like|love)|'d (?:like|love)|planning|plan to|thinking (?:of|about)|"
    r"hoffe|würde gern|plane|möchte)\b",
    re.IGNORECASE,
)

_GOOD = re.compile(
    r"\b(?:love[sd]?|great|amazing|awesome|happy|glad|proud|excited|thrilled|enjoy\w*|wonderful|fantastic|beautiful|"
    r"fun|grateful|thankful|blessed|relaxing|inspiring|won|success\w*|perfect|best|"
    r"liebe|toll|super|glücklich|stolz|schön\w*|freue|gelungen)\b",
    re.IGNORECASE,
)

_BAD = re.compile(
    r"\b(?:hate[sd]?|terrible|awful|sad|upset|angry|afraid|scared|worried|stress\w*|fail(?:ed|ure)?|broke|broken|lost|"
    r"pain(?:ful|s)?|hard|tough|difficult|struggl\w*|worst|sick|hurt|died|death|crash\w*|annoy\w*|frustrat\w*|lonely|"
    r"hasse|traurig|schlimm|schlecht|kaputt|krank|ärger\w*|schwierig|schwer|leider|angst)\b",
    re.IGNORECASE,
)
_NOT = re.compile(r"\b(?:not|n't|never|no|nicht|kein\w*|nie)\b|n't\b", re.IGNORECASE)
_PULL = 0.4  # valence that one more word of feeling adds


def read_category(*, said: str, german: bool = False) -> Category:
    """Read the category of a sentence as it was said; what fits none is a moment if it is past, else a fact."""
    for category, pattern in _RULES:
        if pattern.search(said):
            return category
    return Category.MOMENT if _HAPPENED.search(said) or is_past(said, german=german) else Category.FACT


def read_confidence(*, said: str, is_by_model: bool, certainty: Certainty = CERTAINTY) -> float:
    """Read how sure a sentence is, by its hedges and by who says it."""
    if _GUESSED.search(said):
        return certainty.guessed
    if _HEDGED.search(said):
        return certainty.hedged
    if is_by_model:
        return certainty.by_model
    return certainty.wished if _WISHED.search(said) else certainty.outright


def read_valence(*, said: str) -> float:
    """Read how a sentence feels, from -1 to 1: words of joy less words of grief, turned round by a negation."""
    balance = _PULL * (len(_GOOD.findall(said)) - len(_BAD.findall(said)))
    return round(min(max(-balance if balance and _NOT.search(said) else balance, -1.0), 1.0), 2)


_BECAUSE = re.compile(
    r",?\s+(?:because(?! of\b)|'cause|since(?= (?:i|we|he|she|it|they|the|my|our)\b)|weil|"
    r"da(?= (?:ich|wir|es|die|der)\b))\s+"
    r"(?P<cause>[^.!?]+)",
    re.IGNORECASE,
)

_THEREFORE = re.compile(
    r"(?P<cause>[^.!?]+?)(?:,\s+so|,?\s+(?:which is why|that's why)|[,;]\s+therefore|,\s+(?:deshalb|daher|deswegen))\s+"
    r"(?!(?:far|much|many|that)\b)\S",
    re.IGNORECASE,
)
_LEAST_WORDS = 3


def read_causes(*, sentence: str) -> tuple[str, ...]:
    """Read why a sentence says that something is so: what follows because, or comes before so and therefore."""
    found = _BECAUSE.search(sentence) or _THEREFORE.match(sentence)
    cause = found["cause"].strip(" ,;") if found else ""
    return (cause[:1].upper() + cause[1:],) if len(cause.split()) >= _LEAST_WORDS else ()


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
_NOTE_TAGS = word_set("note preference decision rule principle policy convention profile skill howto reference")
_EPISODE_TAGS = word_set("episode event moment incident session meeting log diary trip")

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
    return len(list_claims(Utterance(text=note.text, speaker=note.speaker, language=note.language))) > 1


def confirms(*, newer: Note, older: Note, similarity: float, policy: ExtractionPolicy) -> bool:
    """L15: tell whether a later memory says what an older one of the same speaker said, by all that can be asked."""
    if newer.speaker != older.speaker or similarity <= policy.confirm_similarity:
        return False
    left, right = _as_claim(newer), _as_claim(older)
    if not check_polarity(left=left, right=right).passed:
        return False
    return judge_by_rules(episode=left, belief=right, similarity=similarity).verdict is Verdict.SUPPORTS


def _as_claim(note: Note) -> SpokenText:
    """Leave the speaker's name out, which all that they say has in common."""
    return SpokenText(text=leave_name_out(note.text, name=note.speaker), speaker=note.speaker, language=note.language)


_STANDING = re.compile(
    r"\b(?:always|never|usually|prefers?|likes?|loves?|hates?|wants?|needs?|uses?|keeps?|must|should|rule|every|each|"
    r"only|believes?|thinks?|values?|enjoys?|avoids?|insists?|tends?|means|matters?|important|passion(?:ate)?|favou?rite|"
    r"dream|goals?|is allergic|immer|nie|niemals|bevorzugt|mag|liebt|trinkt|jede[nmrs]?|grundsätzlich|nur|will|braucht|"
    r"soll|sollen|muss|müssen|lieber|gern|stets)\b",
    re.IGNORECASE,
)

_DATED = re.compile(
    r"\b(?:yesterday|today|tonight|tomorrow|now|ago|just|recently|lately|last|next|"
    r"this (?:morning|week|weekend|month|year)|soon|upcoming|on (?:mon|tues|wednes|thurs|fri|satur|sun)day(?!s)|"
    r"heute|gestern|morgen|neulich|gerade|letzte[nrs]?|nächste[nrs]?|\d{1,2}(?:st|nd|rd|th)|"
    r"january|february|march|april|june|july|august|september|october|november|december)\b",
    re.IGNORECASE,
)

_VAGUE = re.compile(
    r"\b(?:so|such|one|here|there|thing|things|stuff|too|also|again|another|more|both|same|kinda|though)\b",
    re.IGNORECASE,
)
_ASIDE = re.compile(r"[,;:–—(]|\s-\s")

_INVERTED = re.compile(
    r"(?:on|for|while|every|in|at|after|when|by|before|with|um|im|am|nach|vor|bei|auch)\b", re.IGNORECASE
)
_UNSHARED = re.compile(r"(?:The|Some|Another)\b|It's normal\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class GeneralityWeights:
    """What a trait of a sentence is worth, in cosine; tried on conversations and notes of ours."""

    speaker: float = 0.12
    standing: float = 0.08
    dated: float = -0.10
    past: float = -0.08
    vague: float = -0.04
    word: float = -0.002  # of two that say as much the shorter one
    inverted: float = -0.05  # "While coding Mia …": the same is mostly said with its subject first as well
    aside: float = -0.05  # what a second clause adds is seldom what all episodes of a cluster say


WEIGHTS = GeneralityWeights()


def is_shareable(statement: str, *, speaker: str, german: bool) -> bool:
    """Tell whether a sentence from a conversation says enough without it: who is meant, or something general."""
    if not speaker:
        return True
    if speaker in statement:
        return not (_UNSHARED.match(statement) and is_past(statement, german=german))
    is_dated = _DATED.search(statement) or is_past(statement, german=german)
    return not is_dated and not _UNSHARED.match(statement)


def score_generality(
    statement: str, *, speaker: str = "", german: bool = False, weights: GeneralityWeights = WEIGHTS
) -> float:
    """Prefer habits, wishes and rules of a named person to one event on one day."""
    names_speaker = bool(speaker) and speaker in statement
    traits = (
        (weights.speaker, names_speaker),
        (weights.standing, _STANDING.search(statement)),
        (weights.dated, _DATED.search(statement)),
        (weights.past, is_past(statement, german=german)),
        (weights.vague, _VAGUE.search(statement)),
        (weights.inverted, _INVERTED.match(statement)),
        (weights.aside, _ASIDE.search(statement)),
    )
    return sum(weight for weight, applies in traits if applies) + weights.word * len(statement.split())
