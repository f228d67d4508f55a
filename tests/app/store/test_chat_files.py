"""Chats as files: JSON exact, Markdown with every word, and other programs' files by their headings."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta, timezone

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Conversation, Turn
from app.store.chat_files import file_name, from_json, from_markdown, to_json, to_markdown
from app.store.faults import TransferError
from app.store.packing import pack
from core.events import Attachment, Image, Message, Token
from tests.app.store import chats
from tests.app.store.chats import chat_of


@pytest.mark.sweep
@settings(max_examples=15)
@given(st.lists(chats.chats, max_size=3))
def test_json_comes_back_exactly(many: list[Conversation]) -> None:
    assert from_json(to_json(many)) == tuple(many)


def test_json_has_the_answer_in_one_piece_for_others() -> None:
    raw = msgspec.json.decode(to_json([chat_of(1)]))
    assert raw["chats"][0]["turns"][0]["text"].startswith(" word0 word1")


def test_json_of_a_later_version_of_the_settings_is_read() -> None:
    raw = msgspec.json.decode(to_json([chat_of(1)]))
    raw["chats"][0]["turns"][0]["answer"]["finished"]["effective"]["settings"]["sampling"]["new"] = 1
    raw["chats"][0]["mood"] = "good"
    assert from_json(msgspec.json.encode(raw)) == (chat_of(1),)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"not json", "not JSON"),
        (b"[1, 2]", "damaged"),
        (b'{"photos": []}', "damaged"),
        (to_json([chat_of(1)]).replace(b"Question", b"Questi\xffn"), "not UTF-8"),
        (b'{"draftlight_chats": 1, "chats": [{"chat": 3}]}', "damaged"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_what_is_no_chat_file_is_refused_in_words(data: bytes, said: str) -> None:
    with pytest.raises(TransferError, match=said):
        from_json(data)


lines = st.text(st.characters(codec="utf-8", exclude_characters="\r"), max_size=60)
tricky = st.sampled_from(
    [
        "# Title",
        "## You",
        "## Answer",
        "<!-- draftlight: answer -->",
        "\\<!-- draftlight: question -->",
        "```",
        "",
        "  indented",
    ]
)
words = st.lists(lines | tricky, max_size=6).map("\n".join).map(lambda text: text.strip("\n"))


@pytest.mark.sweep
@given(
    st.lists(st.tuples(words, words, st.lists(st.tuples(words, words), max_size=2)), min_size=1, max_size=3)
)
def test_markdown_keeps_every_word(said: list[tuple[str, str, list[tuple[str, str]]]]) -> None:
    turns = tuple(
        Turn(
            f"t{place}",
            Message("user", question, tuple(Attachment(name, text) for name, text in documents)),
            Answer((Token("t", 1, answer, "normal", 1, 0),) if answer else (), "finished"),
            chats.NOON,
        )
        for place, (question, answer, documents) in enumerate(said)
    )
    chat = from_markdown(to_markdown(Conversation("c", chats.NOON, turns)))
    assert [turn.user for turn in chat.turns] == [turn.user for turn in turns]
    assert [turn.answer.text for turn in chat.turns] == [turn.answer.text for turn in turns]
    assert [turn.asked for turn in chat.turns] == [chats.NOON] * len(turns)
    assert {turn.answer.status for turn in chat.turns} == {"imported"}


@given(st.lists(st.lists(st.tuples(words, st.booleans()), max_size=3), min_size=1, max_size=3))
def test_markdown_keeps_its_images_and_says_which_are_missing(
    said: list[list[tuple[str, bool]]],
) -> None:
    there, turns = dict[str, bool](), []
    for place, images in enumerate(said):
        found = []
        for number, (name, kept) in enumerate(images):
            hash = f"{place}{number}".zfill(64)
            there[hash] = kept
            found.append(Image(name, "/data/images/x", hash, 7, 9))
        turns.append(Turn(f"t{place}", Message("user", "Look", images=tuple(found)), Answer((), "imported")))
    text = to_markdown(
        Conversation("c", chats.NOON, tuple(turns)),
        lambda image: f"Chat-images/{image.hash}" if there[image.hash] else "",
    )
    again = from_markdown(text)
    assert [turn.user.content for turn in again.turns] == ["Look"] * len(turns)
    assert [turn.user.images for turn in again.turns] == [
        tuple(replace(image, path="") for image in turn.user.images) for turn in turns
    ]
    for hash, kept in there.items():
        assert (f"](Chat-images/{hash})" in text) is kept
    assert text.count("is missing.") >= sum(not kept for kept in there.values())


def test_a_given_title_comes_along() -> None:
    assert from_markdown(to_markdown(chat_of(1).renamed("Harbour"))).name == "Harbour"
    assert from_markdown(to_markdown(chat_of(1))).name == ""


def test_a_title_is_a_file_name_of_a_length_that_file_systems_allow() -> None:
    assert file_name("What / why?") == "What   why"
    assert file_name("a" * 100) == "a" * 80
    assert file_name("🌊" * 80) == "🌊" * 50


def test_markdown_reads_well() -> None:
    chat = chat_of(1, 1, 4)
    user = Message("user", "What is it about?", (Attachment("rules.txt", "Rule one."),))
    text = to_markdown(replace(chat, turns=(replace(chat.turns[0], user=user),)))
    shown = [line for line in text.splitlines() if line and not line.startswith("<!--")]
    assert shown == [
        "# What is it about?",
        "## You",
        "What is it about?",
        "### Attached: rules.txt",
        "Rule one.",
        "## Answer",
        " word0 word1 word2 word3",
        "### Where the words come from",
        "1. Not in your documents: word0, word1, word2, word3",
    ]


def test_files_of_other_programs_are_read_by_their_headings() -> None:
    hello, hi = "Hello\n```\n## Assistant\n```", "Hi.\n## Notes\nmore"
    text = f"# Talk\n\n## User\n{hello}\n### **Assistant:**\n{hi}\n## Human\nBye"
    chat = from_markdown(text)
    assert chat.title == "Talk"
    assert [turn.user.content for turn in chat.turns] == ["Hello\n```\n## Assistant\n```", "Bye"]
    assert chat.turns[0].answer.text == "Hi.\n## Notes\nmore"


@pytest.mark.parametrize("heading", ["#", "##"])
def test_what_is_no_heading_of_a_speaker_stays_in_the_text(heading: str) -> None:
    code = "\n".join(["~~~", "# You", "```", "~~~", "````md", "```", f"{heading} You", "```", "````"])
    text = f"{heading} You\n{code}\n{heading} Assistant\nFirst.\n\n{heading} Model\n{code}\n# End"
    chat = from_markdown(text)
    assert [(turn.user.content, turn.answer.text) for turn in chat.turns] == [
        (code, f"First.\n\n{code}\n# End")
    ]
    assert chat.name == ""


def test_a_file_without_a_question_is_refused() -> None:
    for text in ("", "Just a letter.", "## Answer\nto nothing"):
        with pytest.raises(TransferError, match="No question"):
            from_markdown(text)


@pytest.mark.parametrize("number", [2**64, -(2**64), 2**200])
def test_a_chat_that_could_not_be_saved_is_refused(number: int) -> None:
    data = to_json([replace(chat_of(1), context_used_tokens=4711)]).replace(b"4711", str(number).encode())
    with pytest.raises(TransferError):
        from_json(data)


def test_an_attachment_without_a_name_that_can_be_read_is_called_as_it_stands() -> None:
    nested = "[" * 3_000
    text = f"<!-- draftlight: question -->\nHello\n<!-- draftlight: attachment {nested} -->\nText"
    attachment = from_markdown(text).turns[0].user.attachments[0]
    assert (attachment.name, attachment.text) == (nested, "Text")


_OFFSETS = [timezone(timedelta(hours=hours)) for hours in (-23, 0, 23)]


@pytest.mark.sweep
@given(
    st.datetimes(timezones=st.sampled_from([None, *_OFFSETS]))
    | st.sampled_from([datetime.min, datetime.max]).flatmap(
        lambda when: st.sampled_from([when, *(when.replace(tzinfo=zone) for zone in _OFFSETS)])
    )
)
def test_a_time_that_is_taken_in_can_be_stored_sorted_by_and_displayed_everywhere(when: datetime) -> None:
    found = [from_markdown(f"<!-- draftlight: question {when.isoformat()} -->\nHello")]
    turn = chat_of(1).turns[0]
    for chat in (
        replace(chat_of(1, 0), created=when),
        replace(chat_of(1), deleted=when),
        replace(chat_of(1), turns=(turn.asked_again("again", turn.user, when).showing(0),)),
    ):
        with suppress(TransferError):
            found += from_json(to_json([chat]))
    for chat in found:
        pack(chat)
        versions = [version for turn in chat.turns for version in turn.versions]
        for time in filter(None, [chat.created, chat.deleted, *(version.asked for version in versions)]):
            time.timestamp()
            for zone in _OFFSETS:
                time.astimezone(zone)
    assert len(found) in (1, 4)


def test_the_first_and_the_last_year_are_not_taken_in() -> None:
    for when in (datetime.min, datetime.max):
        asked = f"<!-- draftlight: question {when.isoformat()} -->\nHello"
        assert from_markdown(asked).turns[0].asked is None
        with pytest.raises(TransferError, match="cannot be saved"):
            from_json(to_json([replace(chat_of(1, 0), created=when)]))
