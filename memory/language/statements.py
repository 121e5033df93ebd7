"""What of a clause is a statement: its frame stripped, standing wishes told, and how plainly it says what lasts."""

import re

from memory.language.clauses import Clause, Mode
from memory.language.first_person import inflect_german
from memory.language.refusals import has_verb
from memory.language.sentences import list_words
from memory.language.third_person import is_present_verb, tell_of
from memory.language.words import (
    ENGLISH_PAST,
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    GERMAN_STOPS,
    common_words,
    has_cue,
    word_list,
)

MOST_WORDS = 30  # of a claim's sentence (E5)
LEAST_WORDS = 3

_OPENER = re.compile(
    r"^(?:(?:(?:no|nope|nein|first|second|third)(?=[,.!:]| (?:i|we|it|he|she|they|ich|wir) )|ok(?:ay)?|so|well|yes|"
    r"yeah|yep|right|great|good|perfect|"
    r"fine|nice|lovely|splendid|thanks?(?: you)?|"
    r"thx|ta|cheers|btw|by the way|fyi|also|and|but|oh|ah|hm+|haha|lol|anyway|actually|hi|hello|hey|morning|"
    r"good morning|"
    r"now|next|then|again|wait|news|update|funny(?: thing)?|one thing|another thing|other news|big news|"
    r"good news|basically|honestly|listen|look|important|just so you know|for the record|because|since you ask|"
    r"(?:and |please )?(?:add|put in|put down|note|say|mention|write|remember)(?: that| in that)|"
    r"hallo|guten morgen|ja|gut|super|danke|ach(?: ja)?|übrigens|also|und|aber|naja|puh|jap|noch was|ach und|nochmal|"
    r"weil|denn|wie gesagt|außerdem)\b[,.:!…–-]*\s+)+(?=\w)",
    re.IGNORECASE,
)  # fmt: skip

_TRAILING = re.compile(
    r"[,\s]+(?:btw|by the way|pls|please|plz|thanks|thx|ok|okay|right|you know|i know|as you know|though|lol|haha|obvs|"
    r"obviously|of course|bitte|danke|oder|gell|ne|übrigens|ja|x|too|as well|as always|as ever|as usual|anyway|"
    r"full stop|"
    r"period|since forever|since always|add that|note that|god willing|you know me|(?:i )?told you(?: so)?|mind you|"
    r"trust me)$",
    re.IGNORECASE,
)

_IS = re.compile(
    r"(?<=\w)'s (?=(?:on|at|in|from|now|not|always|never|still|our|my|back|off|out|gone|closed|open|only|just|a|an|the|"
    r"every|between|moved|called)\b)"
)

_QUALIFIED = re.compile(
    r",? (?:so|and) (?:please |pls |just |then )?(?:add|put|note|update|change|adapt|write|make|use|do)\b.*$", re.I
)

_OWN_DEEDS = re.compile(
    r"\b(?:i|we)\b(?:(?!,| so ).)*? and \w+\b(?!.*\bso\b)", re.IGNORECASE
)  # "we rebase and use a bot"


def strip_frame(text: str) -> str:
    """Drop what only leads in or trails off, and write "the handover's on" out."""
    said = _OPENER.sub("", text.strip(" -–—,;:"))
    said = _IS.sub(" is ", said if _OWN_DEEDS.search(said) else _QUALIFIED.sub("", said))
    while (shorter := _TRAILING.sub("", said.rstrip(" .!,;:"))) != said.rstrip(" .!,;:"):
        said = shorter
    return said.strip(" ,;:-–—").rstrip(".!")


_RUNS_ON, _MOST_SAID = 22, 18  # words from which a clause runs on, and to which it is then cut at a comma


def shorten(said: str) -> str:
    """Cut a clause that is too long to be believed at the last comma within reach; what has none stays."""
    words = said.split()
    if len(words) < _RUNS_ON:
        return said
    head, comma, _ = " ".join(words[:_MOST_SAID]).rpartition(",")
    return head if comma and len(head.split()) > LEAST_WORDS else said


_WANTED_THING = re.compile(
    r"(?:no|keine?n?|less|fewer|more|just|only|nur|without|ohne|kritik|kommentare|code first|snippet)\b", re.IGNORECASE
)

_MUST_BE = re.compile(
    r"^(?:in [\w ]{2,20} |on [\w ]{2,20} |at [\w ]{2,20} )?it (?:must|has to|needs to|should) be (?P<what>.+)$",
    re.IGNORECASE,
)

