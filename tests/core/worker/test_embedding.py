"""Documents embedded in a worker of its own: without a model, beside answers, stopped and erased."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from core.events import DocumentEmbedded, EmbedDocument, EraseVectors, Failed, Finished, Heartbeat
from tests.core.encoder.texts import SENTENCES
from tests.core.worker.test_worker import Conversation, ask, worker

SHORT = " ".join(SENTENCES)
LONG = " ".join(SENTENCES * 24)

pytestmark = pytest.mark.usefixtures("home")


async def _end(talk: Conversation, request: str) -> DocumentEmbedded:
    """The event that ends an embedding; running ones may come before it."""
    while (event := await talk.until(DocumentEmbedded)).state == "running":
        assert event.request == request
    return event


def _kept(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "cache" / "vectors").glob("*"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def test_a_document_is_embedded_without_a_model_and_erased(home: Path) -> None:
    async with worker() as talk:
        await talk.client.send(EmbedDocument("d", f"{SHORT}\n"))
        assert await _end(talk, "d") == DocumentEmbedded("d", "done", 1.0)
        (name,) = _kept(home)
        assert name.startswith(_digest(SHORT))
        await talk.client.send(EraseVectors((_digest(SHORT),)))
        await talk.client.send(EmbedDocument("e", LONG[:500]))
        await _end(talk, "e")
        (name,) = _kept(home)
        assert name.startswith(_digest(LONG[:500].strip()))
        await talk.client.send(EraseVectors(everything=True))
        while _kept(home):
            await talk.until(Heartbeat)
        assert not talk.of(Failed)


async def test_a_question_goes_first_and_progress_is_told(toy_folder: Path, home: Path) -> None:
    async with worker(toy_folder) as talk:
        await talk.client.send(EmbedDocument("d", LONG))
        running = await talk.until(DocumentEmbedded)
        assert running.state == "running"
        assert running.fraction < 1
        await talk.client.send(ask("q"))
        await talk.until(Finished)
        assert all(each.state == "running" for each in talk.of(DocumentEmbedded))
        while (event := await talk.until(DocumentEmbedded)).state == "running":
            assert event.fraction >= running.fraction
            running = event
        assert event == DocumentEmbedded("d", "done", 1.0)
        assert len(_kept(home)) == 1
