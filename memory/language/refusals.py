"""Refuse candidates that cannot stand alone as a belief, whatever model wrote them (B8, step 3).

The longest rule: words that point at something which the sentence itself does not name.
"""

import re
from collections.abc import Sequence
from enum import StrEnum

from memory.domain.policy_consolidation import ConsolidationPolicy
from memory.language.sentences import (
    drop_program_output,
    drop_quotes,
    drop_shared,
    has_shared,
    is_program_output,
    is_redacted_away,
    list_words,
    split_sentences,
    strip_pictographs,
)
from memory.language.words import (
    BEFORE_NOUNS,
    ENGLISH_AUXILIARIES,
    ENGLISH_PAST,
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    GERMAN_AUXILIARIES,
    GERMAN_STOPS,
    PEOPLE,
    is_verb_form,
    word_set,
)

STATEMENT_DEFAULTS = ConsolidationPolicy()
MIN_CONTENT_WORDS = 3


class Refusal(StrEnum):
    """Why a candidate is no belief."""

    EMPTY = "empty"
    SHARES_SPAN = "shares_span"
    OUTPUT = "output"
    REDACTED = "redacted"
    QUESTION = "question"
    GREETING = "greeting"
    THANKS = "thanks"
    SMALL_TALK = "small_talk"
    TOO_LONG = "too_long"
    UNRESOLVED_REFERENCE = "unresolved_reference"
    FRAGMENT = "fragment"


_GREETING = re.compile(
    r"(?:hi|hello|hey|howdy|greetings|good (?:morning|evening|afternoon|night|to (?:see|hear))|nice to (?:see|meet)|"
    r"great to (?:see|hear)|long time no (?:see|talk|chat)|welcome back|see you|talk to you|bye|goodbye|take care|"
    r"later|hallo|moin|servus|guten (?:morgen|tag|abend)|gute nacht|tschüss|bis (?:bald|dann|morgen|später)|grüß|"
    r"schön,? (?:dich|euch|sie) zu|viele grüße|liebe grüße)\b",
    re.IGNORECASE,
)

_THANKS = re.compile(
    r"(?:(?:oh |wow |aw+ |ok |okay )?,? ?(?:many |so many )?(?:thanks|thank (?:you|u)|thx|cheers|much appreciated)\b|"
    r"(?:i |\w+ )?(?:really |so |truly |also )*appreciates? (?:you\b|your|it\b|that\b|the (?:help|support|kind)|"
    r"their (?:help|support|kind|encouragement))|"
    r"your (?:\w+ )*?(?:support|help|words|encouragement|friendship) (?:really )?(?:means?|helps?)|"
    r"(?:vielen |besten |herzlichen |lieben )?dank(?:e|eschön)?\b(?! (?:der|des|dem|einer))|merci\b)",
    re.IGNORECASE,
)

_SMALL_TALK = re.compile(
    r"(?:will do(?=\s*(?:[:,.!–—-]|$))|"
    r"wow|haha|lol|congrat\w*|good (?:luck|job|point|idea)|well done|way to go|no (?:problem|worries)|you got this|"
    r"you're (?:welcome|awesome|amazing|the best|so)|you are (?:welcome|awesome|amazing)|"
    r"keep (?:it up|going|pushing|at it|learning)|push through|just wanted to (?:say|check)|"
    r"(?:a )?lots?(?:'s| has| have)? (?:been )?(?:going on|happened|happening)|"
    r"go for it|go get|believe in yourself|have (?:fun|a (?:great|good|nice|safe))|can't wait|cannot wait|"
    r"sounds (?:good|great|awesome|like|amazing|perfect|fun|super|nice)|"
    r"(?:so|really|very) (?:glad|happy|proud|cool|true)|"
    r"(?:glad|happy|proud|sorry|hope|hoping|wishing|looking forward|fingers crossed|let me know|let's|"
    r"check (?:it|this) out|check out|here's|here is|here are|take a look|miss(?:ed)? you|love you|enjoy|"
    r"cheering|rooting|my pleasure|"
    r"don't (?:give up|worry|forget|let)|what an?|how \w+!|best of luck|happy (?:birthday|new year))\b|"
    r"(?:(?:\w+ is|\w+'s|i'm|i am) (?:so |really |super |very )*"
    r"(?:glad|proud|stoked|excited|happy|thrilled|pumped|sorry|here) (?:for|of|to (?:see|hear)|that) (?:you|your)\b)|"
    r"(?:viel (?:glück|erfolg|spaß)|gut gemacht|glückwunsch|herzlichen glückwunsch|kein problem|gern geschehen|"
    r"alles (?:klar|gute)|schönes wochenende|freut mich|klingt gut|passt|super|prima)\b(?!\w))",
    re.IGNORECASE,
)

