"""The wire: every message survives it, every malformed line is refused with words."""

from __future__ import annotations

import contextlib
import typing

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core import events
from core.errors import DraftlightError, PromptTooLongError, ProtocolError, SettingError
from core.events import Attachment, Generate, Message, decode_command, decode_event, encode, failure
from core.events.tables import Count
from core.settings import Prefill, Settings

COMMANDS = typing.get_args(events.Command)
EVENTS = typing.get_args(events.Event)
SAMPLES: dict[type, object] = {
    str: "text ✓\nline",
    int: 7,
    float: 1.5,
    bool: True,
    bytes: b"\x00\xff",
    Settings: Settings(),
    Prefill: Prefill(save=False),
    Count: 7,
}


def sample(kind: type) -> typing.Any:
    """Some instance of a message, made from its declared fields."""
    if kind in SAMPLES:
        return SAMPLES[kind]
    values = {}
    for field in msgspec.structs.fields(kind):
        if typing.get_origin(field.type) is typing.Annotated:  # with bounds that the sample is within
            values[field.name] = SAMPLES[typing.get_args(field.type)[0]]
        elif field.type in SAMPLES:
            values[field.name] = SAMPLES[field.type]
        elif isinstance(field.type, type) and issubclass(field.type, msgspec.Struct):
            values[field.name] = sample(field.type)
        elif typing.get_origin(field.type) is typing.Literal:
            values[field.name] = typing.get_args(field.type)[-1]
        elif typing.get_origin(field.type) is tuple:
            values[field.name] = (sample(typing.get_args(field.type)[0]),)
        elif typing.get_origin(field.type) is dict:
            values[field.name] = dict([tuple(map(sample, typing.get_args(field.type)))])
        else:
            values[field.name] = None
    return kind(**values)


@pytest.mark.parametrize("kind", COMMANDS, ids=lambda kind: kind.__name__)
def test_every_command_survives_the_wire(kind: type) -> None:
    message = sample(kind)
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode_command(line) == message


@pytest.mark.parametrize("kind", EVENTS, ids=lambda kind: kind.__name__)
def test_every_event_survives_the_wire(kind: type) -> None:
    message = sample(kind)
    line = encode(message)
    assert line.count(b"\n") == 1
    assert decode_event(line) == message


@given(st.text(), st.text())
def test_any_text_survives_the_wire(content: str, document: str) -> None:
    content = content.encode("utf-8", "replace").decode()
    document = document.encode("utf-8", "replace").decode()
    message = Generate("r", (Message("user", content, (Attachment("d", document),)),))
    assert decode_command(encode(message)) == message


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\n",
        b"nonsense\n",
        b"[]",
        b"{}",
        b'{"type":"no_such"}',
        b'{"type":"generate"}',
        b'{"type":"cancel","request":5}',
        b'{"type":"cancel","request":"a","extra":1}',
        b'{"type":"load_model","model":"a"',
        b"\xff\xfe\x00",
        b'{"type":"generate","request":"a","messages":[{"role":"robot","content":"x"}]}',
        b"[" * 50_000,
    ],
)
def test_malformed_commands_are_refused(line: bytes) -> None:
    with pytest.raises(ProtocolError, match="not a command"):
        decode_command(line)


@given(st.binary(max_size=200))
def test_no_bytes_crash_the_decoders(line: bytes) -> None:
    for decode in (decode_command, decode_event):
        with contextlib.suppress(DraftlightError):
            decode(line)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ('{"drafting":{"drafter":"crystal-ball"}}', "ngram-simple"),
        ('{"ngram_simple":{"k":0}}', "from 1 to 64"),
        ('{"ngram_simple":{"k":"many"}}', "whole number"),
        ('{"ngram_simple":{"kk":1}}', "ngram_simple.k"),
        ('{"sampling":{"temperature":-1}}', "from 0 to 2"),
    ],
)
def test_a_bad_setting_on_the_wire_names_what_is_allowed(settings: str, words: str) -> None:
    line = f'{{"type":"generate","request":"a","messages":[],"settings":{settings}}}'
    with pytest.raises(SettingError) as caught:
        decode_command(line.encode())
    assert words in str(caught.value)


def test_failures_carry_kind_code_message_and_hint() -> None:
    failed = failure(PromptTooLongError(9000, 8191), command="generate", request="r")
    assert (failed.kind, failed.code, failed.request) == ("request", "prompt-too-long", "r")
    assert "809 more" in failed.message
    assert failed.hint
    broken = failure(ZeroDivisionError("x"), command="generate")
    assert broken.kind == "internal"
    assert broken.message == "Internal error in Draftlight: x."
