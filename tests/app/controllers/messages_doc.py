"""Writes docs/messages.md: who handles what, from the tables that the window runs on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

from app.controllers.answering import AnswerController
from app.controllers.chat_settings import ChatSettings
from app.controllers.worker import TroubleController, WorkerController
from app.features.models.controller import ModelsController
from app.features.tables.controller import TablesController
from app.features.worker_caches import EmbeddingController, SavedChatsController
from app.session.turn.intents import INTENTS
from app.session.turn.link_state import Phase
from app.session.turn.turn import RULES
from app.shell.handlers import Handlers

DOC = Path(__file__).parents[3] / "docs" / "messages.md"
_HEAD = """# Messages

Made by `make messages-doc` from the tables that the window runs on; a test holds it to them.

What the window hears from the worker, and what a person wants of it, is handled by one rule of the
state machine (`app/session/turn/turn.py`), and only in the phases named. A rule answers with the next state
and with effects. `app/shell/handlers.py` has the handlers of each effect."""
_Made = TypeVar("_Made")


def handlers() -> Handlers:
    """With controllers that know nothing yet: their methods can be named, not called."""

    def bare(kind: type[_Made]) -> _Made:
        return kind.__new__(kind)

    return Handlers(
        lambda effect: None,
        lambda effect: None,
        bare(AnswerController).take,
        bare(WorkerController),
        bare(TroubleController),
        bare(TablesController),
        bare(ModelsController),
        bare(ChatSettings),
        bare(EmbeddingController),
        bare(SavedChatsController),
    )


def markdown() -> str:
    heard = {kind: rule for kind, rule in RULES.items() if kind not in INTENTS}
    wanted = {kind: rule for kind, rule in RULES.items() if kind in INTENTS}
    lines = [_HEAD]
    for title, rules in (("WorkerEvent from the worker", heard), ("Wanted by a person", wanted)):
        lines += [f"\n## {title}\n", "| message | phases | rule |", "|---|---|---|"]
        lines += [
            f"| `{kind.__name__}` | {_phases(phases)} | `{rule.__name__}` |"
            for kind, (phases, rule) in rules.items()
        ]
    lines += ["\n## Effects\n", "| effect | handlers |", "|---|---|"]
    lines += [
        f"| `{kind.__name__}` | {', '.join(map(_named, each))} |" for kind, each in handlers().table.items()
    ]
    return "\n".join(lines) + "\n"


def _phases(phases: frozenset[Phase]) -> str:
    without = [phase.value for phase in Phase if phase not in phases]
    if not without:
        return "all"
    if len(without) < len(phases):
        return f"all but {', '.join(without)}"
    return ", ".join(phase.value for phase in Phase if phase in phases)


def _named(handler: Any) -> str:
    if handler.__name__ == "<lambda>":
        return "the worker's process, by `WindowController`"
    return f"`{handler.__qualname__}`"


if __name__ == "__main__":
    DOC.write_text(markdown(), encoding="utf-8")
