"""Cost of the window: decode times of one prompt through the window, and past it to the same worker.

Both sides of a pair share the process, the worker, the prompt cache and the drafts (of a drafter without
tables), and alternate in being first. Past the window, no widget gets the worker's events and the window is
idle. The compared value is the decode time that the worker reports; the tokens must be equal.

The processor time of the window's process is measured as well: where the machine's speed drifts by more than
the window costs, only this figure is reliable.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Sequence

from msgspec import Struct

from app.launch.scenario import Deadline, ScenarioFailed, answer_of, ask
from app.shell.window import MainWindow
from core.events import Failed, Finished, Generate, Message
from core.settings import Settings, assign_all

QUESTION = (
    "Write down, one a line and in full words, what a harbour master does before each of ten ferries"
    " sails in fog, and repeat the rule about the outer marker after every line."
)
TIMEOUT_S = 240.0


class CostRun(Struct, frozen=True):
    """One answer's decoding. `window_s` is what the window's process computed from asking to its end."""

    tokens: int
    decode_s: float
    window_s: float = 0.0


class Cost(Struct, frozen=True):
    """`added` holds window ÷ worker − 1 of each pair.

    `busy` is the share of an answer's decode time during which one core works for the window, beyond its idle
    load.
    """

    alone: tuple[CostRun, ...]
    in_window: tuple[CostRun, ...]

    @property
    def added(self) -> tuple[float, ...]:
        return tuple(
            (window.decode_s / window.tokens) / (alone.decode_s / alone.tokens) - 1
            for alone, window in zip(self.alone, self.in_window)
        )

    @property
    def busy(self) -> float:
        return statistics.median(
            (window.window_s - alone.window_s) / window.decode_s
            for alone, window in zip(self.alone, self.in_window)
        )


def bench_settings(tokens: int) -> Settings:
    """Greedy, of a fixed length, and the same every time: nothing is learned from one to the next."""
    return assign_all(
        Settings(),
        [
            ("sampling.max_tokens", tokens),
            ("sampling.temperature", 0.0),
            ("drafting.drafter", "ngram-simple"),
            ("tables.learn", False),
        ],
    )


async def measure(window: MainWindow, pairs: int, tokens: int) -> Cost:
    """Measures `pairs` pairs of runs. Raises `ScenarioFailed`, also if both sides wrote different texts."""
    await Deadline(TIMEOUT_S).until_ready(window)
    # Work that happens once, such as reading the prompt, precedes the measurement.
    await run_in_window(window, min(32, tokens))
    alone: list[CostRun] = []
    shown: list[CostRun] = []
    for number in range(pairs):
        if number % 2:
            shown.append(await run_in_window(window, tokens))
        alone.append(await run_alone(window, tokens, number))
        if not number % 2:
            shown.append(await run_in_window(window, tokens))
    if not same_lengths([*alone, *shown]):
        raise ScenarioFailed("The runs differ in length, so they cannot be compared.")
    return Cost(tuple(alone), tuple(shown))


async def run_alone(window: MainWindow, tokens: int, number: int = 0) -> CostRun:
    """The question to the window's worker, past the window."""
    ended: asyncio.Future[Finished | Failed] = asyncio.get_running_loop().create_future()
    request = f"bench-{number}"

    def hear(heard: object) -> None:
        if isinstance(heard, Finished | Failed) and heard.request == request and not ended.done():
            ended.set_result(heard)

    begun_s = time.process_time()
    with window.worker.heard_by(hear):
        window.worker.send(Generate(request, (Message("user", QUESTION),), bench_settings(tokens)))
        end = await asyncio.wait_for(ended, TIMEOUT_S)
    if isinstance(end, Failed):
        raise ScenarioFailed(end.message)
    return CostRun(end.stats.tokens, end.stats.decode_s, time.process_time() - begun_s)


async def run_in_window(window: MainWindow, tokens: int) -> CostRun:
    """The question typed into a new chat of the window."""
    window.controller.chat.start()
    await Deadline(TIMEOUT_S).until_ready(window)
    window.views.inspector.set_settings(bench_settings(tokens))
    # Reported, not polled: polling every few milliseconds would be most of the measured load.
    ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def hear(turn_id: str) -> None:
        if not ended.done():
            ended.set_result(turn_id)

    told = window.controller.answer_finished.connect(hear)
    try:
        begun_s = time.process_time()
        ask(window, QUESTION)
        answer = answer_of(window, await asyncio.wait_for(ended, TIMEOUT_S))
    finally:
        window.controller.answer_finished.disconnect(told)
    if answer is None or answer.finished is None:
        raise ScenarioFailed("The answer did not end in order.")
    stats = answer.finished.stats
    return CostRun(stats.tokens, stats.decode_s, time.process_time() - begun_s)


def same_lengths(runs: Sequence[CostRun]) -> bool:
    """Whether all runs wrote the same number of tokens, as greedy runs must."""
    return len({run.tokens for run in runs}) == 1
