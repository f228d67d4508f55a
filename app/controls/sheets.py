"""Sheets for choosing files, folders and options, for typing a name and for a question, modal to one window.

Each function returns at once and calls back with the choice. Qt's static dialog functions would run a nested
event loop; if a task opens such a dialog, no other task can run until it closes, because asyncio refuses to
step a task inside another one. The system draws the file sheets where it has its own; on macOS they slide out
of the title bar. A window has one sheet at a time: a second request brings the open one to the front.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QProcess, QStandardPaths, Qt, QUrl, Signal
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QFileDialog,
    QHBoxLayout,
    QInputDialog,
    QMessageBox,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from app.controls.buttons import Kind
from app.controls.choices import CheckBox
from app.controls.text_label import TextLabel
from app.theme.measures import row_of

REPLACE = "Replace"
DONE = "Done"
REPLACE_DETAIL = "Replacing it overwrites its current contents."
_Mode = QFileDialog.FileMode


def open_files(
    owner: QWidget,
    title: str,
    on_chosen: Callable[[list[Path]], object],
    *,
    kinds: str = "",
    folder: str = "",
) -> None:
    """Let the person choose existing files of `kinds`, a Qt name filter, starting in `folder`."""
    dialog = _file_sheet(owner, title, folder or first_folder(), _Mode.ExistingFiles, kinds)
    if dialog:
        dialog.filesSelected.connect(lambda names: on_chosen([Path(name) for name in names]))
        dialog.open()


def open_file(owner: QWidget, title: str, on_chosen: Callable[[Path], object], *, kinds: str = "") -> None:
    dialog = _file_sheet(owner, title, first_folder(), _Mode.ExistingFile, kinds)
    if dialog:
        dialog.fileSelected.connect(lambda name: on_chosen(Path(name)))
        dialog.open()


def choose_folder(owner: QWidget, title: str, on_chosen: Callable[[Path], object]) -> None:
    dialog = _file_sheet(owner, title, first_folder(), _Mode.Directory)
    if dialog:
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(lambda name: on_chosen(Path(name)))
        dialog.open()


def save_file(
    owner: QWidget, title: str, path: Path, on_chosen: Callable[[Path], object], *, kinds: str = ""
) -> None:
    """Let the person choose the file to write; `path` is proposed.

    `on_chosen` may replace the file: the person has confirmed it.
    """
    dialog = _file_sheet(owner, title, str(path.parent), _Mode.AnyFile, kinds)
    if dialog is None:
        return
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(path.suffix.removeprefix("."))
    dialog.selectFile(path.name)

    def again(file: Path) -> None:
        save_file(owner, title, file, on_chosen, kinds=kinds)

    def chosen(name: str) -> None:
        file = Path(name)
        # macOS asks in its own panel. Qt's dialog asks in a nested loop, so it is replaced.
        if sys.platform != "darwin" and os.path.exists(file):
            _confirm_replacing(owner, file, lambda: on_chosen(file), lambda: again(file))
        else:
            on_chosen(file)

    dialog.setOption(QFileDialog.Option.DontConfirmOverwrite, sys.platform != "darwin")
    dialog.fileSelected.connect(chosen)
    dialog.open()


def ask_name(owner: QWidget, title: str, label: str, name: str, on_given: Callable[[str], object]) -> None:
    """Let the person type a name. White space is collapsed; an empty name counts as Cancel."""
    if _raise_open(owner):
        return
    dialog = QInputDialog(owner.window())
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setWindowTitle(title)
    dialog.setLabelText(label)
    dialog.setTextValue(name)

    def given(text: str) -> None:
        if typed := " ".join(text.split()):
            on_given(typed)

    dialog.textValueSelected.connect(given)
    dialog.open()


class OptionsSheet(QDialog):
    """A sheet of check boxes. `boxes` are in the order of the options, `accept_button` is the default one."""

    def __init__(self, owner: QWidget, title: str, options: Sequence[tuple[str, bool]], accept: str) -> None:
        """`options`: labels and whether they are checked. `accept`: title of the default button."""
        super().__init__(owner.window())
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        column = QVBoxLayout(self)
        self.boxes = [CheckBox(label, self) for label, _ in options]
        for box, (_, checked) in zip(self.boxes, options):
            box.setChecked(checked)
            column.addWidget(box)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel, self)
        self.accept_button = buttons.addButton(accept, QDialogButtonBox.ButtonRole.AcceptRole)
        self.accept_button.setDefault(True)
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)
        self.setFocus()  # a frame on a box would look like a suggestion


def ask_options(
    owner: QWidget,
    title: str,
    options: Sequence[tuple[str, bool]],
    accept: str,
    on_chosen: Callable[..., object],
) -> None:
    """Let the person change `options`, see `OptionsSheet`. `on_chosen` gets their states in order."""
    if _raise_open(owner):
        return
    sheet = OptionsSheet(owner, title, options, accept)
    # The sheet is hidden by then, and `on_chosen` may open the next one.
    sheet.accepted.connect(lambda: on_chosen(*(box.isChecked() for box in sheet.boxes)))
    sheet.open()


def _file_sheet(
    owner: QWidget, title: str, folder: str, mode: QFileDialog.FileMode, kinds: str = ""
) -> QFileDialog | None:
    """A sheet of the window of `owner`; None if that window has one already."""
    if _raise_open(owner):
        return None
    dialog = QFileDialog(owner.window(), title, folder, kinds)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.setFileMode(mode)
    return dialog


def _raise_open(owner: QWidget) -> bool:
    for kind in (QFileDialog, QInputDialog, QMessageBox, OptionsSheet):
        for dialog in owner.window().findChildren(kind, options=Qt.FindChildOption.FindDirectChildrenOnly):
            if isinstance(dialog, QDialog) and dialog.isVisible():
                dialog.raise_()
                dialog.activateWindow()
                return True
    return False


def _confirm_replacing(
    owner: QWidget, path: Path, replace: Callable[[], object], cancel: Callable[[], object]
) -> None:
    box = QMessageBox(owner.window())
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(REPLACE)
    box.setText(f"“{path.name}” already exists. Do you want to replace it?")
    box.setInformativeText(REPLACE_DETAIL)
    box.addButton(QMessageBox.StandardButton.Cancel)
    button = box.addButton(REPLACE, QMessageBox.ButtonRole.DestructiveRole)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    box.finished.connect(lambda code: (replace if box.clickedButton() is button else cancel)())
    box.open()


def show_details(owner: QWidget, title: str, text: str, details: str) -> QMessageBox:
    """Open a message over the window of `owner`, with `details` on request, and return it."""
    box = QMessageBox(owner.window())
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setWindowTitle(title)
    box.setText(title)
    box.setInformativeText(text)
    box.setDetailedText(details)
    done = box.addButton(DONE, QMessageBox.ButtonRole.AcceptRole)
    box.setDefaultButton(done)
    box.setEscapeButton(done)
    box.open()
    return box


_PLACES = QStandardPaths.StandardLocation


def first_folder() -> str:
    """Returns the person's documents folder, or their home without one."""
    for place in (_PLACES.DocumentsLocation, _PLACES.HomeLocation):
        found = QStandardPaths.standardLocations(place)
        if found and Path(found[0]).is_dir():
            return found[0]
    return ""


