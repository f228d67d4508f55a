"""Every action of Draftlight, declared once: name, title, keys, place in the menus, when it can be used.

The keys are the visual design's, written as Qt does: `Ctrl` is ⌘ on a Mac and Ctrl elsewhere, `Meta` is a
Mac's ⌃. An action stands in the menus as soon as something is bound to it. Actions of reach `app` work
from every window of Draftlight, the others from the chat window only.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Literal

from app.shell.menus import strings
from app.shell.menus.facts import When

Role = Literal["none", "about", "preferences", "quit"]
Reach = Literal["window", "app"]

# The Mac's own keys (⌃⌘S) have no likeness elsewhere, where ⌘ is Ctrl.
SIDEBAR_KEYS = "Ctrl+Meta+S" if sys.platform == "darwin" else "Ctrl+Alt+S"
_FULL_SCREEN_KEYS = ("Ctrl+Meta+F",) if sys.platform == "darwin" else ("F11",)


@dataclass(frozen=True)
class ActionSpec:
    """One action. `role` moves it into the app's own menu on a Mac; `checkable` marks what is on."""

    id: str
    title: str
    keys: tuple[str, ...] = ()
    when: When = "always"
    role: Role = "none"
    reach: Reach = "window"
    checkable: bool = False


@dataclass(frozen=True)
class MenuSpec:
    """One menu, in groups with a line between them."""

    title: str
    groups: tuple[tuple[ActionSpec, ...], ...]


