"""AttachmentPreview: the text of an attachment in a panel above the composer.

Shows the first 200,000 characters. Escape and the close button close it and return the focus.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QPlainTextEdit, QWidget

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip
from app.chat.chip_row import ChipRow
from app.controls.buttons import Button, IconButton
from app.controls.text_label import TextLabel
from app.theme.measures import column_of, set_font
from app.theme.sheet import set_ground
from app.theme.zoom import px
from core.events import Attachment

SHOWN_CHARACTERS = 200_000
_HEIGHT_PX = 420
_GAP_PX = 8
_RADIUS_PX = 12


class AttachmentPreview(QWidget):
    """Hidden until `show_attachment()`."""

    def __init__(
        self,
        parent: QWidget,
        closed: Callable[[], object],
        keep: Callable[[], object],
    ) -> None:
        """`closed` is called after closing, `keep` by the button that keeps the document in the library."""
        super().__init__(parent)
        set_ground(self, "card")
        self._closed = closed
        self._name = TextLabel("", 13, 18, "text", weight=600)
        self._note = TextLabel("", 11, 15, "text2", tabular=True)
        self.keep_button = Button(strings.KEEP, small=True, icon_name="save")
        self.close_button = IconButton("x", strings.CLOSE_PREVIEW)
        self.text_view = QPlainTextEdit(self)
        view = self.text_view
        set_ground(view, "raised")
        view.setReadOnly(True)
        view.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        view.setFrameShape(QPlainTextEdit.Shape.NoFrame)
        set_font(view, 12.5)
        view.setTabChangesFocus(True)
        view.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        view.document().setDocumentMargin(0)
        view.installEventFilter(self)
        names = column_of(self._name, self._note)
        head = QHBoxLayout()
        head.addLayout(names, 1)
        head.addWidget(self.keep_button, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        column_of(head, (view, 1), gap=10, margins=(18, 12, 10, 14), parent=self)
        self.keep_button.clicked.connect(keep)
        self.close_button.clicked.connect(self.close_preview)
        self.setVisible(False)

    def show_attachment(self, attachment: Attachment, size: str, can_be_kept: bool = True) -> None:
        """Show the name, `size` and text of a document."""
        self.keep_button.setVisible(can_be_kept)
        text = attachment.text
        self._name.setText(attachment.name)
        cut = len(text) - SHOWN_CHARACTERS
        self._note.setText(size if cut <= 0 else strings.preview_cut(size, SHOWN_CHARACTERS))
        self.text_view.setPlainText(text[:SHOWN_CHARACTERS])
        self.text_view.setAccessibleName(attachment.name)
        self.setAccessibleName(strings.show_attachment(attachment.name))
        self.setVisible(True)
        self.raise_()
        self.text_view.setFocus()

    def close_preview(self) -> None:
        """Hide it and clear the text."""
        if not self.isHidden():
            self.setVisible(False)
            self.text_view.clear()
            self._closed()

    def place_above(self, frame: QRect) -> None:
        """Place it above `frame`, the composer in the parent's coordinates."""
        height = max(px(120), min(px(_HEIGHT_PX), frame.top() - 2 * px(_GAP_PX)))
        self.setGeometry(frame.left(), frame.top() - px(_GAP_PX) - height, frame.width(), height)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        # Takes precedence over the window's shortcut Escape, which stops the answer.
        if isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            if event.type() == QEvent.Type.ShortcutOverride:
                event.accept()
                return True
            if event.type() == QEvent.Type.KeyPress:
                self.close_preview()
                return True
        return False

    def event(self, event: QEvent) -> bool:
        return self.eventFilter(self, event) or super().event(event)


class ChipPreview(QObject):
    """Opens the preview for the chips in `row`, above `frame`; `keep` keeps a document in the library.

    When it closes, the focus returns to the chip, or else to `edit`.
    """

    def __init__(
        self,
        row: ChipRow,
        edit: QWidget,
        frame: QWidget,
        keep: Callable[[Attachment], object],
    ) -> None:
        super().__init__(frame)
        self._keep_document = keep
        self._row = row
        self._edit = edit
        self._frame = frame
        self._chip: AttachmentChip | None = None
        self.popup: AttachmentPreview | None = None  # None until it was opened once
        row.open = self.toggle

    @property
    def is_open(self) -> bool:
        return self.popup is not None and self.popup.isVisible()

    def toggle(self, chip: AttachmentChip) -> None:
        """Open the preview of `chip`, or close it."""
        if chip is self._chip:
            self.close()
            return
        popup = self._made()
        self._chip = chip
        popup.show_attachment(chip.attachment, chip.size_text)
        self.place()

    def show_text(self, attachment: Attachment, note: str) -> None:
        """Show a text without a chip."""
        self.close()
        popup = self._made()
        self._chip = None
        popup.show_attachment(attachment, note, can_be_kept=False)
        self.place()

    def _made(self) -> AttachmentPreview:
        if self.popup is None:
            self.popup = AttachmentPreview(self._frame.window(), self._closed, self._keep)
        return self.popup

    def _keep(self) -> None:
        if self._chip is not None:
            self._keep_document(self._chip.attachment)

    def close(self) -> None:
        if self.popup is not None:
            self.popup.close_preview()

    def refresh(self) -> None:
        """Close the preview if its chip was removed."""
        if self._chip is not None and self._chip not in self._row.chips:
            self.close()

    def place(self) -> None:
        """Follow the frame's geometry."""
        if self.popup is not None and not self.popup.isHidden():
            origin = self._frame.mapTo(self._frame.window(), QPoint(0, 0))
            self.popup.place_above(QRect(origin, self._frame.size()))

    def _closed(self) -> None:
        chip, self._chip = self._chip, None
        target = chip if chip in self._row.chips else self._edit
        if target is not None:
            target.setFocus()
