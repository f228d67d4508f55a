"""Tally: what the outcomes of a campaign come to, and the table of all of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct

from tests.attack.campaign import Campaign, Outcome, rerun_command


class Tally(Struct):
    """Sums over the outcomes of `campaign`.

    `asked`: the number of requested cases; `ended`: why fewer ran; `seed`: of the run.
    """

    campaign: str
    promise: str
    asked: int
    cases: int
    faults: list[Outcome]
    counts: dict[str, float]
    peaks: dict[str, float]
    seconds: float
    ended: str = ""
    seed: int = 1

    @property
    def passed(self) -> bool:
        """All cases ran and none failed."""
        return self.cases == self.asked and not self.faults


def tally(
    campaign: Campaign, asked: int, outcomes: Iterable[Outcome], seconds: float, ended: str, seed: int
) -> Tally:
    """Add `outcomes` up."""
    total = Tally(campaign.name, campaign.promise, asked, 0, [], {}, {}, seconds, ended, seed)
    for outcome in outcomes:
        total.cases += 1
        if outcome.fault:
            total.faults.append(outcome)
        for name, value in outcome.counts.items():
            total.counts[name] = total.counts.get(name, 0) + value
        for name, value in outcome.peaks.items():
            total.peaks[name] = max(total.peaks.get(name, value), value)
    return total


def read_outcomes(path: Path) -> list[Outcome]:
    """The outcomes that were written, whole lines only."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [msgspec.json.decode(line, type=Outcome) for line in lines]


def table(tallies: Sequence[Tally]) -> str:
    """Markdown: a row for each campaign, then every fault with the command that repeats it."""
    rows = ["| campaign | cases | faults | seconds | figures | what must hold |", "|---|---|---|---|---|---|"]
    for one in tallies:
        figures = [f"{name} {_short(value)}" for name, value in one.counts.items()]
        figures += [f"at most {name} {_short(value)}" for name, value in one.peaks.items()]
        cases = f"{one.cases:,}" if one.cases == one.asked else f"{one.cases:,} of {one.asked:,}"
        row = (
            one.campaign,
            cases,
            str(len(one.faults)),
            f"{one.seconds:.0f}",
            ", ".join(figures),
            one.promise,
        )
        rows.append("| " + " | ".join(row) + " |")
    for one in tallies:
        rows += [f"\n{one.campaign}: {one.ended}"] if one.ended else []
        rows += [
            f"\n{one.campaign}, case {outcome.case}: {outcome.fault}\n"
            f"    {rerun_command(one.campaign, one.seed, outcome.case)}"
            for outcome in one.faults
        ]
    return "\n".join(rows) + "\n"


def _short(value: float) -> str:
    return f"{value:,.0f}" if value == int(value) else f"{value:,.3g}"
