"""Entries: the messages and answers of a conversation, each with or without a widget.

A widget costs a hundred times as much as its text, so the transcript makes widgets only for the entries near
the viewport. `height_px` is the measured height for the current column width and zoom; `estimated_px` is used
until a widget was measured.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from app.chat.answer_text import AnswerText
from app.chat.reading_map import labels
from app.chat.reading_state import ReadingState, now_s
from app.richtext.canvas_menu import to_clipboard
from app.richtext.markdown.piece import Piece
from app.session.chats.conversation import Turn
from app.session.origins import AnswerOrigins, with_sources
from app.session.tools.views import CallView
from core.events import Attachment, Finished, Image, Message, Passage, PrefillProgress, ReadingMap, Token

# Average measures of English text in the design's fonts.
_CHARACTER_PX = 7.1
_LINE_PX = 25
_PARAGRAPH_GAP_PX = 11
_FOOTER_PX = 62
_BUBBLE_CHARACTER_PX = 6.9
_BUBBLE_LINE_PX = 21
_BUBBLE_PAD_PX = 18
_BUBBLE_TEXT_PX = 532
_CHIP_PX = 54
_MORE_PX = 30
# One image of a message fits into this box; several are squares.
_IMAGE_PX = (280, 210)
_LEAST_IMAGE_PX = 48
_TILE_PX = 112
_IMAGE_GAP_PX = 6
_IMAGES_PX = 560  # the widest row
# Characters and lines of a long message, folded and unfolded. It takes 10 µs a character and 0.3 ms a line.
_FOLDED = (4_000, 80)
_UNFOLDED = (12_000, 300)
_WORD = 40  # a longer word is cut
# Parsed in one step, so that a step takes a few milliseconds.
_TOKENS_A_STEP = 120


def image_boxes(images: Sequence[Image], column_px: float) -> list[tuple[float, float, float, float]]:
    """Left, top, width and height of each image of a message, in a column of that width, at its right side.

    Any unit of length: the design's, if `column_px` is in that.
    """
    if len(images) == 1:
        width, height = max(1, images[0].width), max(1, images[0].height)
        scale = min(_IMAGE_PX[0] / width, _IMAGE_PX[1] / height, column_px / width, 1.0)
        wide, high = max(_LEAST_IMAGE_PX, width * scale), max(_LEAST_IMAGE_PX, height * scale)
        return [(column_px - wide, 0.0, wide, high)]
    step = _TILE_PX + _IMAGE_GAP_PX
    across = max(1, int((min(column_px, _IMAGES_PX) + _IMAGE_GAP_PX) // step))
    found = []
    for number in range(len(images)):
        line, place = divmod(number, across)
        in_line = min(across, len(images) - line * across)
        left = column_px - in_line * step + _IMAGE_GAP_PX + place * step
        found.append((left, float(line * step), float(_TILE_PX), float(_TILE_PX)))
    return found


def images_height(images: Sequence[Image], column_px: float) -> float:
    """The height of `image_boxes`, with the gap below; 0 without images."""
    return max(
        (top + high + _IMAGE_GAP_PX for _, top, _, high in image_boxes(images, column_px)), default=0.0
    )


@dataclass(eq=False)
class QuestionEntry:
    """A message of the person."""

    turn_id: str
    message: Message
    height_px: int | None = None
    estimated_px: int | None = None
    passages: dict[int, tuple[Passage, ...]] = field(default_factory=dict)  # by attachment index
    unfolded: bool = False  # more of a long message is shown

    @property
    def source(self) -> str:
        """The text for searching and copying."""
        return self.message.content

    @property
    def is_long(self) -> bool:
        """Whether only the beginning of the message is shown at first."""
        return len(self.shown_text) < len(self.message.content)

    @property
    def shown_text(self) -> str:
        """The part of the message that is shown: a bubble is laid out at once."""
        most = _UNFOLDED if self.unfolded else _FOLDED
        content = self.message.content
        beginning = content[: most[0]]
        if len(beginning) < len(content):
            space = beginning.rfind(" ", most[0] - _WORD)
            beginning = beginning[:space] if space > 0 else beginning
        return "\n".join(beginning.split("\n")[: most[1]])

    def estimate_height_px(self, column_px: int, zoom: float = 1.0) -> int:
        """The estimated height in screen pixels in a column of `column_px` at that zoom."""
        images_px = images_height(self.message.images, column_px / zoom)
        chips = len(self.message.attachments) * _CHIP_PX + images_px
        if not self.message.content:
            return max(0, round(zoom * (chips - 6)))
        available = min(_BUBBLE_TEXT_PX * zoom, column_px - 68)
        lines = _lines(self.shown_text, available / (_BUBBLE_CHARACTER_PX * zoom))
        more = _MORE_PX if self.is_long or self.unfolded else 0
        return round(zoom * (chips + lines * _BUBBLE_LINE_PX + _BUBBLE_PAD_PX + more))


@dataclass(eq=False)
class AnswerEntry:
    """An answer. Tokens are moved from `unparsed` into `text`, which parses them, in steps when needed.

    While the answer is running, its entry gets all events, also while another chat is shown. `waits_for` says
    in words what it waits for, since `waits_since_s`; empty while it is generated.
    """

    turn_id: str
    drafter: str = ""
    unparsed: tuple[Token, ...] = ()
    finished: Finished | None = None
    note: str = ""
    over: bool = False
    reading: ReadingMap | None = None
    reading_state: ReadingState = field(default_factory=ReadingState)  # of the card
    waits_for: str = ""
    waits_since_s: float = field(default_factory=now_s)
    documents: dict[int, tuple[str, str]] = field(default_factory=dict)  # name and text by source number
    imported: bool = False  # from a file, without figures
    says_imported: bool = False  # the first such answer of its chat
    edited: bool = False  # a person wrote a part of it
    has_figures: bool = True  # False: edited and not continued since
    version_index: int = 0
    versions: int = 1
    height_px: int | None = None
    estimated_px: int | None = None
    calls: tuple[CallView, ...] = ()  # those that it made, once they are known
    origins: AnswerOrigins = field(default_factory=AnswerOrigins)
    unfolded: set[int] = field(default_factory=set)  # source offsets of the unfolded thoughts
    text: AnswerText = field(default_factory=AnswerText)

    @property
    def source(self) -> str:
        """The answer's Markdown source, with thoughts."""
        return self.text.table.text + "".join(token.text for token in self.unparsed)

    @property
    def has_tokens(self) -> bool:
        return bool(self.unparsed or len(self.text.table))

    @property
    def is_parsed(self) -> bool:
        """Whether `text` holds all tokens."""
        return not self.unparsed and self.text.finished == self.over

    def show_progress(self, progress: PrefillProgress) -> None:
        self.reading_state.show_progress(progress, now_s())

    def show_map(self, reading: ReadingMap, texts: Mapping[int, tuple[str, str]]) -> None:
        """Take the map. `texts`: name and text of each attachment by source number."""
        self.reading = reading
        self.reading_state.show_map(reading, labels(reading, texts), now_s())

    @property
    def documents_of_calls(self) -> tuple[Attachment, ...]:
        """The results that are documents, numbered after those of the question."""
        return tuple(document for call in self.text.calls if (document := call.document))

    @property
    def waiting_calls(self) -> tuple[CallView, ...]:
        """The calls that wait for permission."""
        return tuple(view for view in self.calls if view.record.state == "waiting")

    def show_waiting(self, waits_for: str) -> None:
        if waits_for and not self.waits_for:
            self.waits_since_s = now_s()
        self.waits_for = waits_for

    def append(self, tokens: Sequence[Token]) -> None:
        self.unparsed = (*self.unparsed, *tokens)

    def parse_step(self) -> bool:
        """Parse the next tokens. Returns True once `text` holds all of them."""
        if not len(self.text.table) and self.finished is not None:
            self.text.use_format(self.finished.effective.format)
        if self.unparsed:
            with self.parsing():
                self.text.append(self.unparsed[:_TOKENS_A_STEP])
        elif self.over and not self.text.finished:
            self.text.finish(self.finished.repeats_from if self.finished else None)
        return self.is_parsed

    @contextmanager
    def parsing(self) -> Iterator[None]:
        """Removes the tokens that are added to `text` inside from `unparsed`, also after an error."""
        before = len(self.text.table)
        try:
            yield
        finally:
            self.unparsed = self.unparsed[len(self.text.table) - before :]

    def parse(self) -> AnswerText:
        """Parse all tokens and return `text`."""
        while not self.is_parsed:
            self.parse_step()
        return self.text

    def copy(self) -> None:
        """Copy the answer without its thoughts: its source as text, and its words as HTML."""
        text = self.parse()
        to_clipboard(text.answer_source, text.answer_pieces)

    def copy_with_sources(self) -> None:
        """Copy the answer's source without thoughts, with footnotes that name the places of copied words."""
        text = self.parse()
        to_clipboard(with_sources(text.table.text, text.answer_ranges, self.origins))

    def folds(self, piece: Piece) -> bool:
        """Whether `piece` belongs to a folded thought."""
        return piece.thought >= 0 and piece.kind != "thought" and piece.thought not in self.unfolded

    def estimate_height_px(self, column_px: int, zoom: float = 1.0) -> int:
        """The estimated height in screen pixels in a column of `column_px` at that zoom."""
        source = self.source
        paragraphs = source.count("\n\n")
        lines = _lines(source, column_px / (_CHARACTER_PX * zoom))
        text = round(zoom * (lines * _LINE_PX + paragraphs * _PARAGRAPH_GAP_PX))
        return text + (round(zoom * _FOOTER_PX) if self.has_tokens or self.over else 0)


Entry = QuestionEntry | AnswerEntry


def answer_entry(turn: Turn, drafter: str = "") -> AnswerEntry:
    """The entry of a stored answer. `drafter` names that of an answer without one."""
    answer = turn.answer
    entry = AnswerEntry(turn.id, answer.drafter or drafter, answer.tokens, answer.finished, answer.note)
    entry.over, entry.imported = answer.over, answer.status == "imported"
    entry.edited, entry.has_figures = answer.is_edited, answer.status != "edited"
    entry.reading = answer.reading
    entry.reading_state.images = len(turn.user.images)
    entry.text = AnswerText(answer.tools, answer.calls)
    entry.version_index, entry.versions = turn.place, len(turn.versions)
    return entry


def _lines(text: str, characters: float) -> int:
    """The number of lines if `characters` fit in one. Empty lines are not counted."""
    lengths: Sequence[int] = [len(line) for line in text.split("\n") if line]
    return max(1, sum(math.ceil(length / max(8.0, characters)) for length in lengths))
