"""Hold the English word tables of the polarity guard and of the rule verdicts.

One group a line. In SYNONYMS the first word names the concept, a leading "-" marks its negation, and "_" joins the
words of a phrase.
"""

from memory.domain.matching.opposites_en import EXCLUSIVE as EXCLUSIVE
from memory.domain.matching.opposites_en import KINDS as KINDS

FUNCTION = """
a an the this that these those there here it its he she him her his hers they them their theirs we us our ours you your
yours who whom whose which what i me my mine myself himself herself itself themselves
am is are was were be been being do does did done doing have has had having will would shall should can could may might
must ought of to in on at by for from with into onto over under about as than then and or but so if because since while
although though whereas when whenever where wherever until till also too very really quite just even still already
now currently today nowadays again ever once both each every all any some such own same more most other another
much many lot lots bit up down out off well only always usually often generally typically mostly normally
particularly especially actually certainly definitely simply basically however therefore thus hence let lets
during through across between among along around per via after before every_time get gets got something anything
everything someone anyone everyone everybody somebody anybody one ones else
roughly approximately nearly almost circa please whenever
"""

# Words that say too little to make two texts differ when they fill the same place.
LIGHT = """
thing stuff way case time day work main whole entire new kind sort type people person member good great nice fine
choice option pick preference habit regular common certain different various own overall general current open daily
make made take took come came go went want need try happen seem keep kept
project code file task job version place default required necessary given favourite use have
"""

# Verbs seldom name the thing a claim is about: two different ones in one place alone refuse nothing.
VERBS = """
accept add agree allow answer approve arrive ask attach attend bake become believe belong bill book bring build buy call
carry catch change charge check clean collect come commit compare compile complete configure connect consider contain
continue cook copy count cover create cycle decide deliver depend deploy describe design develop document download draw
drink drive drop eat edit email enter expect explain export extend fetch fill find finish fix fly follow format forget
generate go grow handle hand happen hash hear help hire hold host import include install introduce invite join keep know
launch lead learn leave like link list listen live load log look maintain make manage measure meet merge migrate move
name need note notice offer open order organise organize own paint park pay perform pick place plan play point post
practise practice prefer prepare present print process produce propose provide publish pull push put raise read receive
recommend record refactor release rely remain remember remove rename render replace reply report request require respond
retry return review rewrite ride roll run save say schedule see sell send serve set share ship show shut sign sing sit
sleep speak spend split squash stand start stay stick store study submit suggest supply support swim switch take talk
target teach tell test think time track train translate travel trigger try turn type understand update upgrade upload
use visit wait wake walk want wash watch wear work write go ends end lives picks insist favour enjoy
"""

IRREGULAR = """
use uses used using | die dies died dying | owe owes owed owing | age ages aged aging | tie ties tied tying
run ran | write wrote written | take took taken | go went gone | come came | make made | keep kept | give gave given
eat ate eaten | drink drank drunk | speak spoke spoken | choose chose chosen | leave left | lead led | hold held
send sent | spend spent | sit sat | stand stood | sleep slept | buy bought | sell sold | bring brought | think thought
teach taught | catch caught | begin began begun | break broke broken | build built | find found | lose lost
meet met | pay paid | read reads | ride rode ridden | drive drove driven | say said | see saw seen | tell told
understand understood | wear wore worn | win won | fly flew flown | forget forgot forgotten | grow grew grown
know knew known | rise rose risen | sing sang sung | swim swam swum | fall fell fallen | draw drew drawn | feel felt
man men | woman women | child children | person people persons | wife wives | foot feet | tooth teeth
mouse mice | index indices indexes | analysis analyses | data datum | dependency dependencies | lie lying lay lain
better best | worse worst | throw threw thrown | shut shutting | quit quitting | put putting | cut cutting | set setting
"""

