"""The chips of the composer in one or more rows, the frame that scrolls them, and the intake of files.

Small files are attached at once. Large files, folders, and later ones of many get a chip with their progress.
Files without text are reported together once all readings have ended.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QEvent, QObject, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QSizePolicy, QWidget

from app.chat import strings
from app.chat.attachment_chip import AttachmentChip, Chip, FileChip, estimated_tokens
from app.chat.file_reader import AttachmentReading, FileReader, FolderReading, Reading
from app.controls.buttons import Button
from app.theme.zoom import px
from core.documents.reading import quick_document, shown_name
from core.documents.text import Guess
from core.errors import RequestError
from core.events import Attachment

_GAP_PX = 8


class ChipRow(QWidget):
    """Hidden while empty. The height depends on the width. A file's chip is replaced by its document's.

    `cancel` is set by the owner of the readings and called when the chip of a file is removed; `open` when a
    document's chip is clicked.
    """

    changed = Signal()

    def __init__(self, removed: Callable[[Attachment], object], parent: QWidget | None = None) -> None:
        """`removed` gets a document that the person removed."""
        super().__init__(parent)
        self._removed = removed
        self.cancel: Callable[[Reading], object] = lambda reading: None
        self.open: Callable[[AttachmentChip], object] = lambda chip: None
        self._all: list[Chip] = []
        self._files: dict[Reading, FileChip] = {}
        self._folded = True
        self.fold_button = Button("", "link", True, self)
        self.fold_button.hide()
        self.fold_button.clicked.connect(self._toggle_fold)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setVisible(False)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The documents, in the order they were added."""
        return tuple(chip.attachment for chip in self.chips)

    @property
    def chips(self) -> tuple[AttachmentChip, ...]:
        return tuple(chip for chip in self._all if isinstance(chip, AttachmentChip))

    @property
    def files(self) -> tuple[FileChip, ...]:
        """The chips of the files that are being read."""
        return tuple(self._files.values())

    def add(self, attachment: Attachment, instead_of: Reading | None = None) -> AttachmentChip:
        """Add a document, at the end or in place of its file's chip. Returns its chip."""
        chip = self._chip(attachment)
        self._put(chip, instead_of)
        return chip

    def add_all(self, attachments: Sequence[Attachment], instead_of: Reading) -> list[AttachmentChip]:
        """Replace the chip of a folder by those of its documents, and return them."""
        first, *others = attachments
        at = self._all.index(self._files[instead_of])
        chips = [self._chip(attachment) for attachment in others]
        chips.insert(0, self.add(first, instead_of))
        self._all[at + 1 : at + 1] = chips[1:]
        for chip in chips:
            chip.show()
        self._changed()
        return chips

    def add_file(self, reading: Reading) -> None:
        """Add the chip of a file that is being read."""
        chip = FileChip(reading.name, lambda _: self._cancel(reading), self)
        chip.set_note(reading.words, reading.fraction)
        self._files[reading] = chip
        self._put(chip)

    def show_file(self, reading: Reading) -> None:
        if chip := self._files.get(reading):
            chip.set_note(reading.words, reading.fraction)
            self._arrange()

    def drop_file(self, reading: Reading) -> None:
        """Remove the chip of a file that could not be read."""
        if chip := self._files.pop(reading, None):
            self.remove(chip)

    def replace(self, chip: AttachmentChip, attachment: Attachment) -> AttachmentChip:
        """Replace the document of a chip. Returns the new chip."""
        at = self._all.index(chip)
        other = self.add(attachment)
        self._all.insert(at, self._all.pop())
        self.remove(chip)
        return other

    def remove(self, chip: Chip) -> None:
        """Remove a chip. If it had the focus, the next chip gets it."""
        focused = chip.hasFocus() or chip.remove_button.hasFocus()
        at = self._all.index(chip)
        self._all.remove(chip)
        if focused and self.chips:
            self._all[min(at, len(self._all) - 1)].setFocus()
        _discard(chip)
        self._changed()

    def clear(self) -> None:
        if not self._all:
            return
        for chip in self._all:
            _discard(chip)
        self._all.clear()
        self._files.clear()
        self._folded = True
        self._changed()

    def show_tokens(self, count: Callable[[str], int | None]) -> None:
        """Show each document's tokens; `count` returns None for unknown ones."""
        for chip in self.chips:
            chip.show_tokens(count(chip.attachment.text))
        self._arrange()

    def show_embedding(self, fraction: Callable[[str], float | None]) -> None:
        """Show the embedded fraction of each document; `fraction` returns None to hide the bar."""
        for chip in self.chips:
            chip.show_embedding(fraction(chip.attachment.text))

    def show_read(self, fraction: float | None) -> None:
        """Show that the worker read this fraction of all documents, in their order; None: nothing."""
        sizes = [chip.tokens or estimated_tokens(chip.attachment.text) for chip in self.chips]
        read = (fraction or 0.0) * sum(sizes)
        for chip, size in zip(self.chips, sizes, strict=True):
            chip.show_read(None if fraction is None else min(1.0, max(0.0, read / max(1, size))))
            read -= size

    def sizeHint(self) -> QSize:
        return QSize(200, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange()

    def event(self, event: QEvent) -> bool:
        # A chip whose size hint changed posts this to its parent.
        if event.type() == QEvent.Type.LayoutRequest:
            self._arrange()
        return super().event(event)

    def _chip(self, attachment: Attachment) -> AttachmentChip:
        chip = AttachmentChip(attachment, self._remove, self)
        chip.clicked.connect(lambda: self.open(chip))
        return chip

    def _remove(self, chip: Chip) -> None:
        assert isinstance(chip, AttachmentChip)
        attachment = chip.attachment
        self.remove(chip)
        self._removed(attachment)

    def _put(self, chip: Chip, instead_of: Reading | None = None) -> None:
        file = self._files.pop(instead_of, None) if instead_of else None
        if file is None:
            self._all.append(chip)
        else:
            self._all[self._all.index(file)] = chip
            _discard(file)
        chip.show()
        self._changed()

    def _cancel(self, reading: Reading) -> None:
        self.drop_file(reading)
        self.cancel(reading)

    def _changed(self) -> None:
        self.setVisible(bool(self._all))
        for before, after in zip(self._all, self._all[1:]):
            QWidget.setTabOrder(before.remove_button, after)
        self._arrange()
        self.changed.emit()

    def _toggle_fold(self) -> None:
        self._folded = not self._folded
        self._arrange()

    def _arrange(self) -> None:
        gap, widths = px(_GAP_PX), [chip.sizeHint().width() for chip in self._all]
        fits = sum(widths) + gap * (len(widths) - 1) <= self.width()
        shown = len(self._all)
        if not fits and self._folded:
            available = self.width() - self._fold_size(shown).width() - gap
            shown = 0
            while sum(widths[: shown + 1]) + gap * shown <= available:
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


# Three rows, and the upper edge of the fourth, which shows that there is more.
_MAX_PX = 3 * 51 + 12
_MIN_PX = 43
_MARGIN_PX = 8
_MAX_SHARE = 0.2  # of the window's height


class ChipShelf(QScrollArea):
    """Scrolls `row` once it has more than a few rows, fewer in a low window. Hidden while `row` is."""

    def __init__(self, row: ChipRow, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._row = row
        self._window: QWidget | None = None
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
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
        # QScrollArea uses its event filter to follow the size of its widget.
        return super().eventFilter(watched, event)

    def _fit(self) -> None:
        self.setVisible(not self._row.isHidden())
        limit = px(_MAX_PX)
        # A composer that is a window itself grows with its content.
        if self._window is not None and self._window is not self.parentWidget():
            limit = min(limit, max(px(_MIN_PX), round(_MAX_SHARE * self._window.height())))
        self.setFixedHeight(min(self._row.height(), limit))

    def _follow(self, old: QWidget | None, now: QWidget | None) -> None:
        """Scroll to a chip that gets the focus."""
        if now is not None and self._row.isAncestorOf(now):
            self.ensureWidgetVisible(now, 0, px(_MARGIN_PX))


# The window may block for this long to read small files.
_QUICK_S = 0.1
# Number of failures that are reported in full.
_REPORTED = 6


class FileIntake(QObject):
    """Adds to the chips of `row`. `report` gets errors, `folder_read` a folder whose files are attached."""

    def __init__(
        self,
        row: ChipRow,
        report: Callable[[RequestError], object],
        folder_read: Callable[[FolderReading], object],
        parent: QObject,
    ) -> None:
        super().__init__(parent)
        self._row = row
        self._show_error = report
        self._folder_read = folder_read
        self._refused: list[RequestError] = []
        # Files that are read again in another encoding, with their chip and its guess.
        self._again: dict[AttachmentReading, tuple[AttachmentChip, Guess]] = {}
        self.reader = FileReader(row.show_file, self._on_read, self)
        row.cancel = self._cancel_one

    def add(self, paths: Sequence[Path]) -> None:
        ends_at = time.monotonic() + _QUICK_S
        for path in paths:
            if path.is_dir():
                self._row.add_file(self.reader.read_folder(path))
                continue
            try:
                document = quick_document(path) if time.monotonic() < ends_at else None
            except RequestError as error:
                self._refused.append(error)
                continue
            if document is None:
                self._row.add_file(self.reader.read(path))
            else:
                chip = self._row.add(Attachment(shown_name(path), document.text, left_out=document.left_out))
                if document.guess:
                    self._offer_encodings(chip, path, document.guess)
        self._report()

    def _offer_encodings(self, chip: AttachmentChip, path: Path, guess: Guess) -> None:
        chip.offer_encodings(guess, lambda encoding: self._read_again(chip, path, guess, encoding))

    def _read_again(self, chip: AttachmentChip, path: Path, guess: Guess, encoding: str) -> None:
        """Read the chip's file in another encoding; the chip stays until the text is read."""
        others = tuple(each for each in (guess.encoding, *guess.others) if each != encoding)
        chosen = Guess(encoding, others)
        try:
            document = quick_document(path, encoding)
        except RequestError as error:
            self._show_error(error)
            return
        if document is None:
            chip.set_note(strings.READING_FILE)
            self._again[self.reader.read(path, chosen)] = (chip, guess)
        else:
            read = Attachment(chip.attachment.name, document.text, left_out=document.left_out)
            self._replace(chip, path, read, chosen)

    def _replace(self, chip: AttachmentChip, path: Path, read: Attachment, guess: Guess) -> None:
        again = self._row.replace(chip, read)
        self._offer_encodings(again, path, guess)

    def cancel(self) -> None:
        self.reader.cancel_all()
        self._again.clear()
        self._refused.clear()

    def _cancel_one(self, reading: Reading) -> None:
        self.reader.cancel(reading)
        self._report()

    def _on_read(self, reading: Reading) -> None:
        if isinstance(reading, AttachmentReading) and reading in self._again:
            self._on_read_again(reading)
        elif isinstance(reading, AttachmentReading) and isinstance(reading.result, Attachment):
            chip = self._row.add(reading.result, instead_of=reading)
            if reading.guess:
                self._offer_encodings(chip, reading.path, reading.guess)
        elif isinstance(reading, FolderReading) and isinstance(reading.result, tuple):
            chips = self._row.add_all(reading.result, instead_of=reading)
            for number, (path, guess) in reading.guesses.items():
                self._offer_encodings(chips[number], path, guess)
            self._folder_read(reading)
        else:
            self._row.drop_file(reading)
            if isinstance(reading.result, RequestError):
                self._refused.append(reading.result)
        self._report()

    def _on_read_again(self, reading: AttachmentReading) -> None:
        chip, guess = self._again.pop(reading)
        if chip not in self._row.chips:
            return  # removed
        if isinstance(reading.result, Attachment) and reading.guess:
            self._replace(chip, reading.path, reading.result, reading.guess)
            return
        self._offer_encodings(chip, reading.path, guess)  # shows its size again
        if isinstance(reading.result, RequestError):
            self._refused.append(reading.result)

    def _report(self) -> None:
        if not self._refused or self.reader.busy:
            return
        refused, self._refused = self._refused, []
        if len(refused) == 1:
            self._show_error(refused[0])
        else:
            texts = [error.message for error in refused[:_REPORTED]]
            if len(refused) > _REPORTED:
                texts.append(strings.and_more_files(len(refused) - _REPORTED))
            self._show_error(RequestError(strings.files_not_attached(len(refused)), " ".join(texts)))
