"""Hold the German word tables; the format is that of the English ones."""

from memory.domain.matching.opposites_de import EXCLUSIVE as EXCLUSIVE
from memory.domain.matching.opposites_de import KINDS as KINDS

FUNCTION = """
der die das den dem des ein eine einen einem einer eines dieser diese dieses diesen diesem jener jene es er sie ihn ihm
ihr ihre ihren ihrem ihrer sein seine seinen seinem seiner wir uns unser unsere unseren unserem unserer ihr euch euer
ich mich mir mein meine meinen meinem meiner du dich dir dein man sich selbst
bin bist ist sind war waren sei wäre gewesen habe hast hat haben hatte hatten wird werden wurde wurden worden geworden
kann können konnte konnten soll sollen sollte muss müssen musste darf dürfen will wollen wollte würde würden
in im an am auf aus bei beim mit nach von vom vor zu zum zur für gegen um unter über durch bis seit zwischen neben
hinter während wegen ab als wie und oder aber sondern denn weil da dass ob wenn falls damit sobald
auch noch schon sehr ganz nur so dann hier dort da heute jetzt nun immer meist meistens oft gern gerne lieber eher
alle alles allen jede jeder jedes jeden jedem beide beiden viel viele mehr etwas jemand selben selbe gleichen dabei
eigentlich einfach eben halt ja doch mal wieder bereits gerade bald etwa wo wer was welche welcher welches
liebsten mindestens höchstens ungefähr circa rund zirka fast beinahe ausschließlich lediglich bitte
"""

LIGHT = """
sache ding weise art zeit tag fall mal arbeit leute mensch person mitglied gut neu ganz haupt wahl gewohnheit vorliebe
machen macht tun geben gibt gehen geht kommen kommt nehmen nimmt stehen steht liegen liegt halten hält finden brauchen
projekt code datei aufgabe version stelle fangen fängt beginnen
"""

VERBS = """
antworten anfangen arbeiten aufhören backen bauen beantworten beginnen bekommen benutzen besprechen besuchen bevorzugen
bezahlen bitten bleiben brauchen bringen dauern denken drucken entwickeln erstellen essen fahren fallen fangen finden
fragen führen geben gefallen gehen gehören haben halten hassen heißen helfen holen hören installieren kaufen kennen
kochen kommen laden laufen lauschen leben legen leiten lernen lesen lieben liegen machen mergen mieten mögen nehmen
nutzen öffnen packen planen prüfen putzen reden reisen rennen sagen schicken schlafen schließen schreiben schwimmen
sehen setzen singen sitzen speichern spielen sprechen starten stehen stellen suchen teilen testen tragen trainieren
treffen trinken verschicken verschieben verstehen verwalten verwenden veröffentlichen vorziehen wählen warten waschen
wechseln werden wohnen ziehen zeigen zusammenführen umziehen hashen lauten deployen committen reviewen pushen
"""

IRREGULAR = """
trinken trank getrunken | essen isst ass gegessen aß | lesen liest las | sprechen spricht sprach gesprochen
nehmen nimmt nahm genommen | geben gibt gab gegeben | laufen lief | fahren fährt fuhr | mögen mag mochte mag
ziehen zog gezogen | schreiben schrieb geschrieben | gehen ging gegangen | kommen kam | bleiben blieb geblieben
stehen stand gestanden | liegen lag | finden fand gefunden | verbieten verboten verbietet | helfen hilft half
treffen trifft traf | halten hält hielt | lassen lässt liess | schlafen schläft schlief | tragen trägt trug
bringen brachte gebracht | denken dachte | beginnen begann begonnen | fangen fängt fing gefangen | brechen bricht
sehen sieht sah | rennen rannte | schließen schloss geschlossen schließt | ändern änderung änderungen
buch bücher | haus häuser | mann männer | frau frauen | kind kinder | stadt städte | nacht nächte nachts | tag tage tags
leiten leitet geleitet leitung
"""