SYNONYMS = """
like love enjoy prefer would_rather favour favor favourite favorite fond adore appreciate pleased
like go_with goes_for opt_for
like -hate -dislike -detest -loathe -despise -can_not_stand -could_not_stand -can_not_bear
use utilise utilize employ work_with rely_on make_use_of -avoid -shun -abstain -refrain -steer_clear_of -stay_away_from
allow permit authorise authorize -forbid -forbidden -ban -prohibit -disallow
accept welcome -refuse -reject -decline
enable activate turn_on switch_on enabled active -disable -deactivate -turn_off -switch_off -disabled -inactive
pass succeed success successful green -fail -failure -break -broken -crash -unsuccessful -red_build
continue keep_on carry_on -stop -quit -cease -give_up -abandon -halt -discontinue
able -unable -incapable
possible feasible -impossible
common usual frequent commonly -uncommon -unusual -infrequent
compatible -incompatible
likely probable -unlikely -improbable
available -unavailable -absent
safe secure -unsafe -insecure -dangerous
stable reliable -unstable -unreliable -flaky
correct right valid -incorrect -wrong -invalid
complete full finished -incomplete -unfinished -partial
agree -disagree -object
trust -distrust -mistrust
known -unknown
necessary required needed mandatory compulsory obligatory -unnecessary -optional -needless
important essential crucial vital key -unimportant -irrelevant
true -untrue -false
happy glad content -unhappy
include contain comprise -exclude -omit -lack -lacking
remember recall -forget
have possess own -miss -missing -lose
visible -invisible
legal -illegal
regular -irregular
used -unused
supported support handle -unsupported
healthy fit -unhealthy -sick -ill
comfortable -uncomfortable
interested -uninterested -indifferent
popular -unpopular
exist present existence -nonexistent
release ship publish deploy roll_out launch deployment
begin start commence kick_off
end finish conclude
meeting call
stand_up standup daily_standup
brief short concise terse succinct
big large huge
small little tiny
fast quick rapid speedy
clever smart intelligent
email mail e_mail
send dispatch
documentation docs document
repository repo
editor ide
database db datastore
server machine host box
application app
choose pick select opt
chosen choice
manage lead head run_by in_charge_of
hire recruit employ_new
fix repair correct_bug
error exception
postpone delay defer put_off
retry try_again try
buy purchase
help assist aid
ask request
attend join participate take_part
live reside
house home
remote remotely from_home work_from_home telework
foot walk_to walk on_foot
weekly every_week each_week
daily every_day each_day
monthly every_month each_month
yearly every_year each_year annual annually
hourly every_hour each_hour
nightly every_night each_night at_night overnight
morning mornings
evening evenings
weekend weekends
store save keep_in end_up_in kept_in
write compose author
talk speak chat fluent converse
child kid
man guy gentleman
woman lady
couple pair
bike bicycle
car automobile
film movie
photo picture image
job position
salary pay wage
team group crew
company firm business
customer client_person
boss supervisor
developer programmer engineer coder
allergic allergy
vegetarian vegetarians
automatic automated automatically
manual by_hand manually
vegan vegans
depend dependency dependencies
approve approval sign_off
review go_through look_through look_over inspect check examine go_over
merge merging integrate
time_out timeout timeouts
main primary chief
second secondary
config configuration settings
prod production
dev development
auth authentication
return come_back give_back respond
require need must_have demand
replace swap
bill invoice charge billing
listen listens
comment remark
install installed
support handle
reduce lower cut shrink
increase raise grow
quiet silent
spouse partner
answer reply response
note memo
hot warm
near close_to next_to beside
see view look_at
punctual on_time in_time -late
study learn
wake get_up wake_up rise
ride cycle
travel commute
phone call_up telephone
start_work begin
show display present
delete remove erase
create make_new set_up build
add introduce
change modify alter edit
move relocate switch migrate
say state mention tell
call name title
depend rely need require
keep retain hold
receive get_sent obtain
explain describe
leave depart quit_job
find discover
own possess
finish complete_work
grow rise_up
believe think consider_to_be
call_for require
insist demand
speak talk
cook prepare_meals
watch look_on
repair mend
collect gather
check verify validate
measure track
improve enhance
publish post
document write_down
fetch download
push upload
serve host run_on
work function
arrive come_in
postgresql postgres
neovim nvim
golang go_lang
train practise practice prepare
method way approach
summary summarise summarize
mistake bug defect
"""

