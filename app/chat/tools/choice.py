"""The choice of a chat's tools: the composer's button, with their number and tokens, and its popover."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

from msgspec import Struct
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QHideEvent, QKeyEvent
from PySide6.QtWidgets import QFrame, QWidget

from app.chat.tools import strings
from app.controls.buttons import Button, IconLabel, on_click, themed_icon
from app.controls.choices import CheckBox
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.session.tools.calls import ChosenTool
from app.session.tools.form import visible
from app.theme.measures import column_of, row_of, set_fixed_width
from app.theme.sheet import set_ground
from app.theme.zoom import px


class ToolOffer(Struct, frozen=True):
    """A tool that can be chosen. `tokens`: length of its declaration in a prompt; None: not counted yet."""

    name: str
    description: str = ""
    tokens: int | None = None


class ServerOffer(Struct, frozen=True):
    """A server that is on. `says`: why it has no tools, because it is starting or has an error."""

    name: str
    tools: tuple[ToolOffer, ...] = ()
    says: str = ""
    failed: bool = False


class ToolChoice(Struct, frozen=True):
    """Available and chosen tools of the open chat. `why_not`: why the loaded model may not use tools."""

    servers: tuple[ServerOffer, ...] = ()
    chosen: tuple[ChosenTool, ...] = ()
    why_not: str = ""

    @property
    def tokens(self) -> int | None:
        """Total of all chosen tools; None if one is not counted."""
        counts = {
            ChosenTool(server.name, tool.name): tool.tokens
            for server in self.servers
            for tool in server.tools
        }
        found = [counts.get(each) for each in self.chosen]
        known = [each for each in found if each is not None]
        return sum(known) if len(known) == len(found) else None


class ToolsButton(Button):
    """Opens the popover above it. `wire` sets its callbacks."""

    def __init__(self, closed: Callable[[], object], parent: QWidget | None = None) -> None:
        """`closed` is called when the popover was closed."""
        super().__init__(strings.TOOLS, "quiet", parent=parent)
        self.choice = ToolChoice()
        self._closed = closed
        self._choose: Callable[[tuple[ChosenTool, ...]], object] = lambda tools: None
        self._opened: Callable[[], object] = lambda: None
        self._manage: Callable[[], object] = lambda: None
        on_click((self, self.open))
        self.show_choice(self.choice)

    def wire(
        self,
        choose: Callable[[tuple[ChosenTool, ...]], object],
        opened: Callable[[], object],
        manage: Callable[[], object],
    ) -> None:
        """`choose` gets the chosen tools; `opened` is called before it opens, `manage` by its button."""
        self._choose, self._opened, self._manage = choose, opened, manage

    @cached_property
    def popover(self) -> ToolsPopover:
        """The choice, made when it is first opened."""
        popover = ToolsPopover(self._choose, self._manage, self._closed, self)
        popover.show_choice(self.choice)
        return popover

    def show_choice(self, choice: ToolChoice) -> None:
        self.choice = choice
        words = strings.tools_button(len(choice.chosen), choice.tokens)
        if words != self.text():
            self.setText(words)
            self.updateGeometry()
        says = choice.why_not if choice.why_not and choice.chosen else strings.CHOICE_SAYS
        self.setAccessibleName(words if choice.chosen else strings.TOOLS)
        self.setAccessibleDescription(says)
        self.setToolTip(says)
        self.setIcon(themed_icon("warn" if choice.why_not and choice.chosen else "tools"))
        if "popover" in self.__dict__:
            self.popover.show_choice(choice)

    def open(self) -> None:
        """Open the popover above the button."""
        self._opened()
        self.popover.open_at(self.mapToGlobal(QPoint(0, 0)))


_WIDTH_PX, _PAD_PX = 360, 14
_INNER_PX = _WIDTH_PX - 2 * _PAD_PX
_MOST_PX = 380


class ToolsPopover(QFrame):
    """The tools of all servers, each with a check box, and the total of tokens."""

    def __init__(
        self,
        choose: Callable[[tuple[ChosenTool, ...]], object],
        manage: Callable[[], object],
        closed: Callable[[], object],
        parent: QWidget,
    ) -> None:
        super().__init__(parent, Qt.WindowType.Popup)
        self.choose = choose
        self.on_manage = manage
        set_ground(self, "popover")
        self.setAccessibleName(strings.CHOICE)
        self.setAccessibleDescription(strings.CHOICE_SAYS)
        self._closed = closed
        self._choice = ToolChoice()
        self.boxes: dict[ChosenTool, CheckBox] = {}
        self.server_boxes: dict[str, CheckBox] = {}
        self._tokens: dict[ChosenTool, TextLabel] = {}
        self._corner = QPoint()
        self.title = TextLabel(strings.CHOICE, 13, 18, "text", weight=600)
        self.why_not = TextLabel("", 12, 16, "text", wrap=True, width_px=_INNER_PX - 22)
        self._why_row = QWidget()
        row_of(IconLabel("warn", "text2"), (self.why_not, 1), gap=8, parent=self._why_row)
        self.nothing = TextLabel(strings.NO_SERVERS, 12, 16, "text2", wrap=True, width_px=_INNER_PX)
        self._page = QWidget()
        self._list = column_of(gap=2, margins=(0, 0, 10, 0), parent=self._page)
        self._scroll = ScrollPage(self._page)
        self.sum = TextLabel("", 11, 15, "text2", tabular=True)
        self.manage = Button(strings.MANAGE, small=True)
        on_click((self.manage, self._manage))
        foot = row_of((self.sum, 1), self.manage, gap=8)
        parts = (self.title, self._why_row, self.nothing, (self._scroll, 1), foot)
        self._column = column_of(*parts, gap=8, margins=(_PAD_PX, 12, _PAD_PX, 12), parent=self)
        set_fixed_width(self, _WIDTH_PX)
        self.hide()

    def show_choice(self, choice: ToolChoice) -> None:
        listed = [
            (each.name, each.says, each.failed, tuple(tool.name for tool in each.tools))
            for each in choice.servers
        ]
        before = [
            (each.name, each.says, each.failed, tuple(tool.name for tool in each.tools))
            for each in self._choice.servers
        ]
        self._choice = choice
        if listed != before:
            self._rebuild()
        self.why_not.setText(choice.why_not)
        self._why_row.setVisible(bool(choice.why_not))
        self.nothing.setVisible(not choice.servers)
        self._scroll.setVisible(bool(choice.servers))
        self.manage.setText(strings.MANAGE if choice.servers else strings.ADD_SERVERS)
        self.sum.setText(strings.chosen(len(choice.chosen), choice.tokens) if choice.servers else "")
        for tool, box in self.boxes.items():
            box.setChecked(tool in choice.chosen)
        for server in choice.servers:
            of_server = [box for tool, box in self.boxes.items() if tool.server == server.name]
            if server.name in self.server_boxes:
                self.server_boxes[server.name].setChecked(all(box.isChecked() for box in of_server))
            for offer in server.tools:
                label = self._tokens[ChosenTool(server.name, offer.name)]
                label.setText(strings.tool_tokens(offer.tokens))
                label.updateGeometry()
        if self.isVisible():
            self._fit()

    def open_at(self, corner: QPoint) -> None:
        """Open it with its lower left corner at `corner`, a point on the screen."""
        self._corner = corner
        self._fit()
        self.show()
        first = next(iter(self.server_boxes.values()), self.manage)
        first.setFocus(Qt.FocusReason.PopupFocusReason)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.close()
        else:
            super().keyPressEvent(event)

    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        self._closed()

    # ---- inside

    def _fit(self) -> None:
        """Fit the height to the list, and move above the button."""
        self._list.activate()
        self._scroll.setFixedHeight(min(px(_MOST_PX), max(px(24), self._page.sizeHint().height())))
        self._column.activate()
        height = self.sizeHint().height()
        self.resize(self.width(), height)
        screen = self.screen().availableGeometry()
        top = max(screen.top(), self._corner.y() - height - 4)
        left = max(screen.left(), min(self._corner.x(), screen.right() - self.width()))
        self.move(left, top)

    def _rebuild(self) -> None:
        while self._list.count():
            item = self._list.takeAt(0)
            widget = item.widget() if item else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self.boxes, self.server_boxes, self._tokens = {}, {}, {}
        for server in self._choice.servers:
            self._list.addWidget(self._head(server))
            for offer in server.tools:
                self._list.addWidget(self._row(ChosenTool(server.name, offer.name), offer))
        self._list.addStretch(1)

    def _head(self, server: ServerOffer) -> QWidget:
        row = QWidget()
        name = visible(server.name)
        if server.tools:
            box = self.server_boxes[server.name] = CheckBox(name)
            box.setAccessibleName(strings.ALL_OF.format(server=name))
            box.clicked.connect(lambda on, of=server.name: self._choose_all(of, on))
            row_of((box, 1), margins=(0, 6, 0, 0), parent=row)
        else:
            ink = "danger" if server.failed else "text2"
            label = TextLabel(name, 13, 18, "text")
            says = TextLabel(server.says, 12, 16, ink, wrap=True, width_px=_INNER_PX - 20)
            column_of(label, says, gap=2, margins=(0, 6, 0, 0), parent=row)
        return row

    def _row(self, tool: ChosenTool, offer: ToolOffer) -> QWidget:
        row = QWidget()
        box = self.boxes[tool] = CheckBox(visible(offer.name))
        says = " ".join(visible(offer.description).split())
        box.setToolTip(says)
        box.setAccessibleDescription(says)
        box.clicked.connect(lambda on: self._choose_one(tool, on))
        tokens = self._tokens[tool] = TextLabel("", 11, 15, "text2", tabular=True)
        row_of((box, 1), tokens, gap=8, margins=(22, 0, 0, 0), parent=row)
        return row

    def _manage(self) -> None:
        self.close()
        self.on_manage()

    def _choose_one(self, tool: ChosenTool, on: bool) -> None:
        chosen = [each for each in self._choice.chosen if each != tool]
        self.choose((*chosen, tool) if on else tuple(chosen))

    def _choose_all(self, server: str, on: bool) -> None:
        others = [each for each in self._choice.chosen if each.server != server]
        all_of = [tool for tool in self.boxes if tool.server == server]
        self.choose((*others, *all_of) if on else tuple(others))
