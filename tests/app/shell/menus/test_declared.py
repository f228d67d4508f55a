"""The declarations: no two actions want one key, every key of the design's table is there."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from app.shell.menus.declared import MENUS, SIDEBAR_KEYS, all_actions
from app.shell.menus.facts import MenuFacts, When, holds

# The design's table of keys, without those that are the composer's own (Return, Up).
KEYS = {
    "new_chat": {"Ctrl+N"},
    "close": {"Ctrl+W"},
    "stop": {"Esc", "Ctrl+."},
    "regenerate": {"Ctrl+R"},
    "paste_raw": {"Ctrl+Shift+V"},
    "attach": {"Ctrl+O"},
    "search": {"Ctrl+K"},
    "find": {"Ctrl+F"},
    "sidebar": {SIDEBAR_KEYS},
    "inspector": {"Ctrl+Alt+I"},
    "tint": {"Ctrl+T"},
    "document": {"Ctrl+Alt+D"},
    "next_passage": {"Ctrl+Alt+Down"},
    "race": {"Ctrl+Shift+R"},
    "tables": {"Ctrl+Shift+T"},
    "lab": {"Ctrl+Shift+L"},
    "models": {"Ctrl+Shift+M"},
    "settings": {"Ctrl+,"},
    "zoom_in": {"Ctrl++", "Ctrl+="},
    "zoom_out": {"Ctrl+-"},
    "zoom_reset": {"Ctrl+0"},
}


def test_no_id_and_no_key_twice() -> None:
    assert [i for i, n in Counter(spec.id for spec in all_actions()).items() if n > 1] == []
    assert [k for k, n in Counter(key for spec in all_actions() for key in spec.keys).items() if n > 1] == []


def test_the_keys_of_the_design() -> None:
    declared = {spec.id: set(spec.keys) for spec in all_actions()}
    assert {action: declared[action] for action in KEYS} == KEYS
    assert ("Ctrl+Meta+S" if sys.platform == "darwin" else "Ctrl+Alt+S") == SIDEBAR_KEYS


def test_one_action_for_each_role_of_a_mac() -> None:
    roles = Counter(spec.role for spec in all_actions())
    assert (roles["about"], roles["preferences"], roles["quit"]) == (1, 1, 1)
    # Those leave their menus on a Mac; no menu may be made of them alone.
    kept = [menu.title for menu in MENUS if any(s.role == "none" for g in menu.groups for s in g)]
    assert kept == [menu.title for menu in MENUS]


@pytest.mark.parametrize(
    ("when", "facts", "expected"),
    [
        ("always", MenuFacts(), True),
        ("busy", MenuFacts(ready=True), False),
        ("busy", MenuFacts(busy=True), True),
        ("answerable", MenuFacts(ready=True), False),
        ("answerable", MenuFacts(asked=True), False),
        ("answerable", MenuFacts(ready=True, asked=True), True),
        ("editable", MenuFacts(asked=True, busy=True), True),
        ("editable", MenuFacts(asked=True, busy=True, busy_here=True), False),
        ("asked", MenuFacts(), False),
        ("asked", MenuFacts(asked=True), True),
        ("deleted", MenuFacts(), False),
        ("deleted", MenuFacts(deleted=True), True),
        ("unended", MenuFacts(unended=True), False),
        ("unended", MenuFacts(ready=True, unended=True), True),
        ("versions", MenuFacts(asked=True), False),
        ("versions", MenuFacts(versions=True), True),
        ("document", MenuFacts(asked=True), False),
        ("document", MenuFacts(document=True), True),
    ],
)
def test_when_an_action_can_be_used(when: When, facts: MenuFacts, expected: bool) -> None:
    assert holds(when, facts) is expected
