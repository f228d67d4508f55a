"""Draftlight from Python: an engine that is ready to answer.

Importing this loads neither MLX nor anything heavy; `open_engine` does, in the order that MLX needs
(`core.models.runtime`). Use the engine on the thread that opened it, and close it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:  # importing it loads MLX, which must be prepared before
    from core.engine.engine import Engine


def open_engine(model: str = "starter") -> Engine:
    """An engine that has `model` loaded: starter, a folder, or the name of a hub model that is here.

    What its drafters learn lasts as long as the engine. Raises `ModelError`, `NotPreparedError`,
    `MissingLibraryError`.
    """
    from core.models.runtime import prepare

    prepare()
    from core.engine.engine import Engine

    engine = Engine()
    engine.load(model)
    return engine
