"""Records as bytes: exact both ways, patient with records of other versions, fast."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from app.session.chats.conversation import Answer
from app.store import packing
from core.events import Message, Token
from tests.app.store import chats


@given(chats.tokens())
def test_tokens_come_back_exactly(tokens: tuple[Token, ...]) -> None:
    assert packing.unpack_tokens(packing.pack_tokens(tokens)) == tokens


@given(chats.answers)
def test_answers_come_back_without_their_tokens(answer: Answer) -> None:
    assert packing.unpack_answer(packing.pack_answer(answer)) == msgspec.structs.replace(answer, tokens=())


@given(chats.messages)
def test_messages_come_back(message: Message) -> None:
    assert packing.unpack_message(packing.pack(message)) == message


def test_a_token_costs_little_room() -> None:
    tokens = chats.written("a" * 32, 4000)
    assert len(packing.pack_tokens(tokens)) < 40 * len(tokens)


def test_columns_that_do_not_fit_are_refused() -> None:
    columns = packing.columns_of(chats.written("r", 5))
    for wrong in (
        msgspec.structs.replace(columns, texts=columns.texts[1:]),
        msgspec.structs.replace(columns, times_s=()),
        msgspec.structs.replace(columns, requests=("a", "b")),
        msgspec.structs.replace(columns, requests=()),
        msgspec.structs.replace(columns, origins=b"\x00\x00\x00\x00\x09"),
        msgspec.structs.replace(columns, sources=b"\x00\x00\x00\x00\x09"),
        msgspec.structs.replace(columns, sources=b"\x00" * 6),
    ):
        with pytest.raises(ValueError, match="answer"):
            packing.tokens_of(wrong)


def test_an_answer_with_a_setting_that_is_gone_stays_readable() -> None:
    answer = Answer((), "finished", chats.finished("r", 3))
    raw = msgspec.to_builtins(answer)
    raw["finished"]["effective"]["settings"]["sampling"]["wished_for"] = 3
    raw["finished"]["effective"]["settings"]["abolished"] = {"on": True}
    raw["finished"]["effective"]["settings"]["sampling"]["temperature"] = "warm"
    raw["invented_later"] = 1
    assert packing.unpack_answer(msgspec.msgpack.encode(raw)) == answer


def test_an_answer_without_what_it_needs_is_refused() -> None:
    raw = msgspec.to_builtins(Answer((), "finished", chats.finished("r", 3)))
    del raw["finished"]["reason"]
    # The figures cannot be shown without it, but what was said does not depend on them.
    assert packing.unpack_answer(msgspec.msgpack.encode(raw)).finished is None
    with pytest.raises(ValueError, match="truncated"):
        packing.unpack_answer(b"\x85")