_ASKING = re.compile(
    r"(?:what|who|whom|whose|why|how|where|when|which) (?:\w+ )?"
    r"(?:is|are|was|were|do|does|did|can|could|will|would|should|have|has|about|come)\b|"
    r"(?:is|are|do|does|did|can|could|would|will|should|have|has|was|were) "
    r"(?:you|he|she|they|we|i|it|there|anyone|the|this|that|your)\b|(?:wer|was|wo|wann|warum|wieso|wie|welche[rsnm]?) "
    r"(?:ist|sind|hat|haben|war|kann|soll|macht|geht|wird|findest|denkst|meinst)\b",
    re.IGNORECASE,
)

_GERMAN_HINT = re.compile(
    r"\b(?:der|die|das|ein|eine|und|ist|nicht|mit|für|auf|wird|ich|wir|zum|zur|beim|vor|keine?|immer)\b|[äöüß]", re.I
)


def refuse_statement(
    statement: str, *, language: str = "", policy: ConsolidationPolicy = STATEMENT_DEFAULTS
) -> Refusal | None:
    """Name the first reason why a candidate cannot be a belief, or None; the language is guessed if not given."""
    text = strip_pictographs(statement)
    words = list_words(text)
    if not words:
        return Refusal.EMPTY if not statement.strip() else Refusal.SMALL_TALK
    german = is_german(text, language=language)
    for refusal, applies in (
        (Refusal.SHARES_SPAN, has_shared),
        (Refusal.OUTPUT, is_program_output),
        (Refusal.REDACTED, is_redacted_away),
        (Refusal.QUESTION, _is_question),
        (Refusal.GREETING, _is_greeting),
        (Refusal.THANKS, _is_thanks),
        (Refusal.SMALL_TALK, _is_small_talk),
    ):
        if applies(text):
            return refusal
    if len(text.split()) > policy.statement_words:
        return Refusal.TOO_LONG
    if has_unresolved_reference(text, german=german):
        return Refusal.UNRESOLVED_REFERENCE
    return Refusal.FRAGMENT if _is_fragment(words, german=german) else None


def is_german(text: str, *, language: str = "") -> bool:
    """Tell whether to read a text as German: by its language tag, else by its small words."""
    if language:
        return language.lower().startswith("de")
    return len(_GERMAN_HINT.findall(text)) >= 2


_GERMAN_VERB = re.compile(r"[a-zäöüß]+(?:t|en|e|ln|rn)")


def _is_question(text: str) -> bool:
    unquoted = drop_quotes(text)
    return unquoted.rstrip(" \"'”)!.").endswith("?") or "? " in unquoted or _ASKING.match(unquoted) is not None


def _is_greeting(text: str) -> bool:
    return _GREETING.match(text) is not None


def _is_thanks(text: str) -> bool:
    return _THANKS.match(text) is not None


def _is_small_talk(text: str) -> bool:
    return _SMALL_TALK.match(text) is not None


def count_content_words(words: list[str], *, german: bool) -> int:
    """Count the words that are no function words."""
    stops = GERMAN_STOPS if german else ENGLISH_STOPS
    return sum(word.lower() not in stops for word in words)


def has_verb(words: list[str], *, german: bool) -> bool:
    """Tell whether a finite verb stands among the words."""
    return _has_german_verb(words) if german else _has_english_verb(words)


def _is_fragment(words: list[str], *, german: bool) -> bool:
    return not has_verb(words, german=german) or count_content_words(words, german=german) < MIN_CONTENT_WORDS


