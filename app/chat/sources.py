"""Sources: the sentences that support an answer, as numbers below it.

The worker names passages. Of a passage's sentences, the one that shares most words with the answer is chosen;
rare words count more.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from html import escape

from msgspec import Struct
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QSizePolicy, QWidget

from app.chat import strings
from app.controls.buttons import Button
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.theme.zoom import px
from core.events import Passage, ReadingMap

# A sentence ends at a full stop before a space, or at the end of a paragraph, list item or table row; not at
# the end of a wrapped line.
_SENTENCE = re.compile(
    r"\S(?:(?![.!?][\"”’')\]]*\s|\n\s*(?:\n|[-*#|>•]|\d+[.)]\s)).)*(?:[.!?]+[\"”’')\]]*)?", re.S
)
_WORD = re.compile(r"\w+")
_MOST_CHARACTERS = 600


class Source(Struct, frozen=True):
    """A sentence of attachment `source`: its characters `first` to `last` (end-exclusive) and its text."""

    source: int
    first: int
    last: int
    name: str
    words: str


def sources_of(
    passages: Sequence[Passage],
    answer: str,
    documents: Mapping[int, tuple[str, str]],
    reading: ReadingMap | None = None,
) -> tuple[Source, ...]:
    """The sources of an answer. `documents`: name and text by source number.

    Sentences that were skipped according to `reading`, the answer's own map, are left out.
    """
    answered = {word.casefold() for word in _WORD.findall(answer)}
    found: list[Source] = []
    for passage in passages:
        if passage.source not in documents:
            continue
        name, text = documents[passage.source]
        sentence = _supporting(text, passage, answered)
        if sentence is None or _was_skipped(reading, passage.source, *sentence):
            continue
        first, last = sentence
        if not any(
            each.source == passage.source and each.first < last and first < each.last for each in found
        ):
            found.append(Source(passage.source, first, last, name, " ".join(text[first:last].split())))
    return tuple(found)


def _supporting(text: str, passage: Passage, answered: set[str]) -> tuple[int, int] | None:
    """The sentence of `passage` that shares most with the words `answered`; None if there is none."""
    before = text.rfind("\n\n", 0, passage.first_char) + 1
    begin = max(before, passage.first_char - _MOST_CHARACTERS)
    area = text[begin : passage.last_char + _MOST_CHARACTERS]
    rarity = Counter(word.casefold() for word in _WORD.findall(area))
    best: tuple[float, int, int] | None = None
    for match in _SENTENCE.finditer(area):
        first, last = begin + match.start(), begin + match.end()
        if last <= passage.first_char:
            continue
        if first >= passage.last_char:
            break
        shared = {word.casefold() for word in _WORD.findall(match.group())} & answered
        score = sum(1 / rarity[word] for word in shared)
        if score > 0 and (best is None or score > best[0]):
            best = (score, first, last)
    return None if best is None else best[1:]


def _was_skipped(reading: ReadingMap | None, source: int, first: int, last: int) -> bool:
    if reading is None:
        return False
    over = [p for p in reading.passages if p.source == source and p.first_char < last and first < p.last_char]
    return bool(over) and not any(passage.kept for passage in over)


_TIP_CHARACTERS = 400
_HEIGHT_PX = 24
_GAP_PX = 2


def _describe(button: QAbstractButton, number: int, source: Source) -> None:
    """Set tooltip and accessible texts of the button that opens `source`."""
    words = source.words if len(source.words) <= _TIP_CHARACTERS else source.words[:_TIP_CHARACTERS] + "…"
    # As rich text, long words are broken into lines of a readable length.
    name, shown = in_own_direction(source.name), in_own_direction(words)
    button.setToolTip(f"<p><b>{escape(name)}</b><br>{escape(shown)}</p>")
    button.setAccessibleName(strings.OPEN_SOURCE.format(number=number))
    button.setAccessibleDescription(f"{source.name}: {words}")


class SourcesRow(QWidget):
    """A numbered button for each source: the tooltip shows its sentence, a click passes it to `open_source`.

    Hidden without sources. Buttons that do not fit the width are below the others.
    """

    def __init__(self, open_source: Callable[[Source], object], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._open = open_source
        self._title = TextLabel(strings.SOURCES, 11, 16, "text2", parent=self)
        self._sources: tuple[Source, ...] = ()
        self.buttons: list[Button] = []
        policy = QSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.hide()

    def show_sources(self, sources: tuple[Source, ...]) -> None:
        """Show the sources, numbered from 1 on, in place of earlier ones."""
        self._sources = sources
        for button in self.buttons[len(sources) :]:
            button.hide()
            button.deleteLater()
        del self.buttons[len(sources) :]
        # Buttons are kept, because one of them may have the focus.
        for at in range(len(self.buttons), len(sources)):
            button = Button(f"{at + 1}", "link", True, self)
            button.clicked.connect(lambda _, at=at: self._open(self._sources[at]))
            self.buttons.append(button)
            button.show()
        for number, (button, source) in enumerate(zip(self.buttons, sources), start=1):
            _describe(button, number, source)
        self.setVisible(bool(sources))

    def heightForWidth(self, width: int) -> int:
        """The height in screen pixels for a row of that width."""
        first = left = self._title.sizeHint().width() + px(_GAP_PX)
        self._title.setGeometry(0, px(4), left, px(16))
        top = 0
        for button in self.buttons:
            size = button.sizeHint()
            if left > first and left + size.width() > width:
                left, top = first, top + px(_HEIGHT_PX)
            button.setGeometry(left, top + (px(_HEIGHT_PX) - size.height()) // 2, size.width(), size.height())
            left += size.width() + px(_GAP_PX)
        return top + px(_HEIGHT_PX)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self.heightForWidth(self.width())