_ASKED_KINDLY = re.compile(
    r"^(?:when(?:ever)? you (?:answer|reply|write|explain)\w*(?: to)?(?: me| things)?,? )?(?:can|could|would|will) you "
    r"(?:please |just |also )*(?P<order>not|never|always|stop|keep|only|skip|avoid|leave)\b",
    re.IGNORECASE,
)


def as_order(said: str) -> str:
    """Return what is asked for kindly as the order that it is: "could you please not use tables" is "don't"."""
    found = _ASKED_KINDLY.match(said)
    return (
        f"{'dont' if found['order'].lower() == 'not' else found['order']}{said[found.end() :].rstrip('? ')}"
        if found
        else said
    )


def as_instruction(said: str, *, label: str, name: str, german: bool) -> str | None:
    """Tell a standing wish about answers or work as what the person wants; None for what is asked for once."""
    if must := _MUST_BE.match(said):
        return tell_of(clause=f"{name} needs it to be {must['what']}" if must.start("what") < 14 else said, name=name)
    if has_cue("conditional_order", said) and len(said.split()) <= 22:
        return f"{name}: {_small(tell_of(clause=said, name=name, german=german))}"
    if not has_cue("instruction", said) or len(said.split()) > 22:
        return None
    about_answers, lasting, denied = (
        has_cue("listener_topic", said),
        has_cue("standing", said),
        has_cue("negated_order", said),
    )
    of_answers = about_answers and (denied or lasting or has_cue("gentle_order", said))
    if not (of_answers or (lasting and denied) or (label and has_cue("rule_label", label))):
        return None
    plain = re.sub(r"\b(?:please|pls|plz|bitte|again|thanks)\b,? ?", "", said, flags=re.IGNORECASE).strip(" ,")
    body = tell_of(clause=plain, name=name, german=german)
    told = f"{_wish(plain, name, german=german)} {_small(_without_denial(body))}"
    return (
        f"{label[:1].upper()}{label[1:]}: {told}" if label and len(label.split()) <= 4 and not about_answers else told
    )


def _wish(plain: str, name: str, *, german: bool) -> str:
    if german:
        return f"{name} will" if _WANTED_THING.match(plain) else f"{name} wünscht vom Assistenten:"
    if _WANTED_THING.match(plain):
        return f"{name} wants"
    return f"{name} wants the assistant not to" if _DENIED_ORDER.match(plain) else f"{name} wants the assistant to"


_DENIED_ORDER = re.compile(r"(?:don't|do not|dont) ", re.IGNORECASE)


def _without_denial(body: str) -> str:
    return _DENIED_ORDER.sub("", body, count=1)


def _small(text: str) -> str:
    return text if text[:2].isupper() else text[:1].lower() + text[1:]


_FIRST = re.compile(r"\b(?:i|i'm|i've|my|me|we|our|us|ich|mein\w*|mir|mich|wir|unser\w*)\b(?![.)]|\d)", re.IGNORECASE)
_UNFIT = re.compile(r"“…”|:/|\b(?:is|are) allergic\.?$|has the allergy\.?$|https?://|[{}<>|]|\w\(\)|==|```")

_VAGUE = re.compile(
    r"^(?:(?:and|but|so|because|und|aber|also|then|well|ok|yes|no|which|who|that|weil|denn|dass|when|wenn|as|if|"
    r"until|till) )*"
    r"(?:it|it's|its|that|that's|thats|this|these|those|they|they're|he|he's|she|she's|there|there's|one|some|"
    r"something|"
    r"someone|everyone|everybody|somebody|nobody|nothing|everything|anything|both (?=are|is|were|of)|he'd|she'd|"
    r"same|such|es|"
    r"das|dies\w*|er|sie|man|da|so|jemand|alle|alles|niemand|nichts|here|hier|what|whoever|whatever|another|others?|"
    r"the (?:other|"
    r"rest|first|second|last|next|same|thing|problem|question|point))\b",
    re.IGNORECASE,
)
_BARE_CHANGE = re.compile(r"^(?:back (?:to|on|in|with) |now (?:on |at )|wieder (?:in|mit|bei) )", re.IGNORECASE)

_IT_IS = re.compile(
    r"^(?:(?:from|as of|since|ab|seit) [\w ]{2,18},? )?(?:it's|it is|es ist) (?!been|a\b|the\b|so\b)", re.IGNORECASE
)


