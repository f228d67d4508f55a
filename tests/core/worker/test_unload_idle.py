"""A model that is idle leaves memory, and the next request loads it again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.events import (
    CountTokens,
    Failed,
    Finished,
    Generate,
    LoadModel,
    LoadProgress,
    Message,
    ModelLoaded,
    ModelReleased,
    Token,
    TokenCount,
    UnloadIdle,
)
from tests.core.toy import write_toy_model
from tests.core.worker.test_worker import Conversation, ask, worker

SOON_S = 0.3
LONG = "All the ferries of the northern line wait in fog. " * 5

pytestmark = pytest.mark.usefixtures("home")


def question(request: str, text: str = LONG) -> Generate:
    return Generate(request, (Message("user", text),), ask(request).settings, chat="c1")


async def answer(talk: Conversation, command: Generate) -> tuple[list[int], Finished]:
    talk.heard.clear()
    await talk.client.send(command)
    finished = await talk.until(Finished)
    return [event.id for event in talk.of(Token)], finished


async def test_an_idle_model_is_released_and_the_next_request_loads_it_with_the_chat(
    tmp_path: Path, home: Path
) -> None:
    folder = tmp_path / "toy"
    write_toy_model(folder)
    async with worker() as talk:
        await talk.client.send(LoadModel(str(folder)))
        loaded = await talk.until(ModelLoaded)
        expected, _ = await answer(talk, question("q1"))
        await talk.client.send(UnloadIdle(SOON_S))
        await talk.until(ModelReleased)
        assert list((home / "cache" / "contexts").glob("*.safetensors"))
        # Counting needs the tokenizer only.
        await talk.client.send(CountTokens("n1", "four"))
        assert (await talk.until(TokenCount)).tokens == 4
        assert not talk.of(LoadProgress)
        tokens, finished = await answer(talk, question("q2"))
        assert tokens == expected
        assert talk.of(LoadProgress)
        assert talk.of(ModelLoaded) == [loaded]
        assert finished.stats.disk_tokens > 200
        await talk.until(ModelReleased)
        # What cannot be loaded again fails the request, and can be mended.
        (folder / "config.json").rename(folder / "away.json")
        talk.heard.clear()
        await talk.client.send(question("q3"))
        failed = await talk.until(Failed)
        assert (failed.request, failed.command, failed.code) == ("q3", "generate", "bad-model")
        assert "config.json is missing" in failed.message
        (folder / "away.json").rename(folder / "config.json")
        assert (await answer(talk, question("q4")))[0] == expected


class Seconds:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1e-6
        return self.now_s


@pytest.fixture
def clock() -> Seconds:
    return Seconds()


@pytest.fixture
def engine(toy_folder: Path, clock: Seconds) -> Iterator[Engine]:
    engine = Engine(say=EVENTS.append, clock=clock)
    EVENTS.clear()
    engine.load(str(toy_folder))
    while engine.idle_work():
        pass
    yield engine
    engine.close()


EVENTS: list[object] = []


def test_the_time_counts_from_the_last_answer(engine: Engine, clock: Seconds) -> None:
    engine.unload_idle(600.0)
    clock.now_s = 500.0
    list(engine.generate(ask("q1")))
    clock.now_s = 1099.0
    while engine.idle_work():
        pass
    assert engine.is_loaded
    assert engine.idle_due_s() == pytest.approx(1.0, abs=0.1)
    clock.now_s = 1100.5
    while engine.idle_work():
        pass
    assert not engine.is_loaded
    assert engine.released is not None
    assert [ModelReleased()] == EVENTS
    assert engine.idle_due_s() is None
    assert engine.count_prompt(ask("q1"))[0] > 4
    engine.unload()
    assert engine.released is None


@pytest.mark.sweep
@pytest.mark.parametrize("after_s", [-1.0, 1e300])
def test_times_out_of_range_are_limited(engine: Engine, after_s: float) -> None:
    engine.unload_idle(after_s)
    due_s = engine.idle_due_s()
    assert due_s is None or due_s <= 86_400.0
