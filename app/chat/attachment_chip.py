"""Chips of the composer: an attached document, or a file that is being read.

A document's chip opens it in the Document tab on a click, Space or Return, and removes it on Delete. A bar
shows the progress of embedding the document, or of reading the file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QContextMenuEvent, QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QGridLayout, QMenu, QProgressBar, QWidget

from app.chat import strings
from app.controls.buttons import Button, IconButton, IconLabel
from app.controls.keys import DragStart, held
from app.controls.shapes import in_own_direction
from app.controls.text_label import TextLabel
from app.richtext.canvas_menu import pop_up
from app.theme.measures import (
    set_fixed_height,
    set_fixed_size,
    set_grid_spacing,
    set_margins,
    set_maximum_width,
)
from app.theme.sheet import set_ground
from app.theme.zoom import px
from core.documents import strings as document_strings
from core.documents.text import Guess
from core.events import Attachment

_CHARACTERS_PER_TOKEN = 4.0
# From this letter on: scripts without spaces, which take about a token a letter.
_DENSE_FROM = "\u2e80"
# Sampled from the beginning, middle and end of a longer text.
_SAMPLE_CHARACTERS = 8_000


def estimated_tokens(text: str) -> int:
    """The estimated tokens of `text`; within a third for prose in Latin or Chinese script."""
    sample = text
    if len(text) > 3 * _SAMPLE_CHARACTERS:
        middle = len(text) // 2
        sample = (
            text[:_SAMPLE_CHARACTERS]
            + text[middle : middle + _SAMPLE_CHARACTERS]
            + text[-_SAMPLE_CHARACTERS:]
        )
    dense = 0 if sample.isascii() else sum(1 for letter in sample if letter >= _DENSE_FROM)
    tokens = dense + (len(sample) - dense) / _CHARACTERS_PER_TOKEN
    return round(tokens * len(text) / len(sample)) if sample else 0


def size_words(attachment: Attachment) -> str:
    """“3,201 tokens”, or “~3,200 tokens” if they are estimated."""
    if attachment.tokens:
        return strings.tokens(attachment.tokens)
    estimate = estimated_tokens(attachment.text)
    digits = max(0, len(str(estimate)) - 2)
    return strings.about(strings.tokens(round(estimate, -digits)))


def note_words(attachment: Attachment) -> str:
    """The size, and in short what the text does not have of the file."""
    return strings.without(size_words(attachment), document_strings.left_out(attachment.left_out))


def full_words(attachment: Attachment, size: str) -> str:
    """For a tooltip and screen readers: `size`, and all that the text does not have of the file."""
    return "\n".join(filter(None, (size, document_strings.left_out_in_full(attachment.left_out))))


_HEIGHT_PX = 43
_TILE = QSize(24, 28)
_REMOVE_PX = 18
_MAX_TEXT_PX = 260
_BAR_PX = 3
_MARGINS_PX = (7, 0, 6, 0)


class Chip(Button):
    """A document's icon and name, a note below it, a progress bar, and `end` at the right.

    `icon` replaces the document's icon.
    """

    def __init__(
        self,
        name: str,
        end: QWidget,
        height_px: int,
        parent: QWidget | None = None,
        icon: QWidget | None = None,
    ) -> None:
        super().__init__("", "card", parent=parent)
        self.name = name
        self.setAccessibleName(name)
        icon = icon or _document_icon()
        # The end of a name shows its file type, unless it was cut already.
        elide = Qt.TextElideMode.ElideRight if name.endswith("…") else Qt.TextElideMode.ElideMiddle
        self.labels = (
            TextLabel(name, 12.5, 16, "text", weight=500, elide=elide),
            TextLabel("", 11, 15, tabular=True, elide=elide),
        )
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        set_fixed_height(self._bar, _BAR_PX)
        kept = self._bar.sizePolicy()
        kept.setRetainSizeWhenHidden(True)
        self._bar.setSizePolicy(kept)
        self._bar.hide()
        for part in (icon, *self.labels, self._bar):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        # Not nested layouts: they would keep an old size until the event loop runs.
        self._parts = QGridLayout(self)
        set_margins(self._parts, *_MARGINS_PX)
        set_grid_spacing(self._parts, 8, 0)
        self._parts.addWidget(icon, 0, 0, 5, 1)
        lines: tuple[QWidget, ...] = (*self.labels, self._bar)
        for row, line in enumerate(lines, start=1):
            self._parts.addWidget(line, row, 1)
        self._parts.addWidget(end, 0, 2, 5, 1)
        self._parts.setColumnStretch(1, 1)
        for row in (0, 4):
            self._parts.setRowStretch(row, 1)
        self._height_px = height_px

    @property
    def note(self) -> str:
        """The line below the name."""
        return self.labels[1].text()

    def set_note(self, note: str, fraction: float | None = None) -> None:
        """Sets the second line and the bar's fraction; None: no bar."""
        self.labels[1].setText(note)
        self._bar.setVisible(fraction is not None)
        self._bar.setValue(round(100 * (fraction or 0.0)))
        self.setAccessibleDescription(note)
        self.setToolTip(in_own_direction(f"{self.name}\n{note}"))

    def sizeHint(self) -> QSize:
        return QSize(self._parts.sizeHint().width(), px(self._height_px))

    def minimumSizeHint(self) -> QSize:
        return QSize(self._parts.minimumSize().width(), px(self._height_px))