def is_refused(*, told: str, said: str, is_wished: bool, mode: Mode, german: bool) -> bool:
    """Tell whether a told clause is no statement: too short or long, first person, code, or about nobody."""
    words = told.split()
    if not LEAST_WORDS <= len(words) <= MOST_WORDS or _FIRST.search(told) or _UNFIT.search(told):
        return True
    if is_wished:
        return False
    if _VAGUE.match(said) and not (mode is Mode.CHANGE and _IT_IS.match(said)):
        return True
    return not (
        has_verb(list_words(told), german=german) or ":" in told or (mode is Mode.CHANGE and _BARE_CHANGE.match(said))
    )


_ADV = (
    r"(?:(?:also|always|never|only|usually|mostly|often|still|now|really|just|all|both|currently|normally|generally|"
    r"actually|strictly|strongly|exclusively|auch|immer|nie|nur|meist|eigentlich|jetzt|lieber|ausschließlich) )*"
)
_NAME = r"(?-i:[A-ZÄÖÜ])[\w-]+(?: (?-i:[A-ZÄÖÜ])[\w-]+)?"

_STATE, _GERMAN_STATE, _OWN_GERMAN, _CONDITIONS = (
    "|".join(word_list(name)) for name in ("state_verbs", "german_state_verbs", "own_verbs", "conditions")
)

_FORMS: tuple[tuple[str, re.Pattern[str], float], ...] = tuple(
    (kind, re.compile(pattern, re.IGNORECASE), strength)
    for kind, pattern, strength in (
        (
            "identity",
            rf"\b(?:i'm|i am|i is|im|we're|we are|ich bin|ich ist) {_ADV}(?:not )?(?:an?|the|eine?|der|die|"
            r"on (?:call|the)|in the|off|"
            r"on an?|allergic|lactose|vegan|vegetarian|left-handed|colou?r-?blind|diabetic|coeliac|married|single|"
            r"divorced|retired|"
            r"based|responsible|closed|[\w]+-free|laktose\w*|allergisch|verheiratet|ledig|rentner\w*|lehrer\w*|"
            r"vegetarier\w*|"
            r"veganer\w*|linkshänder\w*|\w+(?:ist|erin|login|ärztin|arzt))\b",
            0.75,
        ),
        (
            "identity",
            rf"\b(?:i|we|ich)(?:'ve| have| habe?|) (?:got |had |also )*(?:an? |eine? )?(?:{_CONDITIONS})\b",
            0.75,
        ),
        ("preference", r"\b(?:i|we) (?:can't|cannot|can not|could not|couldn't) (?:stand|bear|abide)\b", 0.7),
        (
            "possession",
            r"\b(?:my|our|mein\w*|unser\w*) (?:[\w'-]+ ){0,3}?[\w'-]+,? (?:is|are|isn't|aren't|runs?|lives?|works?|"
            r"has|have|"
            r"happens?|goes|starts?|takes?|costs?|comes?|wants?|needs?|likes?|prefers?|stays?|stands?|never|only|"
            r"always|can't|"
            r"won't|doesn't|teaches|studies|opens?|ist|sind|hat|heißt|läuft|wohnt|arbeitet|kommt|kostet|will|"
            r"braucht|mag|geht|"
            r"steht|liegt)\b",
            0.7,
        ),
        (
            "identity",
            r"\b(?:i'm|i am|we're|we are|ich bin) (?:an? )?(?!(?:so|not|just|very|too|quite|also|only|still|at|in|"
            r"on|off|up|out|back|"
            r"going|sure|here|there|done|glad|sorry|all|now|really|pretty|about|afraid|nicht|so|auch|noch|schon|mir|"
            r"da|dran|ja|mal|grad|gerade)\b)"
            r"(?!(?:\d+|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)\b)(?!\w+(?:ing|ed|ly)\b)[\w.,-]+",
            0.55,
        ),
        (
            "possession",
            r"\b(?:my|our|mein\w*|unser\w*) (?:[\w'-]+ ){0,2}?[\w'-]+(?:, [\w. ]{2,20},)? (?:is|are|ist|sind|hat|"
            r"has|wants|\w{3,}s|\w{3,}(?:iert|cht|gt|lt|nt|rt|st|tzt))\b",
            0.62,
        ),
        ("habit", rf"^(?:\w+ ){{0,4}}?(?:i|we|ich|wir)\b {_ADV}(?:{_STATE}|{_OWN_GERMAN})\b", 0.65),
        ("habit", rf"^(?:{_OWN_GERMAN}) (?:ich|wir)\b", 0.65),
        (
            "other",
            rf"^(?:and |but |und |aber |frau |herr |prof\.? |dr\.? )*(?:{_NAME}(?: from \w+)?(?:'s \w+)?|"
            rf"{_NAME},? (?:my|our|mein\w*|unser\w*|who|die|der|\() ?[\w ]{{2,30}}?\)?),? {_ADV}"
            rf"(?:is|isn't|has|{_STATE}|{_GERMAN_STATE})\b",
            0.65,
        ),
        (
            "thing",
            r"^(?:(?:and|but|so|since \w+|from [\w ]{2,20}|as of [\w ]{2,20}|on \w+|in \w+|at \w+|ab \w+|seit \w+|"
            r"und),? )*"
            r"(?:the |every |each |all (?:of )?|both |das |die |der |alle |jede[rs]? )?[\w'/.-]+(?: [\w'/.-]+){0,3}? "
            rf"{_ADV}(?:is|are|runs?|lives?|happens?|goes|go|comes?|starts?|costs?|takes?|has|have|must|should|"
            rf"needs?|gets?|"
            r"stays?|opens?|closes?|ships?|build|builds?|use|uses|hands? over|ist|sind|läuft|kostet|liegt|steht|"
            r"kommt|muss|"
            r"müssen|soll\w*|wird|werden|findet|beginnt|geht|gehen|hat|haben|bleibt)\b",
            0.5,
        ),
    )
)

