"""Deleted questions and Undo, on drawn chats; paths of images; what a chat leaves behind."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta

import pytest
from msgspec.structs import replace

from app.session.chats.chats import KEPT_DELETED, Chats
from app.session.chats.conversation import (
    Answer,
    AskedOf,
    Conversation,
    QueuedMessage,
    Turn,
    message_text,
)
from app.session.images import draft_with_paths, hashes_of, with_paths
from app.store.library import Library
from core.events import Attachment, Image, Message, Passage, ReadingMap
from core.settings import Settings, assign
from tests.app.session.words import finished, token

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)


def passages(rng: random.Random, documents: int) -> tuple[Passage, ...]:
    return tuple(
        Passage(at * 9, at * 9 + 9, rng.random() < 0.5, 0.5, rng.randrange(-1, documents), at, at + 5)
        for at in range(rng.randint(1, 6))
    )


def drawn_answer(rng: random.Random, turn: str, documents: int) -> Answer:
    """With a map and sources of `documents` attachments."""
    end = replace(finished(turn, 1, context=rng.randrange(1, 900)), sources=passages(rng, documents))
    reading = ReadingMap(turn, "lexical", 90, 45, passages(rng, documents))
    has_end, has_map = rng.random() < 0.8, rng.random() < 0.7
    return Answer(
        (token(0, turn),),
        "finished" if has_end else "cut_off",
        end if has_end else None,
        reading=reading if has_map else None,
    )


def drawn_chat(seed: int) -> Conversation:
    """Turns with documents and several versions."""
    rng = random.Random(seed)
    chat, documents = Conversation("c", NOON, name=rng.choice(("", "A name"))), 0
    for number in range(rng.randint(1, 5)):
        own = tuple(Attachment(f"{number}-{at}", f"text {number} {at}") for at in range(rng.randint(0, 3)))
        documents += len(own)
        question = Message("user", f"Question {number}", own)
        turn = Turn(f"t{number}", question, drawn_answer(rng, f"t{number}", documents), NOON)
        if rng.random() < 0.4:
            turn = turn.with_version(f"u{number}", drawn_answer(rng, f"u{number}", documents), NOON)
        chat = chat.with_turns((*chat.turns, turn))
    return chat.with_context(rng.randrange(0, 1500))


def names(chat: Conversation, of: tuple[Passage, ...]) -> list[tuple[str, int]]:
    """The document that each passage is of, by its name, and the passage's place."""
    documents = [attachment.name for turn in chat.turns for attachment in turn.user.attachments]
    return [(documents[each.source] if each.source >= 0 else "", each.start) for each in of]


def told(chat: Conversation, answer: Answer) -> list[list[tuple[str, int]]]:
    found = [names(chat, answer.reading.passages)] if answer.reading else []
    return found + ([names(chat, answer.finished.sources)] if answer.finished else [])


def used(turn: Turn) -> int:
    return turn.answer.finished.stats.context_used_tokens if turn.answer.finished else 0


@pytest.mark.parametrize("seed", range(30))
def test_a_deleted_question_takes_its_documents_out_of_later_maps(seed: int) -> None:
    """Passages keep their documents by name; only those of the deleted question's are gone."""
    chat = drawn_chat(seed)
    for index, turn in enumerate(chat.turns):
        after = chat.without_turn(turn.id)
        gone = {attachment.name for attachment in turn.user.attachments}
        assert [each.id for each in after.turns] == [each.id for each in chat.turns if each.id != turn.id]
        assert after.turns[:index] == chat.turns[:index]
        for now, was in zip(after.turns[index:], chat.turns[index + 1 :]):
            for version, before in zip(now.versions, was.versions, strict=True):
                kept = [[each for each in of if each[0] not in gone] for of in told(chat, before.answer)]
                assert told(after, version.answer) == kept
                assert replace(version, answer=Answer()) == replace(before, answer=Answer())
            if not gone:
                assert now is was
        assert after.name == (chat.name if after.turns else "")
        earlier = used(chat.turns[index - 1]) if index else 0
        is_last = index == len(chat.turns) - 1
        assert after.context_used_tokens == (
            earlier if is_last else max(0, chat.context_used_tokens - used(turn) + earlier)
        )
    with pytest.raises(KeyError):
        chat.without_turn("nowhere")


