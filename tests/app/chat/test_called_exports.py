"""Calls and results of tools leave the chat where the answer does: in files, and a search finds them."""

from __future__ import annotations

import json
from datetime import UTC, datetime

from msgspec.structs import replace

from app.chat.export import ExportOptions, blocks, page
from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.tools.calls import CallRecord
from app.store.chat_files import from_json, from_markdown, to_json, to_markdown
from app.store.chat_store import ChatStore
from core.answer_format import AnswerFormat
from core.events import Effective, Finished, Image, Message, Stats, Token
from core.settings import Settings

CALL = '<tool_call>\n{"name": "look_up", "arguments": {"city": "Bern"}}\n</tool_call>'
PICTURE = Image("map 1", "", "a" * 64, 20, 10)
RECORD = CallRecord(
    "c1",
    "look_up",
    "weather",
    "look_up",
    '{"city": "Thun"}',
    '{"city": "Bern"}',
    state="done",
    result="Drizzle\n```\n<!-- draftlight: answer -->",
    images=(PICTURE,),
    seconds=0.84,
    allowed_by="once",
    after=2,
)


def chat_with_call() -> Conversation:
    texts = ("I look.", CALL, "# It drizzles.")
    tokens = tuple(Token("t", n, text, "normal", n + 1, n) for n, text in enumerate(texts))
    effective = Effective("toy", "float32", "off", Settings(), format=AnswerFormat(calls=("hermes",)))
    finished = Finished("t", "stop", Stats(tokens=3), effective)
    answer = Answer(tokens, "finished", finished, tools=("look_up",), calls=(RECORD,))
    now = datetime(2026, 11, 29, tzinfo=UTC)
    return Conversation("c", now, (Turn("t", Message("user", "Rain?"), answer, now),))


def test_a_page_has_each_call_between_the_words_of_the_answer() -> None:
    for options in (ExportOptions(), ExportOptions(thoughts=True, tints=True)):
        for made in (page(chat_with_call(), options, "Rain"), blocks(chat_with_call(), options, "Rain")):
            html = "".join(made)
            called = "Called look_up of weather, 0.8 s"
            marks = ("I look.", called, "Thun", "Drizzle", "map 1", "It drizzles.")
            places = [html.index(mark) for mark in marks]
            assert places == sorted(places)
            assert "tool_call" not in html


def test_markdown_has_each_call_and_is_imported_without() -> None:
    made = to_markdown(chat_with_call())
    places = [made.index(mark) for mark in ("I look.", "### Called look_up", "Thun", "Drizzle", "# It driz")]
    assert places == sorted(places)
    assert "![map 1](folder/map.png)" in to_markdown(chat_with_call(), lambda image: "folder/map.png")
    assert from_markdown(made).turns[0].answer.text == "I look.\n\n# It drizzles."
    assert "tool_call" not in made
    assert "````\nDrizzle\n```\n" in made  # its fence does not end the block


def test_json_has_everything() -> None:
    chat = chat_with_call()
    assert from_json(to_json([chat]))[0].turns == chat.turns
    assert json.loads(to_json([chat]))["chats"][0]["turns"][0]["text"] == chat.turns[0].answer.words


def test_a_search_finds_calls_and_results_once_the_answer_is_over() -> None:
    store = ChatStore(None)
    try:
        chat = chat_with_call()
        with store.transaction():
            store.write(chat)
        for word in ("look_up", "Thun", "Drizzle", "drizzles"):
            assert [hit.chat_id for hit in store.search(word)] == ["c"], word
        assert store.load("c") == chat
        assert store.image_hashes() == {"a" * 64}
        gone = chat.with_answer("t", replace(chat.turns[0].answer, calls=()))
        with store.transaction():
            store.write(gone, chat)
        assert store.image_hashes() == set()
    finally:
        store.close()
