"""Read facts by rules: those that a turn tells (L3), and those of a text that is to be remembered (R1)."""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from memory.domain.policy_memories import RememberPolicy
from memory.domain.taxonomy import Category, ExtractedFact, Role
from memory.language.dates import date_sentence
from memory.language.explicit_requests import find_request
from memory.language.first_person import Utterance, is_first_person, list_claims, to_third_person
from memory.language.refusals import NOTHING_SAID, STATEMENT_DEFAULTS, Refusal, has_verb, is_german, refuse_statement
from memory.language.sentences import (
    drop_program_output,
    drop_shared,
    list_shortened,
    list_words,
    split_sentences,
    strip_opening,
    strip_pictographs,
)
from memory.language.subjects import as_introduction, find_entities, is_persons_name
from memory.language.traits import (
    GENERAL_IMPORTANCE,
    IMPORTANCE,
    read_category,
    read_causes,
    read_confidence,
    read_valence,
)
from memory.language.words import (
    ENGLISH_AUXILIARIES,
    ENGLISH_PAST,
    ENGLISH_VERBS,
    detect_language,
    is_verb_form,
    word_set,
)

_LONG = replace(STATEMENT_DEFAULTS, statement_words=45)  # a fact may say more than a belief
_READ = 4_000  # characters of a turn: what comes after them was pasted

# Without a name; in German without an article, which would have to be declined.
_NAMELESS = {
    (Role.USER, False): "the user",
    (Role.USER, True): "Nutzer",
    (Role.ASSISTANT, False): "the assistant",
    (Role.ASSISTANT, True): "Assistent",
}

_ADDRESS = re.compile(
    r"\b(?:you|your|yours|you're|you've|you'll|you'd|yourself|y'all|ya|du|dich|dir|dein\w*|euch|euer\w*)\b",
    re.IGNORECASE,
)

_OFFER = re.compile(
    r"(?:let me|i can (?:help|show|also)|here(?:'s| is| are)|i(?:'ll| will) (?:help|explain|show|be here)|feel free|"
    r"i(?:'m| am) (?:here|happy|glad) to|as an ai|i understand|i see|ich kann (?:dir|ihnen|gern)|gerne)\b",
    re.IGNORECASE,
)

_LEANING = re.compile(
    r"(?:it|it's|its|so|then|this|that|these|those|they|he|she|one|another|some|both|same|such|there|here|gonna|gotta|"
    r"wanna|not|or|which|who|like|kind|sort|any|es|das|dies|dann|so|dort|hier)\b(?! (?:ist|is) (?:important|wichtig))",
    re.IGNORECASE,
)
_GERUND = re.compile(r"\w+ing\b", re.IGNORECASE)

_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|can|could|will|would|should|must|may|might|does|did|helps?|makes?|gives?|keeps?|"
    r"takes?|means?|brings?|feels?|lets?|gets?|requires?|needs|works)\b|'s\b",
    re.IGNORECASE,
)

# Praise of nothing in particular says little of anybody.
_PLATITUDE = re.compile(
    r"\b(?:awesome|amazing|the best|all about|so (?:much|important|special|great|cool)|such an?|really (?:important|"
    r"special|great|cool|nice)|wonderful|fantastic|incredible|beautiful|inspiring|makes (?:all|a) (?:the )?"
    r"difference|worth it|the key|priceless)\b|!$",
    re.IGNORECASE,
)

_AGREED = re.compile(
    r"^(?:(?:i|we|ich) )?(?:totally |completely |so |definitely |voll und ganz )*(?:agree|stimme zu)\b", re.I
)
_PERSONAL = re.compile(r"\b(?:I|my|me|mine|ich|mein\w*|mir|mich)\b")

# Words at the head of a sentence that are verbs elsewhere.
_NOUNS = word_set(
    "tests builds deploys merges releases reviews reports commits plans notes calls changes updates prices needs cats "
    "stores shops works backups logs lists names types uses runs prints values cycles points checks costs"
)

