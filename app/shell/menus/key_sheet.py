"""KeySheet: the declared actions that have keys, as they are written on the sheet of all keys."""

from __future__ import annotations

from PySide6.QtGui import QKeySequence

from app.features import shortcuts as strings
from app.shell.menus.actions import Actions
from app.shell.menus.declared import MENUS

_NATIVE = QKeySequence.SequenceFormat.NativeText


def sheet(actions: Actions) -> list[tuple[str, list[tuple[str, str]]]]:
    """By menu, each action that is bound, with its first key as this system writes it."""
    found: list[tuple[str, list[tuple[str, str]]]] = []
    for menu in MENUS:
        specs = [
            spec for group in menu.groups for spec in group if spec.keys and actions[spec.id].isVisible()
        ]
        rows = [(spec.title.rstrip("…"), QKeySequence(spec.keys[0]).toString(_NATIVE)) for spec in specs]
        if rows:
            found.append((menu.title.replace("&", ""), rows))
    keys = [(title, _native(keys)) for title, keys in strings.WRITING_KEYS]
    return [(strings.WRITING, keys), *found]


def _native(keys: str) -> str:
    return ", ".join(QKeySequence(each).toString(_NATIVE) for each in keys.split(", "))