@pytest.mark.parametrize("seed", range(30))
def test_undo_puts_a_question_back(seed: int) -> None:
    """As it was, or into a chat that went on meanwhile."""
    rng, chat = random.Random(seed), drawn_chat(seed)
    for turn in chat.turns:
        after = chat.without_turn(turn.id)
        assert after.with_turn_of(chat, turn.id) == chat
        documents = sum(len(each.user.attachments) for each in after.turns)
        more = (Attachment("new", "new text"),)
        asked = Turn("n", Message("user", "More?", more), drawn_answer(rng, "n", documents + 1), NOON)
        longer = after.with_turns((*after.turns, asked)).with_context(77)
        restored = longer.with_turn_of(chat, turn.id)
        assert [each.id for each in restored.turns] == [*(each.id for each in chat.turns), "n"]
        assert restored.turns[:-1] == chat.turns
        assert told(restored, restored.turns[-1].answer) == told(longer, asked.answer)
        assert restored.context_used_tokens == 77
        # A title that was given meanwhile stays.
        assert after.renamed("Mine").with_turn_of(chat, turn.id).name == "Mine"
        if after.turns:  # so does an answer that was changed
            last = after.turns[-1]
            changed = after.with_answer(last.id, replace(last.answer, note="changed"))
            notes = [each.answer.note for each in changed.with_turn_of(chat, turn.id).turns]
            assert notes.count("changed") == 1


class Rewriting(Library):
    """Keeps what was rewritten."""

    def __init__(self) -> None:
        super().__init__(None)
        self.rewritten: list[tuple[Conversation, Conversation]] = []

    def rewrite(self, chat: Conversation, before: Conversation) -> None:
        self.rewritten.append((chat, before))
        super().rewrite(chat, before)


@pytest.fixture
def rewriting() -> Iterator[Rewriting]:
    with closing(Rewriting()) as store:
        yield store


def test_a_deleted_question_is_erased_with_the_documents_that_no_other_has(rewriting: Rewriting) -> None:
    erased: list[str] = []
    purged: list[str] = []
    chats = Chats(rewriting, lambda: NOON, erased=erased.append, purged=purged.append)
    both = (Attachment("a", "alpha"), Attachment("b", "beta"))
    chat = (
        Conversation("c", NOON)
        .ask("t1", Message("user", "One", both))
        .ask("t2", Message("user", "Two", both[:1]))
    )
    chat = chat.settled("")
    chats.keep(chat)
    chats.select("c")
    after = chats.delete_turn("t1")
    assert [turn.id for turn in after.turns] == ["t2"]
    assert chats.open == after
    assert rewriting.rewritten == [(after, chat)]
    assert (erased, purged) == (["beta"], ["c"])
    with pytest.raises(KeyError):
        chats.delete_turn("t1")


def test_deletions_of_a_clock_that_was_ahead_count_as_of_now(rewriting: Rewriting) -> None:
    now = NOON
    chats = Chats(rewriting, lambda: now)
    ids = []
    for days in (40, 30, 29, -5):
        chat = Conversation(f"c{days}", NOON).ask("t", Message("user", "One")).settled("")
        chats.keep(chat.with_deleted(NOON - timedelta(days=days)))
        project = chats.projects.add(f"P{days}")
        chats.projects.change(replace(project, deleted=NOON - timedelta(days=days)))
        ids.append(project.id)
    assert chats.has_deleted
    last = chats.projects.last_deleted()
    assert last is not None
    assert last.id == ids[3]
    assert chats.projects.last_deleted(NOON + timedelta(days=5)) is not None
    assert chats.projects.last_deleted(NOON + timedelta(days=6)) is None
    assert timedelta(days=30) == KEPT_DELETED
    chats.purge_old()
    assert [(each.id, each.deleted) for each in chats.deleted()] == [
        ("c-5", NOON), ("c29", NOON - timedelta(days=29))
    ]  # fmt: skip
    assert {each.name: each.deleted for each in rewriting.projects()} == {
        "P29": NOON - timedelta(days=29), "P-5": NOON
    }  # fmt: skip
    for chat_id in ("c-5", "c29"):
        chats.restore(chat_id)
    assert not chats.has_deleted
    for project_id in ids[2:]:
        chats.projects.restore(project_id)
    assert chats.projects.last_deleted() is None


