"""Rehearsal: every prompt answered once, whenever it was stopped, and a table that knows the answers."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from core.errors import RequestError, TableError
from core.events import Message
from core.models.loader import LoadedModel
from core.models.prompt import render
from core.rehearsal.rehearsal import Rehearsal, RehearsalPlan
from core.rehearsal.streams import (
    Records,
    RehearsedConversation,
    Stream,
    default_conversations,
    read_conversations,
    read_records,
    save_ids,
)
from core.tables.prebuilt import GRAMS

CONVERSATIONS = [
    RehearsedConversation("one", "a"),
    RehearsedConversation("two", "b", ("and?", "why?")),
    RehearsedConversation("three and more", "a"),
    RehearsedConversation("four", "c", ("so?",)),
]
PROMPTS = 7


@pytest.fixture
def plan(tmp_path: Path) -> RehearsalPlan:
    return RehearsalPlan(tmp_path / "r" / "toy.jsonl", tmp_path / "r" / "toy.grams", batch=2, max_tokens=6)


def rehearsal(toy: LoadedModel, plan: RehearsalPlan) -> Rehearsal:
    return Rehearsal(toy, CONVERSATIONS, plan)


def test_everything_is_answered_and_counted(toy: LoadedModel, plan: RehearsalPlan) -> None:
    done = list(rehearsal(toy, plan).work())[-1]
    streams = list(read_records(plan.records))
    assert (done.answered, done.prompts, len(streams)) == (PROMPTS, PROMPTS, PROMPTS)
    assert done.tokens == sum(len(stream.out) for stream in streams)
    info = toy.info
    table = GRAMS.load(plan.table, family=info.family, family_name=info.family_name, vocabulary=260)
    assert len(table) == done.contexts > 10
    stream = streams[0]
    first = table.lookup(stream.prompt)[0]
    assert first.followers[0][0] == stream.out[0] or first.order == 0


def test_follow_ups_come_after_the_models_own_answer(toy: LoadedModel, plan: RehearsalPlan) -> None:
    list(rehearsal(toy, plan).answer())
    answers = {tuple(stream.prompt): stream.out for stream in read_records(plan.records)}
    messages = [Message("user", "two")]
    for turn in ("and?", "why?"):
        out = answers[tuple(render(toy.tokenizer, messages).ids)]
        said = toy.tokenizer.decode([token for token in out if token not in toy.eos]).strip() or "…"
        messages += [Message("assistant", said), Message("user", turn)]
    assert tuple(render(toy.tokenizer, messages).ids) in answers


@pytest.mark.parametrize("pieces", [1, 5, 12, 25])
def test_stopped_anywhere_it_goes_on(toy: LoadedModel, plan: RehearsalPlan, pieces: int) -> None:
    work = rehearsal(toy, plan).answer()
    for _ in itertools.islice(work, pieces):
        pass
    work.close()  # as when someone types
    before = plan.records.read_bytes()
    list(rehearsal(toy, plan).answer())
    assert plan.records.read_bytes().startswith(before)
    streams = list(read_records(plan.records))
    assert len(streams) == len({tuple(stream.prompt) for stream in streams}) == PROMPTS


def test_a_finished_one_asks_nothing_again(toy: LoadedModel, plan: RehearsalPlan) -> None:
    list(rehearsal(toy, plan).answer())
    before = plan.records.read_bytes()
    again = rehearsal(toy, plan)
    assert {progress.tokens for progress in again.answer()} == {again.progress().tokens}
    assert (again.progress().answered, plan.records.read_bytes()) == (PROMPTS, before)


def test_it_goes_on_from_what_was_said_elsewhere(
    toy: LoadedModel, plan: RehearsalPlan, tmp_path: Path
) -> None:
    """The same records and, without probabilities, the same table; only what is missing is asked."""
    list(rehearsal(toy, plan).work())
    whole = {tuple(stream.prompt): stream.out for stream in read_records(plan.records)}
    ids = save_ids(tmp_path / "toy.answers.xz", list(read_records(plan.records))[:-3], toy.info)
    elsewhere = RehearsalPlan(
        tmp_path / "e" / "toy.jsonl", tmp_path / "e" / "toy.grams", batch=2, max_tokens=6
    )
    again = Rehearsal(toy, CONVERSATIONS, elsewhere, ids)
    done = list(again.work())[-1]
    assert {tuple(stream.prompt): stream.out for stream in read_records(elsewhere.records)} == whole
    assert (done.answered, done.tokens) == (PROMPTS, sum(map(len, whole.values())))
    assert done.contexts > 10
    said_here = [stream for stream in read_records(elsewhere.records) if stream.tops]
    assert len(said_here) == 3, "what was taken over has no probabilities, and what was said has"
    assert [s.cls for s in read_records(elsewhere.records) if s.prompt == said_here[0].prompt] != ["prompt"]


def test_what_was_said_elsewhere_is_within_the_tokens_asked_for_and_makes_no_early_table(
    toy: LoadedModel, plan: RehearsalPlan, tmp_path: Path
) -> None:
    list(rehearsal(toy, plan).answer())
    ids = save_ids(tmp_path / "toy.answers.xz", read_records(plan.records), toy.info)
    few = RehearsalPlan(tmp_path / "few.jsonl", tmp_path / "few.grams", batch=1, max_tokens=6, most_tokens=7)
    assert list(Rehearsal(toy, CONVERSATIONS, few, ids).answer())[-1].answered < PROMPTS
    often = RehearsalPlan(
        tmp_path / "o.jsonl", tmp_path / "o.grams", batch=2, max_tokens=6, table_every_tokens=5
    )
    tables = [progress for progress in Rehearsal(toy, CONVERSATIONS, often, ids).work() if progress.contexts]
    assert len(tables) == 1, "only the one at the end"


def test_it_stops_at_the_tokens_asked_for(toy: LoadedModel, plan: RehearsalPlan) -> None:
    plan = RehearsalPlan(plan.records, plan.table, batch=1, max_tokens=6, most_tokens=7)
    done = list(rehearsal(toy, plan).answer())[-1]
    assert 7 <= done.tokens < 7 + 6
    assert list(rehearsal(toy, plan).answer()) == []


def test_a_line_cut_short_is_answered_again(toy: LoadedModel, plan: RehearsalPlan) -> None:
    list(rehearsal(toy, plan).answer())
    whole = plan.records.read_bytes()
    plan.records.write_bytes(whole[:-20])
    list(rehearsal(toy, plan).answer())
    assert sorted(plan.records.read_bytes().splitlines()) == sorted(whole.splitlines())


def test_a_prompt_that_does_not_fit_is_passed_over(toy: LoadedModel, plan: RehearsalPlan) -> None:
    held = [RehearsedConversation("x" * 600, "long", ("more",)), RehearsedConversation("short")]
    work = Rehearsal(toy, held, plan)
    list(work.answer())
    assert [stream.cls for stream in read_records(plan.records)] == ["prompt"]
    assert work.progress().answered == 3


def test_a_second_writer_is_told(plan: RehearsalPlan, toy: LoadedModel) -> None:
    with Records(plan.records), pytest.raises(TableError, match="another Draftlight"):
        list(rehearsal(toy, plan).answer())


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(TableError, match="cannot be written"):
        Records(tmp_path / "file" / "r.jsonl").__enter__()


def test_records_pass_over_what_is_no_answer(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    with Records(path) as records:
        records.add(Stream([1], [2]))
    path.write_bytes(path.read_bytes() + b"{}\nnonsense\n")
    with Records(path) as records:
        records.add(Stream([3], [4]))
    assert [stream.prompt for stream in read_records(path)] == [[1], [3]]


def test_our_own_prompts_read() -> None:
    held = read_conversations(default_conversations())
    assert len(held) > 1000
    assert len({conversation.kind for conversation in held}) > 10


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no prompts"),
        ('{"prompt": "a"}\n{"text": "b"}', "line 2"),
        ('{"prompt": " "}', "a turn is empty"),
        ('{"prompt": "a", "then": [""]}', "a turn is empty"),
    ],
)
def test_prompts_that_are_none(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(content)
    with pytest.raises(RequestError, match=words):
        read_conversations(path)
