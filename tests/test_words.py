"""The window's words: the field's own, one for a thing, in every `strings.py` and setting.

Menu items, menus, buttons and titles of windows have Title Case by Apple's style guide; all else has sentence
case.
"""

from __future__ import annotations

import ast
import errno
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from msgspec import Struct

from app.panels.strings import GROUP_TITLES
from core.errors import ModelError, reason_of
from core.settings import Settings, WindowSettings, declared

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
    {
        "Draftlight",
        "Python",
        "Mac",
        "Markdown",
        "Apache",
        "Office",
        "Word",
        "Outlook",
        "Debian",
        "Ubuntu",
        "Qt",
        "Inter",
    }
    | {"Finder", "JetBrains", "Mono", "Anthropic", "Prometheus", "Return", "Right", "Alt", "Ctrl", "Shift"}
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
    | {"Claude", "Desktop", "Cursor", "Code", "Open", "LM", "Studio", "Mbit"}
    # windows, sections and values of settings, by their labels
    | {
        "Race",
        "Tables",
        "Lab",
        "Models",
        "Settings",
        "Document",
        "Auto",
        "Cacheback",
        "Reset",
        "Learning",
        "Exactness",
    }
)
# What shows a text as a menu item, a menu or a button, and which of its arguments that is.
_SHOWN_AS_COMMAND = dict.fromkeys(("Command", "add_command"), 1) | dict.fromkeys(
    ("Button", "Menu", "QMenu", "addAction", "addMenu"), 0
)
# Titles of windows, and texts that reach a menu or a button in another way.
_ALSO_COMMANDS = frozenset(
    {
        "UNDO_IMPORT",
        "COPY_SOURCE",
        *(f"EXPORT_{which}{kind}" for which in ("", "ALL_") for kind in ("PDF", "HTML", "MARKDOWN", "JSON")),
        "FROM_LIBRARY",
    }
    | {
        "KEEP_IN_LIBRARY",
        "PIN",
        "RENAME_PRESET_TITLE",
        "REPAIR_INCOMPLETE",
        "SAVE_ELSEWHERE",
        "SAVE_ELSEWHERE_TITLE",
        "SAVE_IMAGE",
        "SAVE_PRESET_AS",
        "SAVE_PRESET_TITLE",
    }
    | {"REMOVE_IMAGE", "REMOVE_IMAGES"}
    | {"SHOW_IN_FOLDER", "SHOW_LIBRARY", "SHOW_SKIPPED", "WAY_NEW_CHAT"}
    | {"ADD_SERVERS", "ADD_SERVER", "EDIT_SERVER"}
    | {"HIDE_ATTACHMENTS", "SHOW_ATTACHMENTS", "SHOW_LESS", "SHOW_LESS_OF_MANY", "SHOW_MORE"}
    | {"DOWNLOAD_MODEL", "HIDE_DETAILS", "REPAIR_CHATS", "RESTORE_CHATS", "TRY_AGAIN"}
    | {"ATTACH_FILE", "ATTACH_FOLDER"}
    | {"CHOOSE_FOLDER", "CONNECT_TITLE", "COPY_PATH", "DELETED", "DIFFERENCE_TITLE", "ERASE"}
    | {"MENU_COPY_CODE", "MENU_COPY_LINK", "MENU_OPEN_LINK", "MENU_QUOTE", "MENU_SELECT_ALL"}
    | {"CANCEL_DOWNLOAD", "DOWNLOAD_OFFERED", "USE_STARTER", "VARY_ANSWER"}
    | {"ADD_FILES", "ASK_HUB", "NONE_DELETED", "NOTHING"}  # a button, and titles of empty lists
    | {"ADD_FILES_TITLE", "DELETE_CHATS", "KEEP_CHATS", "KEEP_EDITING", "NEW_PROJECT", "NO_PROJECT"}
    | {"EXPORT_TITLE", "IMPORT_TITLE", "LOAD_PREVIOUS", "LOAD_YES", "OPEN_TITLE", "TITLE"}
)
# Lower case in a title unless first or last: articles, conjunctions, prepositions of up to four letters.
_SMALL = frozenset(
    {"a", "an", "and", "as", "at", "but", "by", "for", "from", "in", "into", "nor", "of", "off", "on", "or"}
    | {"per", "the", "to", "up", "via", "with"}
)
# A sentence begins after one of these, and so does what is quoted.
_BEGINS = re.compile(r"(^|[.!?:…]\s+|[“(&[]|## |\n|[·|] +)(\{[^}]*\} |\s)*$")
_CAPITAL = re.compile(r"\b[A-Z][a-z]+\b")


