"""Chats on disk through workers of their own: quit, killed, opened again, cleared, and two at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from core.events import (
    EraseChats,
    Failed,
    Finished,
    Generate,
    ListSavedChats,
    LoadModel,
    Message,
    ModelLoaded,
    OpenChat,
    ReadAhead,
    ReadAheadProgress,
    SavedChatsListed,
    Token,
    UnloadModel,
)
from core.settings import Settings, assign_all
from tests.core.worker.test_worker import Conversation, ask, worker

QUESTION = Message("user", "All the ferries of the northern line wait in fog. " * 5)

pytestmark = pytest.mark.usefixtures("home")


def _files(home: Path) -> list[Path]:
    return sorted((home / "cache" / "contexts").glob("*.safetensors"))


def _asked(request: str, *messages: Message, chat: str = "c1") -> Generate:
    command = ask(request, "")
    return replace(command, messages=messages, chat=chat)


async def _answer(talk: Conversation, command: Generate) -> tuple[str, Finished]:
    await talk.client.send(command)
    finished = await talk.until(Finished)
    assert not talk.of(Failed)
    texts = (event.text for event in talk.of(Token) if event.request == command.request)
    return "".join(texts), finished


def _later(answer: str) -> tuple[Message, ...]:
    return (QUESTION, Message("assistant", answer), Message("user", "And then?"))


async def test_a_chat_of_yesterday_is_loaded_before_its_question(toy_folder: Path, home: Path) -> None:
    async with worker(toy_folder) as talk:
        first, _ = await _answer(talk, _asked("a", QUESTION))
        assert _files(home) == []
        second, _ = await _answer(talk, _asked("b", *_later(first)))
    (saved,) = _files(home)
    assert saved.stat().st_mode & 0o777 == 0o600
    async with worker() as talk:
        # The window opens its chat before the model is there.
        await talk.client.send(OpenChat("c1"))
        await talk.client.send(LoadModel(str(toy_folder)))
        await talk.until(ModelLoaded)
        answer, finished = await _answer(talk, _asked("b", *_later(first)))
        assert answer == second
        assert finished.stats.disk_tokens > len(QUESTION.content)
        assert finished.stats.disk_tokens == finished.stats.reused_tokens
        assert not [each for each in finished.effective.changes if each.setting == "prefill.save"]


async def test_what_was_read_ahead_yesterday_serves_the_question_of_today(
    toy_folder: Path, home: Path
) -> None:
    whole = [("prefill.mode", "off"), ("sampling.max_tokens", 4)]
    asked = replace(_asked("a", QUESTION), settings=assign_all(Settings(), whole))
    for asks in (False, True):
        async with worker(toy_folder) as talk:
            await talk.client.send(ReadAhead(asked))
            read = await talk.until(ReadAheadProgress)
            assert (read.done_tokens == read.total_tokens) == asks, "only the first worker reads"
            while read.done_tokens < read.total_tokens:
                read = await talk.until(ReadAheadProgress)
            if asks:
                _, finished = await _answer(talk, asked)
                assert finished.stats.disk_tokens == read.total_tokens > len(QUESTION.content) - 9
        assert len(_files(home)) == 1


async def test_saved_when_the_chat_is_left_and_cleared(toy_folder: Path, home: Path) -> None:
    async with worker(toy_folder) as talk:
        await talk.client.send(ListSavedChats())
        assert await talk.until(SavedChatsListed) == SavedChatsListed(0, 0)
        await talk.client.send(OpenChat("c1"))
        await _answer(talk, _asked("a", QUESTION))
        await talk.client.send(OpenChat(""))
        listed = await talk.until(SavedChatsListed)
        (saved,) = _files(home)
        size_bytes = saved.stat().st_size
        assert listed == SavedChatsListed(1, size_bytes)
        await talk.client.send(EraseChats(everything=True))
        assert await talk.until(SavedChatsListed) == SavedChatsListed(0, 0)
        await talk.client.send(UnloadModel())
    assert _files(home) == []


async def test_a_killed_worker_loses_time_only(toy_folder: Path, home: Path) -> None:
    async with worker(toy_folder) as talk:
        said, _ = await _answer(talk, _asked("a", QUESTION))
        talk.client.kill()
    assert _files(home) == []
    async with worker(toy_folder) as talk:
        answer, finished = await _answer(talk, _asked("a", QUESTION))
        assert (answer, finished.stats.disk_tokens) == (said, 0)
    assert len(_files(home)) == 1


@pytest.mark.sweep
async def test_two_workers_share_the_folder(toy_folder: Path, home: Path) -> None:
    async with worker(toy_folder) as one, worker(toy_folder) as other:
        for talk in (one, other):
            for name in ("c1", "c2"):
                question = replace(QUESTION, content=f"{name}: {QUESTION.content}")
                await _answer(talk, _asked(name, question, chat=name))
        for talk in (one, other):
            await talk.client.send(OpenChat("c3"))
            await talk.until(SavedChatsListed)
    assert len(_files(home)) == 2
