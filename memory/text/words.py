"""Small tables of words, and what can be told of a sentence by them: who speaks, whom it names, how long it is.

The tables hold English, German, Dutch, French, Spanish and Italian. A language that is missing loses nothing but a
convenience: its sentences are quoted (memory/text/quotes.py), whatever they say.
"""

import re
from collections.abc import Mapping
from unicodedata import category


def word_set(words: str) -> frozenset[str]:
    """Return the words of a table that is written as one text."""
    return frozenset(words.split())


_FIRST_PERSON: Mapping[str, str] = {
    "en": "i me my mine myself we us our ours ourselves i'm i've i'd i'll we're we've we'd we'll im ive let's lets",
    "de": "ich mich mir mein meine meinen meinem meiner meines meins wir uns unser unsere unseren unserem unserer"
    " unseres unsre unsren unsrem unsrer ich's hab bin",
    "nl": "ik mij me mijn m'n mezelf mijzelf wij we ons onze ik'k 'k",
    "fr": "je j' j me m' m moi mon ma mes mien mienne nous notre nos nôtre",
    "es": "yo me mí mi mis mío mía míos mías conmigo nosotros nosotras nos nuestro nuestra nuestros nuestras soy estoy"
    " tengo",
    "it": "io mi me mio mia miei mie noi ci nostro nostra nostri nostre sono ho",
}
_SECOND_PERSON: Mapping[str, str] = {
    "en": "you your yours yourself yourselves you're you've you'd you'll u ur",
    "de": "du dich dir dein deine deinen deinem deiner deines ihr euch euer eure euren eurem eurer ihnen",
    "nl": "jij je jou jouw u uw jullie",
    "fr": "tu te t' t toi ton ta tes vous votre vos",
    "es": "tú te ti tu tus contigo usted ustedes vosotros vosotras os vuestro vuestra",
    "it": "tu ti te tuo tua tuoi tue voi vi vostro vostra vostri vostre lei",
}
# Words that point at something said before: a sentence that begins with one says little by itself.
_POINTING: Mapping[str, str] = {
    "en": "he she it they him her them his hers its their theirs this that these those there here one he's she's it's"
    " they're that's there's who which what",
    "de": "er sie es ihn ihm ihr ihre ihren ihrem ihrer sein seine seinen seinem seiner das dies diese dieser dieses"
    " dieser jene jener da dort hier man wer was",
    "nl": "hij zij ze het hem haar hen hun zijn dit dat deze die er daar hier wie wat",
    "fr": "il elle ils elles on lui leur leurs son sa ses ce c' c ça cela ceci cette ces celui celle qui que y",
    "es": "él ella ellos ellas ello lo la le les su sus esto eso esta este ese esa estos esas aquí allí quien que",
    "it": "egli lui lei loro esso essa suo sua suoi sue questo questa quello quella ciò qui lì chi che",
}
_FUNCTION_WORDS: Mapping[str, str] = {
    "en": "a an the and or but so because if when while although though since until as at by for from in into of off on"
    " onto out over to up with without about after before under than then also too just only even still not no yes all"
    " some any every each both either neither more most many much few is are was were be been has have had do does did"
    " will would can could should may might must now today tomorrow yesterday well ok okay please thanks hi hello hey",
    "de": "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner und oder aber"
    " denn weil wenn als ob dass obwohl seit bis an am auf aus bei beim durch für gegen im in ins mit nach ohne über um"
    " unter vom von vor zu zum zur zwischen auch nur noch schon nicht ja nein doch so dann jetzt nun heute morgen"
    " gestern alle alles jede jeder jedes manche viele wenige ist sind war waren hat haben hatte wird werden kann muss"
    " soll darf also bitte danke hallo hi",
    "nl": "de een en of maar want omdat als toen terwijl sinds tot aan op uit bij door voor tegen in met na"
    " naar zonder over om onder van te tussen ook nog al niet geen ja nee wel dan nu vandaag morgen gisteren alle elke"
    " is was waren heeft hebben had wordt worden kan moet dus hoi hallo",
    "fr": "le la les l' l un une des du de d' d et ou mais car si quand lorsque puisque comme depuis jusque à au aux"
    " en dans par pour sur sous avec sans chez entre vers ne n' n pas plus non oui aussi encore déjà très tout toute"
    " tous toutes chaque est sont était a ont avait alors donc aujourd'hui demain hier maintenant bonjour salut merci",
    "es": "el los las un una unos unas y e o u pero porque si cuando mientras desde hasta a al de del en con sin"
    " por para sobre bajo entre hacia no sí también todavía ya muy todo toda todos todas cada es son era fue ha han"
    " había hay entonces pues hoy mañana ayer ahora hola gracias",
    "it": "il i gli l' l un uno una un' e ed o ma perché se quando mentre da dal dalla a al alla di del"
    " della dei in nel nella con senza per su sul sulla tra fra non sì anche ancora già molto tutto tutta tutti tutte"
    " ogni è era ha hanno aveva allora quindi oggi domani ieri ora adesso ciao grazie",
}
# Whose they are is not said: "Mom can't do stairs."
RELATIVES = word_set(
    "mom mum mommy mummy dad daddy grandma grandpa granny gran nana wife husband mama papa mutti vati oma opa mam pap"
    " maman mamie papi papy mamá papá abuela abuelo mamma babbo nonna nonno"
)
# After an article a capital letter makes no name in German: all nouns have one.
_ARTICLES = word_set(
    "der die das den dem des ein eine einen einem einer eines kein keine keinen keinem keiner mein meine meinen meinem"
    " meiner unser unsere unseren unserem unserer dein deine ihr ihre sein seine im am zum zur vom beim ins jeden jede"
    " jeder jedes"
)
_VERBS_AFTER_A_NAME = word_set(
    "is are was were has had does will would can should isn't hasn't ist sind war hat hatte wird kann muss soll heißt"
    " heeft wordt est était aura es era fue tiene è ha and und en et y e"
)
_DAYS = word_set(
    "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays"
    " sundays january february march april may june july august september october november december montag dienstag"
    " mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember"
)


