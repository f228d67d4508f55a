"""Months, dates and times of day as values: `2026-11-28`, `--11-28`, `2026-11`, `t09:30`."""

from __future__ import annotations

import re

from core.origins.numerals import of_german, of_words

_MONTHS = (
    "january jan januar janvier janv jänner январь января янв",
    "february feb februar février févr fév февраль февраля фев",
    "march mar märz mär mars март марта",
    "april apr avril avr апрель апреля апр",
    "may mai мая",
    "june jun juni juin июнь июня",
    "july jul juli juillet juil июль июля",
    "august aug août август августа авг",
    "september sep sept septembre сентябрь сентября сент",
    "october oct oktober okt octobre октябрь октября окт",
    "november nov novembre ноябрь ноября нояб",
    "december dec dezember dez décembre déc декабрь декабря дек",
)
MONTHS = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
_MONTH_NAMES = "|".join(sorted(MONTHS.keys() - {"may", "march"}, key=len, reverse=True))
# Pattern of a month's name, regardless of case: "may" and "march" are verbs. The point ends an abbreviation.
MONTH = rf"(?:{_MONTH_NAMES}|(?-i:May|MAY|March|MARCH))(?![^\W_])(?:(?<![^\W_]{{5}})\.)?"
_CLOCK = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)|(0\d)([0-5]\d)")
_HOURS_EN = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_HOURS_DE = "eins?|zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf"
_HOURS_FR = "une|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze"
# Times in words.
WORDED = rf"""
    (?P<wen>half|quarter)[ ](?P<dir_en>past|to)[ ](?P<h_en>{_HOURS_EN})(?![^\W_])
  | (?P<wde>halb|viertel|dreiviertel)(?:[ ](?P<dir_de>nach|vor))?[ ](?P<h_de>{_HOURS_DE})(?![^\W_])
  | (?P<h_fr>{_HOURS_FR})[ ]heures?[ ](?P<wfr>et[ ]demie|et[ ]quart|moins[ ]le[ ]quart)(?![^\W_])
  | (?P<noon>noon|midday|midnight|midi|minuit|mitternacht)(?![^\W_])
"""
WORDED_BEGINS = ("half", "quarter", "viertel", "dreiviertel", *_HOURS_FR.split("|"), "noon", "midi")
_MINUTES = {"half": 30, "quarter": 15, "et demie": 30, "et quart": 15, "moins le quart": -15}
_NIGHT = ("midnight", "minuit", "mitternacht")


def worded(names: dict[str, str | None]) -> tuple[int, int] | None:
    """Hour and minute of a match of `WORDED` by its groups; None if no time is in words. The hour may
    also mean the afternoon.
    """
    if noon := names["noon"]:
        return (0 if noon.lower() in _NIGHT else 12), 0
    if part := names["wde"]:
        hour, part = int(of_german(names["h_de"] or "") or 0), part.lower()
        way = (names["dir_de"] or "").lower()
        minute = {"halb": -30, "dreiviertel": -15}.get(part, {"nach": 15, "vor": -15}.get(way, -45))
    elif part := names["wen"]:
        hour = int(of_words(names["h_en"] or "") or 0)
        minute = _MINUTES[part.lower()] * (1 if (names["dir_en"] or "").lower() == "past" else -1)
    elif part := names["wfr"]:
        hour, minute = int(of_words(names["h_fr"] or "") or 0), _MINUTES[" ".join(part.lower().split())]
    else:
        return None
    return (hour, minute) if minute >= 0 else ((hour - 1) % 12 or 12, 60 + minute)


def clock(literal: str) -> tuple[str, ...]:
    """Times of day that digits without a colon may mean: 18.20, and 0725, but not 1825."""
    if (match := _CLOCK.fullmatch(literal)) is None:
        return ()
    return (f"t{int(match[1] or match[3]):02}:{match[2] or match[4]}",)


def date_value(year: str, month: str, day: str) -> str:
    """A date, complete or not, as a value; empty without month and year."""
    if not month:
        return year
    found = f"{year or '-'}-{int(month):02}"
    return f"{found}-{int(day):02}" if day else found
