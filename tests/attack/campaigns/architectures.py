"""Tries every drafter, tree, reuse and skip-reading on a tiny random model of every type of mlx-lm.

A case is one model type or a variant of it (other RoPE scaling, windows, heads) with random weights.
The product first tries the model out by itself, as it does in idle time; then each drafter's answers,
turns and continued answers are compared, token for token, with what plain decoding from a cold start
gives. What the product refuses with a reason is no fault; the reason is kept for `docs/models.md`.
"""

from __future__ import annotations

import signal
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from core.models.runtime import prepare
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.tiny_configs import variants
from tests.attack.support.variables import variables

_LIMIT_S = 120.0


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    prepare()
    from tests.core.toy import write_toy_model

    tried = variants()
    # Verdicts are kept in a place of this run's own.
    with (
        tempfile.TemporaryDirectory(prefix="draftlight-architectures-") as scratch,
        variables(DRAFTLIGHT_HOME=str(Path(scratch) / "home")),
    ):
        draft_model = Path(scratch) / "draft"
        write_toy_model(draft_model)
        for case in cases:
            yield _case(seed, case, tried, draft_model)


def _case(seed: int, case: int, tried: Sequence[str], draft_model: Path) -> Outcome:
    from tests.attack.support.architecture_trial import Trial
    from tests.attack.support.tiny_models import NotBuiltError, tiny_model

    turn, place = divmod(case, len(tried))
    variant = tried[place]
    notes = {"architecture": variant}
    try:
        with _limit():
            name, model = f"{variant} {turn}", tiny_model(variant, turn)
            trial = Trial(name, model, case_random("architectures", seed, case), draft_model)
            trial.run()
    except NotBuiltError as error:
        return Outcome(case, "", {"not built": 1.0}, {}, {**notes, "not built": str(error)})
    except Exception as error:  # whatever a model's code raises through the product
        return Outcome(case, f"{variant}: {type(error).__name__}: {error}", {}, {}, notes)
    return Outcome(case, "; ".join(trial.faults), trial.counts, {}, {**notes, **trial.notes})


@contextmanager
def _limit() -> Iterator[None]:
    """A case that takes longer is a fault."""

    def end(number: int, frame: FrameType | None) -> Any:
        raise TimeoutError(f"it was not done after {_LIMIT_S:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, _LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


CAMPAIGN = Campaign(
    "architectures",
    "On every model type, drafts, trees and reuse give what plain decoding gives, or are refused",
    3,
    len(variants()),
    _run,
    listed=True,
)
