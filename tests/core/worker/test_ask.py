"""`WorkerClient.ask`: a command gets its own reply, its failure or the end of the process; cancellation."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from core.errors import WorkerError
from core.events import (
    CountTokens,
    DocumentEmbedded,
    EmbedDocument,
    Finished,
    ListTables,
    LoadModel,
    ModelLoaded,
    TableDone,
    TableList,
    Token,
    TokenCount,
)
from core.events.codec import LINE_LIMIT_BYTES, WorkerExited
from core.worker.client import CommandError
from tests.core.encoder.texts import SENTENCES
from tests.core.worker.test_worker import ask, worker

LONG = " ".join(SENTENCES * 60)

pytestmark = pytest.mark.usefixtures("home")


async def test_each_command_gets_its_own_reply_and_the_events_none(toy_folder: Path) -> None:
    async with worker() as talk:
        with pytest.raises(CommandError) as refused:
            await talk.client.ask(CountTokens("", "four"), TokenCount)
        assert refused.value.failed.code == "no-model"
        with pytest.raises(CommandError) as refused:
            await talk.client.ask(CountTokens("", "x" * LINE_LIMIT_BYTES), TokenCount)
        assert refused.value.failed.code == "request-too-large"
        await talk.client.send(LoadModel(str(toy_folder)))
        await talk.until(ModelLoaded)
        tokens: list[Token] = []

        def hear(event: object) -> None:
            if isinstance(event, Token):
                tokens.append(event)

        answer, short, longer, listed = await asyncio.gather(
            talk.client.ask(ask("r1"), Finished, hear),
            talk.client.ask(CountTokens("", "four"), TokenCount),
            talk.client.ask(CountTokens("", "four four"), TokenCount),
            talk.client.ask(ListTables(""), TableList),
        )
        assert (answer.request, len(tokens)) == ("r1", answer.stats.tokens)
        assert short.tokens < longer.tokens
        assert listed.folder
        with pytest.raises(Exception, match="ListTables was answered by TableList"):
            await talk.client.ask(ListTables(""), TableDone)
        await talk.client.stop(60)
        await talk.until(WorkerExited)
        replies = (Token, Finished, TokenCount, TableList)
        assert not [each for each in talk.heard if isinstance(each, replies)]


async def test_a_process_that_ends_ends_what_was_asked_after_its_exit_was_heard() -> None:
    async with worker() as talk:
        pid = talk.client.pid
        assert pid
        os.kill(pid, signal.SIGSTOP)
        asked = asyncio.ensure_future(talk.client.ask(ListTables(""), TableList))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGKILL)
        await talk.until(WorkerExited)
        assert not asked.done()
        await talk.client.stop()
        with pytest.raises(WorkerError):
            await asked
        with pytest.raises(WorkerError):
            await talk.client.ask(ListTables(""), TableList)


async def test_cancelling_stops_the_command_and_its_late_reply_is_dropped(home: Path) -> None:
    async with worker() as talk:
        begun = asyncio.Event()

        async def embed() -> None:
            await talk.client.ask(EmbedDocument("", LONG), DocumentEmbedded, lambda event: begun.set())

        task = asyncio.ensure_future(embed())
        await begun.wait()
        task.cancel()
        # It is stopped: a second document need not wait for the first.
        done = await talk.client.ask(EmbedDocument("", SENTENCES[0]), DocumentEmbedded)
        assert done.state == "done"
        assert task.cancelled()
        assert len(list((home / "cache" / "vectors").glob("*"))) == 1
        # Before its turn, too.
        early = asyncio.ensure_future(talk.client.ask(EmbedDocument("", LONG), DocumentEmbedded))
        await asyncio.sleep(0)
        early.cancel()
        await talk.client.ask(EmbedDocument("", SENTENCES[1]), DocumentEmbedded)
        assert len(list((home / "cache" / "vectors").glob("*"))) == 2
        assert not talk.of(DocumentEmbedded)
