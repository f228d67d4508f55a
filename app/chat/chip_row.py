"""ChipRow: the documents of the message being written and the files on their way.

One row; if they do not fit it, the last place in it has a button that unfolds the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QSizePolicy, QWidget

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip, Chip, FileChip
from app.chat.file_reader import Reading
from app.controls.buttons.button import Button
from app.controls.scroll_bar import ScrollBar
from app.theme.theme import Theme
from app.theme.zoom import px
from core.events import Attachment

_GAP_PX = 8


class ChipRow(QWidget):
    """Hidden while there is nothing in it. The height follows from the width.

    A file's chip gives its place to the document that is read from it.
    """

    changed = Signal()
    removed = Signal(object)  # Attachment, by its own cross or key
    opened = Signal(object)  # AttachmentChip
    given_up = Signal(object)  # Reading

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._all: list[Chip] = []
        self._files: dict[Reading, FileChip] = {}
        self._folded = True
        self.fold_button = Button(theme, "", "link", True, self)
        self.fold_button.hide()
        self.fold_button.clicked.connect(self._turn_fold)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The documents, in the order they were added."""
        return tuple(chip.attachment for chip in self.chips)

    @property
    def chips(self) -> tuple[AttachmentChip, ...]:
        """The documents' chips."""
        return tuple(chip for chip in self._all if isinstance(chip, AttachmentChip))

    @property
    def files(self) -> tuple[FileChip, ...]:
        """The chips of files that are being read."""
        return tuple(self._files.values())

    def add(self, attachment: Attachment, instead_of: Reading | None = None) -> AttachmentChip:
        """One more document, at the end or where its file's chip is. Returns its chip."""
        chip = self._chip(attachment)
        self._put(chip, instead_of)
        return chip

    def add_all(self, attachments: Sequence[Attachment], instead_of: Reading) -> list[AttachmentChip]:
        """Replaces the chip of a folder by those of its documents, and returns them."""
        first, *others = attachments
        place = self._all.index(self._files[instead_of])
        chips = [self._chip(attachment) for attachment in others]
        chips.insert(0, self.add(first, instead_of))
        self._all[place + 1 : place + 1] = chips[1:]
        for chip in chips:
            chip.show()
        self._changed()
        return chips

    def add_file(self, reading: Reading) -> None:
        """A file that is being read."""
        chip = FileChip(self._theme, reading.name, self)
        chip.set_note(reading.words, reading.fraction)
        chip.remove_requested.connect(lambda: self._give_up(reading))
        self._files[reading] = chip
        self._put(chip)

    def show_file(self, reading: Reading) -> None:
        """How far a reading is."""
        if chip := self._files.get(reading):
            chip.set_note(reading.words, reading.fraction)
            self._arrange()

    def drop_file(self, reading: Reading) -> None:
        """A file that gave nothing."""
        if chip := self._files.pop(reading, None):
            self.remove(chip)

    def replace(self, chip: AttachmentChip, attachment: Attachment) -> AttachmentChip:
        """Another text in a chip's place. Returns the new chip."""
        place = self._all.index(chip)
        other = self.add(attachment)
        self._all.insert(place, self._all.pop())
        self.remove(chip)
        return other

    def remove(self, chip: Chip) -> None:
        """Take one away. The focus, if it was there, goes to the chip that takes its place."""
        focused = chip.hasFocus() or chip.remove_button.hasFocus()
        place = self._all.index(chip)
        self._all.remove(chip)
        if focused and self.chips:
            self._all[min(place, len(self._all) - 1)].setFocus()
        _discard(chip)
        self._changed()

    def clear(self) -> None:
        """None left."""
        if not self._all:
            return
        for chip in self._all:
            _discard(chip)
        self._all.clear()
        self._files.clear()
        self._folded = True
        self._changed()

    def show_tokens(self, count: Callable[[str], int | None]) -> None:
        """Write each document's tokens, as far as `count` knows them."""
        for chip in self.chips:
            chip.show_tokens(count(chip.attachment.text))
        self._arrange()

    def show_embedding(self, fraction: Callable[[str], float | None]) -> None:
        """Show how much of each document is embedded, and nothing for those of which `fraction` is None."""
        for chip in self.chips:
            chip.show_embedding(fraction(chip.attachment.text))

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()

    def event(self, event: QEvent) -> bool:
        # A chip whose figures changed asks its parent for another size.
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)

    def _chip(self, attachment: Attachment) -> AttachmentChip:
        chip = AttachmentChip(self._theme, attachment, self)
        chip.remove_requested.connect(lambda: self._remove(chip))
        chip.clicked.connect(lambda: self.opened.emit(chip))
        return chip

    def _remove(self, chip: AttachmentChip) -> None:
        attachment = chip.attachment
        self.remove(chip)
        self.removed.emit(attachment)

    def _put(self, chip: Chip, instead_of: Reading | None = None) -> None:
        file = self._files.pop(instead_of, None) if instead_of else None
        if file is None:
            self._all.append(chip)
        else:
            self._all[self._all.index(file)] = chip
            _discard(file)
        chip.show()
        self._changed()

    def _give_up(self, reading: Reading) -> None:
        self.drop_file(reading)
        self.given_up.emit(reading)

    def _changed(self) -> None:
        self.setVisible(bool(self._all))
        for before, after in zip(self._all, self._all[1:]):
            QWidget.setTabOrder(before.remove_button, after)
        self._arrange()
        self.changed.emit()

    def _turn_fold(self) -> None:
        self._folded = not self._folded
        self._arrange()

    def _arrange(self) -> None:
        gap, widths = px(_GAP_PX), [chip.sizeHint().width() for chip in self._all]
        fits = sum(widths) + gap * (len(widths) - 1) <= self.width()
        shown = len(self._all)
        if not fits and self._folded:
            room = self.width() - self._fold_size(shown).width() - gap
            shown = 0
            while sum(widths[: shown + 1]) + gap * shown <= room:
                shown += 1
            shown = max(1, shown)
        x = y = row_height = 0
        for number, chip in enumerate(self._all):
            chip.setVisible(number < shown)
            if number >= shown:
                continue
            size = chip.sizeHint()
            if x and x + size.width() > self.width():
                x, y = 0, y + row_height + gap
            chip.setGeometry(x, y, size.width(), size.height())
            x += size.width() + gap
            row_height = size.height()
        self.fold_button.setVisible(not fits and len(self._all) > 1)
        if not fits:
            size = self._fold_size(len(self._all) - shown)
            if not self._folded and x + size.width() > self.width():
                x, y = 0, y + row_height + gap
            self.fold_button.setGeometry(
                min(x, self.width() - size.width()),
                y + (row_height - size.height()) // 2,
                size.width(),
                size.height(),
            )
        if y + row_height != self.height():
            self.setFixedHeight(y + row_height)

    def _fold_size(self, hidden: int) -> QSize:
        text = strings.MORE_CHIPS.format(count=hidden) if self._folded else strings.FEWER_CHIPS
        if text != self.fold_button.text():
            self.fold_button.setText(text)
            self.fold_button.setAccessibleName(text)
        return self.fold_button.sizeHint()


