"""The Edit menu: what it does is done by the text that has the focus, of whatever kind it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtWidgets import QApplication

# A field of Qt's calls it the one way, a text of ours the other.
_METHODS = {
    "undo": ("undo",),
    "redo": ("redo",),
    "cut": ("cut",),
    "copy": ("copy",),
    "paste": ("paste",),
    "select_all": ("selectAll", "select_all"),
}


def slots() -> dict[str, Callable[[], object]]:
    """For each action of the Edit menu that any text knows."""
    return {action_id: partial(_call, names) for action_id, names in _METHODS.items()}


def _call(names: tuple[str, ...]) -> None:
    """Nothing happens where there is no such thing to do."""
    focused = QApplication.focusWidget()
    for name in names:
        method = getattr(focused, name, None)
        if callable(method):
            method()
            return
