"""Results of measurements from files: a sweep's own, and those of the other benches, as one kind of record.

Pure but for reading the file. Of `bench decode`, `parity`, `prefill` and `quality` what the Lab can
show is taken; what they do not say stays unknown (a parity file has no speeds).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from app.session.lab import SweepPlan
from core.errors import RequestError
from core.events import PositionStat
from core.events.sweep import SweepCell, SweepLikeness, SweepPair, SweepReading, SweepResults, SweepTurn
from core.settings.prefill import SCORERS

FILE_NAME = "results.json"
_TURN = re.compile(r"(.+), turn (\d+)")


class PromptClass(Struct, frozen=True):
    """A class of a prompts file: how many prompts it has, and how many turns if they are conversations."""

    file: str
    kind: str
    prompts: int
    turns: int = 0


class _Line(Struct, frozen=True, rename={"kind": "class"}):
    prompt: str = ""
    kind: str = "prompt"
    turns: tuple[str, ...] = ()


class _Machine(Struct, frozen=True):
    system: str = ""
    machine: str = ""
    processor: str = ""
    commit: str = ""

    @property
    def line(self) -> str:
        return f"{self.system} {self.machine}, {self.processor}; {self.commit}"


class _Pair(Struct, frozen=True):
    ratio: float = 0.0
    candidate_tokens_per_s: float = 0.0
    baseline_tokens_per_s: float = 0.0
    candidate_ttft_s: float = 0.0
    baseline_ttft_s: float = 0.0
    ttft_s: float = 0.0
    first_difference: int | None = None
    equal: bool = True


class _Divergence(Struct, frozen=True):
    index: int
    baseline_token: str
    candidate_token: str
    margin_width_1: float
    predicted: bool


class _Cell(Struct, frozen=True):
    kind: str = ""
    configuration: str = ""
    prompt_tokens: int = 0
    tokens: int = 0
    acceptance: float = 0.0
    mean_per_step: float = 0.0
    positions: tuple[PositionStat, ...] = ()
    pairs: tuple[_Pair, ...] = ()
    k: int = 0
    n_min: int = 0
    comparisons: int = 0
    equal: int | bool = 0
    divergence: _Divergence | None = None
    scorer: str = ""
    keep_pct: float = 0.0
    ran: str = ""
    reason: str = ""
    read_tokens: int = 0


class _Trial(Struct, frozen=True):
    part: str
    reader: str
    top1_agreement: float | None


class _Other(Struct, frozen=True):
    """Any other bench's file, as far as it is of interest."""

    bench: str
    model: str
    environment: _Machine = _Machine()
    pairs: int = 0
    runs: int = 0
    max_tokens: int = 0
    keep_pct: float = 0.0
    cells: tuple[_Cell, ...] = ()
    trials: tuple[_Trial, ...] = ()


def read_results(path: Path) -> SweepResults:
    """Returns the results in `path`. Raises `RequestError` with the file and the expected content."""
    try:
        content = path.read_bytes()
        bench = msgspec.json.decode(content, type=dict[str, msgspec.Raw]).get("bench")
        name = msgspec.json.decode(bench, type=str) if bench is not None else ""
        if name == "sweep":
            return msgspec.json.decode(content, type=SweepResults)
        if name in _READERS:
            return _of_other(msgspec.json.decode(content, type=_Other), path.stat().st_mtime)
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Choose another file.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise RequestError(f"{path.name} cannot be read: {error}.", _EXPECTED) from None
    raise RequestError(f"{path.name} holds no results that the Lab can show.", _EXPECTED)


def merged(all_of_them: Sequence[SweepResults]) -> SweepResults:
    """Several files as one; head and machine are the first one's."""
    first, *others = all_of_them
    for other in others:
        first = replace(
            first,
            drafters=tuple(dict.fromkeys((*first.drafters, *other.drafters))),
            cells=(*first.cells, *other.cells),
            turns=(*first.turns, *other.turns),
            readings=(*first.readings, *other.readings),
            likenesses=(*first.likenesses, *other.likenesses),
        )
    return first


def past_sweeps(folder: Path) -> list[Path]:
    """The results of earlier sweeps, the newest first."""
    return sorted(folder.glob(f"*/{FILE_NAME}"), key=lambda path: path.parent.name, reverse=True)


def read_classes(path: Path) -> list[PromptClass]:
    """The classes of a prompts file. Raises `RequestError` naming the line."""
    found: dict[str, PromptClass] = {}
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror}.", "Choose another file.") from None
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            read = msgspec.json.decode(line, type=_Line)
            if bool(read.prompt) == bool(read.turns):
                raise msgspec.ValidationError("it needs either `prompt` or `turns`")
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            hint = 'A line is like {"class": "code", "prompt": "…"}.'
            raise RequestError(f"{path.name}, line {number}: {error}.", hint) from None
        held = found.get(read.kind, PromptClass(str(path), read.kind, 0))
        found[read.kind] = replace(held, prompts=held.prompts + 1, turns=held.turns + len(read.turns))
    if not found:
        raise RequestError(f"{path.name} holds no prompts.", "Write one JSON object a line.")
    return list(found.values())


def answers_of(plan: SweepPlan, classes: Sequence[PromptClass]) -> int:
    """How many answers a sweep gives, warm-up not counted."""
    used = [each for each in classes if each.kind in plan.classes]
    single = sum(each.prompts for each in used if not each.turns)
    turns = sum(each.turns for each in used)
    return 2 * len(plan.drafters) * (single * plan.repeats + turns)


