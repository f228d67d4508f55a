"""An answer in two parts: whether there can be a second, and what both come to."""

from __future__ import annotations

from datetime import datetime

import msgspec
import pytest
from msgspec.structs import replace

from app.session.chats.answers import can_go_on, end_of, joined, placed, to_go_on_from
from app.session.chats.conversation import Conversation
from core.answer_format.formats import AnswerFormat
from core.events import Finished, FinishReason, Message, Origin, Passage, PositionStat, Stats, Token
from core.events.answer import JOINED
from core.settings import Settings
from tests.app.session.words import finished, token

MODEL = "Toy 1M"
CHAT = Conversation("c1", datetime(2026, 5, 4, 12, 0)).ask("t1", Message("user", "Why?"))


def end(stats: Stats, reason: FinishReason = "length") -> Finished:
    return replace(finished(reason=reason), stats=stats)


FIRST = Stats(
    prompt_tokens=100,
    reused_tokens=40,
    read_tokens=60,
    tokens=10,
    accepted=4,
    bonus=2,
    normal=4,
    steps=6,
    tested=5,
    ttft_s=0.5,
    decode_s=1.0,
    tokens_per_s=9.0,
    plain_tokens_per_s=6.0,
    positions=(PositionStat(5, 4),),
    context_used_tokens=110,
    context_tokens=8192,
)
THEN = Stats(
    prompt_tokens=110,
    reused_tokens=109,
    read_tokens=1,
    tokens=30,
    accepted=20,
    bonus=5,
    normal=5,
    steps=10,
    tested=30,
    ttft_s=0.1,
    decode_s=2.0,
    tokens_per_s=14.5,
    positions=(PositionStat(6, 5), PositionStat(4, 1)),
    context_used_tokens=140,
    context_tokens=8192,
)


@pytest.mark.parametrize(
    ("reason", "model", "used", "possible"),
    [
        ("cancelled", MODEL, 110, True),
        ("length", MODEL, 110, True),
        ("stop", MODEL, 110, False),
        ("length", "Another 7B", 110, False),
        ("length", MODEL, 8192, False),
    ],
)
def test_who_can_go_on(reason: FinishReason, model: str, used: int, possible: bool) -> None:
    ended = end(replace(FIRST, context_used_tokens=used), reason)
    assert can_go_on(ended, model) is possible
    assert not can_go_on(end(replace(FIRST, tokens=0), reason), model)


READ = (
    *("prompt_tokens", "reused_tokens", "disk_tokens", "read_tokens", "skipped_tokens", "read_on_tokens"),
    *("scored_tokens", "kept_tokens", "image_tokens", "image_s"),
)


def test_figures_are_those_of_the_whole_answer() -> None:
    whole = joined(end(FIRST), end(THEN, "stop"), 0)
    stats = whole.stats
    assert whole.reason == "stop"
    assert (stats.tokens, stats.accepted, stats.bonus, stats.normal, stats.steps) == (40, 24, 7, 9, 16)
    assert stats.tokens == stats.accepted + stats.bonus + stats.normal
    assert stats.steps == stats.bonus + stats.normal
    assert stats.mean_per_step == 40 / 16
    assert stats.acceptance == 24 / 35
    assert stats.tokens_per_s == pytest.approx((9 + 29) / 3)
    assert stats.plain_tokens_per_s == 6.0  # the later part timed no plain step
    assert stats.positions == (PositionStat(11, 9), PositionStat(4, 1))
    # The wait for the first token and what was read are the first part's.
    assert (stats.ttft_s, stats.prompt_tokens, stats.reused_tokens, stats.read_tokens) == (0.5, 100, 40, 60)
    assert stats.context_used_tokens == 140


def test_every_count_is_that_of_both_parts() -> None:
    More = msgspec.defstruct("More", [("longest", int, 0)], bases=(Stats,))
    figures = msgspec.structs.asdict(More())
    counts = [name for name in figures if isinstance(figures[name], int | float)]
    whole = More(**dict.fromkeys(counts, 3)).joined(More(**dict.fromkeys(counts, 5)))
    added = {name: getattr(whole, name) for name in counts if name not in JOINED}
    assert added == dict.fromkeys(added, 8)
    assert {name: getattr(whole, name) for name in READ} == dict.fromkeys(READ, 3)
    assert whole.prediction_rejected == 5  # what neither part has of the prediction
    assert (whole.draft_us_p99, whole.memory_peak_bytes, whole.memory_bytes) == (5, 5, 5)


