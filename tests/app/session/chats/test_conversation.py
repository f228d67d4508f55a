"""Chats: titles, answers however they end, and what the model is asked with."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

import pytest
from msgspec.structs import replace

from app.session.chats.conversation import TITLE_CHARACTERS, Conversation, merged, uncounted
from core.events import Attachment, Image, Message, Scans
from tests.app.session.words import finished, token

NEW = Conversation("c1", datetime(2026, 5, 4, 12, 0))
DOCUMENT = Attachment("a.txt", "A")
COUNTED = replace(DOCUMENT, tokens=1)


def user(text: str, *attachments: Attachment) -> Message:
    return Message("user", text, attachments)


PASSAGE = "The Peace of Westphalia ended the Thirty Years War in 1648. It was signed in two cities. " * 6


@pytest.mark.parametrize(
    ("question", "title"),
    [
        (f"Summarise the following text: {PASSAGE}", "The Peace of Westphalia ended"),
        (f"Please translate this into French:\n\n{PASSAGE}", "The Peace of Westphalia ended"),
        (f"Fasse den folgenden Text zusammen: {PASSAGE}", "The Peace of Westphalia ended"),
        (f"{PASSAGE}\n\nWhich cities signed the treaty?", "Which cities signed the treaty?"),
        (f"{PASSAGE}\n\nWhat does this mean?", "The Peace of Westphalia ended"),
        # No question, one of few words, a long one, and one after a short text.
        (f"{PASSAGE}\n\nThe cities signed the treaty.", "The Peace of Westphalia ended"),
        (f"{PASSAGE}\n\nWhich cities?", "The Peace of Westphalia ended"),
        (f"{PASSAGE}\n\n{'Which cities, and when, ' * 7}signed?", "The Peace of Westphalia ended"),
        ("The ferry is late.\n\nWhich cities signed?", "The ferry is late. Which cities signed?"),
        ("> The ferry leaves at ten.\n> It waits.\n\nWhen is low tide?", "When is low tide?"),
        ("> The ferry leaves at ten.\n\nIs that true?", "The ferry leaves at ten. Is that true?"),
        ("```python\nx = 1\n```\nWhy do names need no types?", "Why do names need no types?"),
        # Nothing is taken from questions that name their subject themselves.
        ("Python: how do I sort a list?", "Python: how do I sort a list?"),
        ("Is this right: the ferry leaves at ten?", "the ferry leaves at ten?"),
        ("Explain the tides to a child.", "Explain the tides to a child."),
        ("Summarise the following text:", "Summarise the following text:"),
    ],
)
def test_a_title_names_the_subject_not_the_task(question: str, title: str) -> None:
    found = NEW.ask("t1", user(question)).title
    assert found.startswith(title)
    assert len(title) > 29 or found == title or found.startswith("The Peace")


def test_title_is_the_first_question_up_to_a_word_or_the_name_of_its_document() -> None:
    assert NEW.title == ""
    chat = NEW.ask("t1", user("  What is\n this?  ")).ask("t2", user("And that?"))
    assert chat.title == "What is this?"
    assert chat.renamed("  Two \n words ").title == "Two words"
    assert chat.renamed("Two").renamed("").title == "What is this?"
    assert NEW.ask("t1", user("", Attachment("Pasted text", "abc"))).title == "Pasted text"
    whole = "Which of the ferries that leave today, if any, go to the island?"
    assert NEW.ask("t1", user(whole)).title == whole  # the header has space for more than 38 characters
    title = NEW.ask("t1", user(f"{whole} And which of them come back before the evening?")).title
    assert title == "Which of the ferries that leave today, if any, go to the island? And which of…"
    assert len(title) <= TITLE_CHARACTERS + 1


@pytest.mark.parametrize("first", [1, 39, 40, 41, 79, 80, 90])
def test_a_long_title_keeps_half_of_its_length_at_least(first: int) -> None:
    title = NEW.ask("t1", user("x" * first + " " + "y" * 90)).title
    words = "x" * first + " " + "y" * 90
    half = TITLE_CHARACTERS // 2
    assert title == words[: first if half <= first < TITLE_CHARACTERS else TITLE_CHARACTERS].rstrip() + "…"


def test_an_answer_grows_and_finishes() -> None:
    chat = NEW.ask("t1", user("Why?"))
    assert chat.turn("t1").answer.status == "waiting"
    chat = chat.write("t1", (token(0, text="Be"), token(1, text="cause"))).write("t1", (token(2, text="."),))
    answer = chat.turn("t1").answer
    assert (answer.text, answer.status, answer.over) == ("Because.", "writing", False)
    end = finished("t1", 3, context=42)
    chat = chat.finish("t1", end)
    answer = chat.turn("t1").answer
    assert (answer.status, answer.finished, answer.over) == ("finished", end, True)
    assert len(answer.tokens) == 3
    assert chat.context_used_tokens == 42
    assert chat.finish("t1", finished("t1", 3, "cancelled")).turn("t1").answer.status == "stopped"


@pytest.mark.parametrize("end", ["cut_off", "fail"])
def test_a_broken_answer_stays_and_is_history(end: str) -> None:
    chat = NEW.ask("t1", user("Why?")).write("t1", (token(0, text="Beca"),))
    chat = getattr(chat, end)("t1", "The engine stopped.")
    answer = chat.turn("t1").answer
    assert answer.text == "Beca"
    assert answer.note == "The engine stopped."
    assert answer.over
    assert answer.finished is None
    again = chat.ask("t2", user("Go on"))
    assert again.messages_for_request() == (user("Why?"), Message("assistant", "Beca"), user("Go on"))


def test_a_question_without_any_answer_is_joined_to_the_next() -> None:
    document, table = Attachment("a.txt", "A"), Attachment("b.csv", "B")
    chat = NEW.ask("t1", user("First", document)).cut_off("t1", "gone").ask("t2", user("Second", table))
    assert chat.messages_for_request() == (user("First\n\nSecond", document, table),)


def test_request_ends_with_the_open_question_and_its_documents() -> None:
    chat = NEW.ask("t1", user("Why?")).write("t1", (token(0, text="So."),)).finish("t1", finished("t1", 1))
    chat = chat.ask("t2", user("And?", DOCUMENT))
    assert [message.role for message in chat.messages_for_request()] == ["user", "assistant", "user"]
    assert chat.messages_for_request()[-1].attachments == (DOCUMENT,)


def test_asking_again_replaces_the_last_answer_only() -> None:
    chat = NEW.ask("t1", user("One")).write("t1", (token(0),)).finish("t1", finished("t1", 1))
    chat = chat.ask("t2", user("Two")).write("t2", (token(0, text="b"),)).ask_again("t3")
    assert [turn.id for turn in chat.turns] == ["t1", "t3"]
    assert chat.turn("t3").user == user("Two")
    assert chat.turn("t3").answer.tokens == ()
    assert chat.turn("t1").answer.status == "finished"


def test_a_question_without_an_answer_is_replaced_however_its_documents_are_counted() -> None:
    chat = NEW.ask("t1", user("One", DOCUMENT))
    assert len(chat.ask_again("t2", user("One", COUNTED)).turns[0].versions) == 1
    assert len(chat.ask_again("t2", user("Two", COUNTED)).turns[0].versions) == 2


def test_scans_of_as_many_pages_are_two_documents_although_their_texts_of_marks_are_equal() -> None:
    one, other = (
        Attachment(f"{name}.pdf", "[page 1 has no text: it is a picture]", scans=Scans("/a", name, (1,)))
        for name in "ab"
    )
    found = merged([Message("user", "One", (one,)), Message("user", "Two", (other,))])
    assert found.attachments == (one, other)


def test_pages_of_documents_are_no_part_of_what_a_person_wrote() -> None:
    attached = Image("a.png", "/a.png", "a", 10, 10)
    page = Image("b.pdf, page 2", "/b", "b", 10, 10, scan="hash", page=2)
    written = Message("user", "One", images=(attached,))
    assert uncounted(replace(written, images=(page, attached))) == written
    chat = NEW.ask("t", replace(written, images=(page, attached)))
    assert chat.ask_again("u", written).turns[0].others == ()


@pytest.mark.parametrize(
    ("score_s", "reading", "question", "unmatched"),
    [
        (0.0, "sparse", "Why?", True),
        (0.4, "sparse", "Why?", False),  # compared again, with other settings
        (0.0, "dense", "Why?", False),  # everything was read
        (0.0, "sparse", "When?", False),  # another question
    ],
)
def test_a_cached_question_still_matches_nothing(
    score_s: float, reading: Literal["sparse", "dense"], question: str, unmatched: bool
) -> None:
    end = finished("t1", 1)
    first = replace(end, effective=replace(end.effective, reading="sparse", unmatched=True))
    chat = NEW.ask("t1", user("Why?", DOCUMENT)).write("t1", (token(0),)).finish("t1", first)
    chat = chat.ask_again("t2", user(question, COUNTED)).write("t2", (token(0),))
    end = finished("t2", 1)
    again = replace(
        end, stats=replace(end.stats, score_s=score_s), effective=replace(end.effective, reading=reading)
    )
    ended = chat.finish("t2", again).turn("t2").answer.finished
    assert ended
    assert ended.effective.unmatched is unmatched


def test_an_unknown_turn_is_refused_by_name() -> None:
    with pytest.raises(KeyError, match="t9"):
        NEW.write("t9", (token(0),))


def test_asking_in_other_words_replaces_the_question() -> None:
    chat = NEW.ask("t1", user("One")).ask("t2", user("Two")).ask_again("t3", user("Three"))
    assert [turn.user.content for turn in chat.turns] == ["One", "Three"]


def test_a_chat_is_changed_by_its_last_question() -> None:
    later = NEW.created.replace(year=NEW.created.year + 1)
    assert NEW.changed == NEW.created
    assert NEW.ask("t1", user("Why?")).changed == NEW.created
    assert NEW.ask("t1", user("Why?"), later).changed == later


def test_settled_cuts_off_what_nobody_writes_and_leaves_the_rest_as_it_is() -> None:
    chat = NEW.ask("t1", user("One")).write("t1", (token(0),)).finish("t1", finished("t1", 1))
    assert chat.settled("closed") is chat
    settled = chat.ask("t2", user("Two")).write("t2", (token(0),)).settled("closed")
    assert settled.turns[0] is chat.turns[0]
    assert (settled.turns[1].answer.status, settled.turns[1].answer.note) == ("cut_off", "closed")
    assert len(settled.turns[1].answer.tokens) == 1


def test_what_does_not_change_stays_the_same_object() -> None:
    chat = NEW.ask("t1", user("One")).ask("t2", user("Two"))
    assert chat.write("t2", (token(0),)).turns[0] is chat.turns[0]
    assert chat.with_draft(user("Three")).turns is chat.turns


def test_a_blank_chat_has_nothing_to_lose() -> None:
    assert NEW.is_blank
    assert not NEW.with_draft(user("half a")).is_blank
    assert not NEW.ask("t1", user("One")).is_blank


def test_every_version_stays_in_the_order_in_which_it_was_asked() -> None:
    """Whichever is displayed, and whichever is asked again."""
    chat = NEW.ask("t0", user("One"))
    for number in range(1, 4):
        chat = chat.write(f"t{number - 1}", [token(0, text=str(number))])
        chat = chat.ask_again(f"t{number}", user("One"))
    for place in (0, 2, 1, 3):
        chat = chat.show_version(chat.turns[0].id, place)
        assert chat.turns[0].id == f"t{place}"
        assert [each.id for each in chat.turns[0].versions] == ["t0", "t1", "t2", "t3"]
        assert [each.answer.text for each in chat.turns[0].versions] == ["1", "2", "3", ""]
