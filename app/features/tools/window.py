"""ToolsWindow: the tool servers with their state, tools, command and log, and the permissions.

Independent of the servers: the controller fills it and listens to its widgets.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QSize, Qt
from PySide6.QtWidgets import QStackedWidget, QWidget

from app.controls.buttons import Button, IconButton
from app.controls.choices import Segment, Switch
from app.controls.record_table import RecordTable
from app.controls.text_fields import TextView
from app.controls.text_label import TextLabel
from app.features.side_window import Hairline, SideWindow
from app.features.tools import strings
from app.features.tools.rows import (
    ALLOWANCE_COLUMNS,
    SERVER_COLUMNS,
    TOOL_COLUMNS,
    AllowanceRow,
    ServerRow,
    ToolRow,
)
from app.session.tools.form import visible
from app.theme.measures import STRETCH, column_of, row_of, set_fixed_height, set_fixed_width
from app.theme.sheet import set_ground
from core.tools.masks import MASK
from core.tools.messages import ServerEntry, ServerState, ServerTool
from core.tools.secrets import without_values

SIZE = QSize(1040, 700)
_MINIMUM = QSize(820, 480)
_LIST_PX = 260
_PAD_PX = 20
_TOOL_TEXT_PX = 150


class ToolsWindow(SideWindow):
    """The pages are `servers` and `allowed`; `pages` switches between them."""

    def __init__(self) -> None:
        super().__init__(strings.TITLE, SIZE, _MINIMUM)
        self.pages = Segment([("servers", strings.SERVERS), ("allowed", strings.ALLOWED)])
        self.pages.setAccessibleName(strings.PAGES)
        self.add = Button(strings.ADD, small=True, icon_name="plus")
        self.import_ = Button(strings.IMPORT, small=True, icon_name="import")
        self.servers = ServersPage()
        self.allowed = AllowedPage()
        self._stack = QStackedWidget()
        self._stack.addWidget(self.servers)
        self._stack.addWidget(self.allowed)
        header = self.make_header((self.pages,), (self.import_, self.add), subtitle=strings.SUBTITLE)
        column_of(header, (self._stack, 1), parent=self)
        self.pages.value_changed.connect(self._show_page)
        self.servers.list.setFocus()

    def event(self, event: QEvent) -> bool:
        if event.type() is QEvent.Type.WindowActivate:  # a permission may have been given meanwhile
            self.shown.emit()
        return super().event(event)

    def _show_page(self, page: str) -> None:
        self._stack.setCurrentWidget(self.servers if page == "servers" else self.allowed)


class ServersPage(QWidget):
    """The list of servers, and the `detail` of the selected one."""

    def __init__(self) -> None:
        super().__init__()
        self.list = RecordTable[ServerRow](strings.LIST, SERVER_COLUMNS)
        self.list.set_empty(strings.NO_SERVERS, strings.NO_SERVERS_HINT)
        self.detail = ServerDetail()
        side = QWidget()
        set_fixed_width(side, _LIST_PX)
        set_ground(side, "panel", "right")
        column_of((self.list, 1), margins=(0, 0, 1, 0), parent=side)
        row_of(side, (self.detail, 1), parent=self)

    def show_rows(self, rows: Sequence[ServerRow]) -> None:
        self.list.show_rows(rows)
        self.detail.setVisible(bool(rows))


class ServerDetail(QWidget):
    """One server: its switch, its state, and its tools, command and log."""

    def __init__(self) -> None:
        super().__init__()
        self.name = TextLabel("", 15, 20, "text", weight=600, elide=Qt.TextElideMode.ElideMiddle)
        self.switch = Switch()
        self.switch.setAccessibleName(strings.SWITCH)
        self.restart = IconButton("redo", strings.RESTART)
        self.edit = IconButton("edit", strings.EDIT)
        self.remove = IconButton("trash", strings.REMOVE)
        self.state = TextLabel("", 12, 17, "text2", wrap=True)
        self.tabs = Segment(
            [("command", strings.TAB_COMMAND), ("tools", strings.TAB_TOOLS), ("log", strings.TAB_LOG)]
        )
        self.tabs.setAccessibleName(strings.TABS)
        self.tools = ToolsPart()
        self.command = TextView(strings.COMMAND, 12, mono=True, ground="text_area")
        self.command.document().setDocumentMargin(10)
        self.log = TextView(strings.TAB_LOG, 11.5, mono=True, ground="text_area")
        self.log.document().setDocumentMargin(10)
        self._stack = QStackedWidget()
        for part in (self.command, self.tools, self.log):
            self._stack.addWidget(part)
        head = row_of((self.name, 1), self.switch, 6, self.restart, self.edit, self.remove, gap=4)
        margins = (_PAD_PX, 14, _PAD_PX, 16)
        tabs = row_of(self.tabs, STRETCH)
        column_of(head, self.state, tabs, (self._stack, 1), gap=10, margins=margins, parent=self)
        self.tabs.value_changed.connect(
            lambda tab: self._stack.setCurrentIndex(("command", "tools", "log").index(tab))
        )

    def show_server(self, entry: ServerEntry, state: ServerState, on: bool, tokens: int | None) -> None:
        """Show a server. `tokens`: total of its tools; None if some are not counted."""
        self.name.setText(visible(entry.name))
        self.name.updateGeometry()
        self.switch.setChecked(on)
        self.restart.setEnabled(on)
        failed = on and state.phase == "failed"
        self.state.setText(_state_words(entry, state, on, tokens))
        self.state.set_color("danger" if failed else "text2")
        self.state.updateGeometry()
        self.switch.setAccessibleDescription(self.state.text())
        command = command_text(entry)
        if command != self.command.toPlainText():
            self.command.setPlainText(command)

    def show_log(self, text: str) -> None:
        """Show the log; stays at its end if it was scrolled there."""
        bar = self.log.verticalScrollBar()
        at_end = bar.value() >= bar.maximum()
        self.log.setPlainText(text or strings.NO_LOG)
        if at_end:
            bar.setValue(bar.maximum())


def _state_words(entry: ServerEntry, state: ServerState, on: bool, tokens: int | None) -> str:
    if not on:
        return strings.OFF_NOTE if entry.command else strings.ADDRESS_OFF_NOTE
    again = strings.RESTARTED if state.restarts and state.phase == "ready" else ""
    match state.phase:
        case "ready":
            words = strings.running(len(state.tools), tokens)
        case "failed":
            words = f"{strings.FAILED}."
        case "ended":
            words = strings.AGAIN
        case _:
            words = strings.STARTING
    return " ".join(filter(None, (words, state.problem, state.hint, again)))


def command_text(entry: ServerEntry, *, note: bool = True) -> str:
    """The whole command line or address of a server, and its environment or headers; secrets are hidden.

    `note`: add which other variables it gets.
    """
    entry = without_values(entry)
    values = entry.env if entry.command else entry.headers
    values = values | dict.fromkeys(entry.secrets, MASK)
    lines = [f"{name}={value}" if entry.command else f"{name}: {value}" for name, value in values.items()]
    title = strings.COMMAND if entry.command else strings.ADDRESS
    about = strings.ENVIRONMENT if entry.command else strings.HEADERS
    text = f"{title}\n{entry.whole}\n\n{about}\n" + ("\n".join(lines) or strings.NO_ENVIRONMENT)
    text = "\n".join(map(visible, text.split("\n")))
    return f"{text}\n\n{strings.ENVIRONMENT_NOTE}" if entry.command and note else text


class ToolsPart(QWidget):
    """The tools of a server, and the description and schema of the selected one."""

    def __init__(self) -> None:
        super().__init__()
        self.list = RecordTable[ToolRow](strings.TOOL_LIST, TOOL_COLUMNS)
        self.list.set_empty(strings.NO_TOOLS, strings.NO_TOOLS_HINT)
        self.text = TextView(strings.TOOL_DETAIL, 12, mono=True, ground="text_area")
        self.text.document().setDocumentMargin(10)
        set_fixed_height(self.text, _TOOL_TEXT_PX)
        column_of((self.list, 1), Hairline(), self.text, parent=self)

    def show_tool(self, tool: ServerTool | None) -> None:
        """Show a description and schema in full; None: no tool is selected."""
        self.text.setVisible(tool is not None)
        if tool is not None:
            says = tool.description.strip() or strings.NO_DESCRIPTION
            text = f"{says}\n\n{strings.SCHEMA}\n{tool.schema}"
            self.text.setPlainText("\n".join(map(visible, text.split("\n"))))


class AllowedPage(QWidget):
    """Tools that are allowed without asking, with buttons to revoke this."""

    def __init__(self) -> None:
        super().__init__()
        self.list = RecordTable[AllowanceRow](strings.ALLOWED_LIST, ALLOWANCE_COLUMNS)
        self.list.set_empty(strings.NOTHING_ALLOWED, strings.NOTHING_ALLOWED_HINT)
        self.note = TextLabel(strings.ALLOWED_NOTE, 11, 15, "text2", wrap=True)
        self.take_back = Button(strings.TAKE_BACK, small=True)
        self.take_back_all = Button(strings.TAKE_BACK_ALL, small=True)
        buttons = row_of(self.take_back, self.take_back_all, gap=8)
        foot = row_of((self.note, 1), buttons, gap=20, margins=(26, 10, 18, 12))
        column_of((self.list, 1), Hairline(), foot, parent=self)

    def show_rows(self, rows: Sequence[AllowanceRow]) -> None:
        self.list.show_rows(rows)
        self.take_back_all.setEnabled(bool(rows))
        self.take_back.setEnabled(bool(self.list.selected))
