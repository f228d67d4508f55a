"""What the window costs the engine: one question through the worker alone and through the window.

Both sides start a process of their own each time and take turns; what is compared is the decode
time that the worker itself reports, and its tokens must be the same.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Sequence

from msgspec import Struct

from app.scenario import Deadline, ScenarioFailed, answer_of, ask
from app.window import MainWindow
from core.events import Failed, Finished, Generate, LoadModel, Message, ModelLoaded
from core.settings import Settings, assign
from core.worker.client import WorkerClient

QUESTION = (
    "Write down, one a line and in full words, what a harbour master does before each of ten ferries"
    " sails in fog, and repeat the rule about the outer marker after every line."
)
TIMEOUT_S = 240.0


class Run(Struct, frozen=True):
    """One answer's decoding."""

    tokens: int
    decode_s: float


class Cost(Struct, frozen=True):
    """`added` is the median of window ÷ worker − 1 over the pairs."""

    alone: tuple[Run, ...]
    in_window: tuple[Run, ...]

    @property
    def added(self) -> float:
        return statistics.median(
            (window.decode_s / window.tokens) / (alone.decode_s / alone.tokens) - 1
            for alone, window in zip(self.alone, self.in_window)
        )


def bench_settings(tokens: int) -> Settings:
    """Greedy, drafted, of a fixed length."""
    return assign(assign(Settings(), "sampling.max_tokens", tokens), "sampling.temperature", 0.0)


async def run_alone(model: str, tokens: int) -> Run:
    """The question through a worker and nothing else."""
    client = WorkerClient()
    await client.start()
    try:
        await client.send(LoadModel(model))
        async for heard in client.events():
            match heard:
                case ModelLoaded():
                    message = Message("user", QUESTION)
                    await client.send(Generate("bench", (message,), bench_settings(tokens)))
                case Finished():
                    return Run(heard.stats.tokens, heard.stats.decode_s)
                case Failed():
                    raise ScenarioFailed(heard.message)
        raise ScenarioFailed("The worker ended without an answer.")
    finally:
        await client.stop()


async def run_in_window(window: MainWindow, tokens: int) -> Run:
    """The question typed into the window."""
    deadline = Deadline(TIMEOUT_S)
    await deadline.until_ready(window)
    window.views.inspector.set_settings(bench_settings(tokens))
    turn_id = ask(window, QUESTION)

    def over() -> bool:
        answer = answer_of(window, turn_id)
        return answer is None or answer.over

    await deadline.until(window, over, "There was no answer in time.")
    answer = answer_of(window, turn_id)
    if answer is None or answer.finished is None:
        raise ScenarioFailed("The answer did not end in order.")
    stats = answer.finished.stats
    await asyncio.sleep(0)
    return Run(stats.tokens, stats.decode_s)


def same_lengths(runs: Sequence[Run]) -> bool:
    """Whether all runs wrote the same number of tokens, as greedy runs must."""
    return len({run.tokens for run in runs}) == 1