_DROPPED = {
    "been": "have been",
    "gotta": "have to",
    "wanna": "want to",
    "planning": "am planning",
    "hoping": "am hoping",
}
_AMBIGUOUS = word_set(
    "set let cut read cost quit hit put shut spread hurt found left made told thought felt kept built"
)
_MARK = re.compile(r"^\s*(?:[>*•#-]+|\d+[.)])\s+")
_NAME_WISH = re.compile(r"^(?:please |just )?call me ([A-Z]\w+)", re.IGNORECASE)
_OF_ONESELF = re.compile(r"(?:I|I'm|I'll|I'd|I've|We|We'll|My)\b")

# What an assistant does when it is told something: it says so, and often says it again.
_ASSENT = re.compile(
    r"(?:(?:will do|noted|got it|understood|okay|ok|sure|certainly|of course|alright|verstanden|alles klar|mache ich)"
    r"\s*[:,.!–—-]|(?:i(?:'ll| will) (?:always|never|remember|note|keep|make sure)|ich (?:werde|merke)) \w)",
    re.IGNORECASE,
)
_WILL_DO = re.compile(r"will do\s*[:,–—-]\s*(?=\w)", re.IGNORECASE)
_REQUEST = re.compile(r"(?:bitte|please|kindly)\b(?!.*\b(?:always|never|immer|nie|niemals)\b)", re.IGNORECASE)
_SUBORDINATE = word_set("since because when while until after before if although though as weil wenn als nachdem bevor")
_CODE = re.compile(r"```.*?(?:```|\Z)|^ {4}\S[^\n]*$", re.DOTALL | re.MULTILINE)
_FINAL = NOTHING_SAID | {Refusal.SHARES_SPAN}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Voice:
    """Who speaks, in which language, and whom they may name."""

    role: Role
    speaker: str
    german: bool
    known: Collection[str]
    is_wished: bool = False  # that this sentence be remembered

    @property
    def name(self) -> str:
        return self.speaker or _NAMELESS.get((self.role, self.german), "")

    @property
    def tag(self) -> str:
        return "de" if self.german else "en"

    def refuses(self, text: str) -> Refusal | None:
        """Name why a text is no fact; a short clause is enough for what lasts, or is to be remembered."""
        refusal = refuse_statement(text, language=self.tag, policy=_LONG)
        if refusal is not Refusal.FRAGMENT:
            return refusal
        is_wished = self.is_wished and has_verb(list_words(text), german=self.german)
        is_short = self.role is Role.USER and is_short_fact(text=text, names={self.name, *self.known})
        return None if is_wished or is_short else refusal


def find_facts(
    *,
    text: str,
    role: Role,
    number: int,
    speaker: str = "",
    known: Collection[str] = (),
    said_on: date | None = None,
) -> list[ExtractedFact]:
    """List the facts that one turn tells; `known` are names that a sentence may hold.

    With the day on which it was said, a fact says which day "yesterday" is.
    """
    facts: dict[str, ExtractedFact] = {}
    language = detect_language(text[:_READ])
    for sentence in _list_sentences(text[:_READ]):
        german = is_german(sentence, language=language)
        voice = _Voice(role=role, speaker=speaker, german=german, known={*known, speaker} - {""})
        fact = _read_sentence(sentence, voice)
        if fact:
            dated = date_sentence(text=fact.text, said_on=said_on)
            facts.setdefault(dated.casefold(), replace(fact, text=dated, turns=(number,)))
    return list(facts.values())


