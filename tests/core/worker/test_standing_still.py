"""A worker that is told to stand still does what it is asked, and nothing of its own accord."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.events import (
    DocumentEmbedded,
    EmbedDocument,
    Finished,
    Heartbeat,
    LoadModel,
    Message,
    ModelLoaded,
    ModelReleased,
    StandStill,
    SuggestTitle,
    TitleSuggested,
    UnloadIdle,
)
from tests.core.encoder.texts import SENTENCES
from tests.core.worker.test_worker import ask, worker
from tests.processes import set_home

CHAT = (Message("user", "hello"), Message("assistant", "hello yourself"))


async def test_no_idle_work_until_it_may_go_on(
    toy_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_home(monkeypatch, tmp_path)

    def profiles() -> list[Path]:
        """The verdict on a model that was never used on this machine; times are not kept if it is busy."""
        return list(tmp_path.rglob("verdict-*.json"))

    async with worker() as talk:
        await talk.client.send(LoadModel(str(toy_folder)))
        await talk.client.send(StandStill(True))
        await talk.until(ModelLoaded)
        for command in (SuggestTitle("t", CHAT), EmbedDocument("d", " ".join(SENTENCES)), UnloadIdle(0.3)):
            await talk.client.send(command)
        assert await talk.until(TitleSuggested) == TitleSuggested("t", "", True)
        await talk.client.send(ask("q"))
        await talk.until(Finished)
        for _ in range(2):  # seconds
            await talk.until(Heartbeat)
        assert profiles() == []
        assert not talk.of(DocumentEmbedded)
        await talk.client.send(UnloadIdle(0.0))
        await talk.client.send(StandStill(False))
        while not profiles():
            await talk.until(Heartbeat)
        assert talk.of(DocumentEmbedded)[-1] == DocumentEmbedded("d", "done", 1.0)
        assert not talk.of(ModelReleased)
