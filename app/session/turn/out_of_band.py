"""Out of band: what goes between window and worker beside the one turn, each for a controller of its own.

Such commands may be sent in every phase in which there is a worker to hear them, and such events
change nothing of the turn: each becomes one effect. Pure data for the machine in `turn.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from app.session.turn.effects import Effect, ModelsFailed, ModelsHeard, TablesFailed, TablesHeard
from app.session.turn.intents import ModelCommand, TableCommand
from core.events import (
    DownloadProgress,
    Failed,
    ModelImported,
    ModelList,
    ModelRemoved,
    ModelsFound,
    Rehearsing,
    TableDone,
    TableList,
)

# The effect that an event of each type becomes.
HEARD: dict[type, Callable[[Any], Effect]] = dict.fromkeys(
    (ModelList, ModelsFound, DownloadProgress, ModelImported, ModelRemoved), ModelsHeard
)
HEARD |= dict.fromkeys((TableList, TableDone, Rehearsing), TablesHeard)


def _names(commands: Any) -> list[str]:
    """As failures name them."""
    return [str(command.__struct_config__.tag) for command in get_args(commands)]


# The effect that a failure of each command becomes.
FAILED: dict[str, Callable[[Failed], Effect]] = dict.fromkeys(_names(ModelCommand), ModelsFailed)
FAILED |= dict.fromkeys(_names(TableCommand), TablesFailed)
