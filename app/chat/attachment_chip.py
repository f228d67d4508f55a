"""Chips of the composer: an attached document, or a file that is being read.

A document's chip opens its preview on a click, Space or Return, and removes it on Delete. A bar shows the
progress of embedding the document, or of reading the file.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from msgspec.structs import replace
from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QContextMenuEvent, QFont, QFontMetricsF, QKeyEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QMenu, QWidget

from app.chat import strings
from app.controls.buttons import IconButton
from app.controls.focus_ring import FocusRing
from app.controls.shapes import draw_box, draw_text, in_own_direction
from app.richtext.canvas_menu import pop_up
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_px, height_of, painter_on, place, px_size, ratio_of, width_of
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
    """“3,201 tokens”, or “about 3,200 tokens” if they are estimated."""
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
_RADIUS_PX = 10
_LEFT_PX, _RIGHT_PX, _GAP_PX = 7, 6, 8
_ICON_BOX = QSize(24, 28)
_REMOVE_PX = 18
_MAX_TEXT_PX = 260
_BAR_PX = 3


class Chip(QAbstractButton):
    """A chip with a name, a second line, an optional progress bar and a remove button."""

    def __init__(
        self,
        name: str,
        remove_name: Callable[[str], str],
        remove: Callable[[Chip], object],
        parent: QWidget | None = None,
    ) -> None:
        """`remove_name` makes the accessible name of the button that calls `remove` from the file's name."""
        super().__init__(parent)
        self._on_remove = remove
        self._note = ""
        self._fraction: float | None = None
        self.setText(name)
        self.setAccessibleName(name)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.remove_button = IconButton(
            "x", remove_name(name), parent=self, size=QSize(_REMOVE_PX, _REMOVE_PX)
        )
        self.remove_button.setToolTip(remove_name(in_own_direction(name)))
        self.remove_button.clicked.connect(lambda: remove(self))

    @property
    def size_text(self) -> str:
        return self._note

    def set_note(self, note: str, fraction: float | None = None) -> None:
        """Sets the second line and the bar's fraction; None: no bar."""
        if (note, fraction) == (self._note, self._fraction):
            return
        self._note, self._fraction = note, fraction
        self.setAccessibleDescription(note)
        self.setToolTip(in_own_direction(f"{self.text()}\n{note}"))
        self.updateGeometry()
        self.resize(self.sizeHint())
        self.update()

    def sizeHint(self) -> QSize:
        text = max(_width(_name_font(), self.text()), _width(_size_font(), self._note))
        text = min(text, _MAX_TEXT_PX)
        width = _LEFT_PX + _ICON_BOX.width() + _GAP_PX + text + _GAP_PX + _REMOVE_PX + _RIGHT_PX
        return px_size(QSize(round(width), _HEIGHT_PX))

    def resizeEvent(self, event: QResizeEvent) -> None:
        x, y = width_of(self) - _RIGHT_PX - _REMOVE_PX, (height_of(self) - _REMOVE_PX) // 2
        place(self.remove_button, x, y, _REMOVE_PX, _REMOVE_PX)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self._on_remove(self)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if not event.isAutoRepeat():
                self.click()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        takes_clicks = self.focusPolicy() != Qt.FocusPolicy.NoFocus
        lit = takes_clicks and (self.isDown() or self.isChecked() or self.underMouse())
        fill = color("fill1" if lit else "raised")
        draw_box(painter, area_of(self), _RADIUS_PX, fill, color("hair2" if lit else "hair"))
        box = QRectF(
            _LEFT_PX, (height_of(self) - _ICON_BOX.height()) / 2, _ICON_BOX.width(), _ICON_BOX.height()
        )
        draw_box(painter, box, 5, color("fill2" if theme.is_dark or lit else "fill1"))
        icon = icon_pixmap("doc", color("text2"), 14, ratio_of(self))
        painter.drawPixmap(QPointF(box.center().x() - 7, box.center().y() - 7), icon)
        left = box.right() + _GAP_PX
        width = design_px(self.remove_button.x()) - _GAP_PX / 2 - left
        for font, ink, top, height, text in (
            (_name_font(), "text", 6, 16, self.text()),
            (_size_font(), "text2", 22, 15, self._note),
        ):
            line = QRectF(left, top, width, height)
            # The end of a name tells its kind, unless it was cut already.
            where = "ElideRight" if text.endswith("…") else "ElideMiddle"
            align, elide = Qt.AlignmentFlag.AlignLeft, Qt.TextElideMode[where]
            draw_text(painter, line, text, font, color(ink), align, elide)
        if self._fraction is not None:
            bar = QRectF(left, height_of(self) - 5, width, _BAR_PX)
            draw_box(painter, bar, _BAR_PX / 2, color("fill2"))
            bar.setWidth(max(_BAR_PX, width * min(1.0, self._fraction)))
            draw_box(painter, bar, _BAR_PX / 2, color("accent_fill"))
        painter.end()


class AttachmentChip(Chip):
    """An attached document. Its tokens are estimated until the worker has counted them.

    If the file's encoding was guessed, the chip names it, and its menu offers others.
    """

    def __init__(
        self,
        attachment: Attachment,
        remove: Callable[[Chip], object],
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(attachment.name, strings.remove_attachment, remove, parent)
        self._attachment = attachment
        self._tokens: int | None = None
        self._embedded: float | None = None
        self._read: float | None = None
        self._guess: Guess | None = None
        self._read_as: Callable[[str], object] = lambda encoding: None
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, _RADIUS_PX)
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
        self.setToolTip(in_own_direction(f"{self.text()}\n{words}"))

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


class FileChip(Chip):
    """A file that is being read."""

    def __init__(self, name: str, remove: Callable[[Chip], object], parent: QWidget | None = None) -> None:
        super().__init__(name, strings.stop_reading, remove, parent)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)


def _name_font() -> QFont:
    return ui_font(12.5, 500)


def _size_font() -> QFont:
    return ui_font(11, tabular=True)


def _width(font: QFont, text: str) -> float:
    # Rounded up, because layouts drop fractions and the text would be elided.
    return QFontMetricsF(font).horizontalAdvance(text) + 1