# Small features have their texts in the module that shows them, as public constants.
_OWN_TEXTS = tuple(
    ROOT / "app" / name
    for name in (
        "controls/sheets.py",
        "features/about.py",
        "features/chats.py",
        "features/library.py",
        "features/projects.py",
        "features/settings/window.py",
        "shell/menu_bar.py",
    )
)


def constants(tree: ast.Module) -> list[ast.Assign]:
    """The public constants of a module."""
    return [
        node
        for node in tree.body
        if isinstance(node, ast.Assign)
        and all(isinstance(target, ast.Name) and target.id.isupper() for target in node.targets)
        and not any(isinstance(target, ast.Name) and target.id.startswith("_") for target in node.targets)
    ]


def texts_of_files() -> Iterator[tuple[str, str]]:
    """Where, and each text there; the parts of an f-string are joined, its values are braces."""
    files = sorted(ROOT.glob("app/**/strings.py")) + sorted(ROOT.glob("core/**/strings.py"))
    for path in (*files, *_OWN_TEXTS):
        tree = ast.parse(path.read_text("utf-8"))
        if path in _OWN_TEXTS:
            tree = ast.Module(list[ast.stmt](constants(tree)), [])
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
    roots: tuple[type[Struct], ...] = (Settings, WindowSettings)
    for setting in (each for root in roots for each in declared(root)):
        for text in (setting.title, setting.help, *setting.labels.values(), *setting.notes.values()):
            yield setting.key, text


def not_in_sentence_case(text: str) -> list[str]:
    """The words in it that begin with a capital and should not."""
    text = re.sub("“[^“”]*”", "“”", text)  # a label that is quoted
    return [
        found.group()
        for found in _CAPITAL.finditer(text)
        if found.group() not in NAMES and not _BEGINS.search(text[: found.start()])
    ]


def not_in_title_case(text: str) -> list[str]:
    """The words in it that should begin with a capital and do not, or the other way round."""
    words = re.findall(r"[^\W\d_][\w’'-]*", re.sub("{[^}]*}", "", text.replace("&", "")))
    ends = {0, len(words) - 1}
    return [
        word
        for at, word in enumerate(words)
        if word[0].islower() != (word.lower() in _SMALL and at not in ends) and word not in NAMES
    ]


