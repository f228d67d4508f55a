"""Layout of a prompt: which tokens are protected, which are the question's, which are each document's.

Protected tokens are the template's and the system prompt's; the question is the user's own text in the last
user message; documents are the texts of attachments, with character positions for the reading map. A prompt
of token IDs without messages has no documents: its last tokens count as the question, which is continued.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from core.events import Passage
from core.prefill.passages import cut
from core.prompt import Prompt, Region
from core.settings.prefill import DOCUMENT_TAIL_TOKENS, PASSAGE_TOKENS, TAIL_TOKENS, Prefill

Array = np.ndarray[Any, Any]
# Only the beginning and end of a longer question count: people ask before or after a pasted text.
_QUESTION_TOKENS = 256
_QUESTION_HEAD_TOKENS = 48
_UNKNOWN_QUESTION_TOKENS = 64
# A longer message is taken to contain pasted text.
_ASKED_CHARACTERS = 400


class Text(Struct, frozen=True):
    """A text that passages are chosen from: a document, a message or an answer; `start`: its first token.

    `passages` (int32 [n, 2]) are its character ranges in `text`, as `core.prefill.passages.cut` gives them;
    `firsts` (int32 [n], ascending) the tokens of the prompt that contain their first characters.
    """

    text: str
    start: int
    end: int
    passages: Array
    firsts: Array


class Passages(Struct, frozen=True):
    """Consecutive ranges of a prompt's tokens, the last one up to `end`.

    `firsts` (int32, ascending): where each begins. `of` (int32, one a token of the prompt): the passage whose
    score the token counts for; -1 for tokens outside and those of the question.
    """

    firsts: Array
    end: int
    of: Array

    def __len__(self) -> int:
        return len(self.firsts)

    @property
    def lengths(self) -> Array:
        """In tokens."""
        return np.diff(np.append(self.firsts, self.end))


class Layout(Struct, frozen=True):
    """Arrays over the prompt's tokens: bool `protected` and `question`; `source` is the ordinal of
    the attachment or −1, `first_char` and `last_char` (end-exclusive) the range in its text.
    `texts` are in the prompt's order; `asked` is the question without pasted text. `goes_on`: the request is
    for a continuation of the text.
    """

    protected: Array
    question: Array
    source: Array
    first_char: Array
    last_char: Array
    goes_on: bool
    texts: tuple[Text, ...] = ()
    asked: str = ""

    def passages(self, start: int, end: int, settings: Prefill) -> Passages:
        """The passages of the tokens `start` to `end`.

        They end where the texts' passages and the texts end; if `settings` say so or no text is known, after
        `PASSAGE_TOKENS` each.
        """
        if settings.passages == "fixed" or not self.texts:
            firsts = np.arange(start, end, PASSAGE_TOKENS, dtype=np.int32)
        else:
            ends = [each.end for each in self.texts]
            firsts = np.unique(
                np.concatenate([np.array(ends, np.int32), *(each.firsts for each in self.texts)])
            )
            firsts = np.append(np.int32(start), firsts[(firsts > start) & (firsts < end)])
        of = np.full(len(self.protected), -1, np.int32)
        of[start:end] = np.repeat(np.arange(len(firsts)), np.diff(np.append(firsts, end)))
        of[self.question] = -1
        return Passages(firsts, end, of)

    @property
    def always_read(self) -> Array:
        """bool, one a token: the protected tokens, the question, and the end of the prompt."""
        found = self.protected | self.question
        begins = max(0, len(found) - TAIL_TOKENS)
        if not self.goes_on and self.question.any() and (self.source >= 0).any():
            begins = max(begins, int(np.argmax(self.question)) - DOCUMENT_TAIL_TOKENS)
        found[begins:] = True
        return found

    def followed_by(self, tokens: int) -> Layout:
        """This layout followed by `tokens` of a begun answer, which are always read."""
        if not tokens:
            return self
        return self.quoting(len(self.protected), tokens)

    def passage(self, start: int, end: int, *, kept: bool, score: float) -> Passage:
        """The passage of the tokens `start` to `end`, in the document that most of them belong to."""
        sources = self.source[start:end]
        documents = sources[sources >= 0]
        if not len(documents):
            return Passage(start, end, kept, score)
        source = int(np.bincount(documents).argmax())
        inside = start + np.flatnonzero(sources == source)
        first, last = int(self.first_char[inside].min()), int(self.last_char[inside].max())
        return Passage(start, end, kept, score, source, first, last)

    def quoting(self, at: int, tokens: int) -> Layout:
        """With `tokens` inserted before the token `at`, which belong to no text and are always read."""

        def widened(array: Array, value: int) -> Array:
            return np.insert(array, at, np.full(tokens, value, dtype=array.dtype))

        return Layout(
            widened(self.protected, True),
            widened(self.question, False),
            widened(self.source, -1),
            widened(self.first_char, 0),
            widened(self.last_char, 0),
            self.goes_on,
            tuple(_shifted(text, at, tokens) for text in self.texts),
            self.asked,
        )

    @property
    def borders(self) -> list[int]:
        """Positions where another chat may continue differently: after the fixed head, at the question."""
        tokens = len(self.protected)
        begins = (int(np.argmin(self.protected)), int(np.argmax(self.question)))
        return [at for at in begins if 0 < at < tokens]


def _shifted(text: Text, at: int, tokens: int) -> Text:
    if text.end <= at:
        return text
    # Tokens inserted at a text's first token come before the text.
    firsts = np.where(text.firsts >= at, text.firsts + tokens, text.firsts)
    return replace(text, start=text.start + tokens * (text.start >= at), end=text.end + tokens, firsts=firsts)


def unknown_layout(tokens: int, *, goes_on: bool = True) -> Layout:
    """The layout of a prompt of token IDs."""
    none = np.zeros(tokens, dtype=np.int32)
    question = np.zeros(tokens, dtype=np.bool_)
    question[-_UNKNOWN_QUESTION_TOKENS:] = True
    return Layout(np.zeros(tokens, dtype=np.bool_), question, none - 1, none, none, goes_on)


def layout(prompt: Prompt, offsets: Sequence[tuple[int, int]] | Array | None) -> Layout:
    """`offsets` are the tokens' character ranges in `prompt.text`; None if unknown."""
    goes_on = continues(prompt.asked)
    if offsets is None or not len(offsets):
        return replace(unknown_layout(len(prompt.ids), goes_on=goes_on), asked=_question_of(prompt))
    starts, ends = np.asarray(offsets, dtype=np.int64).reshape(-1, 2).T
    protected = np.ones(len(starts), dtype=np.bool_)
    source = np.full(len(starts), -1, dtype=np.int32)
    first, last = (np.zeros(len(starts), dtype=np.int32) for _ in range(2))
    question = np.zeros(len(starts), dtype=np.bool_)
    if prompt.regions:
        figures = [(each.start, each.end, each.source, each.first_char) for each in prompt.regions]
        begins, ends_at, ordinals, first_chars = np.array(figures, dtype=np.int64).T
        kinds = np.array([region.kind for region in prompt.regions])
        # A token belongs to the region that contains its last character.
        owner = np.searchsorted(begins, ends, side="left") - 1
        inside = (owner >= 0) & (ends <= ends_at[owner])
        protected = ~inside | (kinds[owner] == "system")
        document = inside & (kinds[owner] == "document")
        shift = (first_chars - begins)[owner]
        source[document] = ordinals[owner][document]
        first[document] = (np.maximum(starts, begins[owner]) + shift)[document]
        last[document] = (ends + shift)[document]
        asked = np.flatnonzero(kinds == "user")
        if len(asked):
            question = _ends_of(inside & (owner == asked[-1]))
    texts = tuple(_texts(prompt, np.maximum.accumulate(ends)))
    return Layout(protected, question, source, first, last, goes_on, texts, _question_of(prompt))


