"""Writes docs/messages.md: who handles what, from the tables that the window runs on."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from app.launch.application import Application
from app.session.turn.intents import INTENTS
from app.session.turn.link_state import Phase
from app.session.turn.turn import RULES
from app.shell.window import MainWindow
from app.theme.theme import Theme

DOC = Path(__file__).parents[3] / "docs" / "messages.md"
_HEAD = """# Messages

Made by `make messages-doc` from the tables that the window runs on; a test holds it to them.

What the window hears from the worker, and what a person wants of it, is handled by one rule of the
state machine (`app/session/turn/turn.py`), and only in the phases named. A rule answers with the next state
and with effects. Each effect has one handler (`app/shell/controller.py`)."""


def handlers() -> dict[type, Any]:
    """The handler of each effect."""
    qapp = QApplication.instance() or Application([])
    window = MainWindow(Theme("light"))
    found = dict(window.controller.effects)
    window.controller.home.close()
    window.deleteLater()
    qapp.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)
    return found


def markdown() -> str:
    """All of the page."""
    heard = {kind: rule for kind, rule in RULES.items() if kind not in INTENTS}
    wanted = {kind: rule for kind, rule in RULES.items() if kind in INTENTS}
    lines = [_HEAD]
    for title, rules in (("WorkerEvent from the worker", heard), ("Wanted by a person", wanted)):
        lines += [f"\n## {title}\n", "| message | phases | rule |", "|---|---|---|"]
        lines += [
            f"| `{kind.__name__}` | {_phases(phases)} | `{rule.__name__}` |"
            for kind, (phases, rule) in rules.items()
        ]
    lines += ["\n## Effects\n", "| effect | handler |", "|---|---|"]
    lines += [f"| `{kind.__name__}` | {_named(handler)} |" for kind, handler in handlers().items()]
    return "\n".join(lines) + "\n"


def _phases(phases: frozenset[Phase]) -> str:
    without = [phase.value for phase in Phase if phase not in phases]
    if not without:
        return "all"
    if len(without) < len(phases):
        return f"all but {', '.join(without)}"
    return ", ".join(phase.value for phase in Phase if phase in phases)


def _named(handler: Any) -> str:
    return f"`{handler.__qualname__}`"


if __name__ == "__main__":
    DOC.write_text(markdown(), encoding="utf-8")