SYNONYMS = """
mögen mag lieben bevorzugen bevorzugt schätzen liebling lieblings gefallen vorziehen gern gerne lieber
mögen liebsten -hassen -hasst -ablehnen -verabscheuen -unbeliebt
verwenden nutzen benutzen nutzung einsetzen arbeiten_mit -vermeiden -meiden -verzichten
erlauben erlaubt gestatten zulassen -verbieten -verboten -untersagen
annehmen akzeptieren -verweigern -ablehnen
einschalten eingeschaltet aktivieren aktiviert aktiv anschalten
einschalten angehen anmachen -ausgehen -ausmachen
einschalten -ausschalten -ausgeschaltet -deaktivieren -deaktiviert -abgeschaltet -inaktiv
bestehen klappen gelingen erfolgreich grün -scheitern -fehlschlagen -kaputt -durchfallen -erfolglos
weitermachen -aufhören -aufgehört -einstellen -aufgeben
fähig imstande -unfähig -außerstande -verhindert
möglich -unmöglich
üblich gewöhnlich -unüblich -ungewöhnlich
kompatibel -inkompatibel
wahrscheinlich -unwahrscheinlich
verfügbar -unverfügbar
sicher -unsicher
stabil zuverlässig -instabil -unzuverlässig
richtig korrekt -falsch -unkorrekt
vollständig -unvollständig
nötig notwendig erforderlich pflicht -unnötig -optional
wichtig -unwichtig
wahr -unwahr
glücklich zufrieden -unglücklich -unzufrieden
enthalten -fehlen -fehlt -ausschließen
erinnern -vergessen
gesund -ungesund -krank
bekannt -unbekannt
veröffentlichen ausliefern ausrollen deployen release deployment
anfangen beginnen starten beginnt fängt_an
enden beenden
besprechung meeting termin sitzung
kurz knapp
groß riesig
klein winzig
schnell rasch zügig
mail email e_mail
schicken senden verschicken versenden
dokumentation doku
repository repo
datenbank db
rechner maschine
anwendung app
wählen auswählen
leiten führen verantworten
prüfen durchsehen reviewen kontrollieren
zusammenführen mergen gemergt merge
verschieben vertagen
kaufen erwerben
wohnen leben
haus heim
homeoffice zu_hause zuhause von_zu_hause daheim
wöchentlich jede_woche
täglich jeden_tag
monatlich jeden_monat
jährlich jedes_jahr
nachts jede_nacht nacht
morgens am_morgen morgen jeden_morgen vormittags
abends am_abend abend jeden_abend
mittags am_mittag
nachmittags am_nachmittag
wochenende wochenenden
montag montags
dienstag dienstags
mittwoch mittwochs
donnerstag donnerstags
freitag freitags
samstag samstags sonnabend
sonntag sonntags
laufen zu_fuß
umziehen ziehen
vegetarisch vegetarier vegetarierin
vegan veganer veganerin
fleisch fleischgerichte
freigabe genehmigung zustimmung
mitglied teammitglied
auto wagen
fahrrad rad
kind kinder
team gruppe mannschaft
firma unternehmen
kunde kundin
entwickler programmierer entwicklerin
rauchen geraucht
haben besitzen -verlieren -verloren
aufstehen aufwachen stehen_auf stehe_auf steht_auf
anrufen telefonieren ruft_an
fahren reisen
zeigen anzeigen
löschen entfernen
erstellen anlegen erzeugen
ändern anpassen bearbeiten
sagen erwähnen
nennen heißen
brauchen benötigen erfordern
behalten aufbewahren
erhalten bekommen
lernen studieren
kochen zubereiten
sammeln zusammentragen
messen erfassen
dauern brauchen_lang
vormittags am_vormittag vormittag
antworten antwort antwortzeit
speichern ablegen
leerzeichen spaces
scharf scharfes
editor lieblingseditor
leiten leitung
"""

