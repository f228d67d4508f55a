"""Whether a question asks for something that is spread over the whole text. Pure.

Such questions fail at any share below all of it (the SpecPrefill paper, RULER: common words 96.6 → 11.8%). A
false alarm costs time; a miss is what “Read Everything” is for. Known by words that count and include
everything, in the languages below. Requests for the whole that name nothing in it (sum up, translate,
proofread) need no words here: nothing stands out for them, which is measured
(`core.prefill.scorers.lexical.clearness`).
"""

from __future__ import annotations

import re

# All and whole; how many and how often. Words that are ordinary ones in another language of the list are
# left out.
_WORDS = (
    # English
    r"every(?:thing)? | each | all | entire(?:ty)? | whole | complete(?:ly)? | full(?:y)?",
    r"how\s+(?:many|often) | count(?:s|ing)? | number\s+of | most\s+(?:common|frequent|often)",
    r"frequenc(?:y|ies) | exhaustive(?:ly)? | line\s+by\s+line | word\s+for\s+word | verbatim",
    # German
    r"jede[rsnm]? | alle[smnr]? | sämtliche\w* | ganze[rsnm]? | gesamte\w* | vollständig\w* | komplett\w*",
    r"wie\s*viele? | wie\s+oft | zähle?n? | anzahl | häufigste\w* | wörtlich",
    # French
    r"chaque | tou(?:te?)?s? | entier\w* | complet\w* | intégral\w* | combien | compte[rz]? | nombre\s+de",
    # Spanish and Portuguese
    r"cada | tod[oa]s | toda | todo\s+(?:el|lo|o|este|esse) | enter[oa] | complet[oa]s? | cuánt[oa]s",
    r"cuenta | contar | número\s+de | inteir[oa] | quant[oa]s | conte",
    # Italian
    r"ogni | tutt[oiae] | inter[oa] | quant[ie] | conta(?:re)? | numero\s+di",
    # Dutch
    r"elke? | alles | allen | hele | volledige? | hoeveel | tellen | aantal",
    # Russian
    r"кажд\w+ | вс[её] | всех | весь | всего | полность\w+ | сколько",
    r"посчитай\w*",
)
# These scripts put no spaces between words: all, every, how many, count.
_UNSPACED = (
    r"所有|全部|每[个個一]|整[个個篇]|完整|多少|几[个次]|幾[個次]|统计|統計|逐[字行]",
    r"すべて|全て|全部|全体|各々|それぞれ|いくつ|何[回個件人]|数え|一字一句",
    r"모든|모두|전부|전체|각각|몇\s*(?:개|번|명)|세어",
)
_SPREAD = re.compile(rf"\b(?:{'|'.join(_WORDS)})\b | {'|'.join(_UNSPACED)}", re.IGNORECASE | re.VERBOSE)


def needs_every_token(question: str) -> bool:
    """Whether `question` asks for what no part of a text can tell."""
    return _SPREAD.search(question) is not None
