"""Refuse candidates that cannot stand alone as a belief, whatever model wrote them (B8, step 3)."""

import re
from enum import StrEnum

from memory.domain.lexicon import (
    BEFORE_NOUNS,
    ENGLISH_AUXILIARIES,
    ENGLISH_PAST,
    ENGLISH_STOPS,
    ENGLISH_VERBS,
    GERMAN_AUXILIARIES,
    GERMAN_STOPS,
)
from memory.domain.policy import ConsolidationPolicy
from memory.domain.references import has_unresolved_reference
from memory.domain.residue import drop_output, is_output, is_redacted_away
from memory.domain.sentences import drop_quotes, drop_shared, has_shared, list_words, split_sentences, strip_pictographs

DEFAULTS = ConsolidationPolicy()
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


def refuse_statement(statement: str, *, language: str = "", policy: ConsolidationPolicy = DEFAULTS) -> Refusal | None:
    """Name the first reason why a candidate cannot be a belief, or None; the language is guessed if not given."""
    text = strip_pictographs(statement)
    words = list_words(text)
    if not words:
        return Refusal.EMPTY if not statement.strip() else Refusal.SMALL_TALK
    german = is_german(text, language=language)
    for refusal, applies in (
        (Refusal.SHARES_SPAN, has_shared),
        (Refusal.OUTPUT, is_output),
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
    sentences = split_sentences(drop_shared(drop_output(text)))
    return all(refuse_statement(sentence, language=language) in NOTHING_SAID for sentence in sentences)