def show_in_folder(path: Path) -> bool:
    """Opens the folder of `path`, or `path` itself if it is a folder. False if the system cannot."""
    folder = path if path.is_dir() else path.parent
    if not folder.is_dir():
        return False
    if sys.platform == "darwin" and path.is_file():
        # Finder selects the file in it.
        started = QProcess.startDetached("/usr/bin/open", ["-R", str(path)])
        return bool(started[0] if isinstance(started, tuple) else started)
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(folder)))


class Question(QMessageBox):
    """A message box that asks before a command runs. `answers` are the value, text and kind of each button
    besides `cancel`.

    `open()` returns at once; `chosen` reports the answer. Escape and closing cancel. Cancel has the first
    focus, so that Return alone changes nothing. Deletes itself after the answer.
    """

    chosen = Signal(str)  # the value; not emitted on Cancel

    def __init__(
        self,
        title: str,
        detail: str,
        cancel: str,
        answers: Sequence[tuple[str, str, Kind]],
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.setWindowTitle(title)
        self.setText(title)
        self.setInformativeText(detail)
        self.setAccessibleName(title)
        self.setAccessibleDescription(detail)
        self.answers: dict[str, QPushButton] = {}
        for value, words, kind in answers:
            button = self.answers[value] = self.addButton(words, self.ButtonRole.ActionRole)
            button.setProperty("kind", kind)
            button.style().polish(button)
        self.cancel = self.addButton(cancel, self.ButtonRole.RejectRole)
        self.setDefaultButton(self.cancel)
        self.setEscapeButton(self.cancel)
        self.finished.connect(self._report)

    def _report(self) -> None:
        clicked = self.clickedButton()
        for value, button in self.answers.items():
            if button is clicked:
                self.chosen.emit(value)


def form_row(label_px: int, label: str, field: QWidget) -> QHBoxLayout:
    """A field of a sheet behind its label, which also names it for VoiceOver."""
    name = TextLabel(label, 12, 24, width_px=label_px)
    name.setBuddy(field)
    field.setAccessibleName(label)
    row = row_of(name, (field, 1), gap=10)
    row.setAlignment(name, Qt.AlignmentFlag.AlignTop)
    return row
