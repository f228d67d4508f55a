"""What the window says about the worker, for every phase."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.session.status import status_of
from app.session.turn.link_state import Link, Phase
from core.settings import Settings, assign
from tests.app.session.words import INFO

SETTINGS = Settings()


def status(phase: Phase, **changes: object):  # type: ignore[no-untyped-def]
    return status_of(replace(Link("starter", phase, INFO), **changes), SETTINGS)


@pytest.mark.parametrize("phase", list(Phase))
def test_every_phase_has_words(phase: Phase) -> None:
    said = status(phase)
    assert said.worker_title
    assert said.worker_state
    assert said.subtitle
    assert (said.composer in ("blocked", "later")) == bool(said.reason) or phase is Phase.CLOSED


def test_subtitle_names_model_and_drafter() -> None:
    assert status(Phase.READY).subtitle == "Toy 1M, drafting with Auto"
    off = assign(SETTINGS, "drafting.drafter", "off")
    assert status_of(Link("starter", Phase.READY, INFO), off).subtitle == "Toy 1M, drafting is off"
    plain = replace(INFO, speculates=False, why_not="It cannot roll back.")
    assert status_of(Link("starter", Phase.READY, plain), SETTINGS).subtitle == "Toy 1M, drafting is off"


def test_a_dead_worker_blocks_and_greys() -> None:
    said = status(Phase.DEAD)
    assert said.composer == "blocked"
    assert said.stale
    assert said.level == "bad"
    assert said.worker_title == "Engine stopped"
    assert said.subtitle == "Toy 1M, engine stopped"
    assert "Your draft is kept" in said.reason


def test_before_the_model_is_known_it_is_called_as_it_was_asked_for() -> None:
    said = status_of(Link("/models/Toy-2M/", Phase.LOADING), SETTINGS)
    assert said.subtitle == "Loading Toy-2M"
    assert status_of(Link("starter"), SETTINGS).worker_title == "The starter model"


def test_while_another_chat_is_answered_messages_wait() -> None:
    link = Link("starter", Phase.WRITING, INFO)
    assert status_of(link, SETTINGS).composer == "busy"
    said = status_of(link, SETTINGS, answering_elsewhere="Fog")
    assert said.composer == "later"
    assert "Fog" in said.reason


def test_a_released_model_says_so_and_that_it_comes_back() -> None:
    said = status(Phase.READY, released=True)
    assert (said.composer, said.worker_state, said.level) == ("idle", "Unloaded while idle", "idle")
    assert "next question loads it" in said.hint
    assert status(Phase.READING, released=True, request="r1").worker_state == "Loading"
    served = status_of(replace(Link("starter", Phase.READY, INFO), released=True, served=1), SETTINGS)
    assert (served.worker_state, served.level) == ("Loading", "busy")


def test_a_quiet_worker_is_bad_news() -> None:
    said = status(Phase.WRITING, quiet=True)
    assert (said.level, said.worker_state) == ("bad", "Not responding")