def _has_english_verb(words: list[str]) -> bool:
    lowered = [word.lower() for word in words]
    if lowered[0] in ENGLISH_VERBS or lowered[0] in {"never", "always", "don't", "please"}:
        return True
    # What follows a participle ("people celebrating love") is its object, however much it looks like a verb.
    participle = next((place for place, word in enumerate(lowered) if place and word.endswith("ing")), len(lowered))
    return any(word in ENGLISH_VERBS for word in lowered[1:participle]) or any(
        _is_finite(lowered[place], words[place], before=lowered[place - 1]) for place in range(1, len(words))
    )


def _is_finite(word: str, original: str, *, before: str) -> bool:
    """Tell whether a word is a finite verb by its form; an -s or -ed on an unknown word is taken for one."""
    if word in ENGLISH_AUXILIARIES or word in ENGLISH_PAST:
        return True
    has_ending = word.endswith(("ed", "s", "'re", "'ve", "'ll", "'d")) and not word.endswith(("ss", "us", "is"))
    return has_ending and original.islower() and before not in BEFORE_NOUNS


def _has_german_verb(words: list[str]) -> bool:
    """Tell whether a German finite verb may stand among the words: nouns are capitalised, verbs are not."""
    written = [words[0].lower(), *words[1:]]
    return any(
        word in GERMAN_AUXILIARIES or (word not in GERMAN_STOPS and _GERMAN_VERB.fullmatch(word)) for word in written
    )


NOTHING_SAID = frozenset(
    {
        Refusal.EMPTY,
        Refusal.OUTPUT,
        Refusal.REDACTED,
        Refusal.QUESTION,
        Refusal.GREETING,
        Refusal.THANKS,
        Refusal.SMALL_TALK,
    }
)


def says_nothing(text: str, *, language: str = "") -> bool:
    """Tell whether every sentence of a text is a question, a greeting, thanks, small talk, or nothing anybody said."""
    sentences = split_sentences(drop_shared(drop_program_output(text)))
    return all(refuse_statement(sentence, language=language) in NOTHING_SAID for sentence in sentences)


_TOKEN = re.compile(r"[^\W_]+(?:[.'’+#/_-]*[^\W_]+)*[+#]*|[,;:–—]|(?<=\s)-(?=\s)|\(|\)")

_DETERMINERS = word_set(
    "a an the my your his her its our their every each all no some any both most many several few one two three four "
    "five ten another other such whose"
)
_PRONOUNS = word_set("i you he she we they it there nobody everyone someone people anyone everybody nothing")

_PREPOSITIONS = word_set(
    "about of for with after before like to in on at by from over under than as into through without against near "
    "around since during beyond per via behind between"
)

_BOUNDARIES = word_set(
    "and but because so when if while since that which who to before after until unless where as or then although "
    "though whenever once whether whereas , ; : – — - ( )"
)
_STATES = word_set("be is are was were am feel feels felt seem seems seemed look looks looked get gets got become")

_THAT_LICENSERS = word_set(
    "so such now given provided fact rule idea sign reason way time day moment everything anything something all sure "
    "is was"
)

_SAYING = word_set(
    "think believe say know find prefer require insist feel hope wish note ensure mean claim agree decide suggest "
    "recommend remember understand show see learn explain expect assume argue realise realize notice report state "
    "request demand ask promise warn admit hear forget confirm complain doubt guess imagine suspect worry trust told "
    "taught said thought knew felt found meant decided heard understood saw learnt maintain stress emphasise emphasize "
    "joke want"
)

_DEICTIC_NOUNS = word_set(
    "project repo repository codebase team company workspace machine user agent organisation organization "
    "year month week summer winter spring autumn morning evening afternoon"
)

_EXPLETIVE_IT = re.compile(
    r"(?:is|was|'s|will be|would be|can be|has been|may be|might be|gets|feels|seems|becomes|became)(?: \w+){0,4}?"
    r" (?:to|that|for|when|if|who|how|whether|because|\w+ing)\b|"
    r"(?:takes|took|costs)(?: \w+){1,5} to\b|(?:helps to|rains|snows|turns out)\b|"
    r"is \S+'s (?:habit|job|rule|task|turn|policy|custom|practice|wish|view|opinion)\b",
    re.IGNORECASE,
)
_FORMAL_OBJECT_IT = re.compile(r"(?:\w+ )?\w+(?: for \w+)? (?:to|that|when)\b", re.IGNORECASE)
_IDIOM_IT = re.compile(r"\b(?:make|makes|made|call|calls|take|takes|get) it (?:a day|work|easy|clear|happen)\b", re.I)