def readings_of(plan: SweepPlan) -> int:
    """How many long prompts it reads: each share and all of it for the seconds, and two documents."""
    sparse = sum(keep < 100.0 for keep in plan.keeps)
    return 1 + len(plan.keeps) + 2 * (sparse + 1) if plan.keeps else 0


def about_s(plan: SweepPlan, classes: Sequence[PromptClass], before: Sequence[SweepResults]) -> float | None:
    """Seconds that a sweep will take, by the newest of `before` with its model and length; None: unknown."""
    answers, readings = answers_of(plan, classes), readings_of(plan)
    for kind, count in (("answer", answers), ("reading", readings)):
        if count and not _mean(plan, before, kind):
            return None
    return answers * _mean(plan, before, "answer") + readings * _mean(plan, before, "reading")


def _mean(plan: SweepPlan, before: Sequence[SweepResults], kind: str) -> float:
    for results in before:
        if results.reference == plan.model and (kind == "reading" or results.max_tokens == plan.max_tokens):
            mean = results.seconds_an_answer if kind == "answer" else results.seconds_a_reading
            if mean:
                return mean
    return 0.0


# ---- the other benches

_READERS = ("decode", "parity", "prefill", "quality")
_EXPECTED = (
    "The Lab shows results.json files of its sweeps and of the benches decode, parity, prefill and quality."
)


def _of_other(other: _Other, written_s: float) -> SweepResults:
    results = SweepResults(
        "sweep",
        other.model,
        other.environment.line,
        (),
        "fast",
        other.pairs or other.runs,
        other.max_tokens,
        written_s,
        ended=True,
    )
    if other.bench == "decode":
        return _decode(results, other)
    if other.bench == "parity":
        cells = tuple(_parity_cell(number, cell) for number, cell in enumerate(other.cells))
        return replace(results, cells=cells, drafters=tuple(dict.fromkeys(cell.drafter for cell in cells)))
    if other.bench == "prefill":
        return replace(
            results, readings=tuple(_reading(cell, pair) for cell in other.cells for pair in cell.pairs)
        )
    return replace(results, likenesses=_likenesses(other))


def _decode(results: SweepResults, other: _Other) -> SweepResults:
    cells: list[SweepCell] = []
    turns: list[SweepTurn] = []
    for cell in other.cells:
        if cell.configuration == "off" or cell.kind.endswith(", all turns"):
            continue
        turn = _TURN.fullmatch(cell.kind)
        if turn:
            turns += [
                SweepTurn(
                    turn[1],
                    cell.configuration,
                    int(turn[2]),
                    cell.prompt_tokens,
                    pair.candidate_tokens_per_s,
                    pair.baseline_tokens_per_s,
                    pair.equal,
                )
                for pair in cell.pairs
            ]
            continue
        pairs = tuple(
            SweepPair(
                pair.ratio,
                pair.candidate_tokens_per_s,
                pair.baseline_tokens_per_s,
                pair.candidate_ttft_s,
                pair.baseline_ttft_s,
                pair.first_difference,
            )
            for pair in cell.pairs
        )
        cells.append(
            SweepCell(
                cell.kind,
                0,
                cell.configuration,
                cell.prompt_tokens,
                cell.tokens,
                cell.acceptance,
                cell.mean_per_step,
                cell.positions,
                pairs,
            )
        )
    names = tuple(dict.fromkeys(cell.drafter for cell in cells))
    return replace(results, cells=tuple(cells), turns=tuple(turns), drafters=names)


def _parity_cell(number: int, cell: _Cell) -> SweepCell:
    found = cell.divergence
    same, count = int(cell.equal), cell.comparisons
    differs = SweepPair(0.0, 0.0, 0.0, difference=found.index if found else 0)
    if found:
        differs = replace(
            differs,
            margin=found.margin_width_1,
            close_call=found.predicted,
            plain_text=found.baseline_token,
            drafted_text=found.candidate_token,
        )
    pairs = (*[SweepPair(0.0, 0.0, 0.0)] * same, *[differs] * (count - same))
    name = f"ngram-simple k={cell.k} n_min={cell.n_min}"
    return SweepCell(
        cell.kind,
        number,
        name,
        cell.prompt_tokens,
        0,
        cell.acceptance,
        cell.mean_per_step,
        cell.positions,
        pairs,
    )


def _reading(cell: _Cell, pair: _Pair) -> SweepReading:
    return SweepReading(
        cell.scorer,
        cell.keep_pct,
        cell.prompt_tokens,
        cell.read_tokens,
        pair.ttft_s,
        pair.baseline_ttft_s,
        cell.ran,
        cell.reason,
    )


def _likenesses(other: _Other) -> tuple[SweepLikeness, ...]:
    """Returns the keep results; of several scorers for a share, the one that agrees most."""
    held: dict[str, list[float]] = {}
    for trial in other.trials:
        if trial.top1_agreement is None or trial.part != "document":
            continue
        if trial.reader in SCORERS:
            held.setdefault(trial.reader, []).append(trial.top1_agreement)
    return tuple(
        SweepLikeness(reader, other.keep_pct, len(shares), 64 * len(shares), sum(shares) / len(shares))
        for reader, shares in sorted(held.items(), key=lambda item: sum(item[1]) / len(item[1]))
    )
