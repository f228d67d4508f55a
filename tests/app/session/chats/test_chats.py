"""The chats of one run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import datetime

import pytest
from msgspec.structs import replace

from app.session.chats.chats import COPIED_NOTE, Chats
from app.session.chats.conversation import Conversation, QueuedMessage
from app.session.chats.presets import Override
from app.store.library import Library
from core.events import Attachment, Message
from tests.app.session.words import finished

NOON = datetime(2026, 5, 4, 12, 0)


def asked(chats: Chats, text: str) -> str:
    chat = chats.open.ask(chats.new_turn_id(), Message("user", text))
    chats.keep(chat)
    return chat.id


def test_newest_first_and_switching_brings_a_chat_back(archive: Library) -> None:
    chats = Chats(archive, lambda: NOON)
    assert (chats.open.turns, chats.open.created, chats.listed()) == ((), NOON, ())
    first = asked(chats, "One")
    chats.start()
    second = asked(chats, "Two")
    assert [chat.title for chat in chats.listed()] == ["Two", "One"]
    assert chats.select(first).title == "One"
    assert chats.get(second).title == "Two"
    assert chats.open.id == first


def test_an_unused_chat_is_used_again(archive: Library) -> None:
    chats = Chats(archive, lambda: NOON)
    first = chats.open.id
    assert chats.start().id == first
    asked(chats, "One")
    unused = chats.start().id
    chats.select(first)
    assert chats.start().id == unused
    # Not one with a question that waits to be sent: that is listed.
    chats.keep(chats.open.with_queued((QueuedMessage(Message("user", "Two")),)))
    assert chats.start().id != unused
    assert [chat.title for chat in chats.listed()] == ["Two", "One"]
    chats.delete(unused)
    assert [chat.id for chat in chats.deleted()] == [unused]


def test_a_branch_begins_with_turns(archive: Library) -> None:
    chats = Chats(archive, lambda: NOON)
    asked(chats, "One")
    asked(chats, "Two")
    branch = chats.branch(chats.open.turns[0].id)
    assert chats.open.id == branch.id
    assert [turn.user.content for turn in branch.turns] == ["One"]
    assert len(chats.listed()) == 2
    # Nothing goes on writing the copy of an answer.
    added, _ = chats.add(Conversation("c", NOON).ask("t", Message("user", "One")))
    assert [copy.turns[0].answer.status for copy in (branch, added)] == ["cut_off", "cut_off"]


def test_an_unknown_chat_is_refused(archive: Library) -> None:
    with pytest.raises(KeyError):
        Chats(archive).select("nowhere")


def test_what_waits_to_be_sent_in_a_file_becomes_a_draft(archive: Library) -> None:
    """A file must not ask anything of the model."""
    chats = Chats(archive, lambda: NOON)
    chat = Conversation("c", NOON).ask("t", Message("user", "One")).with_draft(Message("user", "Three"))
    added, _ = chats.add(chat.with_queued([QueuedMessage(Message("user", "Two"))]))
    assert (added.queued, added.draft.content) == ((), "Two\n\nThree")
    assert chats.queued() == ()


def test_a_branch_takes_the_settings_along_and_leaves_drafts(archive: Library) -> None:
    chats = Chats(archive, lambda: NOON)
    asked(chats, "One")
    chats.keep(replace(chats.open, overrides=(Override("sampling.temperature", 0.5),)))
    chats.keep(chats.open.with_draft(Message("user", "unsent")))
    branch = chats.branch(chats.open.turns[0].id, "One (2)")
    assert branch.overrides == (Override("sampling.temperature", 0.5),)
    assert branch.draft.content == ""
    assert branch.title == "One (2)"
    with pytest.raises(KeyError):
        chats.branch("nowhere")


def test_only_the_latest_conversations_are_held(counting: Counting) -> None:
    chats = Chats(counting, lambda: NOON)
    ids = []
    for number in range(12):
        chats.start()
        ids.append(asked(chats, f"Question {number}"))
        chats.keep(chats.open.finish(chats.open.turns[0].id, finished(tokens=1)))
    counting.loaded.clear()
    for chat_id in ids:
        assert chats.get(chat_id).turns
    assert len(counting.loaded) >= 8
    assert chats.open.id == ids[-1]


def test_an_answer_that_is_being_written_is_not_let_go(counting: Counting) -> None:
    chats = Chats(counting, lambda: NOON)
    running = asked(chats, "Long")
    for number in range(8):
        chats.start()
        asked(chats, f"Question {number}")
    counting.loaded.clear()
    assert not chats.get(running).turns[0].answer.over
    assert counting.loaded == []


def test_a_chat_from_the_archive_is_settled(archive: Library) -> None:
    archive.save(Conversation("c", NOON).ask("t", Message("user", "One")))
    chats = Chats(archive, lambda: NOON, open_id="c")
    assert chats.open.turns[0].answer.status == "cut_off"


def test_the_chat_to_begin_with_is_a_new_one_if_it_is_gone_or_deleted(archive: Library) -> None:
    archive.save(Conversation("c", NOON).ask("t", Message("user", "One")).with_deleted(NOON))
    for open_id in ("c", "nowhere", ""):
        assert Chats(archive, lambda: NOON, open_id).open.turns == ()


def test_documents_of_a_chat_are_erased_with_it_also_those_that_wait(archive: Library) -> None:
    texts = {"in a question", "in a queued message", "in the draft"}
    first, second, third = (Message("user", "", (Attachment("a.txt", each),)) for each in sorted(texts))
    erased: list[str] = []
    chats = Chats(archive, lambda: NOON, erased=erased.append)
    chats.keep(Conversation("c", NOON).ask("t", first).with_queued([QueuedMessage(second)]).with_draft(third))
    chats.purge("c")
    assert set(erased) == texts


def test_a_chat_that_is_not_in_memory_is_erased_with_its_documents(archive: Library) -> None:
    """One that cannot be loaded is erased, too."""
    documents = (Attachment("a.txt", "alpha"), Attachment("b.txt", "beta"))
    archive.save(Conversation("c", NOON).ask("t", Message("user", "One", documents)))
    erased: list[str] = []
    purged: list[str] = []
    chats = Chats(archive, lambda: NOON, erased=erased.append, purged=purged.append)
    chats.purge("c")
    assert erased == ["alpha", "beta"]
    chats.purge("nowhere")
    assert purged == ["c", "nowhere"]
    assert chats.listed() == ()
    assert list(archive.summaries()) == []


def test_deleted_chats_are_not_listed_or_found_and_come_back(archive: Library) -> None:
    chats = Chats(archive, lambda: NOON)
    first = asked(chats, "One about fog")
    chats.start()
    chats.keep(chats.get(first).with_deleted(NOON))
    assert chats.listed() == ()
    assert [each.id for each in chats.deleted()] == [first]
    assert chats.search("fog") == []
    chats.keep(chats.get(first).with_deleted(None))
    assert [hit.chat_id for hit in chats.search("fog")] == [first]
    chats.purge(first)
    with pytest.raises(KeyError):
        chats.get(first)


def test_an_imported_chat_is_added_once_and_loses_nothing(archive: Library) -> None:
    chats = Chats(archive, lambda: NOON)
    chat = Conversation("c", NOON).ask("t", Message("user", "One")).settled(COPIED_NOTE)
    longer = chat.ask("t2", Message("user", "Two")).settled(COPIED_NOTE)
    assert chats.add(chat) == (chat, "added")
    assert chats.add(chat) == (chat, "known")
    chats.keep(replace(chats.get("c").renamed("Mine"), pinned=True))
    updated, what = chats.add(longer)
    assert (what, updated.name, updated.pinned, updated.turns) == ("updated", "Mine", True, longer.turns)
    assert chats.add(chat) == (updated, "known")  # an older export
    chats.keep(updated.with_deleted(NOON))
    assert chats.add(longer) == (updated, "restored")
    # It went on here and elsewhere.
    chats.keep(updated.ask("mine", Message("user", "Three")))
    elsewhere = longer.ask("theirs", Message("user", "Drei")).settled(COPIED_NOTE)
    second, what = chats.add(elsewhere)
    assert (what, second.turns) == ("added", elsewhere.turns)
    assert second.id != "c"
    assert chats.add(elsewhere) == (second, "known")
    assert {len(chats.get(each.id).turns) for each in chats.listed()} == {3}
    assert len(chats.listed()) == 2
    # The same ids, with another question.
    other, what = chats.add(Conversation("c", NOON).ask("t", Message("user", "Eins")))
    assert (what, other.turns[0].user.content) == ("added", "Eins")


def test_a_blank_chat_is_not_kept(archive: Library) -> None:
    chats = Chats(archive, lambda: NOON)
    assert list(archive.summaries()) == []
    chats.keep(chats.open.with_draft(Message("user", "half")))
    assert len(archive.summaries()) == 1


class Counting(Library):
    """Notes what is asked of it."""

    def __init__(self) -> None:
        super().__init__(None)
        self.loaded: list[str] = []

    def load(self, chat_id: str) -> Conversation:
        self.loaded.append(chat_id)
        return super().load(chat_id)


@pytest.fixture
def counting() -> Iterator[Counting]:
    with closing(Counting()) as store:
        yield store
