"""What a sentence from a conversation is like (L3): its category, how sure it is, how much it matters, how it feels."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from memory.domain.cards import is_past
from memory.domain.category import Category


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
