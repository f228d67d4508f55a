"""One process that leads: T(w), and answers drafted and plain in turn, at one delay of the network.

A process leads one cluster in its life, so each delay has one of its own. Without machines it is one machine
alone, for T(w) beside it.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
from msgspec import Struct

from core.bench.prompts import default_prompts, read_prompts
from core.events import ClusterEnded, Finished, Generate, Message, Token
from core.settings import Settings, assign_all
from core.settings.cluster import Cluster

if TYPE_CHECKING:  # importing these loads MLX, which must be prepared before
    from core.cluster.sharded import ClusterModel
    from core.engine.engine import Engine


_CONTEXT_TOKENS = 256


class LeadSpec(Struct, frozen=True):
    """What to measure. `delay_ms` more for each collective; no `cluster`: this machine alone."""

    model: str
    cluster: Cluster | None
    delay_ms: float
    drafter: str
    max_tokens: int
    pairs: int


class PairedAnswer(Struct, frozen=True):
    """One question, answered plainly and drafted in the same cluster. Speeds are of decoding."""

    kind: str
    plain_per_s: float
    drafted_per_s: float
    plain_steps: int
    drafted_steps: int
    tokens: int
    equal: bool


class Led(Struct, frozen=True):
    """What one process found. `step_ms`: of a block of so many tokens, at a context of 256.

    `messages` and `bytes` are those of a forward, to all followers together.
    """

    delay_ms: float
    step_ms: dict[int, float]
    answers: tuple[PairedAnswer, ...] = ()
    messages: float = 0.0
    bytes: float = 0.0


def lead(path: Path) -> int:
    """Measure what the spec in `path` says; prints a `Led` as JSON."""
    spec = msgspec.json.decode(path.read_bytes(), type=LeadSpec)
    from core.models.runtime.runtime import prepare

    prepare()
    from core.bench.cluster.delay import slow_collectives
    from core.engine.engine import Engine

    engine = Engine()
    if spec.cluster is None:
        engine.load(spec.model)
        print(msgspec.json.encode(Led(0.0, _step_ms(engine))).decode(), flush=True)
        return 0
    from core.cluster.loading import Gathering

    engine.use(Gathering(spec.cluster, spec.model, _ended, status=1).load())
    engine.try_out()
    leader = cast("ClusterModel", engine.loaded).leader
    with slow_collectives(spec.delay_ms / 1000):
        costs = _step_ms(engine)
        messages, sent, forwards = leader.messages, leader.bytes, leader.forwards
        answers = tuple(_answers(engine, spec))
        forwards = leader.forwards - forwards
    led = Led(
        spec.delay_ms,
        costs,
        answers,
        (leader.messages - messages) / forwards,
        (leader.bytes - sent) / forwards,
    )
    engine.close()
    print(msgspec.json.encode(led).decode(), flush=True)
    return 0


def _ended(ended: ClusterEnded) -> None:
    print(ended.message, ended.hint, file=sys.stderr, flush=True)


def _step_ms(engine: Engine) -> dict[int, float]:
    (context, *_) = engine.measure_cost((_CONTEXT_TOKENS,)).contexts
    return {width: 1000 * seconds for width, seconds in context.seconds.items()}


def _answers(engine: Engine, spec: LeadSpec) -> list[PairedAnswer]:
    found = []
    for prompt in read_prompts(default_prompts()):
        for pair in range(spec.pairs):
            ways = ("off", spec.drafter) if pair % 2 == 0 else (spec.drafter, "off")
            got = {way: _answer(engine, prompt.prompt, way, spec.max_tokens) for way in ways}
            (plain, plain_ids), (drafted, ids) = got["off"], got[spec.drafter]
            found.append(
                PairedAnswer(
                    prompt.kind,
                    plain.stats.tokens_per_s,
                    drafted.stats.tokens_per_s,
                    plain.stats.steps,
                    drafted.stats.steps,
                    len(ids),
                    ids == plain_ids,
                )
            )
    return found


def _answer(engine: Engine, prompt: str, drafter: str, max_tokens: int) -> tuple[Finished, list[int]]:
    engine.forget(tables=True)
    settings = assign_all(
        Settings(),
        [
            ("drafting.drafter", drafter),
            ("sampling.temperature", 0.0),
            ("sampling.max_tokens", max_tokens),
            ("prefill.mode", "off"),
        ],
    )
    request = Generate("bench", (Message("user", prompt),), settings, raw=True)
    events = list(engine.generate(request))
    finished = events[-1]
    assert isinstance(finished, Finished)
    return finished, [event.id for event in events if isinstance(event, Token)]