def test_what_was_read_again_is_told() -> None:
    again = replace(THEN, reused_tokens=0, read_tokens=110)
    sparse = replace(end(FIRST), effective=replace(end(FIRST).effective, reading="sparse", scorer="lexical"))
    stats = joined(sparse, end(again), 0).stats
    assert (stats.prompt_tokens, stats.reused_tokens, stats.read_tokens, stats.ttft_s) == (110, 0, 110, 0.5)
    assert joined(sparse, end(again), 0).effective.reading == "dense"
    assert joined(sparse, end(THEN), 0).effective.reading == "sparse"
    passages = tuple(Passage(n, n + 9, True, 1.0, 0, n, n + 9) for n in (0, 30))
    then = replace(end(THEN), sources=passages)
    assert joined(replace(end(FIRST), sources=passages[:1]), then, 0).sources == passages
    # A loop of the second part is placed in the whole answer.
    looping = replace(end(THEN), repeats_from=3)
    assert joined(end(FIRST), looping, 7).repeats_from == 10
    assert joined(replace(end(FIRST), repeats_from=3), end(THEN), 7).repeats_from is None


def test_tokens_are_counted_through() -> None:
    after = replace(token(9, "t1", step=6), time_s=1.5)
    new = placed(replace(token(0, "r2", step=1), time_s=0.25), "t1", after)
    assert (new.request, new.position, new.step, new.time_s) == ("t1", 10, 7, 1.75)


def test_half_a_character_waits_for_its_other_half() -> None:
    texts = ["a\ufffd", "\ufffd b\ufffd", "", "\ufffd", "\ufffd\ufffd"]
    held = to_go_on_from([token(n, text=text) for n, text in enumerate(texts)])
    assert [each.text for each in held] == ["a\ufffd", "\ufffd b", "", "", ""]


def test_a_chat_goes_on_with_its_answer() -> None:
    first = (token(0, "t1", "Be"), token(1, "t1", "\ufffd"))
    chat = CHAT.write("t1", first).finish("t1", end(FIRST))
    assert chat.turn("t1").answer.can_go_on(MODEL)
    assert chat.messages_before("t1") == (Message("user", "Why?"),)
    going = chat.go_on("t1", MODEL)
    answer = going.turn("t1").answer
    assert (answer.status, answer.over, answer.text) == ("writing", False, "Be")
    assert not answer.can_go_on(MODEL)
    going = going.write("t1", (token(2, "t1", "cause."),))
    whole = going.finish("t1", end(THEN, "stop")).turn("t1").answer
    assert (whole.text, whole.status) == ("Because.", "finished")
    assert whole.finished
    assert whole.finished.stats.tokens == 40
    # Cut off, the figures of the first part would be called those of everything.
    for broken in (going.cut_off("t1", "Gone."), going.fail("t1", "Gone."), going.settled("Gone.")):
        answer = broken.turn("t1").answer
        assert (answer.finished, answer.note, answer.text) == (None, "Gone.", "Because.")


def test_drafts_that_were_checked_are_counted_from_the_tokens() -> None:
    def one(step: int, origin: Origin, index: int = 0, length: int = 0) -> Token:
        return Token("r", 1, "a", origin, step, 0, index, length)

    tokens = (
        one(1, "normal"),
        *(one(2, "accepted", index, 4) for index in (1, 2)),  # the third of four was refused
        one(2, "bonus"),
        *(one(3, "accepted", index, 2) for index in (1, 2)),  # all of them were right
        one(3, "bonus"),
        one(4, "bonus"),  # not even the first was
        one(5, "accepted", 1, 3),  # cut off in mid-step
    )
    stats = end_of(tokens, "Toy", Settings()).stats
    assert (stats.accepted, stats.tested) == (5, 3 + 2 + 1 + 1)
    assert (stats.acceptance, stats.mean_per_step) == (5 / 7, len(tokens) / 5)
    thinking = AnswerFormat(begins="thought")
    ended = end_of((replace(tokens[0], format=thinking), *tokens[1:]), "Toy", Settings())
    assert ended.effective.format == thinking