def _list_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a turn line by line, without code, what programs print, marks of lists, and pictures."""
    for line in _CODE.sub("\n", drop_program_output(text)).splitlines():
        yield from split_sentences(strip_pictographs(drop_shared(_MARK.sub("", line))))


def _read_sentence(sentence: str, voice: _Voice) -> ExtractedFact | None:
    is_model = voice.role is Role.ASSISTANT
    if is_model and not voice.speaker and _ASSENT.match(sentence):
        return None
    plain = sentence if is_model else _WILL_DO.sub("", sentence)
    noted = find_request(plain, may_ask=not is_model)
    voice = replace(voice, is_wished=noted is not None)
    sentence = _NAME_WISH.sub(r"I want to be called \1", noted or plain)
    sentence = sentence if is_model else as_introduction(sentence=sentence, known=voice.known)
    said = strip_opening(sentence, is_addressed=bool(voice.speaker), keeps_date=True)
    category = _categorise(sentence, said, german=voice.german)
    if is_model and (_OFFER.match(said) or category is Category.COMMITMENT):
        return None  # an assistant announces each of its steps
    told = next(_tellings(said, voice), None)
    if told is None or (category is Category.FACT and _is_order(said)) or _AGREED.search(said):
        return None
    bare = _bare(told, voice)
    own = (voice.speaker,) if bare != told else ()
    entities = find_entities(text=bare, known=voice.known, own=own, german=voice.german)
    names_nobody = not entities and not (voice.name and voice.name.casefold() in told.casefold())
    if names_nobody and (category is Category.MOMENT or _PLATITUDE.search(bare)):
        return None
    is_general = names_nobody and category is Category.FACT and bool(voice.speaker)
    return ExtractedFact(
        text=told,
        category=category,
        confidence=read_confidence(said=sentence, is_by_model=voice.role is not Role.USER),
        turns=(),
        entities=entities,
        causes=read_causes(sentence=bare),
        importance=GENERAL_IMPORTANCE if is_general else IMPORTANCE[category],
        valence=read_valence(said=sentence),
    )


def _categorise(sentence: str, said: str, *, german: bool) -> Category:
    """Read the category off the whole sentence, where "No, …" corrects, else off what is left of it."""
    whole = read_category(said=sentence, german=german)
    return whole if whole not in (Category.FACT, Category.MOMENT) else read_category(said=said, german=german)


def _tellings(said: str, voice: _Voice) -> Iterator[str]:
    """Yield the sentence told so that it stands alone, whole at first, then without what trails."""
    for part in list_shortened(_name_listener(said, voice)):
        if voice.refuses(part) in _FINAL or _ADDRESS.search(part) or _hangs(part, voice):
            continue
        whole = part if voice.german else _give_subject(part)
        told = to_third_person(whole, speaker=voice.name, language=voice.tag) or _quote(whole, voice)
        if not voice.refuses(told) and not _is_empty_praise(told, voice):
            yield _close(told)


def _name_listener(said: str, voice: _Voice) -> str:
    """Say who "you" is in what somebody says of themselves, where only one can be meant."""
    others = set(voice.known) - {voice.speaker}
    listener = others.pop() if voice.speaker and len(others) == 1 else ""
    if not voice.speaker:
        listener = {Role.USER: "the assistant", Role.ASSISTANT: "the user"}.get(voice.role, "")
    if voice.german or not listener or not _OF_ONESELF.match(said):
        return said
    return re.sub(r"(?<=\w )you(?= \w|[.!,]|$)(?! (?:are|were|have|can|will|do|did|said|know))", listener, said)


def _give_subject(part: str) -> str:
    """Give "Took a trip" its "I", which chats leave out."""
    first, _, rest = part.partition(" ")
    word = first.lower()
    if word in ENGLISH_PAST - _AMBIGUOUS or (word.endswith("ed") and is_verb_form(word)):
        return f"I {word} {rest}"
    return f"I {_DROPPED[word]} {rest}" if word in _DROPPED else part


def _hangs(part: str, voice: _Voice) -> bool:
    """Tell whether a sentence leans on the one before it, or is no sentence: "It was made there", "Taking in kids"."""
    if voice.refuses(part) is Refusal.UNRESOLVED_REFERENCE or _LEANING.match(part):
        return True
    first = part.partition(" ")[0].lower()
    if first in _SUBORDINATE and "," not in part:
        return True
    lacks_subject = first.endswith("s") and first not in _NOUNS and is_verb_form(first)
    return lacks_subject or (_GERUND.match(part) is not None and not _FINITE.search(part))


def _is_empty_praise(told: str, voice: _Voice) -> bool:
    """Tell praise of nothing in particular, that says little of anybody."""
    bare = _bare(told, voice)
    is_personal = voice.name in bare or _PERSONAL.search(bare)
    return not is_personal and _PLATITUDE.search(bare) is not None


def _quote(part: str, voice: _Voice) -> str:
    """Leave in the first person what cannot safely be told in the third; its speaker stands beside it."""
    return f"{voice.speaker}: {part}" if voice.speaker and is_first_person(part) else part


def _bare(told: str, voice: _Voice) -> str:
    return told.removeprefix(f"{voice.speaker}: ")


def _is_order(said: str) -> bool:
    """Tell a request that is done with ("Fix the tests") from what holds; rules say always, never or must."""
    if _REQUEST.match(said):
        return True
    first, _, rest = said.partition(" ")
    lowered = first.lower()
    return lowered in ENGLISH_VERBS - _NOUNS and not is_verb_form(rest.partition(" ")[0].lower())


def _close(told: str) -> str:
    return told.rstrip(" .!…,;:-–—") + "."


OWNER = "owner"
FACTUAL = "factual"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactToRemember:
    """One claim of a text: importance from 1 to 10, and whom it is about, in lower case."""

    text: str
    fact_type: str = FACTUAL
    importance: int
    subject: str = OWNER


def whole_text_as_fact(*, text: str, policy: RememberPolicy) -> FactToRemember:
    """Take a text for a fact as it stands: what is left where nobody could read it."""
    return FactToRemember(text=clamp_fact(text=text, policy=policy), importance=policy.importance)


def clamp_fact(*, text: str, policy: RememberPolicy) -> str:
    """Cut a text at a word to the length of a fact, on one line."""
    words = " ".join(text.split())
    if len(words) <= policy.fact_characters:
        return words
    return words[: policy.fact_characters - 2].rsplit(" ", 1)[0] + " …"


def says_something(*, text: str, language: str) -> bool:
    """Tell whether a fact claims anything: no question, greeting or thanks, and nothing that nobody said."""
    return refuse_statement(text, language=language) not in NOTHING_SAID


def read_facts(
    *, text: str, speaker: str, language: str, policy: RememberPolicy, said_on: date | None = None
) -> list[FactToRemember]:
    """Read a text's claims by rules: each sentence that stands for itself, told of its speaker where one is known.

    With the day on which it was said, a claim says which day "tomorrow" is.
    """
    said = drop_program_output(text)
    turn = Utterance(text=_without_wishes(drop_shared(said) if speaker else said), speaker=speaker, language=language)
    claims = dict.fromkeys(list_claims(turn) if speaker else _as_written(turn))
    return [
        FactToRemember(
            text=clamp_fact(text=date_sentence(text=claim, said_on=said_on), policy=policy),
            importance=policy.importance,
            subject=_subject_of(claim, speaker),
        )
        for claim in list(claims)[: policy.facts]
    ]


def _without_wishes(text: str) -> str:
    """Drop the words with which a sentence wishes to be remembered."""
    return "\n".join(find_request(sentence) or sentence for sentence in split_sentences(text))


def _as_written(turn: Utterance) -> list[str]:
    """List the sentences that claim something, in the first person too: whoever remembers speaks of themselves."""
    sentences = (strip_opening(sentence, is_addressed=False) for sentence in split_sentences(turn.text))
    return [plain for plain in sentences if plain and says_something(text=plain, language=turn.language)]


_OTHER = re.compile(
    r"(?:(?:my|our|meine?|unsere?|[^\W\d_]\w*(?:['’]s?|s)) (?:\w+ ){0,2}?(?P<relation>"
    r"sister|brother|mother|father|mom|mum|dad|wife|husband|partner|daughter|son|friend|colleague|boss|manager|cousin|"
    r"aunt|uncle|niece|nephew|neighbou?r|girlfriend|boyfriend|flatmate|roommate|fiancée?|teacher|"
    r"schwester|bruder|mutter|vater|mama|papa|frau|mann|partnerin|tochter|sohn|freund|freundin|kollege|kollegin|chef|"
    r"chefin|cousine|tante|onkel|nichte|neffe|nachbar|nachbarin|mitbewohner|mitbewohnerin|lehrer|lehrerin) )?"
    r"(?-i:(?P<name>[^\W\d_a-zäöüß]\w+) (?P<next>[a-zäöü]\w*))",
    re.IGNORECASE,
)
_ALSO_THINGS = word_set("manager partner boss friend freund chef")  # "our manager Jira", "our partner Siemens"
_ALSO_WORDS = word_set("max jan")  # "Max retries", "Jan release": names where a verb follows

_VERBS = word_set(
    "is was has had lives works likes loves hates prefers wants needs uses drinks eats plays moved said says told can "
    "will ist war hat hatte wohnt lebt arbeitet mag liebt hasst will möchte braucht trinkt isst spielt kann wird heißt"
)
_MORE_OR_ORDER = word_set("and or und oder out up down off in on over away back around through along aus auf ab")


def _subject_of(claim: str, speaker: str) -> str:
    """Name whom a claim is told of: another person whom it begins with, the speaker it names, else the owner.

    Somebody else is "My sister Anna …", and "Anna …" where that is nothing but a first name; nobody alone is, where
    another follows ("Anna and Tom"), and nobody at all in an order ("Max out the volume").
    """
    other = _OTHER.match(claim)
    if other and _is_person(name=other["name"], relation=other["relation"] or "", following=other["next"]):
        return other["name"].lower()
    return speaker.lower() if speaker and speaker.lower() in claim.lower() else OWNER


def _is_person(*, name: str, relation: str, following: str) -> bool:
    if following in _MORE_OR_ORDER:
        return False
    if relation and relation.lower() not in _ALSO_THINGS:
        return True
    return is_persons_name(name) and (name.lower() not in _ALSO_WORDS or following in _VERBS)


def distinct_facts(*, facts: Sequence[FactToRemember]) -> list[FactToRemember]:
    """Keep one of those that say the same in the same words, the first."""
    return list({fact.text.casefold(): fact for fact in reversed(facts)}.values())[::-1]


# How somebody is just now, or whereabouts, says nothing of tomorrow.
_PASSING = word_set(
    "tired back here there sure fine good well ok okay ready done sorry glad happy sad busy late lost confused home in "
    "out off on up down hungry thirsty sick ill excited curious afraid scared nervous worried stuck free early bored "
    "interested impressed proud aware certain right wrong serious stressed exhausted ashamed grateful thankful "
    "speechless alone available better great amazing awesome next gone away upset relieved surprised set sold touched "
    "honored honoured jealous obsessed hooked blessed lucky thrilled pumped stoked game all everything nothing it that "
    "müde da hier dort sicher froh bereit fertig zurück krank gespannt traurig glücklich dabei weg gut dran spät raus "
    "überrascht begeistert verwirrt unsicher beeindruckt neugierig stolz dankbar einverstanden unterwegs so"
)
_CLAUSE_END = r"[.!]?"
_COPULA = r"(?:'m| am|'re| are|'s| is| bin| sind| ist)"

_BEING = re.compile(
    rf"(?P<who>I|We|Ich|Wir|.+?){_COPULA}(?P<not> not| no| nicht)? (?:an? |eine? )?(?P<what>[\w-]+)"
    rf"(?: years old| Jahre alt)?{_CLAUSE_END}"
)

_DOING = re.compile(
    r"We (?:always |never |only |also |usually |mostly |all |now |currently |don't |do not )*(?P<verb>[a-z]+) "
    rf"(?P<rest>[^,;:]+?){_CLAUSE_END}"
)
_WIR = re.compile(rf"Wir (?P<verb>[a-zäöüß]+(?:en|rn|ln)) (?P<rest>[^,;:]+?){_CLAUSE_END}")

_THOUGHT = word_set(
    "know think guess hope see mean feel agree wish believe want need should could would can may might will"
)
_EMPTY = word_set(
    "it that this them so there here you us everything nothing something fun das es dies so uns euch alles"
)
_OWN = word_set("i we ich wir")


def is_short_fact(*, text: str, names: Collection[str]) -> bool:
    """Tell whether a clause says how somebody is who is one of `names` or speaks, or what "we" do, as a rule."""
    being = _BEING.fullmatch(text)
    if being:
        return _says_how(being, {name.casefold() for name in names})
    doing = _DOING.fullmatch(text) or _WIR.fullmatch(text)
    return doing is not None and _says_what(doing)


def _says_how(being: re.Match[str], names: Collection[str]) -> bool:
    who, what = being["who"].casefold(), being["what"].casefold()
    if what.isdigit():
        return who in _OWN or who in names or (being["who"].isalpha() and being["who"][0].isupper())
    return (who in _OWN or who in names) and what not in _PASSING and not what.endswith(("ing", "ed", "ly"))


def _says_what(doing: re.Match[str]) -> bool:
    verb, rest = doing["verb"], doing["rest"].casefold().split()
    is_rule = verb not in ENGLISH_AUXILIARIES | ENGLISH_PAST | _THOUGHT and not verb.endswith("ed")
    return is_rule and not set(rest) <= _EMPTY and not _EMPTY & {rest[0]}