def _document_icon() -> QWidget:
    icon = IconLabel("doc", "text2")
    set_fixed_size(icon, _TILE)
    set_ground(icon, "fill2")
    icon.setAlignment(Qt.AlignmentFlag.AlignCenter)
    return icon


class RemovableChip(Chip):
    """A chip of the composer. `remove` is called by its button, Delete and Backspace.

    If `move` is set, it is dragged to another place in its row, and moved by Alt with the arrow keys; it gets
    the number of places.
    """

    def __init__(
        self,
        name: str,
        remove_name: Callable[[str], str],
        remove: Callable[[RemovableChip], object],
        parent: QWidget | None = None,
        icon: QWidget | None = None,
    ) -> None:
        """`remove_name` makes the accessible name of the button from the file's name."""
        self.remove_button = IconButton("x", remove_name(name), size=QSize(_REMOVE_PX, _REMOVE_PX))
        super().__init__(name, self.remove_button, _HEIGHT_PX, parent, icon)
        self.move_by: Callable[[int], object] | None = None
        self._drag = DragStart()
        self._dragged = False
        for label in self.labels:
            set_maximum_width(label, _MAX_TEXT_PX)
        self._on_remove = remove
        self.remove_button.setToolTip(remove_name(in_own_direction(name)))
        self.remove_button.clicked.connect(lambda: remove(self))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        arrows = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self._on_remove(self)
        elif self.move_by and event.key() in arrows and held(event) == Qt.KeyboardModifier.AltModifier:
            self.move_by(arrows[Qt.Key(event.key())])
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag.press(event)
        self._dragged = False
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.move_by and (self._dragged or self._drag.begins(event)):
            self._dragged = True
            self.setDown(False)  # so that it is not clicked at the end
            point = event.position()
            if point.x() < -_DRAG_OVER * self.width():
                self.move_by(-1)
            elif point.x() > (1 + _DRAG_OVER) * self.width():
                self.move_by(1)
        else:
            super().mouseMoveEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._drag.release()
        self._dragged = False
        super().mouseReleaseEvent(event)

    def add_moves(self, menu: QMenu) -> None:
        """Add the commands that move the chip to `menu`."""
        if move := self.move_by:
            menu.addAction(strings.MOVE_LEFT, lambda: move(-1))
            menu.addAction(strings.MOVE_RIGHT, lambda: move(1))


# A dragged chip changes places when the mouse is by this part of its width beyond it.
_DRAG_OVER = 0.25


class AttachmentChip(RemovableChip):
    """An attached document. Its tokens are estimated until the worker has counted them.

    If the file's encoding was guessed, the chip names it, and its menu offers others.
    """

    def __init__(
        self,
        attachment: Attachment,
        remove: Callable[[RemovableChip], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(attachment.name, strings.remove_attachment, remove, parent)
        self._attachment = attachment
        self._tokens: int | None = None
        self._embedded: float | None = None
        self._read: float | None = None
        self._guess: Guess | None = None
        self._read_as: Callable[[str], object] = lambda encoding: None
        self.show_tokens(attachment.tokens or None)

    @property
    def attachment(self) -> Attachment:
        """The document, with its tokens if they are counted."""
        return replace(self._attachment, tokens=self._tokens or 0)

    @property
    def tokens(self) -> int | None:
        """The counted tokens; None if they are not counted yet."""
        return self._tokens

    def show_tokens(self, tokens: int | None) -> None:
        """Show the counted tokens; None keeps the last count."""
        self._tokens = tokens or self._tokens
        self._show()

    def show_embedding(self, fraction: float | None) -> None:
        """Show the embedded fraction; None hides the bar."""
        self._embedded = fraction
        self._show()

    def show_read(self, fraction: float | None) -> None:
        """Show the fraction that the model has read; None: nothing is read before the question."""
        self._read = fraction
        self._show()

    def _show(self) -> None:
        attachment, size = self.attachment, size_words(self.attachment)
        size = strings.read_already(size) if self._read == 1.0 else size
        is_reading = self._read is not None and self._read < 1.0
        fraction = self._read if self._embedded is None and is_reading else self._embedded
        size = strings.guessed(size, self._guess.encoding) if self._guess else size
        self.set_note(strings.without(size, document_strings.left_out(attachment.left_out)), fraction)
        words = full_words(attachment, size)
        words = words if self._embedded is None else f"{words}\n{strings.indexing(self._embedded)}"
        words = f"{words}\n{strings.reading_ahead(self._read)}" if is_reading else words
        self.setAccessibleDescription(words)
        self.setToolTip(in_own_direction(f"{self.name}\n{words}"))

    def offer_encodings(self, guess: Guess, read_as: Callable[[str], object]) -> None:
        """Name the guessed encoding and offer the others in the menu; `read_as` gets the chosen one."""
        self._guess, self._read_as = guess, read_as
        self._show()

    def encoding_menu(self) -> QMenu | None:
        """The menu of other encodings; None if the encoding is certain."""
        if self._guess is None:
            return None
        menu = QMenu(self)
        for encoding in self._guess.others:
            menu.addAction(strings.read_as(encoding), partial(self._read_as, encoding))
        return menu

    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = self.encoding_menu()
        if menu is not None:
            pop_up(menu, event.globalPos())


class FileChip(RemovableChip):
    """A file that is being read."""

    def __init__(
        self, name: str, remove: Callable[[RemovableChip], object], parent: QWidget | None = None
    ) -> None:
        super().__init__(name, strings.stop_reading, remove, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
