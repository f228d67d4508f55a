"""The window's entry point. Imports Qt only after it is sure that Qt can be imported."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from app.launch.display import display_problem
from core.system.paths import data_dir

if TYPE_CHECKING:
    from app.theme.theme import Scheme


def run(model: str = "", scheme: Scheme = "system", files: Sequence[Path] = ()) -> int:
    """Open the window and return when it is closed: 0, or 1 if it cannot be opened.

    `model` is loaded first; empty for the one that was chosen for that in the models' window. A window
    that is open already gets `files` instead, and this returns at once.
    """
    if problem := display_problem(os.environ, sys.platform):
        print(problem, file=sys.stderr)
        return 1
    from app.launch.failures import Failures
    from app.launch.opening import open_window, until_closed

    shown = Failures(data_dir()).shown(until_closed)
    return open_window(model, shown, scheme=scheme, folder=data_dir(), files=files)
