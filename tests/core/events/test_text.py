"""Half a character does no harm, whichever way it comes in."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.engine.engine import Engine
from core.errors import ProtocolError
from core.events import (
    Attachment,
    CountTokens,
    Generate,
    Message,
    Token,
    decode_command,
    decode_event,
    encode,
)
from core.events.wire import well_formed, well_formed_json, well_formed_record
from core.prompt import rendering as prompt

HALF = "a\ud83db"
texts = st.text(st.characters(), max_size=20) | st.text(st.sampled_from("a\\u\ud83d\ude00é😀"), max_size=8)


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("plain", "plain"),
        ("é 😀", "é 😀"),
        (HALF, "a\ufffdb"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("\ud83d\ude00", "😀"),
        (b"caf\xe9".decode("utf-8", "surrogateescape"), "caf\ufffd"),
    ],
)
def test_a_lone_half_is_replaced(text: str, better: str) -> None:
    assert well_formed(text) == better


@given(texts)
def test_any_text_can_be_encoded_and_a_whole_one_stays(text: str) -> None:
    better = well_formed(text)
    better.encode()
    assert well_formed(better) is better


def test_a_whole_record_is_itself() -> None:
    message = Message("user", "é", (Attachment("a", "b"),))
    assert all(well_formed_record(one) is one for one in (message, [message], {"a": message}))
    half = Message("user", HALF, (Attachment(HALF, HALF),))
    better = "a\ufffdb"
    assert well_formed_record((half,)) == (Message("user", better, (Attachment(better, better),)),)


@given(texts)
def test_a_command_with_any_text_goes_through(text: str) -> None:
    command = Generate(text, (Message("user", text, (Attachment(text, text),)),))
    assert decode_command(encode(command)) == well_formed_record(command)
    event = Token("r", 1, text, "normal", 1, 0, time_s=0.5)
    assert decode_event(encode(event)) == well_formed_record(event)


@given(texts)
def test_a_line_of_another_program_is_read(text: str) -> None:
    """Python's own `json` escapes halves as they are; others write them out."""
    values = {"type": "count_tokens", "request": "r", "text": text}
    wanted = CountTokens("r", well_formed(text))
    assert decode_command(json.dumps(values).encode()) == wanted
    raw = json.dumps(values, ensure_ascii=False).encode("utf-8", "surrogatepass")
    assert decode_command(raw).request == "r"  # type: ignore[union-attr]


def test_backslashes_that_are_text_stay() -> None:
    line = rb'"\\ud83d \\\ud83d \ud83d\ude00 \n"'
    assert msgspec.json.decode(well_formed_json(line)) == "\\ud83d \\\ufffd 😀 \n"


def test_a_line_that_is_no_json_is_refused_all_the_same() -> None:
    with pytest.raises(ProtocolError):
        decode_command(b'{"type": "\\ud83d", \xff')


@pytest.mark.sweep
def test_a_prompt_with_half_a_character_is_read(toy_engine: Engine) -> None:
    loaded = toy_engine.loaded
    messages = (Message("user", HALF, (Attachment("x\ud83d", HALF),)),)
    read = prompt.render(loaded.tokenizer, messages, HALF)
    assert "\ufffd" in read.text
    assert toy_engine.count_tokens(HALF) == toy_engine.count_tokens("a\ufffdb")
    events = list(toy_engine.generate(Generate("r", messages)))
    for event in events:
        encode(event)