def test_projects_use_the_clock_of_deletions(rewriting: Rewriting) -> None:
    later = NOON + timedelta(hours=1)
    chats = Chats(rewriting, lambda: NOON, steady_now=lambda: later)
    project = chats.projects.add("Harbour")
    chats.projects.delete(project.id, with_chats=True)
    gone = chats.projects.last_deleted()
    assert gone is not None
    assert (gone.created, gone.deleted, gone.with_chats) == (NOON, later, True)
    assert chats.projects.chats_deleted(project.id) == later
    assert chats.projects.chats_deleted("") is None
    assert chats.projects.find("") is None


def test_after_a_repair_the_list_is_read_again(rewriting: Rewriting) -> None:
    chats = Chats(rewriting, lambda: NOON)
    held = chats.open.ask("t", Message("user", "Mine")).settled("")
    chats.keep(held)
    rewriting.save(Conversation("other", NOON).ask("t", Message("user", "Other")))
    rewriting.purge(held.id)  # lost on the disk
    assert [each.id for each in chats.listed()] == [held.id]
    chats.refresh()
    assert {each.id for each in chats.listed()} == {held.id, "other"}
    assert chats.summary("other").title == "Other"
    chats.save_held()
    assert {each.id for each in rewriting.summaries()} == {held.id, "other"}
    with pytest.raises(KeyError):
        chats.summary("nowhere")


# ---- figures of an answer, and images


@pytest.mark.parametrize(
    ("typed", "sent"),
    [("  x\n  y  \n\n", "  x\n  y"), ("\n \n  x\n\ny", "  x\n\ny"), (" \n ", ""), ("", ""), ("a\n", "a")],
)
def test_what_is_sent_of_a_typed_text(typed: str, sent: str) -> None:
    assert message_text(typed) == sent


def test_an_answer_goes_on_with_the_model_that_wrote_it() -> None:
    settings = assign(Settings(), "drafting.drafter", "frequency")
    running = Answer((token(0),), "writing", asked_of=AskedOf("toy", settings))
    assert (running.model, running.drafter, running.can_go_on("toy")) == ("toy", "frequency", False)
    broken = replace(running, status="cut_off")
    assert broken.can_go_on("toy")
    assert not broken.can_go_on("other")
    assert not replace(broken, asked_of=None).can_go_on("toy")
    assert (replace(broken, asked_of=None).model, replace(broken, asked_of=None).drafter) == ("", "")
    assert not replace(broken, tokens=()).can_go_on("toy")
    assert replace(broken, status="edited", asked_of=None).can_go_on("other")
    ended = replace(running, status="stopped", finished=finished(tokens=1, reason="cancelled"))
    assert ended.model == "Toy 1M"


def test_a_shown_version_brings_its_context() -> None:
    chat = Conversation("c", NOON).ask("t1", Message("user", "One")).write("t1", [token(0)])
    chat = chat.finish("t1", finished("t1", 1, context=11)).ask_again("t2").write("t2", [token(0)])
    chat = chat.finish("t2", finished("t2", 1, context=22))
    assert chat.show_version("t2", 0).context_used_tokens == 11
    later = chat.ask("t3", Message("user", "Two")).with_context(33)
    assert later.show_version("t2", 0).context_used_tokens == 33
    assert later.has("t3")
    assert not later.has("t1")
    assert [turn.id for turn in later.without("t3").turns] == ["t2"]


def test_paths_of_images_are_filled_in_everywhere() -> None:
    """In questions of all versions, in what waits and in the draft; the rest stays the same object."""

    def message(text: str, *hashes: str) -> Message:
        return Message("user", text, images=tuple(Image(each, "", each, 1, 1) for each in hashes))

    def paths(of: Message) -> list[str]:
        return [image.path for image in of.images]

    plain = Conversation("c", NOON).ask("t1", message("One"))
    assert with_paths(plain, str) is plain
    assert draft_with_paths(plain, str) is plain
    chat = plain.ask("t2", message("Two", "a", "b")).write("t2", [token(0)])
    chat = chat.ask_again("t3", message("Three", "c"))
    chat = chat.with_draft(message("Four", "d")).with_queued(
        [QueuedMessage(message("Five", "e")), QueuedMessage(message("Six"))]
    )
    assert hashes_of(chat) == {*"abcde"}
    found = with_paths(chat, lambda hash: f"/images/{hash}")
    assert found.turns[0] is chat.turns[0]
    assert [paths(each.user) for each in found.turns[1].versions] == [
        ["/images/a", "/images/b"],
        ["/images/c"],
    ]
    assert paths(found.draft) == ["/images/d"]
    assert [paths(each.message) for each in found.queued] == [["/images/e"], []]
    assert found.queued[1].message is chat.queued[1].message
