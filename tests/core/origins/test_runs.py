"""Runs of an answer, against a slow reference."""

from __future__ import annotations

import pytest

from core.origins import Index, Origins, Source, Tracer, trace


def indexed(*texts: str) -> tuple[list[Source], list[Index]]:
    """Sources and their complete indexes."""
    sources = [Source(f"document {number}", text) for number, text in enumerate(texts)]
    indexes = [Index(text) for text in texts]
    for index in indexes:
        assert index.build()
    return sources, indexes


def copied(answer: str, *texts: str) -> list[tuple[str, str]]:
    """Of each run the words of the answer and those of the source."""
    sources, indexes = indexed(*texts)
    found = trace(answer, sources, indexes).runs
    return [
        (answer[run.start : run.end], texts[run.place.source][run.place.start : run.place.end])
        for run in found
    ]


SAME = {
    "case": ("The Tenant pays the deposit", "the tenant PAYS the Deposit"),
    "dashes": ("a long-term lease – without deposit", "a long term lease - without deposit"),
    "quotes": ("the tenant’s own “deposit” is paid", "the tenant's own 'deposit' is paid"),
    "line breaks": ("the tenant pays the\n  deposit", "the tenant pays the deposit"),
    "hyphenation": ("the ten-\nant pays the deposit", "the tenant pays the deposit"),
    "Markdown": ("the tenant **pays** the *due* deposit", "the _tenant_ pays ~~the~~ due deposit"),
    "list": ("the tenant\n1. pays\n2. the deposit", "the tenant\n- pays\n- the deposit"),
    "thousands": ("the tenant pays 1,200 euros deposit", "the tenant pays 1 200 euros deposit"),
    "units": ("the tenant carries 5kg of deposit", "the tenant carries 5 kg of deposit"),
    "Japanese": ("契約期間は二年とする。更新は可能。", "契約期間は二年とする。\n更新は可能"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_makes_no_difference(name: str) -> None:
    source, answer = SAME[name]
    [(in_answer, in_source)] = copied(f"Yes: {answer}. So it is.", f"Rules. {source}. More follows.")
    assert in_answer == answer.strip("。.")
    assert in_source.rstrip("。.") == source.rstrip("。.")


DIFFERENT = {
    "digits": ("the tenant pays 1,200 euros", "the tenant pays 1,300 euros"),
    "sign": ("the loss of tenants was -5 percent", "the loss of tenants was 5 percent"),
    "unit": ("the tenant uses around 5 % power", "the tenant uses around 5 kWh power"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_what_makes_a_difference(name: str) -> None:
    source, answer = DIFFERENT[name]
    assert all(in_answer != answer for in_answer, _ in copied(answer, source))


def test_a_growing_answer_has_the_origins_of_its_text() -> None:
    source = "# Rules\nThe tenant shall pay a rent of 1,200 euros per month in ad-\nvance. Pets stay.\n"
    answer = (
        "It says:\n\n1. the tenant shall pay a\n2. “pets are allowed”\n\n```\nx = the tenant shall pay\n```\n"
    )
    sources, indexes = indexed(source)
    tracer = Tracer(sources, indexes)
    for end, character in enumerate(answer, 1):
        tracer.extend(character)
        assert tracer.origins == trace(answer[:end], sources, indexes)


def test_without_sources_there_are_no_origins() -> None:
    assert trace("It is 12.", [], []) == Origins()
