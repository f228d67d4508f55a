"""Sheets of the window of the tool servers: to add or edit a server, and to import those of other programs.

Neither starts anything: a server is off until it is switched on.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from typing import Literal

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QDialog, QLayout, QLineEdit, QWidget

from app.controls.buttons import Button, on_click
from app.controls.choices import CheckBox, Segment
from app.controls.scroll_bar import ScrollPage
from app.controls.sheets import form_row
from app.controls.text_fields import TextArea
from app.controls.text_label import TextLabel
from app.features.tools import strings
from app.features.tools.window import command_text
from app.session.tools.form import visible
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height, set_mono_font
from core.tools.imports import Found
from core.tools.masks import MASK, looks_secret
from core.tools.messages import ServerEntry, ToolsError, check_entry
from core.tools.secrets import missing

_WIDTH_PX, _MARGIN_PX, _LABEL_PX = 560, 20, 96
_INNER_PX = _WIDTH_PX - 2 * _MARGIN_PX
_VALUES_PX, _COMMAND_PX = 84, 50
_LIST_PX = 380


def command_parts(line: str) -> tuple[str, tuple[str, ...]]:
    """The program and the arguments of a command line. Raises `ToolsError`."""
    try:
        parts = shlex.split(line)
    except ValueError:
        raise ToolsError(strings.BAD_QUOTES) from None
    return (parts[0], tuple(parts[1:])) if parts else ("", ())


def values_of(text: str, sign: Literal["=", ":"]) -> dict[str, str]:
    """Variables (`NAME=value`) or headers (`Name: value`), one a line. Raises `ToolsError`."""
    found: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.split("\n"))):
        name, separator, value = line.partition(sign)
        if not separator or not name.strip():
            form = strings.VARIABLE_FORM if sign == "=" else strings.HEADER_FORM
            raise ToolsError(strings.bad_line(line, form))
        found[name.strip()] = value.strip()
    return found


class ServerSheet(QDialog):
    """Adds or edits a server.

    Values of secrets are not shown; an unchanged one keeps its value. Deletes itself when closed.
    """

    saved = Signal(object)  # ServerEntry with the values of new secrets

    def __init__(self, entry: ServerEntry | None, taken: Collection[str], parent: QWidget) -> None:
        """`entry`: the server to be edited; None for a new one. `taken`: names of other servers."""
        super().__init__(parent)
        self._entry, self._taken = entry or ServerEntry(""), taken
        title = strings.EDIT_SERVER if entry else strings.ADD_SERVER
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.name = QLineEdit(self._entry.name)
        self.kind = Segment([("command", strings.BY_COMMAND), ("address", strings.BY_ADDRESS)])
        self.command = TextArea()
        self.command.set_value(self._entry.whole if self._entry.command else "")
        self.command.setPlaceholderText(strings.COMMAND_HINT)
        self.address = QLineEdit(self._entry.url)
        self.address.setPlaceholderText(strings.ADDRESS_HINT)
        self.environment, self.headers = TextArea(), TextArea()
        self.environment.setPlaceholderText(strings.ENVIRONMENT_HINT)
        self.headers.setPlaceholderText(strings.HEADERS_HINT)
        area = self.headers if self._entry.url else self.environment
        values = self._entry.headers if self._entry.url else self._entry.env
        area.set_value(self._shown(values, ": " if self._entry.url else "="))
        for field in (self.command, self.address, self.environment, self.headers):
            set_mono_font(field, 12)
        for area in (self.command, self.environment, self.headers):
            set_fixed_height(area, _VALUES_PX if area is not self.command else _COMMAND_PX)
        self.note = TextLabel(strings.NO_SHELL, 11, 15, "text2", wrap=True, width_px=_INNER_PX)
        self.problem = TextLabel("", 12, 16, "danger", wrap=True, width_px=_INNER_PX)
        self.cancel = Button(strings.CANCEL)
        self.save = Button(strings.SAVE, "primary")
        self._lay_out(title)
        self.kind.value_changed.connect(self._show_kind)
        self.kind.set_value("address" if self._entry.url else "command")
        self._show_kind()
        on_click((self.cancel, self.reject), (self.save, self._save))
        for line in (self.name, self.address):
            line.textChanged.connect(lambda text: self.problem.setText(""))
        self.name.setFocus()

    def entry(self) -> ServerEntry:
        """The server as entered. Raises `ToolsError` if it is invalid."""
        name = " ".join(self.name.text().split())
        if name in self._taken:
            raise ToolsError(strings.is_taken(name))
        by_command = self.kind.value == "command"
        values = values_of(*((self.environment.value, "=") if by_command else (self.headers.value, ":")))
        unchanged = [each for each in self._entry.secrets if values.get(each) == MASK]
        values = {each: value for each, value in values.items() if each not in unchanged}
        marked = set(self._entry.secrets)
        secrets = [each for each, value in values.items() if each in marked or looks_secret(each, value)]
        all_secrets = (*unchanged, *secrets)
        if by_command:
            command, args = command_parts(self.command.value)
            made = ServerEntry(name, command, args, values, secrets=all_secrets)
        else:
            made = ServerEntry(name, url=self.address.text().strip(), headers=values, secrets=all_secrets)
        check_entry(made)
        if moved := set(missing(made)) - set(missing(self._entry)):
            raise ToolsError(strings.enter_again(moved.pop()))
        return made

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._save()
        else:
            super().keyPressEvent(event)

    # ---- inside

    def _shown(self, values: dict[str, str], sign: str) -> str:
        secrets = dict.fromkeys(self._entry.secrets, MASK)
        return "\n".join(f"{name}{sign}{value}" for name, value in (values | secrets).items())

    def _save(self) -> None:
        try:
            entry = self.entry()
        except ToolsError as error:
            self.problem.setText(f"{error.message} {error.hint}".strip())
            self.problem.updateGeometry()
            return
        self.accept()
        self.saved.emit(entry)

    def _show_kind(self) -> None:
        by_command = self.kind.value == "command"
        for row, shown in ((self._command_rows, by_command), (self._address_rows, not by_command)):
            row.setVisible(shown)
        self.note.setVisible(by_command)
        self.problem.setText("")

    def _lay_out(self, title: str) -> None:
        self._command_rows, self._address_rows = QWidget(), QWidget()
        column_of(
            form_row(_LABEL_PX, strings.COMMAND, self.command),
            form_row(_LABEL_PX, strings.ENVIRONMENT, self.environment),
            gap=8,
            parent=self._command_rows,
        )
        column_of(
            form_row(_LABEL_PX, strings.ADDRESS, self.address),
            form_row(_LABEL_PX, strings.HEADERS, self.headers),
            gap=8,
            parent=self._address_rows,
        )
        column = column_of(
            TextLabel(title, 15, 20, "text", weight=600, width_px=_INNER_PX),
            form_row(_LABEL_PX, strings.NAME, self.name),
            row_of(TextLabel(strings.KIND, 12, 24, width_px=_LABEL_PX), self.kind, STRETCH, gap=10),
            self._command_rows,
            self._address_rows,
            self.note,
            TextLabel(strings.SECRETS_NOTE, 11, 15, "text2", wrap=True, width_px=_INNER_PX),
            self.problem,
            row_of((TextLabel(strings.NOT_STARTED, 12, 16, "text2"), 1), self.cancel, self.save, gap=8),
            gap=8,
            margins=(_MARGIN_PX, 18, _MARGIN_PX, 16),
            parent=self,
        )
        column.setSizeConstraint(QLayout.SizeConstraint.SetFixedSize)


class ImportSheet(QDialog):
    """Imports chosen servers of other programs. Shows the whole command and environment of each.

    Deletes itself when closed.
    """

    imported = Signal(object)  # list of ServerEntry with the values of their secrets

    def __init__(self, found: Sequence[Found], taken: Collection[str], parent: QWidget) -> None:
        """`taken`: names of existing servers, which cannot be chosen."""
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(strings.IMPORT_TITLE)
        self.setAccessibleName(strings.IMPORT_TITLE)
        self.setWindowModality(Qt.WindowModality.WindowModal)
        self.boxes: list[tuple[CheckBox, ServerEntry]] = []
        self.problems: list[TextLabel] = []
        self.cancel = Button(strings.CANCEL)
        self.accept_button = Button(strings.IMPORT_ACCEPT, "primary")
        page = QWidget()
        rows = column_of(gap=4, margins=(0, 0, 12, 0), parent=page)
        names = set(taken)
        for each in found:
            rows.addLayout(self._section(each, names))
        rows.addStretch(1)
        scroll = ScrollPage(page)
        set_fixed_height(scroll, _LIST_PX)
        scroll.setVisible(bool(found))
        note = strings.IMPORT_NOTE if found else strings.NOTHING_FOUND
        column = column_of(
            TextLabel(strings.IMPORT_TITLE, 15, 20, "text", weight=600, width_px=_INNER_PX),
            TextLabel(note, 12, 16, "text2", wrap=True, width_px=_INNER_PX),
            scroll,
            row_of(STRETCH, self.cancel, self.accept_button, gap=8),
            gap=10,
            margins=(_MARGIN_PX, 18, _MARGIN_PX, 16),
            parent=self,
        )
        column.setSizeConstraint(QLayout.SizeConstraint.SetFixedSize)
        on_click((self.cancel, self.reject), (self.accept_button, self._import))
        self._enable()
        self.setFocus()  # a focus frame on a check box would look like a recommendation

    def _section(self, found: Found, taken: set[str]) -> QLayout:
        """The servers of one program, and the problems in its file."""
        column = column_of(
            TextLabel(strings.found_in(found.program), 13, 18, "text", weight=600),
            TextLabel(visible(found.path), 11, 15, "text2", elide=Qt.TextElideMode.ElideMiddle),
            gap=4,
            margins=(0, 6, 0, 4),
        )
        for entry in found.entries:
            is_there = entry.name in taken
            taken.add(entry.name)
            name = visible(entry.name)
            box = CheckBox(strings.is_there(name) if is_there else name)
            box.setEnabled(not is_there)
            command = TextLabel(
                command_text(entry, note=False), 11, 16, "text2", wrap=True, width_px=_INNER_PX - 40
            )
            box.setAccessibleDescription(command.text())
            column.addWidget(box)
            column.addLayout(row_of(command, margins=(25, 0, 0, 4)))
            if not is_there:
                box.toggled.connect(self._enable)
                self.boxes.append((box, entry))
        for words in found.problems:
            label = TextLabel(words, 12, 16, "danger", wrap=True, width_px=_INNER_PX - 14)
            self.problems.append(label)
            column.addWidget(label)
        return column

    def _enable(self) -> None:
        self.accept_button.setEnabled(any(box.isChecked() for box, _ in self.boxes))

    def _import(self) -> None:
        chosen = [entry for box, entry in self.boxes if box.isChecked()]
        self.accept()
        self.imported.emit(chosen)
