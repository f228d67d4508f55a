"""Units and scales that follow or precede numbers, in the languages of the labelled documents."""

from __future__ import annotations

import re
from functools import lru_cache

# The first name is the canonical one. Names of letters are words; plurals and cases are listed.
_UNITS = """
% ％ процент процента процентов percent per\u00a0cent prozent pct pourcent pour\u00a0cent v.h. パーセント
pp percentage\u00a0points prozentpunkte prozentpunkten
eur € euro euros ユーロ
usd $ us$ dollar dollars ドル
gbp £ ￡ pound\u00a0sterling
pound pounds
pence p penny
cent cents ct centimes
jpy ¥ ￥ yen 円
cny 元 块钱 yuan
rub ₽ руб рубль рубля рублей
kopeck коп копейка копейки копеек
chf franken francs sfr
day день дня дней 天 сутки суток days tag tage tagen tages jour jours 日 日間 tägig tägige tägigen tägiger d
workday werktag werktage werktagen arbeitstag arbeitstage arbeitstagen workdays 営業日 个工作日 工作日
workday working\u00a0day working\u00a0days business\u00a0day business\u00a0days
workday jours\u00a0ouvrables jours\u00a0ouvrés
week неделя недели недель 周 个星期 星期 weeks woche wochen semaine semaines 週 週間 wöchig wöchige wöchigen
month месяц месяца месяцев мес 个月 months monat monate monaten monats mois
month か月 ヶ月 ヵ月 カ月 か月間 ヶ月間 monatig monatige monatigen
year год года лет 岁 周岁 歳 years
year jahr jahre jahren jahres an ans année années 年 年間 jährig jährige jährigen yr yrs
hour час часа часов ч 小时 个小时 hours h hr hrs stunde stunden std heure heures 時間
minute минута минуты минут мин 分钟 minutes min mins minuten 分 分間 minütig minütige
second секунда секунды секунд сек 秒钟 seconds s sec secs sekunde sekunden seconde secondes 秒 秒間
ms millisecond milliseconds millisekunden millisecondes
kg кг 公斤 千克 kilogram kilograms kilogramm kilogrammes kilo kilos キロ
g 克 грамм граммов gram grams gramm grammes
mg мг 毫克 milligram milligrams milligramm
µg μg mcg microgram micrograms mikrogramm microgramme microgrammes マイクログラム
ng nanogram nanograms nanogramm nanogrammes
t тонн тонна тонны 吨 ton tons tonne tonnes tonnen トン
lb lbs
oz ounce ounces
km км 公里 千米 kilometre kilometres kilometer kilometers kilometern kilomètres
m м метр метра метров 米 metre metres meter meters metern mètre mètres メートル
cm см 厘米 centimetre centimetres centimeter centimeters zentimeter centimètres
mm мм 毫米 millimetre millimetres millimeter millimeters millimètres
ft feet foot
in inch inches zoll pouces
mi mile miles meilen
yd yard yards
l л литр литра литров 升 litre litres liter liters litern リットル
ml мл 毫升 millilitre millilitres milliliter millilitres
cup cups
tbsp tablespoon tablespoons
tsp teaspoon teaspoons
pt pint pints
gal gallon gallons
µl μl microlitre microlitres microliter microliters mikroliter マイクロリットル
µm μm micrometre micrometres micrometer micrometers mikrometer micromètre micromètres
m² кв.м 平方米 m2 sqm quadratmeter 平方メートル
m³ куб.м 立方米 m3 kubikmeter
°c ℃ 摄氏度 degrees\u00a0celsius grad\u00a0celsius degrés\u00a0celsius 度
°f degrees\u00a0fahrenheit
° градус градуса градусов degrees degree grad degrés
kb kbyte kilobytes
mb mbyte megabytes
gb gbyte gigabytes
tb terabytes
kib kibibytes
mib mebibytes
gib gibibytes
tib tebibytes
w watt watts
kw kilowatt kilowatts
mw megawatt megawatts
wh wattstunden
kwh
mwh
ah
mah
階
割
v volt volts
a amp amps ampere
hz hertz
khz
mhz
ghz
bar
psi
pa pascal
hpa mbar millibar millibars
kpa
mpa
mmhg
n newton newtons
j joule joules
kj kilojoules
mj
kcal calories kalorien kilokalorien kilocalories
va
kva
kbit/s kbps kbit
mbit/s mbps mbit
gbit/s gbps gbit
bit bits
byte bytes octets
px pixel pixels pixeln
fps
bpm
lux lx
lm lumen lumens
dba db(a)
ha hectare hectares hektar
acre acres
mph miles\u00a0per\u00a0hour
knot knots knoten nœuds kn kt kts
mol mmol/l mmol
iu ie
nm n·m newton metres newton meters
lbf·ft ft·lb ft·lbf ft-lb foot-pounds
rpm
dpi
ppm
db
times mal fois 回 раз раза 次
people person persons personen personne personnes 人 名 человек человека
"""
_CANONICAL = {
    name.replace("\u00a0", " "): line.split(" ")[0]
    for line in _UNITS.strip().splitlines()
    for name in line.split(" ")
}
_NAMED: dict[str, list[str]] = {}
for _name, _unit in _CANONICAL.items():
    _NAMED.setdefault(_unit, []).append(_name)
