"""Actions: the declared actions as Qt's, on the chat window, with what was bound to them.

One that nothing is bound to has no key and stands in no menu. Nothing here knows what an action
does or where it is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from app.shell.menus.declared import ActionSpec, Role, all_actions
from app.shell.menus.facts import MenuFacts, holds

_ROLES: dict[Role, QAction.MenuRole] = {
    # Never Qt's guess by the title.
    "none": QAction.MenuRole.NoRole,
    "about": QAction.MenuRole.AboutRole,
    "preferences": QAction.MenuRole.PreferencesRole,
    "quit": QAction.MenuRole.QuitRole,
}


class Actions:
    """`window` owns the actions and their keys."""

    def __init__(self, window: QWidget) -> None:
        self._specs = {spec.id: spec for spec in all_actions()}
        self._actions = {spec.id: _make(spec, window) for spec in self._specs.values()}
        self._facts = MenuFacts()
        window.addActions(list(self._actions.values()))

    def __getitem__(self, action_id: str) -> QAction:
        """The action declared as `action_id`. An unknown one is our bug (KeyError)."""
        return self._actions[action_id]

    def bind(self, slots: Mapping[str, Callable[[], object]]) -> None:
        """Let each action do this from now on. Binding one twice is our bug (ValueError)."""
        for action_id, slot in slots.items():
            action = self._actions[action_id]
            if action.isVisible():
                raise ValueError(f"The action {action_id} is bound already.")
            action.triggered.connect(lambda checked, slot=slot: slot())
            action.setVisible(True)
        self.show_facts(self._facts)

    def show_facts(self, facts: MenuFacts) -> None:
        """Let those be used that can be used, and mark what is on."""
        self._facts = facts
        for action_id, spec in self._specs.items():
            action = self._actions[action_id]
            action.setEnabled(action.isVisible() and holds(spec.when, facts))
            if spec.checkable:
                action.setChecked(action_id in facts.checked)


def _make(spec: ActionSpec, window: QWidget) -> QAction:
    action = QAction(spec.title, window)
    action.setObjectName(spec.id)
    action.setShortcuts([QKeySequence(key) for key in spec.keys])
    action.setMenuRole(_ROLES[spec.role])
    action.setCheckable(spec.checkable)
    context = Qt.ShortcutContext
    action.setShortcutContext(context.ApplicationShortcut if spec.reach == "app" else context.WindowShortcut)
    action.setVisible(False)
    return action
