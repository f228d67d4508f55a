"""Rehearsal in a worker of its own: it says how it goes, stands still for typing, ends for a question."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.events import (
    Failed,
    Finished,
    Heartbeat,
    LoadModel,
    ModelLoaded,
    Rehearse,
    Rehearsing,
    TableStatus,
    Typing,
)
from tests.core.worker.test_worker import Conversation, ask, run, worker
from tests.processes import set_home


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_home(monkeypatch, tmp_path / "home")


async def state(talk: Conversation, wanted: str) -> Rehearsing:
    """Listen until the rehearsal stands like that."""
    while (rehearsing := await talk.until(Rehearsing)).state != wanted:
        pass
    return rehearsing


def test_it_stands_still_while_somebody_types(toy_folder: Path) -> None:
    async def life() -> None:
        async with worker() as talk:
            await talk.client.send(Rehearse("early", True))
            assert (await talk.until(Failed)).code == "no-model"
            await talk.client.send(LoadModel(str(toy_folder)))
            await talk.until(ModelLoaded)
            await talk.client.send(Rehearse("r", True))
            await state(talk, "running")
            first = await state(talk, "running")
            assert first.prompts > 1000
            await talk.client.send(Typing())
            assert (await state(talk, "waiting")).waits_for == "quiet"
            said = len(talk.of(Rehearsing))
            for _ in range(2):  # seconds
                await talk.until(Heartbeat)
            assert len(talk.of(Rehearsing)) == said
            await talk.client.send(ask("q"))
            assert (await state(talk, "waiting")).waits_for == "answer"
            await talk.until(Finished)
            await talk.client.send(Rehearse("r", False))
            await state(talk, "off")

    run(life)


def test_tables_are_saved_in_the_middle_of_it(toy_folder: Path) -> None:
    async def life() -> None:
        async with worker() as talk:
            await talk.client.send(LoadModel(str(toy_folder)))
            await talk.until(ModelLoaded)
            taught = {"drafting.drafter": "ngram-mod", "tables.autosave_s": 1, "sampling.max_tokens": 100}
            await talk.client.send(ask("teach", **taught))
            await talk.client.send(Rehearse("r", True))
            while (await talk.until(TableStatus)).moment != "saved":
                pass
            assert (await state(talk, "running")).prompts > 0

    run(life)
