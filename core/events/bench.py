"""Results of `draftlight bench`: the lines of its file, and of standard output with `--json`.

    bench_started → record* → bench_ended | failed

Each record has the answers of one configuration to one case, and mlx-lm's to the same prompts on the same
model object, measured in turn. “plain” is mlx-lm's own loop. Speeds are tokens a second.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from itertools import zip_longest
from typing import Union

import msgspec
from msgspec import Struct

from core.errors import ProtocolError
from core.events.answer import Change, PositionStat, Stats
from core.events.codec import Failed
from core.events.wire import Wire
from core.system.prepared import prepared


class Difference(Struct, frozen=True):
    """The first token, at `index`, where both answers differ; a text is empty where its answer ended.

    Margins are the plain token's logit minus the other's in blocks of 1 and of `width` tokens, None if one
    answer was only longer. `explained`: a margin is within twice the model's logit difference between widths.
    """

    index: int
    plain_text: str
    text: str
    width: int = 1
    margin: float | None = None
    margin_at_width: float | None = None
    explained: bool = False


class Pair(Struct, frozen=True):
    """Draftlight's answer to a prompt, and mlx-lm's. `peak_bytes`: MLX's peak memory, weights included.

    `compared`: the outputs must be equal, because both are greedy and read everything. `reading`: the prefill
    that was used, `dense` or `sparse`, and its reason. `two_models_per_s`: mlx-lm's speculative path with the
    draft model of `draft-model`; 0 for other drafters. `repeated`: the share of tokens that repeat earlier
    ones.
    """

    stats: Stats
    plain_tokens: int
    plain_ttft_s: float
    plain_tokens_per_s: float
    plain_peak_bytes: int
    peak_bytes: int
    compared: bool = True
    difference: Difference | None = None
    changes: tuple[Change, ...] = ()
    reading: str = "dense"
    reading_reason: str = ""
    two_models_per_s: float = 0.0
    repeated: float = 0.0

    @property
    def ratio(self) -> float:
        """Decode speed relative to mlx-lm's; 0 if an answer took a single step and has no decode time."""
        return speed_ratio(self.stats.tokens_per_s, self.plain_tokens_per_s)

    @property
    def equal(self) -> bool:
        """Whether the outputs are equal, or not compared."""
        return self.difference is None


class Record(Wire, frozen=True):
    """One case with one configuration, the `repeat`-th time (from 1). `took_s` counts both sides.

    `id` identifies the case within the run, `case` is its class. `pairs`: one for each turn.
    """

    id: str
    case: str
    configuration: str
    repeat: int
    pairs: tuple[Pair, ...]
    took_s: float

    @property
    def key(self) -> tuple[str, str, int]:
        return self.id, self.configuration, self.repeat


class BenchStarted(Wire, frozen=True):
    """The model is loaded. `records`: all of the run, also those that its file has already."""

    model: str
    environment: str
    records: int


class BenchEnded(Wire, frozen=True):
    """Everything was measured."""

    took_s: float


# ---- groups of records


class Group(Struct, frozen=True):
    """All pairs of one configuration and one class; `off`: the speeds of plain Draftlight for the same pairs.

    A speed of 0 was not measured. Conversations also have a group for each turn.
    """

    case: str
    configuration: str
    pairs: tuple[Pair, ...]
    off: tuple[float, ...]

    @property
    def ratios(self) -> list[float]:
        """The pairs' speeds relative to mlx-lm, sorted, where measured."""
        return sorted(filter(None, (pair.ratio for pair in self.pairs)))

    @property
    def ratio(self) -> float:
        """The median of `ratios`; 0 without any."""
        return median(self.ratios)

    @property
    def off_ratios(self) -> list[float]:
        """The pairs' speeds relative to plain Draftlight in the same round, where measured."""
        speeds = (pair.stats.tokens_per_s for pair in self.pairs)
        return list(filter(None, map(speed_ratio, speeds, self.off)))

    @property
    def acceptance(self) -> float:
        tested = sum(pair.stats.tested for pair in self.pairs)
        return sum(pair.stats.accepted for pair in self.pairs) / tested if tested else 0.0

    @property
    def mean_per_step(self) -> float:
        steps = sum(pair.stats.steps for pair in self.pairs)
        return sum(pair.stats.tokens for pair in self.pairs) / steps if steps else 0.0

    @property
    def equal(self) -> int:
        return sum(pair.equal for pair in self.pairs)

    @property
    def positions(self) -> list[PositionStat]:
        """Accepted and tested tokens by position in the draft."""
        none = PositionStat(0, 0)
        columns = zip_longest(*(pair.stats.positions for pair in self.pairs), fillvalue=none)
        return [PositionStat(sum(e.tested for e in c), sum(e.accepted for e in c)) for c in columns]

    def median(self, of: Callable[[Pair], float]) -> float:
        """The median of `of` over the pairs where it was measured; 0 without any."""
        return median(filter(None, map(of, self.pairs)))


ALL_CASES = "all"


def groups(records: Sequence[Record]) -> list[Group]:
    """A group for each case and configuration in measured order, then of all cases if there are several."""
    plain = {
        (record.id, record.repeat, turn): pair.stats.tokens_per_s
        for record in records
        if record.configuration == "off"
        for turn, pair in enumerate(record.pairs)
    }
    found: dict[tuple[str, str], list[tuple[Pair, float]]] = {}
    cases = dict.fromkeys(record.case for record in records)
    names: dict[str, None] = {}
    for record in sorted(records, key=lambda each: list(cases).index(each.case)):
        for turn, pair in enumerate(record.pairs):
            held = (pair, plain.get((record.id, record.repeat, turn), 0.0))
            of_turn = [f"{record.case}, turn {turn + 1}"] if len(record.pairs) > 1 else []
            names |= dict.fromkeys([record.case, *of_turn])
            for name in (record.case, *of_turn, *([ALL_CASES] if len(cases) > 1 else [])):
                found.setdefault((name, record.configuration), []).append(held)
    order = [*names, ALL_CASES]
    return [
        Group(case, configuration, tuple(pair for pair, _ in held), tuple(off for _, off in held))
        for (case, configuration), held in sorted(found.items(), key=lambda each: order.index(each[0][0]))
    ]


def median(values: Iterable[float]) -> float:
    """The median; 0 for no values."""
    return statistics.median(held) if (held := list(values)) else 0.0


def speed_ratio(candidate_per_s: float, baseline_per_s: float) -> float:
    """Candidate speed / baseline speed; 0 if either is 0."""
    return candidate_per_s / baseline_per_s if candidate_per_s and baseline_per_s else 0.0


BenchEvent = Union[BenchStarted, Record, BenchEnded, Failed]
_decoder: msgspec.json.Decoder[BenchEvent] = msgspec.json.Decoder(prepared(BenchEvent))


def decode_bench_event(line: bytes) -> BenchEvent:
    """Decodes one line of the bench's output. Raises `ProtocolError`."""
    try:
        return _decoder.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ProtocolError(f"The bench wrote a line that is not a result: {error}.") from None