@cache
def commands() -> dict[str, str]:
    """The texts that are shown as menu items, menus or buttons, by file and line."""
    found: dict[str, str] = {}
    declared_in: dict[str, dict[str, tuple[str, str]]] = {}
    for path in (*sorted(ROOT.glob("app/**/strings.py")), *_OWN_TEXTS):
        where = str(path.relative_to(ROOT))
        for node in ast.parse(path.read_text("utf-8")).body:
            match node:
                case ast.Assign(targets=[ast.Name("COMMANDS")], value=ast.Dict(values=texts)):
                    found |= {f"{where}:{text.lineno}": ast.literal_eval(text) for text in texts}
        declared_in[where.removesuffix(".py").replace("/", ".")] = {
            target.id: (f"{where}:{node.lineno}", node.value.value)
            for node in ast.parse(path.read_text("utf-8")).body
            if isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
    for texts in declared_in.values():
        also = (texts[name] for name in _ALSO_COMMANDS & texts.keys())
        found |= dict(also)
    for path in sorted(ROOT.glob("app/**/*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        modules = {
            alias.asname or alias.name: f"{node.module}.{alias.name}"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if alias.name == "strings"
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            at = _SHOWN_AS_COMMAND.get(name)
            given = node.args[at] if at is not None and at < len(node.args) else None
            if isinstance(given, ast.Constant) and isinstance(given.value, str) and given.value:
                found[f"{path.relative_to(ROOT)}:{given.lineno}"] = given.value
            elif isinstance(given, ast.Name) and path in _OWN_TEXTS:
                own = declared_in[str(path.relative_to(ROOT)).removesuffix(".py").replace("/", ".")]
                if given.id in own:
                    where, text = own[given.id]
                    found[where] = text
            elif isinstance(given, ast.Attribute) and isinstance(given.value, ast.Name):
                texts = declared_in.get(modules.get(given.value.id, ""), {})
                if given.attr in texts:
                    where, text = texts[given.attr]
                    found[where] = text
    return found


# Not on import: each process of the tests imports this file.
@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Every text by its file and line."""
    return tuple(dict.fromkeys([*texts_of_files(), *texts_of_settings(), *commands().items()]))


def outdated(text: str) -> list[str]:
    """What is to be said instead of what it says."""
    said = [now for old, now in OUTDATED.items() if re.search(old, text, re.IGNORECASE)]
    return said + [now for old, now in OUTDATED_LABELS.items() if text.rstrip("…") == old]


def test_there_are_texts_to_look_at() -> None:
    assert len(texts()) > 900
    assert any(text == "Sparse prefill" for _, text in texts())


def test_nothing_is_called_as_it_was_once() -> None:
    assert {where: (text, outdated(text)) for where, text in texts() if outdated(text)} == {}


def test_no_setting_and_no_group_has_an_outdated_title() -> None:
    titles = {setting.title for root in (Settings, WindowSettings) for setting in declared(root)}
    assert titles.union(GROUP_TITLES.values()).isdisjoint(OUTDATED_TITLES)


def test_all_is_in_sentence_case() -> None:
    found = {
        where: (text, wrong)
        for where, text in texts()
        if where not in commands() and (wrong := not_in_sentence_case(text))
    }
    assert found == {}


def test_menu_items_and_buttons_have_title_case() -> None:
    assert len(commands()) > 100
    assert {w: (text, wrong) for w, text in commands().items() if (wrong := not_in_title_case(text))} == {}


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


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Zoom in", ["in"]),
        ("Paste As Plain Text", ["As"]),
        ("Branch into New Chat", []),
        ("Export as Markdown…", []),
        ("&View", []),
        ("Stop answering", ["answering"]),
    ],
)
def test_title_case_is_seen(text: str, wrong: list[str]) -> None:
    assert not_in_title_case(text) == wrong


@pytest.mark.parametrize("text", ["Answer again", "3 rest remembered", "It pays", "Look", "Getting it ready"])
def test_old_words_are_seen(text: str) -> None:
    assert outdated(text)


# ---- reasons of errors


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/some/file"),
        KeyError("weight_map"),
        RecursionError("maximum recursion depth exceeded"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        RuntimeError("[matmul] Last dimension of first input does not match.\nsecond line"),
        RuntimeError(),
        ModelError("The model is broken.", "Choose another."),
    ],
)
def test_a_reason_is_part_of_a_sentence(error: Exception) -> None:
    words = reason_of(error)
    assert words
    assert "\n" not in words
    assert not words.endswith(".")
    for told in (type(error).__name__, "Errno", "/some/file", "second line"):
        assert told not in words


def test_no_message_names_the_class_of_an_exception() -> None:
    """What people read says it with `reason_of`. Comparisons and logs may use the name."""
    found = []
    for path in (*ROOT.glob("app/**/*.py"), *ROOT.glob("core/**/*.py")):
        source = path.read_text("utf-8")
        if ".__name__" not in source and "!r}" not in source:
            continue
        for handler in ast.walk(ast.parse(source)):
            if not isinstance(handler, ast.ExceptHandler) or not handler.name:
                continue
            compared = [
                part for each in ast.walk(handler) if isinstance(each, ast.Compare) for part in ast.walk(each)
            ]
            told = f"type({handler.name}).__name__"
            named = [
                each for each in ast.walk(handler) if isinstance(each, ast.Attribute | ast.FormattedValue)
            ]
            found += [
                f"{path.relative_to(ROOT)}:{each.lineno}"
                for each in named
                if each not in compared and ast.unparse(each) in (told, f"f'{{{handler.name}!r}}'")
            ]
    assert found == []
