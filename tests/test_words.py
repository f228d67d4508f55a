"""The window's words: the field's own, one for a thing, in sentence case, in every `strings.py` and setting.

What a person reads stands in the `strings.py` of its folder, and in the declarations of the settings.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

from app.panels.inspector.strings import GROUP_TITLES
from core.settings import Settings, WindowSettings, declared
from core.settings.cluster import ClusterForm

ROOT = Path(__file__).parents[1]

# What was once said so, and how it is said now.
OUTDATED = {
    r"^answer again": "Regenerate",
    r"go on from here": "Branch into new chat",
    r"rest remembered": "N cached",
    r"skip-reading": "Sparse prefill",
    r"judged by": "Scorer",
    r"under memory": "under Learning",
    r"least (chance|likely|repetition)": "Min probability",
    r"when to draft|draft when": "Draft gating",
    r"^it pays": "Adaptive",
    r"\bis here\b": "Installed",
    r"\bgo(es)? on\b(?! (without|with) )": "Resume, or continue",
    r"\bput away\b": "Dismiss",
    r"^getting .*ready": "Loading …",
    r"every answer is the plain one": "All outputs match",
    r"\btaken? in\b": "Import",
    r"\btake .* off the list\b": "Remove from list",
}
# So much is wrong as a label; in a sentence it may be what is meant.
OUTDATED_LABELS = {
    "Look": "Appearance",
    "Most tokens": "Max draft tokens",
    "Alternatives": "Branches per position",
    "Go on": "Resume",
    "Get": "Download",
    "Is here": "Installed",
}
# What a group of settings, or one of them, is not called.
OUTDATED_TITLES = OUTDATED_LABELS | {"Memory": "Learning"}

# What begins with a capital wherever it stands: names, and what is quoted from the window by its label.
NAMES = frozenset(
    # names
    {"Draftlight", "Mac", "Markdown", "Apache", "Office", "Word", "Debian", "Ubuntu", "Qt", "Inter"}
    | {"Finder", "JetBrains", "Mono", "Anthropic", "Prometheus", "Return", "Right", "Ctrl", "Shift"}
    | {
        "Thunderbolt",
        "Western",
        "Hebrew",
        "Baltic",
        "Roman",
        "Cyrillic",
        "Central",
        "European",
        "Greek",
        "Turkish",
        "Arabic",
    }
    # windows, sections and values of settings, by their labels
    | {"Race", "Tables", "Lab", "Settings", "Document", "Auto", "Cacheback", "Reset", "Learning", "Exactness"}
)
# Menu items and buttons, which have Title Case.
COMMANDS = frozenset({"Send Now"})
# A sentence begins after one of these, and so does what is quoted.
_BEGINS = re.compile(r"(^|[.!?:…]\s+|[“(&]|## |\n|[·|] +)(\{[^}]*\} |\s)*$")
_CAPITAL = re.compile(r"\b[A-Z][a-z]+\b")


def texts_of_files() -> Iterator[tuple[str, str]]:
    """Where, and each text there; the parts of an f-string are joined, its values are braces."""
    for path in sorted(ROOT.glob("app/**/strings.py")) + sorted(ROOT.glob("core/**/strings.py")):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.FunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        inside = {
            id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                yield f"{path.relative_to(ROOT)}:{node.lineno}", "".join(map(str, parts))
            elif (
                isinstance(node, ast.Constant)
                and isinstance(node.value, str)
                and id(node) not in docstrings
                and id(node) not in inside
            ):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", node.value


def texts_of_settings() -> Iterator[tuple[str, str]]:
    """Title, help, labels and notes of each setting."""
    roots: tuple[type[Struct], ...] = (Settings, WindowSettings, ClusterForm)
    for setting in (each for root in roots for each in declared(root)):
        for text in (setting.title, setting.help, *setting.labels.values(), *setting.notes.values()):
            yield setting.key, text


TEXTS = [*texts_of_files(), *texts_of_settings()]


def not_in_sentence_case(text: str) -> list[str]:
    """The words in it that begin with a capital and should not."""
    if text in COMMANDS:
        return []
    return [
        found.group()
        for found in _CAPITAL.finditer(text)
        if found.group() not in NAMES and not _BEGINS.search(text[: found.start()])
    ]


def outdated(text: str) -> list[str]:
    """What is to be said instead of what it says."""
    said = [now for old, now in OUTDATED.items() if re.search(old, text, re.IGNORECASE)]
    return said + [now for old, now in OUTDATED_LABELS.items() if text.rstrip("…") == old]


def test_there_are_texts_to_look_at() -> None:
    assert len(TEXTS) > 900
    assert any(text == "Sparse prefill" for _, text in TEXTS)


def test_nothing_is_called_as_it_was_once() -> None:
    assert {where: (text, outdated(text)) for where, text in TEXTS if outdated(text)} == {}


def test_no_setting_and_no_group_has_an_outdated_title() -> None:
    titles = {setting.title for root in (Settings, WindowSettings, ClusterForm) for setting in declared(root)}
    assert titles.union(GROUP_TITLES.values()).isdisjoint(OUTDATED_TITLES)


def test_all_is_in_sentence_case() -> None:
    found = {where: (text, wrong) for where, text in TEXTS if (wrong := not_in_sentence_case(text))}
    assert found == {}


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Export As Markdown…", ["As"]),
        ("Export as Markdown. It takes long.", []),
        ("Sparse Prefill", ["Prefill"]),
        ("“Guarded” or “Exact” under it", []),
    ],
)
def test_sentence_case_is_seen(text: str, wrong: list[str]) -> None:
    assert not_in_sentence_case(text) == wrong


@pytest.mark.parametrize("text", ["Answer again", "3 rest remembered", "It pays", "Look", "Getting it ready"])
def test_old_words_are_seen(text: str) -> None:
    assert outdated(text)