MENUS = (
    MenuSpec(
        strings.CHAT,
        (
            (
                ActionSpec("new_chat", strings.NEW_CHAT, ("Ctrl+N",)),
                ActionSpec("attach", strings.ATTACH, ("Ctrl+O",)),
                ActionSpec("attach_folder", strings.ATTACH_FOLDER, ("Ctrl+Shift+O",)),
            ),
            (
                ActionSpec("rename", strings.RENAME, when="asked"),
                ActionSpec("pin", strings.PIN, when="asked"),
                ActionSpec("archive", strings.ARCHIVE, ("Ctrl+Shift+A",), when="asked"),
                ActionSpec("delete", strings.DELETE, when="asked"),
                ActionSpec("undo_delete", strings.UNDO_DELETE, when="deleted"),
            ),
            (
                ActionSpec("archived", strings.ARCHIVED),
                ActionSpec("deleted", strings.DELETED),
            ),
            (
                ActionSpec("export_markdown", strings.EXPORT_MARKDOWN, when="asked"),
                ActionSpec("export_json", strings.EXPORT_JSON, when="asked"),
                ActionSpec("import", strings.IMPORT),
            ),
            (ActionSpec("settings", strings.SETTINGS, ("Ctrl+,",), role="preferences", reach="app"),),
            (
                ActionSpec("close", strings.CLOSE, ("Ctrl+W",), reach="app"),
                ActionSpec("quit", strings.QUIT, ("Ctrl+Q",), role="quit", reach="app"),
            ),
        ),
    ),
    MenuSpec(
        strings.EDIT,
        (
            (
                ActionSpec("undo", strings.UNDO, ("Ctrl+Z",)),
                ActionSpec("redo", strings.REDO, ("Ctrl+Shift+Z",)),
            ),
            (
                ActionSpec("cut", strings.CUT, ("Ctrl+X",)),
                ActionSpec("copy", strings.COPY, ("Ctrl+C",)),
                ActionSpec("paste", strings.PASTE, ("Ctrl+V",)),
                ActionSpec("paste_raw", strings.PASTE_RAW, ("Ctrl+Shift+V",)),
                ActionSpec("select_all", strings.SELECT_ALL, ("Ctrl+A",)),
                ActionSpec("quote", strings.QUOTE, ("Ctrl+Shift+B",), "asked"),
            ),
            (
                ActionSpec("search", strings.SEARCH, ("Ctrl+K",)),
                ActionSpec("find", strings.FIND, ("Ctrl+F",), "asked"),
                ActionSpec("find_next", strings.FIND_NEXT, ("Ctrl+G",), "asked"),
                ActionSpec("find_previous", strings.FIND_PREVIOUS, ("Ctrl+Shift+G",), "asked"),
            ),
        ),
    ),
    MenuSpec(
        strings.VIEW,
        (
            (
                ActionSpec("sidebar", strings.SIDEBAR, (SIDEBAR_KEYS,), checkable=True),
                ActionSpec("inspector", strings.INSPECTOR, ("Ctrl+Alt+I",), checkable=True),
            ),
            (
                ActionSpec("document", strings.DOCUMENT, ("Ctrl+Alt+D",), checkable=True),
                ActionSpec("next_passage", strings.NEXT_PASSAGE, ("Ctrl+Alt+Down",), "document"),
                ActionSpec("previous_passage", strings.PREVIOUS_PASSAGE, ("Ctrl+Alt+Up",), "document"),
            ),
            (
                ActionSpec("tint_always", strings.TINT_ALWAYS, checkable=True),
                ActionSpec("tint_hover", strings.TINT_HOVER, checkable=True),
                ActionSpec("tint_never", strings.TINT_NEVER, checkable=True),
                ActionSpec("tint", strings.TINT, ("Ctrl+T",)),
            ),
            (ActionSpec("gauges", strings.GAUGES, checkable=True),),
            (
                # The plus is a shifted equals sign on many keyboards.
                ActionSpec("zoom_in", strings.ZOOM_IN, ("Ctrl++", "Ctrl+="), reach="app"),
                ActionSpec("zoom_out", strings.ZOOM_OUT, ("Ctrl+-",), reach="app"),
                ActionSpec("zoom_reset", strings.ZOOM_RESET, ("Ctrl+0",), reach="app"),
            ),
            (ActionSpec("full_screen", strings.FULL_SCREEN, _FULL_SCREEN_KEYS, checkable=True),),
        ),
    ),
    MenuSpec(
        strings.ANSWER,
        (
            (
                ActionSpec("stop", strings.STOP, ("Esc", "Ctrl+."), "busy"),
                ActionSpec("regenerate", strings.REGENERATE, ("Ctrl+R",), "answerable"),
                # By key: Up in an empty composer, which is the composer's own.
                ActionSpec("edit_last", strings.EDIT_LAST, when="editable"),
                ActionSpec("continue", strings.CONTINUE, when="unended"),
            ),
            (
                ActionSpec("copy_answer", strings.COPY_ANSWER, ("Ctrl+Shift+C",), "asked"),
                ActionSpec("branch", strings.BRANCH, when="asked"),
                ActionSpec("compare", strings.COMPARE, when="versions"),
            ),
            (ActionSpec("restart", strings.RESTART),),
        ),
    ),
    MenuSpec(
        strings.PERFORMANCE,
        (
            (
                ActionSpec("race", strings.RACE, ("Ctrl+Shift+R",), reach="app"),
                ActionSpec("tables", strings.TABLES, ("Ctrl+Shift+T",), reach="app"),
                ActionSpec("lab", strings.LAB, ("Ctrl+Shift+L",), reach="app"),
                ActionSpec("machines", strings.MACHINES, reach="app"),
            ),
        ),
    ),
    MenuSpec(
        strings.WINDOW,
        (
            (
                ActionSpec("server", strings.SERVER, ("Ctrl+Shift+S",), reach="app"),
                ActionSpec("models", strings.MODELS, ("Ctrl+Shift+M",), reach="app"),
                ActionSpec("library", strings.LIBRARY, ("Ctrl+Shift+D",), reach="app"),
            ),
        ),
    ),
    MenuSpec(
        strings.HELP,
        (
            # Bound once there is one.
            (ActionSpec("update", strings.UPDATE),),
            (
                ActionSpec("help", strings.HELP_TEXT, ("F1",)),
                ActionSpec("shortcuts", strings.SHORTCUTS, ("Ctrl+/",), reach="app"),
            ),
            (ActionSpec("about", strings.ABOUT, role="about", reach="app"),),
        ),
    ),
)


def all_actions() -> tuple[ActionSpec, ...]:
    """Of all menus, in their order."""
    return tuple(spec for menu in MENUS for group in menu.groups for spec in group)
