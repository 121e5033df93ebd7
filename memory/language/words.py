"""Words of English and German: which of the two a text is in, and closed lists."""

import re
from functools import lru_cache

_LETTERS = re.compile(r"[^\W\d_]+(?:'[a-z]+)?")
_GERMAN_LETTERS = re.compile(r"[äöüß]", re.IGNORECASE)
_OTHER_LETTERS = re.compile(r"[^\x00-\x7fäöüÄÖÜß‘’“”„–—…€£°§«»×·•\s]")
_LEAST_EVIDENCE = 1.0  # weight of evidence below which a text has no language
_UMLAUT_WEIGHT = 1.5
_FOREIGN_WEIGHT = 2.0  # of a letter that neither language has
_CHARACTERS_READ = 400  # characters of a text that are looked at


def _split_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ENGLISH = _split_words("""
the a an and or but of to in on at by for from with without is are was were be been has have had do does did not no
never this that these those it its he she they them their his her him we our you your i my me will would can could
should must when while before after because since than then there here what who which how every all any some only always
usually about into over more less most now still also just like likes prefers uses use wants needs runs works lives as
if don't doesn't isn't longer instead between during each other so up out off very moved starts eats drinks
""")

_GERMAN = _split_words("""
der die das den dem des ein eine einen einem einer eines und oder aber nicht kein keine keinen nie ist sind war waren
hat haben hatte wird werden wurde wurden kann muss soll ich du er sie es wir ihr mich mir mein meine unser unsere sein
seine ihre in im am beim vom zum zur mit ohne auf aus bei von nach für über unter durch um als wie wenn weil dass ob
auch noch nur schon sehr immer mehr weniger jeden jede statt gern gerne lieber zu seit bis vor man sich mag bevorzugt
arbeitet trinkt isst nutzt verwendet benutzt läuft beginnt alle niemand nichts morgens abends freitags montags uhr wohnt
""")

# Languages that share words with the two: they may outvote them, and are never named.
_OTHERS = tuple(
    map(
        _split_words,
        """
le la les un une des et est sont dans pour avec sur pas ne je il elle nous vous qui que du au aux mon ma mes cette plus
el la los las un una y es son en para con por no se lo que del al mi su yo muy como pero está más
il lo la gli le un una e è sono di che per con non si mi della del nel alla anche più ma io
de het een en is zijn niet van voor met op aan ik hij zij wij dat die maar ook bij naar heeft geen wordt te
o os as um uma e é são em para com por não se que do da dos das no na eu ele ela mais mas meu
och att det som en ett är på för inte med av jag han hon vi de har den till
og det som en et er på for ikke med av jeg han hun vi de har den til
i w na z nie się jest to że do jak ale po od za co ma
""".strip().splitlines(),
    )
)
_LANGUAGES = (_ENGLISH, _GERMAN, *_OTHERS)

# The languages that know a word, so that a text is walked through once.
_KNOWN_BY = {
    word: tuple(number for number, known in enumerate(_LANGUAGES) if word in known)
    for word in frozenset().union(*_LANGUAGES)
}


@lru_cache(maxsize=16_384)
def detect_language(text: str) -> str:
    """Return "en" or "de", or "" where the text is too short, mixed or in another language."""
    english, german, other = _weigh(text)
    if other > max(english, german) or max(english, german) < _LEAST_EVIDENCE or english == german:
        return ""
    return "en" if english > german else "de"


def _weigh(text: str) -> tuple[float, float, float]:
    """Return the evidence for English, for German and for the likeliest other language."""
    head = text[:_CHARACTERS_READ]
    counts = [0.0] * len(_LANGUAGES)
    for word in _LETTERS.findall(head.lower().replace("’", "'")):
        for number in _KNOWN_BY.get(word, ()):
            counts[number] += 1
    english, german, *others = counts
    if head.isascii():
        return english, german, max(others)
    umlauts = _UMLAUT_WEIGHT * bool(_GERMAN_LETTERS.search(head))
    strange = len(_OTHER_LETTERS.findall(head)) - 1  # one may be a borrowed word's: café, naïve
    return english, german + umlauts, max(others) + _FOREIGN_WEIGHT * max(0, strange)


def word_set(text: str) -> frozenset[str]:
    """Read a word list written as running text."""
    return frozenset(text.split())


