"""Whether a request asks for what comes next in a text: go on, continue, the next chapter. Pure.

It looks for nothing in the text, and what was said last tells most of how it goes on
(notes/prefill.md). A false alarm costs places among the passages that scores choose; a miss leaves
all of them to the scores. Known by their words, in the languages of `core.prefill.every_token`.
"""

from __future__ import annotations

import re

# People ask before a text that they paste or after it; what stands in it asks for nothing.
_END_CHARACTERS = 200
# A request begins so; “does the ban continue until May?” does not.
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
# Wherever they stand: what comes next, the next part of it.
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
# These scripts put no spaces between words.
_UNSPACED = (
    r"继续|繼續|[续續接][着著]?[写寫]|接下[来來]|下一[章段节節回幕页頁]",
    r"続け|続き|次の(?:章|段落|場面|ページ)",
    r"계속|이어서|이어\s*써|다음\s*(?:장|단락|문단|장면)",
)
_GO_ON = re.compile(
    rf"{_BEGINS}(?:{'|'.join(_REQUESTS)})\b | \b(?:{'|'.join(_NEXT)})\b | {'|'.join(_UNSPACED)}",
    re.IGNORECASE | re.VERBOSE,
)


def asks_to_go_on(request: str) -> bool:
    """Whether `request` asks for what comes next; of a long one only its two ends are looked at."""
    words = request.strip()
    if len(words) > 2 * _END_CHARACTERS:
        words = f"{words[:_END_CHARACTERS]}\n{words[-_END_CHARACTERS:]}"
    return _GO_ON.search(words) is not None
