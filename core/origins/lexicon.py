"""Word lists: words that are not names, and words that give a figure a negative sign."""

from __future__ import annotations

import re


def _listed(text: str) -> frozenset[str]:
    return frozenset(text.split())


FUNCTION_WORDS = _listed(
    """a an the this that these those it its he she they we you i his her their our your my and or but nor so
    if when while as at by for from in into of off on onto out over per than then there to under until up
    upon with within without after before since because although though where whether which who whom whose
    what why how is are was were be been being has have had do does did can could may might must shall
    should will would not no yes pro je
    all any both each either every few many more most much neither none one
    only other same several some such der die das den dem des ein eine einen einem einer eines und oder aber
    wenn während als am im in an auf aus bei bis durch für gegen mit nach ohne seit über um unter von vom
    vor zu zum zur zwischen es er sie wir ihr ich sein seine ihre ist sind war waren wird werden hat haben
    hatte kann können muss müssen soll sollen darf dürfen nicht kein keine alle jede jeder jedes diese
    dieser dieses dieses welche was wer wie wo warum ja nein auch nur noch schon sowie laut gemäß falls
    diesen diesem jenen jenem jener jenes jeden jedem welcher welchen welches allen aller solche solchen
    sofern sobald zudem außerdem daher damit dabei dafür hierbei jedoch dort hier le la les l un une des du
    de d et ou mais si quand lorsque comme à au aux dans par pour sur sous avec sans vers chez entre il elle
    ils elles nous vous je on ce cet cette ces son sa ses leur leurs notre votre est sont était étaient sera
    seront a ont avait peut peuvent doit doivent ne pas non oui tout tous toute toutes chaque quel quelle
    quels quelles qui que quoi où pourquoi comment selon ainsi donc el los las y o pero es son il lo gli e
    ma sono del della"""
)
# First words of sentences in answers, other than function words and words in -ly.
STARTERS = _listed(
    """according additionally also however therefore thus hence moreover furthermore meanwhile currently next
    finally first second third firstly lastly overall instead otherwise similarly likewise generally usually
    often sometimes please note see contact ask call email send check review refer based given due despite
    during between among about above below across against along around behind beside besides beyond inside
    outside near through throughout toward towards unlike like regarding concerning including excluding
    following using today yesterday tomorrow now later here there once twice yes no ok okay sure certainly
    unfortunately thanks dear hello hi let make use ensure keep remember consider add remove open close
    click select press enter go visit read write say says said ask asks under both former latter another
    others even still just yet ever never always unless except provided assuming suppose great good well
    zusammenfassend insgesamt ferner darüber weiterhin zunächst anschließend danach zuerst schließlich bitte
    kontaktieren fragen siehe beachten laut nachdem bevor sollte sollten würde wurde wurden bereits heute
    gestern morgen jetzt bald später insbesondere beispielsweise allerdings trotzdem dennoch deshalb
    deswegen folglich ab außer binnen innerhalb außerhalb trotz wegen statt neben hinter dank somit sonst
    après avant depuis pendant durant lors contre malgré sauf hormis enfin ensuite puis cependant toutefois
    néanmoins également aussi actuellement conformément concernant voici voilà contactez demandez veuillez
    d'après afin parce puisque alors"""
)
TITLES = _listed(
    """mr mrs ms miss mx dr prof professor sir dame herr herrn frau dipl ing med m mme mlle monsieur madame
    mademoiselle sr sra señor señora st sergeant sgt captain capt constable officer inspector councillor
    cllr judge justice lord lady rev reverend ceo cfo cto coo cio vp
    president chairman chairwoman chairperson chair director
    manager secretary treasurer minister mayor senator governor doctor nurse coach bürgermeister
    bürgermeisterin direktor direktorin präsident präsidentin vorsitzender vorsitzende doktor
    geschäftsführer geschäftsführerin directeur directrice maire président présidente maître docteur"""
)
# Titles after which a single word is a name.
PERSONAL_TITLES = _listed(
    """mr mrs ms miss mx dr prof professor dame herr herrn frau mme mlle monsieur madame mademoiselle sr sra
    señor señora sergeant sgt captain capt constable inspector councillor cllr"""
)
# Abbreviations, whose point does not end a sentence.
ABBREVIATED = TITLES | _listed(
    "nr no vs ca approx inc ltd co corp str art abs ziff s p z.b d.h u.a e.g i.e etc incl excl est"
    " inkl exkl zzgl abzgl bzw ggf evtl usw tel bspw sog env resp éd руб коп тыс млн ул стр им тел"
)
CONNECTORS = _listed("of the for von van der den de la le du des di da del e y zu zum zur &")
# Capitalised, but not a name that an answer could invent.
COMMON = _listed(
    """i i'm i've i'd i'll ok okay yes no faq pdf tl dr tldr q&a n/a na url html json csv xml note notes
    section sections article articles chapter page pages table figure appendix annex part step steps clause
    paragraph item question answer example summary document documents source sources english german french
    japanese spanish chinese italian dutch russian latin internet web markdown mr mrs ms abschnitt absatz
    artikel kapitel seite seiten tabelle abbildung anhang anlage punkt ziffer paragraf nummer schritt frage
    antwort beispiel hinweis dokument christmas easter section chapitre annexe tableau étape remarque
    exemple réponse am pm nr abs ziff art etc eg ie vs id utc gmt cet cest mez mesz bst vat tva ttc ht
    mwst ust"""
)
# Names of holidays in several words, which are dates.
HOLIDAYS = frozenset(
    ("new year", "new year day", "christmas eve", "christmas day", "boxing day", "good friday")
)
GERMAN_COMMON = _listed(
    """beispiel ende anfang mitte jahr jahre tag tage monat monate woche wochen stunde stunden uhr teil euro
    prozent zeit fall fälle höhe rahmen bezug folge folgen art form zahl anzahl summe betrag preis kosten
    grund gründe ort stadt land straße herr frau person personen firma unternehmen gesellschaft verein
    mitglied mitglieder posten punkt modell typ wert anteil zeile spalte marke thema bereich kategorie gruppe
    klasse stufe version paket tarif plan"""
)
# Ordinary words of headings, bold labels and cells.
LABELS = _listed(
    """key main takeaways points point summary overview conclusion important note notes details detail
    additional information info background purpose scope requirements requirement steps step recommendations
    risks benefits timeline next action actions item items budget cost costs total totals date dates
    deadline deadlines location contact name names address phone email type types status description value
    values amount amounts price prices rate rates fee fees payment payments period term terms condition
    conditions rule rules policy policies procedure procedures process responsible person persons owner team
    member members department office room meeting agenda minutes attendees present absent decision decisions
    topic topics issue issues problem solution result results finding findings analysis data table figure
    chart list other others yes no all new old first second third final start end begin beginning date time
    hours hour day days week weeks month months year years annual monthly weekly daily notice right rights
    duty duties use usage access general special specific minimum maximum max min average number count
    quantity unit units weight length width height size speed power voltage temperature pressure capacity
    storage memory version model serial product products service services support warranty safety security
    warning caution danger error errors code codes cause causes fix effect level high low medium normal
    default setting settings option options mode modes button buttons display screen input output question
    questions answer answers example examples reference references source sources document documents page
    pages chapter section article clause paragraph appendix before after during between per each any only
    rent deposit tenant landlord employer employee company customer client supplier buyer seller contract
    agreement party parties"""
)
# Words near a figure that say that it is a loss or a decrease.
FALLING = re.compile(
    r"(?<![^\W_])(?:fell|fall(?:s|en|ing)?|drop(?:s|ped|ping)?|decreas\w*|declin\w*|reduc\w*|lower\w*|less|fewer|down"
    r"|loss(?:es)?|lost|los(?:e|es|ing)|took|minus|negative|below|under|shorten\w*|shorter|shr[aiu]nk\w*|cut|cheaper|saved?"
    r"|slid|sank|deficit|debits?|paid|withdraw\w*|gesunken|sank|sinkt|fiel\w*|gefallen|weniger|niedriger|unter|rückgang"
    r"|verlust\w*|abzug|abzüglich|minus|reduzier\w*|verringer\w*|gekürzt|kürzer|baiss\w*|recul\w*|moins|diminu\w*"
    r"|perte\w*|rédui\w*|inférieur\w*|sous)(?![^\W_])|減|低下|下回|下が|下降|减少|亏损",
    re.I,
)
# Frequent words that reveal a text's language.
TELLING = {
    "en": _listed("the of and to is are was were that this with for by from which has have not it at be"),
    "de": _listed("der die das und ist sind nicht mit von für auf ein eine den dem des zu wird im am bei"),
    "ru": _listed("и в на не с по для от из что как к за при до или это если"),
    "fr": _listed("le la les des est sont et une dans pour par sur que qui du au aux pas avec il"),
}
# Decimal marks; the other mark separates thousands.
DECIMAL_MARKS = {"en": ".", "de": ",", "fr": ",", "ru": ",", "ja": "."}
_DAYS = (
    "monday montag lundi 月曜", "tuesday dienstag mardi 火曜", "wednesday mittwoch mercredi 水曜",
    "thursday donnerstag jeudi 木曜",
    "friday freitag vendredi 金曜", "saturday samstag sonnabend samedi 土曜",
    "sunday sonntag dimanche 日曜",
)  # fmt: skip
# Names of the same place in several languages.
_PLACES = (
    "munich münchen", "cologne köln", "vienna wien vienne", "nuremberg nürnberg", "geneva genf genève",
    "zurich zürich", "bern berne", "basel bâle", "brussels brüssel bruxelles", "rome rom roma",
    "milan mailand milano",
    "venice venedig venezia", "prague prag praha", "warsaw warschau varsovie", "moscow moskau moscou",
    "lisbon lissabon lisbonne", "athens athen athènes", "copenhagen kopenhagen copenhague",
    "strasbourg straßburg",
    "germany deutschland allemagne ドイツ", "france frankreich フランス", "switzerland schweiz suisse スイス",
    "austria österreich autriche", "italy italien italie", "spain spanien espagne", "japan japon 日本",
    "netherlands niederlande pays-bas", "belgium belgien belgique", "poland polen pologne",
    "europe europa",
    "china chine chinesisch 中国", "sweden schweden suède",
    "denmark dänemark danemark", "norway norwegen norvège",
    "hungary ungarn hongrie", "greece griechenland grèce", "turkey türkei turquie", "england angleterre",
    "tokyo tokio 東京", "osaka 大阪", "kyoto 京都",
    "bavaria bayern bavière", "rhine rhein rhin", "danube donau",
)  # fmt: skip
# The other names of a place, or of a day of the week.
ALSO_CALLED = {name: names.split() for names in (*_DAYS, *_PLACES) for name in names.split()}
# Nouns with which an answer counts its own items: "three reasons".
COUNTED = _listed(
    """reason reasons point points step steps way ways thing things part parts section sections option options
    type types kind kinds example examples question questions category categories aspect aspects factor
    factors item items topic topics key main important major different following sentence sentences word
    words bullet paragraph paragraphs gründe grund punkte punkt schritte schritt wege dinge teile arten
    beispiele fragen kategorien aspekte themen wichtige wichtigsten folgende folgenden verschiedene sätze
    sätzen raisons points étapes façons choses parties options types exemples questions catégories aspects
    principaux principales suivants suivantes phrases"""
)
