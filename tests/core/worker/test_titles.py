"""Titles in a worker of its own: given while nothing is asked, dropped as soon as something is."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.events import (
    Cancel,
    CountTokens,
    Failed,
    Finished,
    LoadModel,
    Message,
    ModelLoaded,
    SuggestTitle,
    TitleSuggested,
    Token,
    TokenCount,
)
from tests.core.worker.test_worker import ask, worker

CHAT = (Message("user", "hello"), Message("assistant", "hello yourself"))

pytestmark = pytest.mark.usefixtures("home")


async def test_one_is_given_and_nothing_of_it_is_told(toy_folder: Path) -> None:
    async with worker() as talk:
        await talk.client.send(SuggestTitle("early", CHAT))
        assert await talk.until(TitleSuggested) == TitleSuggested("early", "")
        await talk.client.send(LoadModel(str(toy_folder)))
        await talk.until(ModelLoaded)
        await talk.client.send(SuggestTitle("t", CHAT))
        given = await talk.until(TitleSuggested)
        assert given.request == "t"
        assert not given.interrupted
        assert "\n" not in given.title
        assert not talk.of(Token) + talk.of(Finished) + talk.of(Failed)


async def test_whatever_is_asked_meanwhile_goes_first(toy_folder: Path) -> None:
    cases = ((ask("q"), Finished), (Cancel("t0"), None), (CountTokens("c", "four"), TokenCount))
    async with worker(toy_folder) as talk:
        for command, reply in cases:
            talk.heard.clear()
            # Both lie there before the title is begun.
            for number in range(2):
                await talk.client.send(SuggestTitle(f"t{number}", CHAT))
                await talk.client.send(command)
            while (await talk.until(TitleSuggested)).request != "t1":
                pass
            if reply and len(talk.of(reply)) < 2:
                await talk.until(reply)
            assert TitleSuggested("t0", "", True) in talk.of(TitleSuggested)
            assert not talk.of(Failed)
