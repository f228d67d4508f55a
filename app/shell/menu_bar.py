"""The table of commands as Qt's actions, as a menu bar and as tables of keyboard shortcuts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import groupby

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QMenuBar

from app.shell.commands import MENUS, Command, Commands, MenuFacts, Role, all_commands

WRITING = "Writing"
# Keys that text fields handle and no menu shows.
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
    # Qt passes these to the system's own panels, such as one for saving, if it may guess them by title.
    "text": QAction.MenuRole.TextHeuristicRole,
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
        """Enable and name the actions by the facts of the window."""
        self.show_facts(self._commands.facts())

    def show_facts(self, facts: MenuFacts) -> None:
        """Enable and name the actions by `facts`."""
        for command_id, command in self._table.items():
            action = self._actions[command_id]
            action.setEnabled(action.isVisible() and command.when(facts))
            if command.title_on:
                on = command_id in facts.checked
                action.setText(command.title_on if on else command.title)
            if command.checkable:
                action.setChecked(command_id in facts.checked)

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
        action.setCheckable(command.checkable)
        action.setShortcuts([QKeySequence(key) for key in command.keys])
        action.setMenuRole(_ROLES[command.role])
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

    def __init__(self, actions: Actions) -> None:
        super().__init__()
        for spec in MENUS:
            menu = QMenu(spec.title, self)
            for group in spec.groups:
                for submenu, commands in groupby(group, lambda each: each.submenu):
                    into = menu.addMenu(submenu) if submenu else menu
                    into.addActions([actions[each.id] for each in commands])
                menu.addSeparator()  # Qt hides it next to another or at the end
            self.addMenu(menu)


def _native(keys: str) -> str:
    """`keys` as this system writes them."""
    return QKeySequence(keys).toString(_NATIVE)
