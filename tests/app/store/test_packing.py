"""Records as bytes: exact both ways, patient with records of other versions, small."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from msgspec.structs import replace

from app.session.chats.conversation import Answer, Turn
from app.store.packing import PackedTurn, columns_of, pack, packed, tokens_of, unpack, unpacked
from tests.app.store import chats


@pytest.mark.sweep
@given(chats.turn())
def test_a_turn_comes_back_exactly(turn: Turn) -> None:
    assert unpacked(unpack(pack(packed(turn)), PackedTurn)) == turn


def test_a_token_costs_little_room() -> None:
    tokens = chats.written("a" * 32, 4000)
    assert len(pack(columns_of(tokens))) < 40 * len(tokens)


def test_fields_that_do_not_fit_are_refused() -> None:
    columns = columns_of(chats.written("r", 5))
    for wrong in (
        replace(columns, texts=columns.texts[1:]),
        replace(columns, times_s=()),
        replace(columns, requests=("a", "b")),
        replace(columns, requests=()),
        replace(columns, origins=b"\x00\x00\x00\x00\x09"),
        replace(columns, sources=b"\x00\x00\x00\x00\x09"),
        replace(columns, sources=b"\x00" * 6),
    ):
        with pytest.raises(ValueError, match="answer"):
            tokens_of(wrong)
    turn = packed(chats.chat_of(1).turns[0])
    for place in (1, -1):
        with pytest.raises(ValueError, match="shows version"):
            unpacked(replace(turn, place=place))


def test_an_answer_with_a_setting_that_is_gone_stays_readable() -> None:
    answer = Answer((), "finished", chats.finished("r", 3))
    raw = msgspec.to_builtins(answer)
    raw["finished"]["effective"]["settings"]["sampling"]["wished_for"] = 3
    raw["finished"]["effective"]["settings"]["abolished"] = {"on": True}
    raw["finished"]["effective"]["settings"]["sampling"]["temperature"] = "warm"
    raw["invented_later"] = 1
    assert unpack(msgspec.msgpack.encode(raw), Answer) == answer


def test_an_answer_without_what_it_needs_is_refused() -> None:
    raw = msgspec.to_builtins(Answer((), "finished", chats.finished("r", 3)))
    del raw["finished"]["reason"]
    # The figures cannot be shown without it, but what was said does not depend on them.
    assert unpack(msgspec.msgpack.encode(raw), Answer).finished is None
    with pytest.raises(ValueError, match="truncated"):
        unpack(b"\x85", Answer)
