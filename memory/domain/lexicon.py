"""Closed word lists of English and German that the reading of statements leans on."""


def words(text: str) -> frozenset[str]:
    """Read a word list written as running text."""
    return frozenset(text.split())


ENGLISH_VERBS = words("""
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

ENGLISH_PAST = words("""
    ate baked became began believed bought broke brought built came caught chose cost could cut did drank drew drove
    fed fell felt fought found flew forgot gave got grew had heard held hit hurt kept knew laid learnt led left lent
    let lost made meant met mistook paid put quit ran rang read rode rose said sang sat saw sent set shot shut slept
    sold spent spoke spread stood stuck stole swam swore taught thought threw told took understood was went were woke
    won wore wrote arose awoke bent bled blew burnt clung crept dealt dreamt dug fled forgave froze hid hung knelt leant
    leapt lit overslept sank shook shone shrank slid spat spelt spilt sprang spun stank struck stung swept swung tore
    undid wept withdrew
    """)
ENGLISH_AUXILIARIES = words(
    "am is are was were be been being has have had does do did can could will would shall should may might must "
    "ain't isn't aren't wasn't weren't hasn't haven't hadn't doesn't don't didn't can't cannot couldn't won't wouldn't "
    "shouldn't mustn't needn't"
)
ENGLISH_MODALS = words(
    "can could will would shall should may might must can't cannot couldn't won't wouldn't shouldn't mustn't"
)
GERMAN_AUXILIARIES = words(
    "ist sind war waren bin bist sei hat haben habe hatte hatten wird werden wurde wurden würde kann können konnte "
    "könnte muss müssen musste soll sollen sollte sollten will wollen wollte darf dürfen durfte mag mögen möchte "
    "möchten gibt geht braucht macht lässt"
)
ENGLISH_STOPS = ENGLISH_AUXILIARIES | words("""
    a an the this that these those it its it's i i'm i've i'd i'll me my mine we us our ours you you're your yours he
    him his she her hers they them their theirs and or but nor so yet if of in on at by for from to with without into
    about as than then there there's here what which who whom whose when where why how just really very quite too also
    oh well ok okay yes
    """)
GERMAN_STOPS = GERMAN_AUXILIARIES | words("""
    der die das den dem des ein eine einen einem einer eines ich du er sie es wir ihr mich dich sich uns euch mir dir
    ihm ihnen mein meine meinen meinem meiner dein sein seine und oder aber denn doch in im an am auf aus bei mit von
    vom zu zum zur für über unter nach vor wie als ob dass wenn weil da hier so sehr auch noch schon mal ja
    heute gestern morgen mehr weniger alle viele bitte ohne gerne
    """)
PEOPLE = words("""
    people person everyone everybody someone somebody anyone family team user users owner customer customers client
    clients colleague colleagues friend friends kid kids child children student students parent parents mother father
    mom mum dad sister brother wife husband partner partners son daughter boss manager staff dancers neighbour
    neighbours neighbor guests developers reviewers engineers folks crew dog cat dogs cats pets members both
    """)
BEFORE_NOUNS = words("all some many most these those two three four five the a an of in on at by for with my our their")