ENGLISH_VERBS = word_set("""
    accept achieve act add admire adopt agree allow announce answer apply appreciate argue arrange arrive ask assume
    attend avoid bake base be become begin believe belong bike book boost bother bring brew build buy call camp cancel
    care carry catch cause celebrate change charge chat check cherish choose clean climb close code collect comment
    commit commute compare complain complete compose configure connect consider contain continue convert cook cost
    count cover create cut cycle dance deal debug decide declare decline decorate delete deliver demand depend deploy
    describe deserve design develop die dine disable discover discuss dislike do document donate doubt draft draw dread
    dream dress drink drive drop earn eat edit embrace emphasise employ enable encourage end endorse enforce enjoy
    ensure escape exercise expect experience explain explore express fail fall favor favour fear feed feel fight file
    fill find finish fit fix fly focus follow force forget format freelance gather get give go grab grow guess guide
    handle hang happen hate have head hear help hike hire hold honour hope host identify ignore imagine improve include
    insist inspire install intend interview invest invite involve join journal judge jump keep kill knit know lack land
    last laugh launch lead learn leave lend let lie like limit link list listen live load lock log look lose love lunch
    maintain make manage mark matter mean measure meditate meet mention merge migrate mind miss mix motivate move name
    need negotiate note notice object observe offer open operate oppose order organise organize own pack paint park
    participate pass pay perform phone photograph pick pin plan plant play plead practice practise praise pray prefer
    prepare present preserve press prioritise prioritize produce promise promote propose protect provide publish pull
    push put raise ran reach react read realise realize rebase receive recommend record recover reduce refactor refer
    refuse regard rehearse reject relax release rely remember remind remove rename rent repair repeat replace reply
    report represent request require reschedule research reserve resist respect respond rest restart return review
    ride roast rotate run sail save say schedule search see seek seem sell send serve set share ship shop shout show
    sign sing sit skip sleep smell smile solve speak specify spend sponsor squash stand start state stay stick stop
    store stream strive struggle study submit suffer suggest supply support surf suspect swim switch take talk taste
    teach tell tend test thank think throw touch track train translate travel treasure treat trust try turn type
    understand update upgrade upload use value view visit volunteer vote wait wake walk want warn wash waste watch wear
    welcome win wish wonder work worry write yearn
    """)
"""Base forms whose third person is regular (be, have and do are written out where they are used)."""

ENGLISH_PAST = word_set("""
    ate baked became began believed bought broke brought built came caught chose cost could cut did drank drew drove
    fed fell felt fought found flew forgot gave got grew had heard held hit hurt kept knew laid learnt led left lent
    let lost made meant met mistook paid put quit ran rang read rode rose said sang sat saw sent set shot shut slept
    sold spent spoke spread stood stuck stole swam swore taught thought threw told took understood was went were woke
    won wore wrote arose awoke bent bled blew burnt clung crept dealt dreamt dug fled forgave froze hid hung knelt leant
    leapt lit overslept sank shook shone shrank slid spat spelt spilt sprang spun stank struck stung swept swung tore
    undid wept withdrew
    """)

ENGLISH_AUXILIARIES = word_set(
    "am is are was were be been being has have had does do did can could will would shall should may might must "
    "ain't isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't can't cannot couldn't won't wouldn't "
    "shouldn't mustn't needn't"
)


GERMAN_AUXILIARIES = word_set(
    "ist sind war waren bin bist sei hat haben habe hatte hatten wird werden wurde wurden würde kann können konnte "
    "könnte muss müssen musste soll sollen sollte sollten will wollen wollte darf dürfen durfte mag mögen möchte "
    "möchten gibt geht braucht macht lässt"
)

ENGLISH_STOPS = ENGLISH_AUXILIARIES | word_set("""
    a an the this that these those it its it's i i'm i've i'd i'll me my mine we us our ours you you're your yours he
    him his she her hers they them their theirs and or but nor so yet if of in on at by for from to with without into
    about as than then there there's here what which who whom whose when where why how just really very quite too also
    oh well ok okay yes
    """)

GERMAN_STOPS = GERMAN_AUXILIARIES | word_set("""
    der die das den dem des ein eine einen einem einer eines ich du er sie es wir ihr mich dich sich uns euch mir dir
    ihm ihnen mein meine meinen meinem meiner dein sein seine und oder aber denn doch in im an am auf aus bei mit von
    vom zu zum zur für über unter nach vor wie als ob dass wenn weil da hier so sehr auch noch schon mal ja
    heute gestern morgen mehr weniger alle viele bitte ohne gerne
    """)

PEOPLE = word_set("""
    people person everyone everybody someone somebody anyone family team user users owner customer customers client
    clients colleague colleagues friend friends kid kids child children student students parent parents mother father
    mom mum dad sister brother wife husband partner partners son daughter boss manager staff dancers neighbour
    neighbours neighbor guests developers reviewers engineers folks crew dog cat dogs cats pets members both
    """)


def is_verb_form(word: str) -> bool:
    """Tell whether a lower-case word is a form of a known English verb."""
    if word in ENGLISH_VERBS or word in ENGLISH_PAST or word in ENGLISH_AUXILIARIES:
        return True
    stems = {word.removesuffix("s"), word.removesuffix("es"), word.removesuffix("ed"), word.removesuffix("d")}
    stems |= {word.removesuffix("ing"), word.removesuffix("ing") + "e", word.removesuffix("ies") + "y"}
    return bool((stems - {word}) & ENGLISH_VERBS)
