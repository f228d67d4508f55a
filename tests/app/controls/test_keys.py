"""Keys as each system sends them: modifiers, and keys that a Mac's keyboard has under another code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QKeyEvent

from app.controls.keys import held

_APP = Path(__file__).parents[3] / "app"
_MODIFIER = Qt.KeyboardModifier
_REAL = (_MODIFIER.ShiftModifier, _MODIFIER.ControlModifier, _MODIFIER.AltModifier, _MODIFIER.MetaModifier)
# The keypad's Enter is a key of its own, and the key that erases backwards is a Mac's only “delete”.
_TWINS = (("Key_Return", "Key_Enter"), ("Key_Delete", "Key_Backspace"))


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(_APP.rglob("*.py")):
        yield str(path.relative_to(_APP)), ast.parse(path.read_text("utf-8"))


@given(st.sets(st.sampled_from(_REAL)), st.booleans(), st.sampled_from([Qt.Key.Key_Up, Qt.Key.Key_A]))
def test_only_the_keys_that_are_held_count(
    pressed: set[Qt.KeyboardModifier], keypad: bool, key: Qt.Key
) -> None:
    modifiers = _MODIFIER.NoModifier
    for each in pressed:
        modifiers |= each
    flagged = modifiers | _MODIFIER.KeypadModifier if keypad else modifiers
    assert held(QKeyEvent(QEvent.Type.KeyPress, key, flagged)) == modifiers


def test_no_code_compares_the_modifiers_of_an_event_as_they_come() -> None:
    found = [
        f"{name}:{node.lineno}"
        for name, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("modifiers", "keyCombination", "nativeModifiers")
        and name != "controls/keys.py"
    ]  # fmt: skip
    assert found == [], "use app.controls.keys.held"


@pytest.mark.sweep
@pytest.mark.parametrize("twins", _TWINS)
def test_where_one_key_counts_its_twin_does(twins: tuple[str, str]) -> None:
    alone = []
    for name, tree in _trees():
        for node in ast.walk(tree):
            if not isinstance(node, ast.Compare | ast.Tuple | ast.Set | ast.List | ast.Dict):
                continue
            keys = {each.attr for each in ast.walk(node) if isinstance(each, ast.Attribute)} & set(twins)
            if len(keys) == 1:
                alone.append(f"{name}:{node.lineno} has {keys}")
    assert alone == []
