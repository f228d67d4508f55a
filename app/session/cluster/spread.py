"""Spread: over how many of the machines a model fits. Pure; an estimate from figures of its files."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from core.events import MachinesChecked, ModelEntry
from core.events.models import Fit, fit_of

# Of a context with which a model is still of use, as the check of the machines takes it.
_CONTEXT_TOKENS = 2048


class Spread(Struct, frozen=True):
    """`machines` is the fewest that hold the model, this one included; 0: all of them are too few.

    `need_bytes` is all of it, `each_bytes` what each of so many holds, of all where they are too few.
    """

    machines: int
    of: int
    need_bytes: int
    each_bytes: int
    fit: Fit


def limits_of(here_bytes: int, checked: MachinesChecked | None) -> tuple[int, ...]:
    """What each machine that was reached gives, this one first; `here_bytes` where nothing was looked at."""
    if checked is None or not checked.machines:
        return (here_bytes,) if here_bytes else ()
    first, *others = checked.machines
    reached = (each.limit_bytes for each in others if each.reached and not each.busy)
    return (first.limit_bytes or here_bytes, *reached)


def spread_of(entry: ModelEntry, limits: Sequence[int]) -> Spread | None:
    """Of a model whose memory is known; `limits` as `limits_of` gives them."""
    if not entry.need.weights or not limits:
        return None
    total = entry.need.total_at(min(_CONTEXT_TOKENS, entry.context_tokens or _CONTEXT_TOKENS))
    for count in range(1, len(limits) + 1):
        each = -(-total // count)
        fit = fit_of(each, min(limits[:count]))
        if fit != "too-large":
            return Spread(count, len(limits), total, each, fit)
    return Spread(0, len(limits), total, -(-total // len(limits)), "too-large")
