"""Entry: a message or an answer as the transcript remembers it, whether it is on the screen or not.

A long conversation has far more text than a window shows, and a widget costs a hundred times
what its text does. An entry is the text; its widget is made when it comes near the screen and
dropped when it is far. `height_px` is what the widget measured, for as long as the column keeps
its width; until then
`guess_px`, made by `estimate_px`, stands in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from app.chat.answer_text import AnswerText
from app.richtext.markdown.piece import Piece
from core.events import Finished, Message, Passage, PrefillProgress, ReadingMap, Token

# Averages of English text in the design's faces, and what stands around the text.
_CHARACTER_PX = 7.1
_LINE_PX = 25
_PARAGRAPH_GAP_PX = 11
_FOOTER_PX = 62
_BUBBLE_CHARACTER_PX = 6.9
_BUBBLE_LINE_PX = 21
_BUBBLE_PAD_PX = 18
_BUBBLE_ROOM_PX = 532
_CHIP_PX = 54
# Of the source that is read at a time while an answer is got ready in small parts.
_TOKENS_AT_ONCE = 120


@dataclass(eq=False)
class QuestionEntry:
    """What the person wrote."""

    turn_id: str
    message: Message
    height_px: int | None = None
    guess_px: int | None = None
    passages: dict[int, tuple[Passage, ...]] = field(default_factory=dict)  # read of each attachment

    @property
    def source(self) -> str:
        """The text, to be searched and copied."""
        return self.message.content

    def estimate_px(self, column_px: int, zoom: float = 1.0) -> int:
        """About how high it will be in a column so wide, with texts so much larger."""
        chips = len(self.message.attachments) * _CHIP_PX
        if not self.message.content:
            return max(0, round(zoom * (chips - 6)))
        room = min(_BUBBLE_ROOM_PX * zoom, column_px - 68)
        lines = _lines(self.message.content, room / (_BUBBLE_CHARACTER_PX * zoom))
        return round(zoom * (chips + lines * _BUBBLE_LINE_PX + _BUBBLE_PAD_PX))


@dataclass(eq=False)
class Reply:
    """An answer. `text` is read from `tokens` by `read`, when somebody needs it."""

    turn_id: str
    drafter: str = ""
    tokens: list[Token] = field(default_factory=list)
    progress: PrefillProgress | None = None
    finished: Finished | None = None
    note: str = ""
    over: bool = False
    reading: ReadingMap | None = None  # while it is read
    labels: tuple[tuple[float, str], ...] = ()  # along the map: place from 0 to 1, words
    documents: dict[int, tuple[str, str]] = field(default_factory=dict)  # name and text of each attachment
    imported: bool = False  # words from elsewhere, without figures
    place: int = 0  # of this version among all that there are of the answer
    versions: int = 1
    height_px: int | None = None
    guess_px: int | None = None
    unfolded: set[int] = field(default_factory=set)  # source offsets of the thoughts that are open
    text: AnswerText = field(default_factory=AnswerText)

    @property
    def source(self) -> str:
        """The answer as the model wrote it."""
        if len(self.text.table) == len(self.tokens):
            return self.text.table.text
        return "".join(token.text for token in self.tokens)

    @property
    def is_read(self) -> bool:
        """Whether `text` is all of it."""
        return len(self.text.table) == len(self.tokens) and self.text.finished == self.over

    def read_some(self) -> bool:
        """Read one more part of the tokens; whether `text` is all of it now."""
        done = len(self.text.table)
        if not done and self.finished is not None:
            self.text.use_format(self.finished.effective.format)
        if done < len(self.tokens):
            self.text.append(self.tokens[done : done + _TOKENS_AT_ONCE])
        elif self.over and not self.text.finished:
            self.text.finish()
        return self.is_read

    def read(self) -> AnswerText:
        """All of it."""
        while not self.is_read:
            self.read_some()
        return self.text

    def folds(self, piece: Piece) -> bool:
        """Whether `piece` is of a thought that is not open."""
        return piece.thought >= 0 and piece.kind != "thought" and piece.thought not in self.unfolded

    def estimate_px(self, column_px: int, zoom: float = 1.0) -> int:
        """About how high it will be in a column so wide, with texts so much larger."""
        source = self.source
        paragraphs = source.count("\n\n")
        lines = _lines(source, column_px / (_CHARACTER_PX * zoom))
        text = round(zoom * (lines * _LINE_PX + paragraphs * _PARAGRAPH_GAP_PX))
        return text + (round(zoom * _FOOTER_PX) if self.tokens or self.over else 0)


Entry = QuestionEntry | Reply


def _lines(text: str, characters: float) -> int:
    """How many lines `text` takes if so many characters fit in one; empty lines take none."""
    lengths: Sequence[int] = [len(line) for line in text.split("\n") if line]
    return max(1, sum(math.ceil(length / max(8.0, characters)) for length in lengths))
