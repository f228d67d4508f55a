"""Fit: whether what is written fits the model's context, and what can be done if it does not.

Pure. Counts are the worker's, of the plain texts; the chat template adds a few tokens to them,
so the worker's own refusal is the last word and this is the early one. Passages that sparse
reading skips still take their positions, so they count like all others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from msgspec import Struct
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QAccessible, QAccessibleEvent, QPaintEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.shapes import draw_box
from app.controls.text_label import TextLabel
from app.theme.icons import icon_pixmap
from app.theme.measures import set_margins, set_spacing
from app.theme.theme import Theme
from app.theme.zoom import area_of, painter_on, ratio_of
from core.settings.prefill import TAIL_TOKENS, Prefill

# What is cut to fit leaves this much for the template, the answer, and some questions more: an
# eighth of the context, and on a tiny one the beginning of an answer at least.
_SPARE_PART = 8
_LEAST_SPARE_TOKENS = 256
# A beginning that is shorter than this says too little to be worth sending.
_WORTH_TOKENS = 128

Action = Literal["remove", "shorten", "new_chat"]


class Remedy(Struct, frozen=True):
    """One way out. `attachment` is the chip's number, `tokens` how many it has or will have."""

    action: Action
    attachment: int = -1
    tokens: int = 0


class Written(Struct, frozen=True):
    """What would be sent. None stands for what is not counted yet, and counts as nothing."""

    used_tokens: int
    typed_tokens: int | None
    attachment_tokens: tuple[int | None, ...]
    limit_tokens: int

    @property
    def new_tokens(self) -> int:
        """What the message adds, as far as it is counted."""
        return (self.typed_tokens or 0) + sum(tokens or 0 for tokens in self.attachment_tokens)

    @property
    def over_tokens(self) -> int:
        """How many tokens too many; 0 if it fits or the limit is not known."""
        if not self.limit_tokens or not self.new_tokens:
            return 0
        # The engine needs one place for the first token of the answer.
        return max(0, self.used_tokens + self.new_tokens - (self.limit_tokens - 1))


def remedies(written: Written, refused_by_tokens: int = 0) -> tuple[Remedy, ...]:
    """What would help, what helps most surely first. Empty if it fits.

    `refused_by_tokens` is what the worker found to be too much, which counts more than our sum.
    """
    over = refused_by_tokens or written.over_tokens
    if not over:
        return ()
    ways = []
    if written.used_tokens:
        ways.append(Remedy("new_chat"))
    largest = _largest(written.attachment_tokens)
    if largest is not None:
        index, tokens = largest
        kept = tokens - over - spare_tokens(written.limit_tokens)
        if kept >= _WORTH_TOKENS:
            ways.append(Remedy("shorten", index, kept))
        ways.append(Remedy("remove", index, tokens))
    return tuple(ways)


def spare_tokens(limit_tokens: int) -> int:
    """What is left free when something is cut to fit."""
    return max(_LEAST_SPARE_TOKENS, limit_tokens // _SPARE_PART)


def will_skip(new_tokens: int, dense_s: float | None, prefill: Prefill) -> int:
    """About how many of the new tokens will be skipped when they are read.

    `dense_s`: how long reading all of them would take; None if that is not known. Not known here: that a
    question may need every word, or finds nothing, and what is kept of it for its place.
    """
    skips = prefill.mode == "on" or (prefill.mode == "auto" and not prefill.is_quick(new_tokens, dense_s))
    return max(0, round(new_tokens * (1 - prefill.keep_pct / 100)) - TAIL_TOKENS) if skips else 0


def beginning(text: str, tokens: int, kept_tokens: int) -> str:
    """About the first `kept_tokens` of the `tokens` in `text`, ending with a whole line or word."""
    cut = text[: len(text) * kept_tokens // max(1, tokens)]
    for end in ("\n", " "):
        place = cut.rfind(end)
        if place > 0.8 * len(cut):
            return cut[:place].rstrip()
    return cut


def _largest(counts: Sequence[int | None]) -> tuple[int, int] | None:
    known = [(index, tokens) for index, tokens in enumerate(counts) if tokens]
    return max(known, key=lambda entry: entry[1]) if known else None


Way = tuple[str, Callable[[], object]]


class ComposerNotice(QWidget):
    """Hidden while there is nothing to say."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._labels: tuple[str, ...] = ()
        self._ways: list[Way] = []
        self._text = TextLabel(theme, "", 12, 17, "text", tabular=True, parent=self)
        self._buttons: list[Button] = []
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        set_spacing(self._row, 6)
        column = QVBoxLayout(self)
        set_margins(column, 34, 9, 12, 9)
        set_spacing(column, 7)
        column.addWidget(self._text)
        column.addLayout(self._row)
        self._row.addStretch(1)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVisible(False)
        theme.changed.connect(self.update)

    @property
    def text(self) -> str:
        """What it says; empty while hidden."""
        return self._text.text()

    @property
    def buttons(self) -> tuple[Button, ...]:
        """The ways out, from left to right."""
        return tuple(self._buttons)

    def show_notice(self, text: str, ways: Sequence[Way]) -> None:
        """Say `text`, with a button for each way: its label and what it does. Empty hides it.

        Buttons whose labels stay are kept, so that none goes away under a finger.
        """
        news = text != self.text
        self._text.setText(text)
        self._ways = list(ways)
        if tuple(label for label, _ in ways) != self._labels:
            self._rebuild()
        self.setVisible(bool(text))
        self.setAccessibleName(text)
        if text and news:
            QAccessible.updateAccessibility(QAccessibleEvent(self, QAccessible.Event.Alert))

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        draw_box(painter, area_of(self), 8, color("danger_tint"), color("danger_border"))
        icon = icon_pixmap("warn", color("danger"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(11, 10.5), icon)

    def _rebuild(self) -> None:
        for button in self._buttons:
            self._row.removeWidget(button)
            button.hide()
            button.deleteLater()
        self._labels = tuple(label for label, _ in self._ways)
        self._buttons = [Button(self._theme, label, "plain", True, self) for label in self._labels]
        for place, button in enumerate(self._buttons):
            self._row.insertWidget(place, button, 0, Qt.AlignmentFlag.AlignLeft)
            button.clicked.connect(lambda checked=False, place=place: self._ways[place][1]())
            button.show()