def _discard(chip: Chip) -> None:
    chip.hide()
    chip.deleteLater()


# Three rows, and the upper edge of the next so that it is seen.
_MOST_PX = 3 * 51 + 12
_LEAST_PX = 43
_ROOM_PX = 8
_MOST_SHARE = 0.2  # of the window


class ChipShelf(QScrollArea):
    """Around `row`; hidden while that is."""

    def __init__(self, theme: Theme, row: ChipRow, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = row
        self._window: QWidget | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBar(ScrollBar(theme, Qt.Orientation.Vertical))
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.viewport().setAutoFillBackground(False)
        self.setWidget(row)
        row.setAutoFillBackground(False)
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.focusChanged.connect(self._follow)
        self._fit()

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._row.resize(self.viewport().width(), self._row.height())

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._window is not self.window():
            self._window = self.window()
            self._window.installEventFilter(self)
        self._fit()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if watched is self._window:
            if event.type() == QEvent.Type.Resize:
                self._fit()
            return False
        if event.type() in (QEvent.Type.Resize, QEvent.Type.ShowToParent, QEvent.Type.HideToParent):
            self._fit()
        # It is the scroll area's own way to know how much there is to scroll, too.
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        self.setVisible(not self._row.isHidden())
        most = px(_MOST_PX)
        # A composer that is a window itself grows with what is in it.
        if self._window is not None and self._window is not self.parentWidget():
            most = min(most, max(px(_LEAST_PX), round(_MOST_SHARE * self._window.height())))
        self.setFixedHeight(min(self._row.height(), most))

    def _follow(self, old: QWidget | None, now: QWidget | None) -> None:
        """The keyboard goes on to a chip that is not seen."""
        if now is not None and self._row.isAncestorOf(now):
            self.ensureWidgetVisible(now, 0, px(_ROOM_PX))