_FORMAL_VERBS = word_set(
    "find finds found make makes made consider considers think thinks keep keeps leave leaves believe believes"
)
_HANGING_TIME = re.compile(r"\b(?:since|back|until|by|from) then\b", re.IGNORECASE)

_GERMAN_OPENING = re.compile(
    r"(?:das|dies|dieser|diese|dieses|er|sie|es|damit|dafür|davon|daran|dabei)\b", re.IGNORECASE
)

_GERMAN_POINTING_VERB = re.compile(
    r"(?:das|dies) (?:ist|sind|war|wird|hat|kann|muss|soll|macht|geht|hilft|klingt|gilt|finde|mag|klappt|"
    r"funktioniert|liegt|stimmt|bleibt|passt|läuft|sollte|darf|tut|heißt)\b",
    re.IGNORECASE,
)

_GERMAN_EXPLETIVE = re.compile(
    r"es (?:gibt|ist (?:\w+ ){1,3}?(?:,|zu|dass|wenn)|ist [^,]{1,40}, |regnet|schneit|geht um|dauert|lohnt sich|gilt|"
    r"braucht|wird (?:nie|nicht|kein|immer|erst|vor|am|im))",
    re.IGNORECASE,
)

_GERMAN_OBJECT = re.compile(
    r"\b(?:mag|liebt|hasst|findet|macht|hat|will|braucht|kennt|nutzt|liest|sagt|weiß|tut|sieht|glaubt|"
    r"dass|weil|wenn|ob) "
    r"(?:es|das|dies)(?=[ .,!]*$| (?:nicht|sehr|gut|auch|immer|toll|schön|gern|oft|so|ist|war|wird|hilft)\b)",
    re.IGNORECASE,
)
_GERMAN_PLACEHOLDER = re.compile(r"\b(?:findet|hält|macht) es (?:\w+ )+(?:zu|dass|wenn)\b|, (?:dass|zu|wenn|weil)\b")


def has_unresolved_reference(text: str, *, german: bool = False) -> bool:
    """Tell whether a sentence hangs on an it, that, this or they (German es, das, dies) whose antecedent it lacks."""
    unquoted = drop_quotes(text)
    if german:
        return _hangs_in_german(unquoted)
    tokens = [token.replace("’", "'") for token in _TOKEN.findall(unquoted)]
    return _HANGING_TIME.search(unquoted) is not None or any(_hangs(tokens, index) for index in range(len(tokens)))


def _hangs(tokens: Sequence[str], index: int) -> bool:
    word = tokens[index].lower().split("'")[0]
    if word in {"it", "its"} and tokens[index] != "IT":
        return _it_hangs(tokens, index)
    if word == "that":
        return _that_hangs(tokens, index)
    if word in {"this", "these", "those"}:
        return _demonstrative_hangs(tokens, index)
    if word in {"they", "them", "their", "theirs", "he", "him", "his", "she", "her", "hers"}:
        return not _has_person_or_plural(tokens[:index])
    return False


def _it_hangs(tokens: Sequence[str], index: int) -> bool:
    rest = " ".join(tokens[index + 1 :])
    contraction = tokens[index].lower().partition("'")[2]
    if _EXPLETIVE_IT.match(f"'{contraction} {rest}" if contraction else rest):
        return False
    previous = tokens[index - 1].lower() if index else ""
    if previous in _FORMAL_VERBS and _FORMAL_OBJECT_IT.match(rest):
        return False
    if _IDIOM_IT.search(" ".join(tokens[max(0, index - 1) : index + 3])):
        return False
    earlier = tokens[: _last_boundary(tokens, index)]
    is_owned_by_group = tokens[index].lower() == "its" and any(token.lower() in PEOPLE for token in earlier)
    return not (is_owned_by_group or _has_singular_thing(earlier))


