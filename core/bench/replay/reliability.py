"""Reliability: whether a drafter's confidences mean what they say, in deciles of confidence.

A verified node whose parent was accepted (or is the root) has a fate: it was accepted or not. In
each decile the mean confidence should be the share that was accepted. Nodes below a rejected one
have no fate and are not counted. Knows no drafter.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct

from core.drafting.draft import Draft

_DECILES = 10


class Fate(Struct, frozen=True):
    """What was promised for one node, and whether it was kept."""

    confidence: float
    accepted: bool


class Decile(Struct, frozen=True):
    """Nodes whose confidence is in [`low`, `low` + 0.1); the last decile holds 1.0 too."""

    low: float
    nodes: int
    mean_confidence: float
    acceptance: float

    @property
    def error(self) -> float:
        """Mean confidence minus acceptance: above zero it promises too much."""
        return self.mean_confidence - self.acceptance


def fates(draft: Draft, path: Sequence[int]) -> list[Fate]:
    """The fates of `draft`'s nodes after the walk along `path`; none if it has no confidences."""
    if len(draft.confidence) != len(draft):
        return []
    accepted = set(path)
    return [
        Fate(confidence, node in accepted)
        for node, (parent, confidence) in enumerate(zip(draft.parents, draft.confidence))
        if parent < 0 or parent in accepted
    ]


def deciles(all_fates: Iterable[Fate]) -> tuple[Decile, ...]:
    """The deciles that hold any node, lowest first."""
    held: list[list[Fate]] = [[] for _ in range(_DECILES)]
    for fate in all_fates:
        held[min(_DECILES - 1, max(0, int(fate.confidence * _DECILES)))].append(fate)
    return tuple(
        Decile(
            index / _DECILES,
            len(inside),
            sum(fate.confidence for fate in inside) / len(inside),
            sum(fate.accepted for fate in inside) / len(inside),
        )
        for index, inside in enumerate(held)
        if inside
    )


def worst_error(table: Sequence[Decile], least_nodes: int) -> float:
    """The largest absolute error of a decile with at least so many nodes; 0 if there is none."""
    return max((abs(decile.error) for decile in table if decile.nodes >= least_nodes), default=0.0)
