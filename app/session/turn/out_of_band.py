"""Out of band: what goes between window and worker beside the one turn.

Such commands may be sent in every phase in which there is a worker to hear them, and such events
change nothing of the turn: each becomes the effect `OutOfBand`. Pure data for the machine in `turn.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, get_args

from app.session.turn.effects import Effect, ModelsFailed, TablesFailed
from app.session.turn.intents import IdleCommand
from core.events import Failed
from core.events.cluster import ClusterCommand
from core.events.models import CatalogueCommand


def _names(commands: Any) -> list[str]:
    """As failures name them."""
    return [str(command.__struct_config__.tag) for command in get_args(commands)]


# The effect that a failure of each command becomes.
FAILED: dict[str, Callable[[Failed], Effect]] = dict.fromkeys(
    _names(CatalogueCommand | ClusterCommand), ModelsFailed
)
FAILED |= dict.fromkeys(_names(IdleCommand), TablesFailed)