# Words that deny their clause. Verbs with a negation inside stand in SYNONYMS.
NEGATORS = """
not no never none nobody nothing nowhere neither cannot hardly rarely seldom barely scarcely
"""
NEGATOR_PHRASES = """
no_longer no_more not_any_more not_anymore not_any_longer no_one used_to far_from anything_but no_way by_no_means
in_no_way not_at_all none_of
"""
# Phrases that hold a negative word and deny nothing.
HARMLESS = """
not_only not_just not_merely not_even no_doubt no_matter whether_or_not nothing_but not_least no_less_than
no_later_than can_not_wait if_not why_not not_to_mention is_used_to are_used_to get_used_to was_used_to
no_problem no_wonder
"""
# "X over Y", "X instead of Y": what follows is what was not chosen.
CONTRASTS = """
instead_of rather_than in_preference_to as_opposed_to in_place_of in_lieu_of
"""
LOCAL_NEGATORS = "without"
HEDGES = """
maybe perhaps might possibly whether considering consider considers thinks_about thinking_about wonders planned_to
would_like_to plans_to wants_to asked_to asks_to hopes_to plan_to hope_to could would supposedly allegedly
"""
LIMITERS = """
except except_for apart_from aside_from other_than but_not only_when only_if only_for only_in only_on only_at
only_during only_with only_while unless as_long_as provided_that with_the_exception_of excluding only_after only_before
"""
LINKERS = "and when whenever while because if where who whose which that as so since"
SPLITTERS = "but because although though whereas however which"
PASSIVE = "is are was were be been being gets got"
AGENT = "by"
AUXILIARIES = "is are was were has have had does do did will would can could should must may might"
SWAPS = "replace leave drop abandon ditch swap exchange trade"
SWAP_FOR = "with for by"
MOVES = "move switch migrate change convert port relocate"
MOVE_FROM = "from"
MOVE_TO = "to into onto"
THAN = "than"
PREPOSITIONS = """
of to in on at by for from with into onto over under about as than after before without until since during through
across between against near behind above below inside outside toward towards per via beside opposite
"""
OPPOSED_PREPOSITIONS = """
from to
from into
from onto
from toward
from towards
before after
over under
above below
inside outside
with without
for against
with against
until after
before since
"""

TIMES = """
monday tuesday wednesday thursday friday saturday sunday january february march april may june july august september
october november december spring summer autumn winter morning noon afternoon evening night weekend day week month year
today tomorrow yesterday daily weekly monthly yearly
"""

UNITS = """
time 0.001 ms millisecond msec
time 1 s sec second
time 60 min minute
time 3600 h hr hour
time 86400 d day
time 604800 week
time 2628000 month
time 31536000 year
data 1 byte
data 1000 kb kilobyte
data 1000000 mb megabyte
data 1000000000 gb gigabyte
data 1000000000000 tb terabyte
data 1024 kib
data 1048576 mib
data 1073741824 gib
length 0.001 mm millimetre millimeter
length 0.01 cm centimetre centimeter
length 1 m metre meter
length 1000 km kilometre kilometer
length 0.3048 ft foot feet
length 1609.344 mi mile
mass 0.001 g gram
mass 1 kg kilo kilogram
mass 0.45359237 lb pound_weight
volume 0.001 ml millilitre milliliter
volume 1 l litre liter
share 1 % percent
money:usd 1 $ dollar usd
money:eur 1 € euro eur
money:gbp 1 £ pound gbp
money:chf 1 franc chf
temperature:c 1 °c celsius
temperature:f 1 °f fahrenheit
"""

NUMBERS = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen
nineteen twenty
"""
ORDINALS = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth"
OTHER_NUMBERS = """
thirty 30 forty 40 fifty 50 sixty 60 seventy 70 eighty 80 ninety 90 hundred 100 thousand 1000 twice 2 dozen 12 half 0.5
"""
FIRST_PERSON = "i me my mine myself"
FIRST_PERSON_PLURAL = "we us our ours ourselves"
CLOCK_WORDS = "at o'clock"
"""Words before or after a bare number that make it a time of day."""
