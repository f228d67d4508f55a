"""Token counts beside an answer: the same as the loaded tokenizer's, and before the answer's end."""

from __future__ import annotations

import queue
import random
from pathlib import Path

import pytest

from core.events import CountTokens, Event, Finished, Generate, LoadModel, Message, Token, TokenCount
from core.worker.counting import TokenCounter
from tests.core.tokenizers import KINDS, loaded
from tests.core.worker.test_worker import ask, worker

pytestmark = pytest.mark.usefixtures("home")
LETTERS = "ab cé\n\t.<|>霧🙂\ud800_0"


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_counts_are_those_of_the_loaded_tokenizer(kind: str, tmp_path: Path) -> None:
    tokenizer = loaded(kind, tmp_path)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    counter, chance = TokenCounter(events.put), random.Random(kind)
    counter.use(tokenizer, 100_000)
    try:
        for length in (1, 20, 3000, 25_000):
            text = "".join(chance.choices(LETTERS, k=length))
            if not counter.take(CountTokens("c", text)):
                return  # a tokenizer in Python is left to the main thread
            reply = events.get(timeout=60)
            assert isinstance(reply, TokenCount)
            whole = tokenizer.encode(text.replace("\ud800", "\ufffd"), add_special_tokens=False)
            assert (reply.tokens, reply.estimated) == (len(whole), False)
    finally:
        counter.close()


def test_a_text_far_longer_than_the_context_is_estimated_and_says_so(tmp_path: Path) -> None:
    tokenizer = loaded(sorted(KINDS)[0], tmp_path)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    counter = TokenCounter(events.put)
    counter.use(tokenizer, 512)
    try:
        assert counter.take(CountTokens("c", "ab cd " * 50_000))
        reply = events.get(timeout=60)
        assert isinstance(reply, TokenCount)
        assert reply.estimated
        assert reply.tokens > 2 * 512
    finally:
        counter.close()


def test_what_needs_the_main_thread_is_left_to_it(tmp_path: Path) -> None:
    counter = TokenCounter(lambda event: None)
    assert not counter.take(CountTokens("c", "no model"))
    counter.use(loaded(sorted(KINDS)[0], tmp_path), 512)
    assert not counter.take(CountTokens("c"))  # says that all earlier commands are done
    assert not counter.take(CountTokens("c", prompt=Generate("r", (Message("user", "x"),))))
    assert not counter.take(LoadModel("starter"))
    counter.use(None, 0)
    assert not counter.take(CountTokens("c", "unloaded"))


async def test_a_text_is_counted_while_an_answer_is_written(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        await talk.client.send(ask("long", **{"sampling.max_tokens": 480, "drafting.drafter": "off"}))
        await talk.until(Token)
        await talk.client.send(CountTokens("c", "four"))
        assert (await talk.until(TokenCount)).tokens == 4
        assert talk.of(Finished) == []