def _texts(prompt: Prompt, ends: Array) -> Iterator[Text]:
    """The texts of a rendered prompt; `ends`: where its tokens' characters end.

    A document that the template wrote in several pieces, as it escapes characters, is one text.
    """
    regions = [region for region in prompt.regions if region.kind != "system"]
    for _, group in groupby(regions, lambda region: (region.kind, region.source)):
        # Each message is a text; its pieces are contiguous except for the template's marks.
        parts = list(group)
        for some in [parts] if parts[0].kind == "document" else [[part] for part in parts]:
            yield _text(prompt, some, ends)


def _text(prompt: Prompt, parts: Sequence[Region], ends: Array) -> Text:
    text = "".join(prompt.text[part.start : part.end] for part in parts)
    passages = cut(text)
    begins = np.cumsum([0, *(part.end - part.start for part in parts)])
    part = np.searchsorted(begins, passages[:, 0], side="right") - 1
    places = passages[:, 0] - begins[part] + np.array([each.start for each in parts])[part]
    firsts = np.searchsorted(ends, places, side="right").astype(np.int32)
    end = int(np.searchsorted(ends, parts[-1].end, side="left")) + 1
    start = int(firsts[0])
    return Text(text, start, min(end, len(ends)), passages, firsts)


def _question_of(prompt: Prompt) -> str:
    """The last user message without pasted text.

    For a long message its first and last lines, if short: people ask before or after a pasted text.
    """
    region = prompt.asking
    words = prompt.text[region.start : region.end].strip() if region else ""
    if len(words) <= _ASKED_CHARACTERS:
        return words
    lines = [line for line in (words[: words.find("\n")], words[words.rfind("\n") + 1 :]) if "\n" in words]
    short = [line.strip() for line in lines if len(line) <= _ASKED_CHARACTERS]
    asking = [line for line in short if line.endswith(("?", "？", ":", "："))] or short
    return "\n".join(asking) or f"{words[:_ASKED_CHARACTERS]}\n{words[-_ASKED_CHARACTERS:]}"