def _all_words(table: Mapping[str, str]) -> frozenset[str]:
    return word_set(" ".join(table.values()))


FIRST_PERSON, SECOND_PERSON = _all_words(_FIRST_PERSON), _all_words(_SECOND_PERSON)
POINTING = _all_words(_POINTING)
FUNCTION_WORDS = _all_words(_FUNCTION_WORDS) | POINTING | FIRST_PERSON | SECOND_PERSON
GERMAN_FUNCTION_WORDS = word_set(_FUNCTION_WORDS["de"])

_WORD = re.compile(r"[^\W_]+(?:['’ʼ-][^\W_]+)*")
# Scripts that put no spaces between words: kana, Han, Hangul and Thai.
_UNSPACED = re.compile("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_LETTERS_A_WORD = 2  # characters of an unspaced script that count as a word


def list_words(text: str) -> list[str]:
    """Return the words of a text as written, apostrophes straightened and inner ones kept."""
    return [found.group().replace("’", "'").replace("ʼ", "'") for found in _WORD.finditer(text)]


def words_key(text: str) -> str:
    """Return the words and signs of a text in small letters: the same for what is said again, whatever its marks.

    Signs are currencies, pictures, "+" and the like, and a minus before a number: 65 € are not 65 $.
    """
    marks = (mark.group() for mark in _MARK.finditer(text))
    signs = (mark for mark in marks if category(mark) in _SIGNS or mark in "#%&@-−")
    return " ".join([*(word.casefold() for word in list_words(text)), *signs])


_MARK = re.compile(r"[-−](?=\d)|[^\w\s−-]")
_SIGNS = frozenset({"Sc", "Sm", "So"})


def count_words(text: str) -> int:
    """Return the number of words; of scripts without spaces two characters count as one."""
    unspaced = len(_UNSPACED.findall(text))
    return len(text.split()) if not unspaced else len(_UNSPACED.sub(" ", text).split()) + unspaced // _LETTERS_A_WORD


def is_question(text: str) -> bool:
    """Tell whether a sentence ends in a question mark of any script."""
    return text.rstrip(" \"'”’“»)]*_").endswith(("?", "？", "؟"))


def list_names(sentence: str) -> list[str]:
    """Return the names in a sentence, words that follow each other as one, each once.

    A capitalised word counts, unless the language's grammar may have put the capital there: the first word needs a
    verb or another name behind it, and no noun after a German article is a name.
    """
    words = list_words(sentence)
    found: list[list[str]] = []
    last = -1
    for place, word in enumerate(words):
        if not _is_name(words, place):
            continue
        if last == place - 1 and found:
            found[-1].append(word)
        else:
            found.append([word])
        last = place
    return list(dict.fromkeys(" ".join(name).removesuffix("'s") for name in found))


def _is_name(words: list[str], place: int) -> bool:
    word = words[place]
    bare = word.casefold().removesuffix("'s")
    if not word[0].isupper() or bare in FUNCTION_WORDS or bare in _DAYS or bare.partition("'")[0] in FIRST_PERSON:
        return False
    if place == 0:
        following = words[1] if len(words) > 1 else ""
        return bool(following) and (
            word.endswith("'s")
            or following.casefold() in _VERBS_AFTER_A_NAME
            or (following[0].isupper() and following.casefold() not in FUNCTION_WORDS)
        )
    return words[place - 1].casefold() not in _ARTICLES
