"""Token counts beside an answer: the same as the loaded tokenizer's, and before the answer's end."""

from __future__ import annotations

import queue
import random
from pathlib import Path

import pytest
from msgspec.structs import replace

from core.errors import ProtocolError
from core.events import (
    CountTokens,
    Event,
    Failed,
    Finished,
    Generate,
    Image,
    LoadModel,
    Message,
    ModelInfo,
    Token,
    TokenCount,
)
from core.events.codec import decode_command, encode
from core.worker.counting import TokenCounter
from tests.core.seeing import image, made_family, write_seeing_model
from tests.core.tokenizers import KINDS, loaded
from tests.core.worker.test_worker import ask, worker

pytestmark = pytest.mark.usefixtures("home")
INFO = ModelInfo("", "", "", "", "", "", "", 0, 0, 100_000, 0, 0, True)
LETTERS = "ab cé\n\t.<|>霧🙂\ud800_0"


@pytest.mark.sweep
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_counts_are_those_of_the_loaded_tokenizer(kind: str, tmp_path: Path) -> None:
    tokenizer = loaded(kind, tmp_path)
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    counter, chance = TokenCounter(events.put), random.Random(kind)
    counter.use(tokenizer, INFO)
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
    counter.use(tokenizer, replace(INFO, context_tokens=512))
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
    counter.use(loaded(sorted(KINDS)[0], tmp_path), INFO)
    assert not counter.take(CountTokens("c"))  # says that all earlier commands are done
    assert not counter.take(CountTokens("c", prompt=Generate("r", (Message("user", "x"),))))
    assert not counter.take(LoadModel("starter"))
    counter.use(None, None)
    assert not counter.take(CountTokens("c", "unloaded"))


async def test_a_text_is_counted_while_an_answer_is_written(toy_folder: Path) -> None:
    async with worker(toy_folder) as talk:
        await talk.client.send(ask("long", **{"sampling.max_tokens": 480, "drafting.drafter": "off"}))
        await talk.until(Token)
        await talk.client.send(CountTokens("c", "four"))
        assert (await talk.until(TokenCount)).tokens == 4
        assert talk.of(Finished) == []


@pytest.mark.sweep
async def test_an_image_is_counted_as_the_prompt_with_it_is(toy_folder: Path, tmp_path: Path) -> None:
    write_seeing_model(tmp_path / "seeing")
    small, wide = image(tmp_path, 1), image(tmp_path, 2, 200, 60)
    scale = made_family(tmp_path / "seeing").scale
    async with worker(tmp_path / "seeing") as talk:
        await talk.client.send(CountTokens("without", prompt=Generate("", (Message("user", "What?"),))))
        without = (await talk.until(TokenCount)).tokens
        await talk.client.send(ask("long", **{"sampling.max_tokens": 480, "drafting.drafter": "off"}))
        await talk.until(Token)
        alone = []
        for each in (small, wide):
            await talk.client.send(CountTokens(each.hash, image=each))
            alone.append(await talk.until(TokenCount))
            scaled = scale(each.width, each.height)
            assert alone[-1].scaled_px == (scaled.width, scaled.height)
        assert talk.of(Finished) == [], "an answer does not delay it"
        for each, count in zip((small, wide), alone):
            asked = Generate("", (Message("user", "What?", images=(each,)),))
            await talk.client.send(CountTokens("with", prompt=asked))
            assert (await talk.until(TokenCount)).tokens == without + count.tokens
    async with worker(toy_folder) as talk:
        await talk.client.send(CountTokens("unseeing", image=small))
        assert "cannot see images: it is a text-only model" in (await talk.until(Failed)).message


def test_a_line_with_an_image_of_no_size_is_refused() -> None:
    for size in ((0, 1), (1, -1), (1 << 40, 1)):
        with pytest.raises(ProtocolError, match=r"int` (>= 1|<= 131072)"):
            decode_command(encode(CountTokens("c", image=Image("a", "/a", "", *size))))