def _ends_of(inside: Array) -> Array:
    at = np.flatnonzero(inside)
    if len(at) > _QUESTION_TOKENS:
        at = np.concatenate([at[:_QUESTION_HEAD_TOKENS], at[_QUESTION_HEAD_TOKENS - _QUESTION_TOKENS :]])
    question = np.zeros(len(inside), dtype=np.bool_)
    question[at] = True
    return question


# ---- requests to continue a text
#
# They mention things in the text, so that some passage scores high, but they need the end of the text. A
# false positive costs a part of the passages.

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
    r"weiter | mach\w*\s+(?:sie\s+)?weiter | fahr(?:e|en\s+sie)?\s+fort | setze?n?\s+[^.!?]{0,80}\bfort",
    r"(?:schreib|erzähl)(?:e|en\s+sie)?\s+[^.!?]{0,80}weiter",
    r"weiter(?:schreiben|erzählen|machen) | fort(?:fahren|setzen)",
    r"ga(?:at\s+u)?\s+(?:verder|door) | (?:schrijf|vertel)\s+[^.!?]{0,80}verder | vervolg",
    # French, Spanish, Portuguese, Italian
    r"continue[rz]? | poursui[stv]\w* | contin[uú][aeá]\w* | continui | (?:pro)?sig(?:ue|a)",
    r"pross[ei]g\w+ | prosegu[aei]\w*",
    # Russian
    r"продолж\w+ | пиши\s+дальше",
)
# Anywhere in a request: the next part.
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


def continues(request: str) -> bool:
    """Whether `request` is for the continuation of a text; checks only the two ends of a long one."""
    words = request.strip()
    if len(words) > 2 * _END_CHARACTERS:
        words = f"{words[:_END_CHARACTERS]}\n{words[-_END_CHARACTERS:]}"
    return _CONTINUE.search(words) is not None
