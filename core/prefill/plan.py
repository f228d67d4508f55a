"""Decides whether a prompt is read completely or sparsely, and why. Pure.

Three decisions at three moments. Before the cache is looked up: must every token be read at any cost
(`dense_reason`)? Then only a prefix without gaps may be reused. After it, when the number of new tokens is
known: would reading all of them take too long (`decide`)? If so, after scoring: does a passage match the
question (`Scored.stands_out`)?

`auto` reads everything where a request needs the whole text, where that is quick, and where no passage
matches.

Two kinds of requests name things of the text, so that some passage scores high, and still need more than
passages; they are recognised by their words. Requests about all of a text (“how many invoices are open?”)
fail at any share below all of it (the SpecPrefill paper; RULER: common words 96.6 → 11.8%), and requests to
continue a text need its end. Requests for the whole that name nothing in it (sum up, translate, proofread)
need no words here: no passage matches them, which the scorers measure. A false alarm of the first kind costs
time, one of the second a part of the passages.
"""

from __future__ import annotations

import re

from msgspec import Struct

from core.events import Change
from core.settings.prefill import Prefill

# All and whole; how many and how often. Words that are common in another language of the list are left out.
_SPREAD_WORDS = (
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
# Scripts without spaces between words: all, every, how many, count.
_SPREAD_UNSPACED = (
    r"所有|全部|每[个個一]|整[个個篇]|完整|多少|几[个次]|幾[個次]|统计|統計|逐[字行]",
    r"すべて|全て|全部|全体|各々|それぞれ|いくつ|何[回個件人]|数え|一字一句",
    r"모든|모두|전부|전체|각각|몇\s*(?:개|번|명)|세어",
)
_SPREAD = re.compile(
    rf"\b(?:{'|'.join(_SPREAD_WORDS)})\b | {'|'.join(_SPREAD_UNSPACED)}", re.IGNORECASE | re.VERBOSE
)


# A request is at the beginning or at the end of a message with pasted text.
_END_CHARACTERS = 200
# Beginnings of a request; “does the ban continue until May?” has none.
_BEGINS = (
    r"(?:^|[.!?:;,\n“\"(]\s*|\b(?:please|(?:can|could|would|will)\s+you|bitte|du|s'il\s+(?:te|vous)\s+pla[iî]t"
    r"|por\s+favor|per\s+favore|graag|пожалуйста)\s+)"
)
_REQUESTS = (
    # English
    r"continue | go\s+on | carry\s+on | keep\s+(?:going|writing) | write\s+on | pick\s+up\s+where",
    # German and Dutch
    r"weiter | mach\w*\s+weiter | fahre?\s+fort | setze?\s+[^.!?]{0,80}\bfort",
    r"(?:schreibe?|erzähle?)\s+[^.!?]{0,80}weiter",
    r"ga\s+(?:verder|door) | (?:schrijf|vertel)\s+[^.!?]{0,80}verder | vervolg",
    # French, Spanish, Portuguese, Italian
    r"continue[rz]? | poursui[st]\w* | contin[uú][aeá]\w* | sigue | prosigue | siga",
    r"prossig\w+ | prosegui\w*",
    # Russian
    r"продолж\w+ | пиши\s+дальше",
)
# Anywhere in a request: what comes next, the next part.
_NEXT = (
    r"what\s+(?:happens|comes)\s+next",
    r"next\s+(?:chapter|paragraph|passage|scene|section|page|sentence|verse|part|entry|line)s?",
    r"(?:fortsetzung | wie\s+(?:geht|könnte)\s+[^.!?]{0,80}weiter(?:gehen)?)",
    r"nächste[nrsm]?\s+(?:kapitel|absatz|absätze|abschnitt|szene|seite|satz|strophe|teil|zeile)n?",
    r"la\s+suite | prochaine?\s+(?:chapitre|paragraphe|scène|page|partie) | (?:chapitre|scène)\s+suivante?",
    r"(?:siguiente|pr[oó]xim[oa])\s+(?:cap[ií]tulo|p[aá]rrafo|par[aá]grafo|escena|cena|parte)",
    r"prossim[oa]\s+(?:capitolo|paragrafo|scena|pagina|parte)",
    r"volgende\s+(?:hoofdstuk|alinea|scène|pagina|deel)",
    r"(?:следующ\w+\s+(?:глав|абзац|сцен|страниц|част)\w* | что\s+(?:было\s+)?дальше)",
)
# Scripts without spaces between words.
_CONTINUE_UNSPACED = (
    r"继续|繼續|[续續接][着著]?[写寫]|接下[来來]|下一[章段节節回幕页頁]",
    r"続け|続き|次の(?:章|段落|場面|ページ)",
    r"계속|이어서|이어\s*써|다음\s*(?:장|단락|문단|장면)",
)
_CONTINUE = re.compile(
    rf"{_BEGINS}(?:{'|'.join(_REQUESTS)})\b | \b(?:{'|'.join(_NEXT)})\b | {'|'.join(_CONTINUE_UNSPACED)}",
    re.IGNORECASE | re.VERBOSE,
)


def needs_every_token(question: str) -> bool:
    """Whether `question` is about all of a text."""
    return _SPREAD.search(question) is not None


def continues(request: str) -> bool:
    """Whether `request` is for the continuation of a text; checks only the two ends of a long one."""
    words = request.strip()
    if len(words) > 2 * _END_CHARACTERS:
        words = f"{words[:_END_CHARACTERS]}\n{words[-_END_CHARACTERS:]}"
    return _CONTINUE.search(words) is not None


# ---- the decisions


ASKS_FOR_ALL = "this asks for the whole document, so all of it was read"
NOTHING_STANDS_OUT = "nothing in the text stands out for this question, so all of it was read"


class Decision(Struct, frozen=True):
    """Whether to read sparsely, the reason in words, and a change if the settings say otherwise."""

    sparse: bool
    reason: str
    change: Change | None = None


def dense_reason(settings: Prefill, question: str) -> str:
    """The reason why every token must be read; empty if passages may be skipped."""
    if settings.mode == "off":
        return "sparse prefill is off"
    if settings.keep_pct >= 100:
        return "all of the text is kept"
    if settings.mode == "auto" and needs_every_token(question):
        return ASKS_FOR_ALL  # unless scoring finds a passage that answers it
    return ""


def beyond(settings: Prefill, dense: str, prompt_tokens: int) -> Decision:
    """The decision for a prompt longer than the context: the passages that fit are read."""
    reason = f"{prompt_tokens:,} tokens are more than the context takes, so the passages that fit are read"
    change = Change("prefill.keep_pct", "100", f"{settings.keep_pct:g}", reason) if dense else None
    return Decision(True, reason, change)


def decide(settings: Prefill, dense: str, new_tokens: int, dense_s: float | None = None) -> Decision:
    """`dense` is the result of `dense_reason`; `new_tokens` are not in the cache yet.

    `dense_s`: predicted seconds of reading all of them, None if unknown.
    """
    quick = settings.is_quick(new_tokens, dense_s)
    if dense:
        # A prompt that is quick to read would have been read completely anyway.
        is_change = settings.mode == "auto" and settings.keep_pct < 100 and not quick
        return Decision(False, dense, refused(settings, dense) if is_change else None)
    takes = "" if dense_s is None else f", about {dense_s:.0f} s to read whole"
    if settings.mode == "auto" and quick:
        return Decision(False, f"{new_tokens:,} new tokens are quickly read")
    return Decision(True, "asked for" if settings.mode == "on" else f"{new_tokens:,} tokens are new{takes}")


def refused(settings: Prefill, reason: str) -> Change:
    """The change where everything is read and `settings` allow less."""
    return Change("prefill.mode", settings.mode, "off", reason)