_PAST = re.compile(
    r"\b(?:i|we|he|she|they|it|you|there|somebody|someone|ich|wir|er|sie|es|(?-i:[A-Z])\w+|my \w+|the \w+|our \w+) "
    r"(?:just |finally |only |also |even |then )*(?:was|were|did|had|went|came|got|said|told|made|found|fell|broke|"
    r"took|sent|"
    r"wrote|called|asked|tried|spent|bought|brought|saw|left|lost|woke|ate|forgot|thought|felt|met|gave|kept|"
    r"\w{3,}ed|war|"
    r"waren|hatte|hatten|ging|kam|wurde|wurden|wollte|sagte|meinte|fand|gab)\b(?! to (?:be|have))|"
    r"^(?:went|got|had|was|did|came|made|took|sent|wrote|found|saw|fell|broke|spent|bought|swam|ran|tried|booked|"
    r"planned|"
    r"called|asked|finished|fixed|worked|walked|watched|\w{3,}ed (?!to\b)(?:the|a|it|my|out|up|in|on)\b)|"
    r"\b(?:i|we|he|she|they)(?:'ve| have| has|'d|'ven't| haven't)(?: just| now| already| finally| also| not)* "
    r"(?:been )?"
    r"(?!(?:lived|worked|always|used|known|owned|needed|wanted|been)\b)(?:\w{3,}ed|bought|sold|taken|given|written|"
    r"read|made|done|found|lost|left|sent|paid|put|set|won|told|said|seen|gone|come|begun|chosen|eaten|thrown|drawn|built)\b|"
    r"\b(?:hat|haben|habe|hab|bin|ist|sind) .*\b(?:(?:an|auf|aus|ein|ab|zu|vor|mit|nach|um|weg|her|hin|zurück)?"
    r"ge\w{2,}(?:t|en)|\w+iert|(?:ver|zer|be|er|ent|unter|über)\w{2,}(?:t|en))(?=[.!,]|$)",
    re.IGNORECASE,
)

_LEANS = re.compile(
    r"\b(?:it|this|that|these|those|they|them|there|here|es|das|dies\w*|dort|hier|damit|davon|dafür)\b", re.IGNORECASE
)
_OF_ONESELF = re.compile(r"(?:i|i'm|we|we're|ich|wir)\b", re.IGNORECASE)

_USUAL = re.compile(
    r"\bas (?:i|we) (?:always )?(?:do|did|have|am|are)\b.{0,12}\b(?:every|each|always|on|most)\b|"
    r"\bas (?:always|ever|every|usual)\b|"
    r"\bwie (?:immer|jeden?|jedes|üblich|gehabt)\b",
    re.IGNORECASE,
)

