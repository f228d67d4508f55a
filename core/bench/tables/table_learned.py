"""What tables learned beforehand give in real decoding, with each drafter that asks one, by kind of prompt.

Question: how much faster does the model write with the shipped tables than without? Each prompt is
answered by every configuration in turn, from nothing, and by plain decoding, which all are set
against and must equal. A prompt's answers are written down together, so a run that was stopped
goes on with the next prompt and never compares two moments of the machine.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import Struct

from core.bench.pieces import BenchPiece
from core.bench.runs import draftlight
from core.bench.statistic import known, median, speed_ratio
from core.errors import RequestError
from core.events import ModelInfo
from core.rehearsal.streams import Stream
from core.settings import Settings, assign_all
from core.tables.prebuilt import TEXTS_SUFFIX, frozen_for, load_built

if TYPE_CHECKING:  # importing it loads MLX, which a bench must prepare first
    from core.engine.engine import Engine

PLAIN = "plain"


class LearnedAnswer(Struct, frozen=True):
    """One configuration's answer."""

    configuration: str
    tokens: tuple[int, ...]
    tokens_per_s: float
    mean_per_step: float


class LearnedRound(Struct, frozen=True):
    """All configurations on the `prompt`th of the streams, the `number`th time."""

    kind: str
    prompt: int
    number: int
    answers: tuple[LearnedAnswer, ...]

    @property
    def key(self) -> tuple[int, int]:
        return self.prompt, self.number


class LearnedRow(Struct, frozen=True):
    """One configuration on one kind of prompt, or on all: `speed_up` over plain, the prompts' mean.

    `compared` of the prompts are in it: an answer of one token has no speed. 0 if none is.
    """

    configuration: str
    kind: str
    prompts: int
    compared: int
    speed_up: float
    mean_per_step: float
    equal: bool


def configurations(info: ModelInfo, max_tokens: int) -> dict[str, Settings]:
    """What is compared, plain first. Raises `RequestError` if there is no frozen table for the family.

    `auto` is asked with texts only where a table of texts was built for it.
    """
    frozen = frozen_for(info.family)
    if frozen is None:
        raise RequestError(
            f"There is no frozen table for the {info.family_name} family.",
            "Build one: draftlight tables build --corpus.",
        )
    given: dict[str, dict[str, object]] = {
        PLAIN: {"drafting.drafter": "off"},
        "auto, no table": {"drafting.drafter": "auto", "auto.learned": False, "auto.texts": False},
        "auto, rehearsed": {"drafting.drafter": "auto", "auto.texts": False},
        "cacheback, no table": {"drafting.drafter": "cacheback", "cacheback.mode": "dynamic"},
        "cacheback, texts": {"drafting.drafter": "cacheback", "cacheback.frozen_file": str(frozen)},
    }
    if load_built(info, TEXTS_SUFFIX)[0] is not None:
        given["auto, texts"] = {"drafting.drafter": "auto", "auto.learned": False}
        given["auto, both"] = {"drafting.drafter": "auto"}
    common = {"sampling.max_tokens": max_tokens}
    return {name: assign_all(Settings(), [*common.items(), *each.items()]) for name, each in given.items()}


def chosen(streams: Sequence[Stream], each: int) -> list[tuple[int, Stream]]:
    """The first `each` prompts of every kind, or all for 0, with their places in `streams`."""
    taken: dict[str, int] = {}
    found = []
    for place, stream in enumerate(streams):
        taken[stream.cls] = taken.get(stream.cls, 0) + 1
        if not each or taken[stream.cls] <= each:
            found.append((place, stream))
    return found


def with_tables(
    engine: Engine, prompts: Sequence[tuple[int, Stream]], max_tokens: int, pairs: int
) -> list[BenchPiece[LearnedRound]]:
    """Every prompt with every configuration, in `LearnedRound`s."""
    compared = list(configurations(engine.loaded.info, max_tokens).items())
    return [
        BenchPiece((place, number), partial(_round, engine, compared, stream, place, number))
        for number in range(pairs)
        for place, stream in prompts
    ]


def _round(
    engine: Engine, compared: Sequence[tuple[str, Settings]], stream: Stream, place: int, number: int
) -> LearnedRound:
    turned = (place + number) % len(compared)
    answers = []
    for name, settings in (*compared[turned:], *compared[:turned]):
        run = draftlight(engine, stream.prompt, settings)
        per_step = run.stats.mean_per_step if run.stats else 0.0
        answers.append(LearnedAnswer(name, tuple(run.tokens), run.tokens_per_s, per_step))
    return LearnedRound(stream.cls, place, number, tuple(answers))


def learned_rows(rounds: Sequence[LearnedRound]) -> Iterator[LearnedRow]:
    """By configuration and kind; “all” is the mean over all prompts."""
    names = [answer.configuration for answer in rounds[0].answers] if rounds else []
    kinds = ["all", *dict.fromkeys(held.kind for held in rounds)]
    for name in sorted(names, key=lambda name: (name != PLAIN, name)):
        for kind in kinds:
            prompts: dict[int, list[tuple[LearnedAnswer, LearnedAnswer]]] = {}
            for held in rounds:
                if kind in ("all", held.kind):
                    by_name = {answer.configuration: answer for answer in held.answers}
                    prompts.setdefault(held.prompt, []).append((by_name[PLAIN], by_name[name]))
            speeds_up = known(map(_speed_up, prompts.values()))
            yield LearnedRow(
                name,
                kind,
                len(prompts),
                len(speeds_up),
                fmean(speeds_up) if speeds_up else 0.0,
                fmean(pair[0][1].mean_per_step for pair in prompts.values()),
                all(plain.tokens == other.tokens for pair in prompts.values() for plain, other in pair),
            )


def _speed_up(answers: Sequence[tuple[LearnedAnswer, LearnedAnswer]]) -> float:
    """Of one prompt, plain and other: the median of the ratios that are known; 0 if none is."""
    return median(known(speed_ratio(other.tokens_per_s, plain.tokens_per_s) for plain, other in answers))