# One letter, or an ordinary word: a unit only if it follows directly or after one space, in this case.
_EXACT = {"an", "in", "a", "d", "t", "s", "v", "w", "m", "h", "g", "l", "foot", "second", "ms", "nm", "bar",
          "min", "mi", "mw", "n", "pa", "j", "va", "ha", "mj", "mol", "ie", "iu", "wh", "ah", "bit", "kn",
          "kt", "seconde", "kilo", "pounds", "people", "p"}  # fmt: skip
# Also ordinary words: a unit only directly after the number.
_ORDINARY = ("in", "an", "a")
_LETTERS = sorted((name for name in _CANONICAL if name[0].isalpha()), key=len, reverse=True)
_SIGNS = sorted((name for name in _CANONICAL if not name[0].isalpha()), key=len, reverse=True)
_JAPANESE = [name for name in _LETTERS if ord(name[0]) > 0x3000]
_LATIN = [name for name in _LETTERS if ord(name[0]) < 0x3000]
# Characters of one word with Latin or Cyrillic letters and digits; Japanese writes no space after it.
LATIN = "0-9A-Za-z_À-ɏЀ-ӿ"
BEHIND = (
    rf"(?:[ \u00a0\u202f]{{0,2}}(?:{'|'.join(map(re.escape, _SIGNS))})|(?:{'|'.join(_JAPANESE)})"
    rf"|[ \u00a0\u202f-]{{0,2}}(?:{'|'.join(map(re.escape, _LATIN))})(?![{LATIN}²³]|-%))"
)
BEFORE = r"(?:(?:US|A|C)?\$|€|£|¥|￥|(?:EUR|USD|GBP|CHF|JPY)(?=[ \u00a0\u202f\d]))"

_LONG_NAME = 4  # letters
CURRENCIES = frozenset(("eur", "usd", "gbp", "jpy", "chf", "cny", "rub", "pence", "cent"))
# Names of powers of ten after a number, with their possible exponents.
_SCALES = {
    "thousand": (3,), "tausend": (3,), "k": (3,), "mille": (3,), "tsd": (3,),
    "million": (6,), "millions": (6,), "millionen": (6,), "mio": (6,), "mn": (6,), "m": (6,),
    "billion": (9, 12), "billions": (9,), "billionen": (12,), "bn": (9,), "b": (9,), "milliarde": (9,),
    "milliarden": (9,), "mrd": (9,), "milliard": (9,), "milliards": (9,), "md": (9,), "trillion": (12,),
    "hundred": (2,), "hundert": (2,),
}  # fmt: skip
_NAMES = "|".join(sorted((name for name in _SCALES if len(name) > 1), key=len, reverse=True))
SCALE = rf"(?:[ \u00a0\u202f-]?(?:{_NAMES})\b\.?|[ \u00a0]?(?-i:[kKMB])(?=[ ,.;:)€$£\n]|\Z))"

# Units of answers, and the more precise units that a source may have instead.
_PRECISE = {
    "gbp": ("pound", "pence"), "lb": ("pound",), "pound": ("gbp", "lb"), "eur": ("cent",), "usd": ("cent",),
    "pence": ("gbp",), "cent": ("eur", "usd"),
    "day": ("workday",), "°": ("°c", "°f"), "°c": ("°",), "%": ("pp",)}  # fmt: skip


def precise(unit: str) -> tuple[str, ...]:
    """The units that a source may have for `unit`."""
    return (unit, *_PRECISE.get(unit, ()))


def same_unit(one: str, other: str) -> bool:
    """Whether a quantity with the unit `one` can mean the same as one with `other`."""
    return other in precise(one)


def unit_of(text: str) -> str:
    """Canonical unit of a match of `BEHIND` or `BEFORE`; empty if it is an ordinary word."""
    name = text.strip(" \u00a0\u202f-")
    found = _CANONICAL.get(name.lower(), "")
    if (
        found
        and name.lower() in _EXACT
        and name
        not in _EXACT
        | {"A", "V", "W", "L", "MW", "Nm", "N", "Pa", "J", "VA", "MJ", "IU", "IE", "Wh", "Ah", "kn", "kt"}
    ):
        return ""
    return "" if name in _ORDINARY and text[:1].isspace() else found


_LONG_NAMES = re.compile(
    rf"(?:{'|'.join(name for name in map(re.escape, _LATIN) if len(name) >= _LONG_NAME)})(?![^\W\d_])", re.I
)


@lru_cache(maxsize=1 << 10)
def names_unit(text: str) -> bool:
    """Whether a word of `text` is the name of a unit, or ends with one: Betriebsstunden."""
    return _LONG_NAMES.search(text) is not None or any(unit_of(f" {word}") for word in text.split())


def scale_names() -> str:
    """A pattern of the names of scales that are words."""
    return _NAMES


def exponents(text: str) -> tuple[int, ...]:
    """Powers of ten of a match of `SCALE`."""
    return _SCALES.get(text.strip(" \u00a0\u202f-.").lower(), ())


def has_unit(text: str, unit: str, words: int) -> bool:
    """Whether a name of the canonical `unit` follows in `text` after at most `words` words."""
    folded = text.lower()
    for name in _NAMED[unit]:
        if words and name in _ORDINARY:
            continue
        at = folded.find(name)
        while at >= 0 and len(folded[:at].split()) <= words:
            end = at + len(name)
            if not name[0].isalpha() or ord(name[0]) > 0x3000:
                return True
            # German writes "operating hours" as one word: Betriebsstunden.
            begins = len(name) >= _LONG_NAME or not folded[max(0, at - 1) : at].isalnum()
            if begins and not folded[end : end + 1].isalnum():
                return True
            at = folded.find(name, end)
    return False