def _last_boundary(tokens: Sequence[str], index: int) -> int:
    """Find where the clause of a pronoun begins, since its antecedent stands before that."""
    for position in range(index - 1, -1, -1):
        if tokens[position].lower() in _BOUNDARIES:
            return position
    # A possessive "its" may point back at the subject of its own clause.
    return index - 1 if tokens[index].lower() == "its" else 0


def _has_singular_thing(tokens: Sequence[str]) -> bool:
    return any(_is_thing(tokens, index) for index in range(len(tokens)))


def _is_thing(tokens: Sequence[str], index: int) -> bool:
    """Tell whether a word is a noun for one thing: it follows an article, a possessive, a preposition or a verb."""
    word, previous = tokens[index], tokens[index - 1].lower() if index else ""
    if not word[0].isalnum() or word.lower() in ENGLISH_STOPS or word.lower() in PEOPLE or _is_plural(word):
        return False
    if index == 0:
        return word.endswith("ing") or any(mark in word[1:] for mark in "+#_/-.0123456789") or not word[1:].islower()
    if word.endswith("ly") or (word[0].isupper() and previous in {"and", ","}):
        return False
    follows_determiner = previous in _DETERMINERS or previous.endswith("'s") or previous in _PREPOSITIONS
    follows_verb = is_verb_form(previous) and previous not in _STATES
    return follows_determiner or follows_verb or _is_thing_after_adjective(tokens, index)


def _is_thing_after_adjective(tokens: Sequence[str], index: int) -> bool:
    """Tell whether one word stands between an article or preposition and the noun."""
    return index > 1 and not is_verb_form(tokens[index].lower()) and tokens[index - 2].lower() in _DETERMINERS


def _is_plural(word: str) -> bool:
    return len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is", "'s"))


def _that_hangs(tokens: Sequence[str], index: int) -> bool:
    """Tell a demonstrative "that" from the conjunction and the relative pronoun."""
    if index == 0 or "'" in tokens[index]:
        return index == 0 or tokens[index - 1].lower() in _BOUNDARIES
    following = tokens[index + 1].lower() if index + 1 < len(tokens) else ""
    if not following or not following[0].isalnum():
        return True
    previous = tokens[index - 1].lower()
    if previous in _THAT_LICENSERS or previous in _SAYING or _stem(previous) in _SAYING:
        return False
    if following in _DETERMINERS or following in _PRONOUNS:
        return False
    if previous in _PREPOSITIONS or previous in {"and", "but", "or", ","} or previous in ENGLISH_AUXILIARIES:
        return previous not in {"and", "but", "or", ","} or is_verb_form(following)
    return is_verb_form(previous) and not is_verb_form(following)


def _stem(word: str) -> str:
    for suffix in ("s", "es", "ed", "d", "ing"):
        if word.endswith(suffix) and word.removesuffix(suffix) in _SAYING:
            return word.removesuffix(suffix)
    return word


def _demonstrative_hangs(tokens: Sequence[str], index: int) -> bool:
    following = tokens[index + 1].lower() if index + 1 < len(tokens) else ""
    if tokens[index].lower() == "those" and following in {"who", "of", "that", "with", "in"}:
        return False
    return following not in _DEICTIC_NOUNS


def _has_person_or_plural(tokens: Sequence[str]) -> bool:
    return any(
        token.lower() in PEOPLE
        or _is_plural(token)
        or token.endswith("'s")
        or (token[0].isupper() and token.lower() not in ENGLISH_STOPS)
        for token in tokens
    )


def _hangs_in_german(text: str) -> bool:
    if _GERMAN_EXPLETIVE.match(text):
        return False
    if _GERMAN_POINTING_VERB.match(text):
        return True
    opening = _GERMAN_OPENING.match(text)
    if opening and opening.group().lower() in {"er", "sie", "es", "dies", "damit", "dafür", "davon", "daran", "dabei"}:
        return True
    found = _GERMAN_OBJECT.search(text)
    return found is not None and not _GERMAN_PLACEHOLDER.search(text[found.start() :])
