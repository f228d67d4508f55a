"""Chats for tests of the store: any chat that could be (hypothesis), and ones of a given size."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import get_args

from hypothesis import strategies as st
from msgspec.structs import replace

from app.session.chats.conversation import Answer, AnswerStatus, Conversation, QueuedMessage, Turn, Version
from app.session.chats.presets import Override
from app.session.tools.calls import CallRecord, CallState, ChosenTool
from core.events import (
    Attachment,
    Change,
    DraftSource,
    Effective,
    Finished,
    Image,
    Message,
    Origin,
    Stats,
    Token,
)
from core.settings import Settings

NOON = datetime(2026, 5, 4, 12, 0, tzinfo=UTC)
_ORIGINS: tuple[Origin, ...] = ("normal", "accepted", "accepted", "bonus")

texts = st.text(max_size=40)
ids = st.text(min_size=1, max_size=8)
# Chats are listed by seconds since 1970, which a year 1 has none of; Draftlight writes what the clock says.
times = st.datetimes(datetime(1970, 1, 2), datetime(9998, 12, 30), timezones=st.none() | st.just(UTC))
small = st.integers(0, 2**31)
floats = st.floats(allow_nan=False, allow_infinity=False)
# As they are stored: without a path.
hashes = st.integers(0, 3).map(lambda number: f"{number:064x}")
images = st.builds(Image, texts, st.just(""), hashes, st.integers(1, 9_000), st.integers(1, 9_000), small)
messages = st.builds(
    Message,
    st.just("user"),
    texts,
    st.lists(st.builds(Attachment, texts, texts), max_size=2).map(tuple),
    images=st.lists(images, max_size=2).map(tuple),
)
stats = st.builds(Stats, tokens=small, tokens_per_s=floats, context_used_tokens=small)
changes = st.lists(st.builds(Change, texts, texts, texts, texts), max_size=2).map(tuple)
effectives = st.builds(Effective, texts, texts, texts, st.just(Settings()), texts, changes)
finisheds = st.builds(Finished, ids, st.sampled_from(["stop", "length", "cancelled"]), stats, effectives)


@st.composite
def tokens(draw: st.DrawFn) -> tuple[Token, ...]:
    request = draw(ids)
    one = st.builds(
        Token,
        st.just(request) | ids,
        small,
        texts,
        st.sampled_from(_ORIGINS),
        small,
        small,
        small,
        small,
        floats,
        source=st.sampled_from(get_args(DraftSource)),
        rejected=st.lists(st.text(max_size=3), max_size=2).map(tuple),
    )
    return tuple(draw(st.lists(one, max_size=6)))


statuses: st.SearchStrategy[AnswerStatus] = st.sampled_from(
    ["waiting", "writing", "calling", "finished", "stopped", "cut_off", "failed", "imported"]
)
_CALLED = CallRecord("c1", "find", "plain", "find", '{"n": 1}', '{"n": 2}', "print", after=2)
# Drawn whole, because records drawn field by field take most of the time of these tests.
calls = st.sampled_from(
    [
        (),
        (_CALLED,),
        *(
            (
                _CALLED,
                replace(_CALLED, id="c2", state=state, result="\0 日本 \u2028🙂", left_out=("a sound",)),
                replace(
                    _CALLED, id="c3", state=state, images=(Image("i", "", "1".zfill(64), 2, 3),), seconds=0.1
                ),
            )
            for state in get_args(CallState)
        ),
    ]
)
answers = st.builds(Answer, tokens(), statuses, st.none() | finisheds, texts, calls=calls)
versions = st.builds(Version, ids, messages, answers, st.none() | times)


@st.composite
def turn(draw: st.DrawFn) -> Turn:
    others = draw(st.lists(versions, max_size=3).map(tuple))
    shown = draw(versions)
    place = draw(st.integers(0, len(others)))
    return Turn(shown.id, shown.user, shown.answer, shown.asked, others, place)


turns = st.lists(turn(), max_size=4).map(tuple)
overrides = st.lists(
    st.builds(Override, ids, st.none() | st.booleans() | small | floats | texts), max_size=3
).map(tuple)
chats = st.builds(
    Conversation,
    id=ids,
    created=times,
    turns=turns,
    context_used_tokens=small,
    name=texts,
    pinned=st.booleans(),
    overrides=overrides,
    draft=messages,
    deleted=st.none() | times,
    preset=texts,
    queued=st.lists(st.builds(QueuedMessage, messages, overrides), max_size=2).map(tuple),
    project=texts,
    tools=st.sampled_from([(), (ChosenTool("plain", "find"), ChosenTool("plain", ""))]),
)


def written(request: str, count: int, word: str = "word") -> tuple[Token, ...]:
    """An answer of `count` tokens in steps of four."""
    return tuple(
        Token(
            *(request, 1000 + n % 500, f" {word}{n}", _ORIGINS[n % 4], n // 4 + 1, n, n % 4, 3, n * 0.0123),
            source="head" if _ORIGINS[n % 4] == "accepted" else "",
        )
        for n in range(count)
    )


def finished(request: str, count: int) -> Finished:
    figures = Stats(tokens=count, tokens_per_s=23.5, context_used_tokens=count)
    return Finished(request, "stop", figures, Effective("Toy", "float32", "auto", Settings()))


def with_results(chat: Conversation, content: str) -> Conversation:
    """`chat` with a call in both versions of its last turn, which returned the same."""
    *before, last = chat.turns
    answer = replace(
        last.answer, tools=("find",), calls=(CallRecord("c1", "find", state="done", result=content, after=2),)
    )
    other = Version(f"{last.id}-other", last.user, answer, last.asked)
    return chat.with_turns((*before, replace(last, answer=answer, others=(other,))))


def chat_of(number: int, turns: int = 1, tokens: int = 8, text: str = "") -> Conversation:
    """A finished chat, `number` minutes after noon."""
    asked = NOON + timedelta(minutes=number)
    return Conversation(
        f"c{number}",
        asked,
        tuple(
            Turn(
                f"c{number}t{n}",
                Message("user", text or f"Question {n} of chat {number}"),
                Answer(written(f"c{number}t{n}", tokens), "finished", finished(f"c{number}t{n}", tokens)),
                asked,
            )
            for n in range(turns)
        ),
    )