# What is needed for the task at hand, said to whoever shall do it, or told as the next step of a story.
_ERRAND = re.compile(
    r"\b(?:i|we|ich|wir) (?:also |just |now |only |noch |jetzt )*"
    r"(?:need|want|have|brauche?n?|hab(?:e|en)?|will|wollen) "
    r"(?:an?|some|one more|another|the|noch|ein\w*|den|die|das)(?: \w+){0,2}? (?:question|message|text|e-?mail|letter|"
    r"summary|sentence|line|title|name|list|draft|note|answer|idea|ideas|version|table|plan|script|query|word|phrase|"
    r"caption|reply|minute|hour|notice|mail|sheet|bio|post|poster|sign|speech|recipe|template|invoice|aushang|rezept|"
    r"schild|frage|nachricht|brief|zusammenfassung|satz|titel|liste|entwurf|antwort|idee|"
    r"vorschlag|tabelle|wort|moment|bewertung|abschied|begrüßung)\b",
    re.IGNORECASE,
)
_TO_LISTENER = re.compile(r"\b(?:tell|show|ask|read|send|give|with|to|for) you\b|\b(?:dir|dich|euch)\b", re.IGNORECASE)
_TELLS_ON = re.compile(r"(?:dann|danach|deshalb|darum|daraufhin|therefore|afterwards|meanwhile) ", re.IGNORECASE)

_SUBORDINATE = (
    "which",
    "who",
    "that",
    "because",
    "als",
    "weil",
    "dass",
    "wenn",
    "when",
    "if",
    "while",
    "until",
    "after",
    "before",
)
_NO_NAMES = common_words() | ENGLISH_STOPS | GERMAN_STOPS
_LONG = 16  # words, from which a clause says more than one thing


def grade(*, said: str, clause: Clause, is_instruction: bool, is_change: bool = False) -> tuple[str, float]:
    """Say what kind of thing a clause states, and how plainly it states something that lasts."""
    if is_instruction:
        return "preference", 0.75
    weak = _weakness(said, clause, is_change=is_change)
    if _has_own_habit(said) or (_USUAL.search(said) and _OF_ONESELF.match(said)):
        return "habit", 0.65 + 0.12 * has_cue("lasting", said) - weak
    for kind, pattern, strength in _FORMS:
        if pattern.search(said) and not (kind == "other" and said.split()[0].lower() in _NO_NAMES):
            rule = 0.08 if clause.label and has_cue("rule_label", clause.label) else 0.0
            return kind, strength + 0.12 * has_cue("lasting", said) + rule - weak
    return ("label", 0.45 - weak) if clause.label else ("event", 0.25 - weak)


_OWN = re.compile(
    rf"^(?:[\w'-]+ ){{0,4}}?(?P<who>i|we) {_ADV}(?P<verb>[a-z]+)\b(?!['’])(?! to (?!be\b))", re.IGNORECASE
)

_ICH = re.compile(
    r"(?:^ich (?P<after>[a-zäöüß]{3,}e)|\b(?P<before>[a-zäöüß]{3,}e|hab|nehm|geh|mach|fahr|schreib|trink|les|"
    r"arbeit) ich)\b",
    re.IGNORECASE,
)
_ICH_SHORT = re.compile(r"^ich (?P<verb>[a-zäöüß]{3,})\b", re.IGNORECASE)  # "ich lern"
_MINDS = frozenset(word_list("verbs_of_mind"))
_DENKT = frozenset(word_list("german_verbs_of_mind"))


def _has_own_habit(said: str) -> bool:
    """Tell whether somebody says in the present tense what they do ("we lint with biome", "Pläne zeichne ich")."""
    own, short, ich = _OWN.match(said), _ICH_SHORT.match(said), _ICH.search(said)
    verb, full = own["verb"].lower() if own else "", f"{short['verb'].lower()}e" if short else ""
    is_verb = verb in ENGLISH_VERBS or (own and own["who"].lower() == "i" and is_present_verb(verb))
    if is_verb and verb not in _MINDS | ENGLISH_PAST:
        return True
    if full not in _DENKT and inflect_german(full) not in (None, full):
        return True
    return ich is not None and (ich["after"] or ich["before"] or "").lower() not in _DENKT


def _weakness(said: str, clause: Clause, *, is_change: bool) -> float:
    """Add up what tells that a clause is of one day, of somebody's mood, or leans on another."""
    is_usual = _USUAL.search(said) is not None
    is_subordinate = clause.text != clause.sentence and said.lower().startswith(_SUBORDINATE)
    return sum(
        weight
        for weight, applies in (
            (0.35, not is_change and not is_usual and has_cue("transient", said)),
            (0.35, not is_change and _PAST.search(said)),
            (0.35, not is_change and not is_usual and has_cue("progressive", said)),
            (0.25, has_cue("evaluation", said)),
            (0.12, _LEANS.search(said)),
            (0.25, not has_cue("standing", said) and _ERRAND.search(said)),
            (0.25, not has_cue("standing", said) and _TO_LISTENER.search(said)),
            (0.2, _TELLS_ON.match(said)),
            (0.15, len(said.split()) > _LONG),
            (0.4, is_subordinate),
        )
        if applies
    )
