"""The table of commands as Qt's actions, as a menu bar and as a sheet of keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QAction, QKeySequence, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QGridLayout, QMenu, QMenuBar, QWidget

from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.features.side_window import SideWindow
from app.shell.commands import MENUS, Command, Commands, MenuFacts, Role, all_commands
from app.theme.measures import (
    add_gap,
    column_of,
    lay_beside,
    row_of,
    set_minimum_width,
    set_spacings,
)
from app.theme.theme import Theme
from app.theme.zoom import height_of, painter_on, px, width_of

SHORTCUTS = "Keyboard Shortcuts"
WRITING = "Writing"
# What the fields do by themselves and no menu shows.
WRITING_KEYS = (
    ("Send", "Return"),
    ("Insert a line break", "Shift+Return"),
    ("Edit the last message", "Up"),
    ("Other versions", "Left, Right"),
)

_NATIVE = QKeySequence.SequenceFormat.NativeText
_ROLES: dict[Role, QAction.MenuRole] = {
    # Not Qt's default, which guesses the role from the title.
    "none": QAction.MenuRole.NoRole,
    "about": QAction.MenuRole.AboutRole,
    "preferences": QAction.MenuRole.PreferencesRole,
    "quit": QAction.MenuRole.QuitRole,
}


class Actions:
    """The commands as actions of the chat window, which owns them and their keys."""

    def __init__(self, commands: Commands) -> None:
        self._commands = commands
        self._table = {command.id: command for command in all_commands()}
        self._actions = {each.id: self._make(each) for each in self._table.values()}
        commands.window.addActions(list(self._actions.values()))
        self.refresh()
        commands.facts_changed.connect(self.refresh)

    def __getitem__(self, command_id: str) -> QAction:
        """The action of a command. Raises `KeyError`."""
        return self._actions[command_id]

    def provide(self, command_id: str, act: Callable[[], object]) -> None:
        """Show a command that has no action in the table, with this action."""
        action = self._actions[command_id]
        if action.isVisible():
            raise ValueError(f"The command {command_id} has an action already.")
        action.triggered.connect(lambda checked: act())
        action.setVisible(True)
        self.refresh()

    def refresh(self) -> None:
        """Enable and check the actions by the facts of the window."""
        self.show_facts(self._commands.facts())

    def show_facts(self, facts: MenuFacts) -> None:
        """Enable, check and name the actions by `facts`."""
        for command_id, command in self._table.items():
            action, on = self._actions[command_id], command_id in facts.checked
            action.setEnabled(action.isVisible() and command.when(facts))
            if command.checkable:
                action.setChecked(on)
            if command.title_on:
                action.setText(command.title_on if on else command.title)

    def sheet(self) -> list[tuple[str, list[tuple[str, str]]]]:
        """Title and first key of each visible command that has keys, by menu."""
        found = [
            (
                menu.title.replace("&", ""),
                [
                    (each.title.rstrip("…"), _native(each.keys[0]))
                    for group in menu.groups
                    for each in group
                    if each.keys and self[each.id].isVisible()
                ],
            )
            for menu in MENUS
        ]
        writing = [(title, ", ".join(map(_native, keys.split(", ")))) for title, keys in WRITING_KEYS]
        return [(WRITING, writing), *(each for each in found if each[1])]

    def _make(self, command: Command) -> QAction:
        action = QAction(command.title, self._commands.window)
        action.setObjectName(command.id)
        action.setShortcuts([QKeySequence(key) for key in command.keys])
        action.setMenuRole(_ROLES[command.role])
        action.setCheckable(command.checkable)
        context = Qt.ShortcutContext
        in_app = command.reach == "app"
        action.setShortcutContext(context.ApplicationShortcut if in_app else context.WindowShortcut)
        act = command.act
        action.setVisible(act is not None)
        if act is not None:
            action.triggered.connect(lambda checked: act(self._commands))
        return action


class MenuBar(QMenuBar):
    """The menus of the table. In the window, where the system has no menu bar, with a hairline below."""

    def __init__(self, theme: Theme, actions: Actions) -> None:
        super().__init__()
        self._theme = theme
        for spec in MENUS:
            menu = QMenu(spec.title, self)
            for group in spec.groups:
                menu.addActions([actions[each.id] for each in group])
                menu.addSeparator()  # Qt hides it next to another or at the end
            self.addMenu(menu)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = painter_on(self)
        painter.fillRect(QRectF(0, height_of(self) - 1, width_of(self), 1), self._theme.color("hair"))


def _native(keys: str) -> str:
    """`keys` as this system writes them."""
    return QKeySequence(keys).toString(_NATIVE)


_SIZE = QSize(760, 820)
_KEYS_PX = 120
_PAD_PX = 24
_GROUP_GAP_PX = 24

# A heading, and pairs of a command and its keys.
Sheet = Sequence[tuple[str, Sequence[tuple[str, str]]]]


class ShortcutsWindow(SideWindow):
    """`sheet` has headings with rows of a command and its keys."""

    def __init__(self, theme: Theme, sheet: Sheet, parent: QWidget | None = None) -> None:
        super().__init__(theme, SHORTCUTS, _SIZE, parent=parent)
        self.sheet = tuple(sheet)
        page = QWidget()
        self._sides = (column_of(), column_of())
        # Balances the columns to within one group.
        lengths = [0, 0]
        for heading, rows in self.sheet:
            place = lengths.index(min(lengths))
            lengths[place] += len(rows) + 2
            self._sides[place].addLayout(self._group(heading, rows))
            add_gap(self._sides[place], _GROUP_GAP_PX)
        for side in self._sides:
            side.addStretch(1)
        margins = (_PAD_PX, _PAD_PX, _PAD_PX, _PAD_PX)
        sides = ((side, 1) for side in self._sides)
        self._columns = row_of(*sides, gap=2 * _PAD_PX, margins=margins, parent=page)
        column_of(ScrollPage(theme, page), parent=self)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lays the sheet out in two columns if they fit."""
        super().resizeEvent(event)
        widest = max(side.sizeHint().width() for side in self._sides)
        beside = 2 * (widest + px(2 * _PAD_PX)) <= self.width()
        lay_beside(self._columns, beside)

    def _group(self, heading: str, rows: Sequence[tuple[str, str]]) -> QGridLayout:
        grid = QGridLayout()
        set_spacings(grid, 12, 6)
        grid.setAlignment(Qt.AlignmentFlag.AlignTop)
        grid.setColumnStretch(0, 1)
        grid.addWidget(TextLabel(self._theme, heading, 12, 16, "text", weight=600), 0, 0, 1, 2)
        for number, (title, keys) in enumerate(rows, start=1):
            grid.addWidget(TextLabel(self._theme, title, 13, 18, "text"), number, 0)
            written = TextLabel(self._theme, keys, 13, 18, "text2", tabular=True)
            set_minimum_width(written, _KEYS_PX)
            grid.addWidget(written, number, 1)
        return grid
