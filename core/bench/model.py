"""The measured model: loaded and tried out, so that a bench drafts what an answer would draft.

Until a model was tried, no trees are verified, and on an architecture that nobody tried nothing is drafted at
all; the window tries it in idle time, which a bench does not have. What was found stands in the results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from core.bench.environment import Environment, describe
from core.events import ModelInfo
from core.system.progress_line import ProgressLine

if TYPE_CHECKING:  # importing these loads MLX, which a bench must prepare first
    from core.decoding.probes.trials import Verdict
    from core.engine.engine import Engine
    from core.models.loader import LoadedModel


def load_tried(
    engine: Engine, reference: str, blas: str, *, quiet: bool = False
) -> tuple[ModelInfo, Environment]:
    """Load `reference` and try it out (some seconds at its first use). Raises `ModelError`."""
    with ProgressLine(quiet) as line:
        line.say(f"Loading {reference}", now=True)
        info = engine.load(reference)
        line.say(f"Trying out {info.name}: are trees exact, and long prompts", now=True)
        return info, describe(blas, info.dtype, found(engine.try_out()))


def use_tried(engine: Engine, loaded: LoadedModel) -> Engine:
    """The same with a model that is in memory."""
    engine.use(loaded)
    engine.try_out()
    return engine


def found(verdict: Verdict) -> str:
    """What `verdict` allows, in words for a report."""
    agreed = verdict.splits.agreed_tokens
    trees = f"chains only ({verdict.why_no_trees})" if verdict.why_no_trees else "trees verified"
    if agreed is None:
        return trees
    return f"{trees}, no drafts nor reuse beyond {agreed:,} tokens ({verdict.splits.reason})"