NEGATORS = """
nicht nie niemals kein keine keinen keinem keiner keines keinerlei niemand niemanden niemandem nichts nirgends nirgendwo
weder kaum selten
"""
NEGATOR_PHRASES = """
nicht_mehr kein_mehr nicht_länger früher_mal auf_keinen_fall keinesfalls keineswegs überhaupt_nicht gar_nicht
noch_nie es_sei_denn
"""
HARMLESS = """
nicht_nur nicht_bloß nicht_allein nicht_einmal nicht_zuletzt nicht_zu_vergessen warum_nicht kein_problem
keine_frage kein_zweifel
"""
CONTRASTS = """
statt anstatt anstelle_von anstelle
"""
LOCAL_NEGATORS = "ohne"
HEDGES = """
vielleicht womöglich möglicherweise eventuell könnte könnten würde würden ob falls überlegt erwägt angeblich
"""
LIMITERS = """
außer ausgenommen abgesehen_von bis_auf nur_wenn nur_bei nur_falls nur_in nur_im nur_am nur_für nur_an nur_mit
mit_ausnahme es_sei_denn solange sofern ausser nur_beim
"""
LINKERS = "und wenn sobald während weil falls wo da"
SPLITTERS = "aber weil obwohl sondern jedoch da denn"
PASSIVE = "wird werden wurde wurden worden"
AGENT = "von"
AUXILIARIES = "ist sind war waren hat haben hatte wird werden wurde kann muss soll darf will"
SWAPS = "ersetzen tauschen verlassen aufgeben"
SWAP_FOR = "durch gegen für mit"
MOVES = "wechseln ziehen umziehen umstellen umsteigen migrieren ändern"
MOVE_FROM = "von aus vom"
MOVE_TO = "nach zu auf zum zur in"
THAN = "als"
PREPOSITIONS = """
in im an am auf aus bei beim mit nach von vom vor zu zum zur für gegen um unter über durch bis seit zwischen neben
hinter während wegen ohne als statt anstatt
"""
OPPOSED_PREPOSITIONS = """
von nach
von zu
von in
aus nach
aus in
aus zu
vor nach
über unter
mit ohne
für gegen
vor seit
"""

TIMES = """
montag dienstag mittwoch donnerstag freitag samstag sonntag januar februar märz april mai juni juli august september
oktober november dezember frühling frühjahr sommer herbst winter morgens mittags nachmittags abends nachts wochenende
tag woche monat jahr heute gestern täglich wöchentlich monatlich jährlich vormittags
"""

UNITS = """
time 0.001 ms millisekunde
time 1 s sek sekunde
time 60 min minute
time 3600 h std stunde
time 86400 d tag
time 604800 woche
time 2628000 monat
time 31536000 jahr
data 1 byte
data 1000 kb kilobyte
data 1000000 mb megabyte
data 1000000000 gb gigabyte
data 1000000000000 tb terabyte
length 0.001 mm millimeter
length 0.01 cm zentimeter
length 1 m meter
length 1000 km kilometer
mass 0.001 g gramm
mass 1 kg kilo kilogramm
volume 0.001 ml milliliter
volume 1 l liter
share 1 % prozent
money:usd 1 $ dollar usd
money:eur 1 € euro eur
money:gbp 1 £ pfund gbp
money:chf 1 franken chf
"""

NUMBERS = """
null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn sechzehn siebzehn
achtzehn neunzehn zwanzig
"""
ORDINALS = "erste zweite dritte vierte fünfte sechste siebte achte neunte zehnte elfte zwölfte"
OTHER_NUMBERS = """
dreißig 30 vierzig 40 fünfzig 50 sechzig 60 siebzig 70 achtzig 80 neunzig 90 hundert 100 tausend 1000
zweimal 2 dreimal 3 dutzend 12
"""
FIRST_PERSON = "ich mich mir mein meine meinen meinem meiner"
FIRST_PERSON_PLURAL = "wir uns unser unsere unseren unserem unserer"
CLOCK_WORDS = "um uhr"
SEPARABLE = """
angehen geht an
ausgehen geht aus
anmachen macht an
ausmachen macht aus
anschalten schaltet an
ablehnen lehnt ab
ablehnen lehne ab
ablehnen lehnen ab
anfangen fängt an
anfangen fangen an
anfangen fange an
aufhören hört auf
aufhören höre auf
ausschalten schaltet aus
einschalten schaltet ein
vorziehen zieht vor
vorziehen ziehe vor
umziehen zieht um
fehlschlagen schlägt fehl
fehlschlagen schlagen fehl
"""
