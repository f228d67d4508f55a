"""What the window says about the worker, for every phase."""

from __future__ import annotations

from itertools import product

import pytest
from msgspec.structs import replace

from app.session import strings
from app.session.status import recognised, status_of
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


ANSWERING = (Phase.READING, Phase.WRITING, Phase.STOPPING)


def links() -> list[Link]:
    """Every combination of what a status depends on."""
    found = []
    for phase, info, quiet, ahead, served, loads, released, before in product(
        Phase, (INFO, None), (False, True), (0, 2), (0, 1), (False, True), (False, True), ("", "old")
    ):
        request = "r1" if phase in ANSWERING else ""
        link = Link("new", phase, info, request, quiet, before=before, served=served)
        found.append(replace(link, ahead=ahead if request else 0, loads=loads, released=released))
    return found


def test_each_part_of_the_status_is_the_most_urgent_one() -> None:
    """What is told of each state, from the most urgent to the least."""
    client = "Zed"
    for link in links():
        said = status_of(link, SETTINGS, served_client=client)
        is_served = (link.ahead or (link.served and link.phase is Phase.READY)) and not link.before
        loads = link.before or link.loads or (link.released and (link.request or is_served))
        is_idle = link.released and link.phase is Phase.READY
        plain = status_of(Link("new", link.phase, INFO), SETTINGS)
        # The state of the worker.
        if link.quiet:
            state, level = "Not responding", "bad"
        elif loads:
            state, level = "Loading", "busy"
        elif is_served and not link.released:
            state, level = "Answering Zed", "busy"
        elif is_idle:
            state, level = "Unloaded while idle", "idle"
        else:
            state, level = plain.worker_state, plain.level
        assert (said.worker_state, said.level) == (state, level), link
        # The hint.
        if link.ahead:
            hint = "Waiting for 2 requests of the local server"
        elif is_served and not link.released:
            hint = strings.next_after(client)
        elif is_idle and not loads:
            hint = strings.LOADS_AGAIN
        else:
            hint = ""
        assert said.hint == hint, link
        # What the answer waits for.
        name = link.info.name if link.info else "new"
        waits = (
            "" if not link.request
            else "The engine does not respond." if link.quiet
            else "Stopping…" if link.phase is Phase.STOPPING
            else "Waiting for 2 requests of the local server" if link.ahead
            else f"Loading {name}…" if loads
            else "Reading the question…" if link.phase is Phase.READING
            else ""
        )  # fmt: skip
        assert said.waits_for == waits, link
        dead = link.phase is Phase.DEAD
        assert said.stale is dead
        assert said.worker_title == ("Engine stopped" if dead else name[:1].upper() + name[1:])
        subtitles = {
            (True, True): "Toy 1M, engine stopped",
            (True, False): "Engine stopped",
            (False, True): "Toy 1M, drafting with Auto",
        }
        loading = "No model loaded" if link.phase is Phase.NO_MODEL else "Loading new"
        assert said.subtitle == subtitles.get((dead, link.info is not None), loading)


@pytest.mark.parametrize("phase", list(Phase))
def test_who_holds_messages_back(phase: Phase) -> None:
    """Another chat's answer, then a race; only while an answer runs."""
    link = Link("starter", phase, INFO, request="r1" if phase in ANSWERING else "")
    alone = status_of(link, SETTINGS)
    assert (alone.composer == "busy") == (phase in ANSWERING)
    for elsewhere, racing in product(("", "Fog"), (False, True)):
        said = status_of(link, SETTINGS, answering_elsewhere=elsewhere, racing=racing)
        if phase not in ANSWERING or not (elsewhere or racing):
            assert said == alone
            continue
        reason = "“Fog” is being answered." if elsewhere else "A race is being recorded."
        assert said.composer == "later"
        assert said.reason.startswith(reason)


def test_requests_and_clients_are_named_as_they_are() -> None:
    one = replace(Link("starter", Phase.READING, INFO, "r1"), ahead=1)
    assert status_of(one, SETTINGS).hint == "Waiting for 1 request of the local server"
    served = replace(Link("starter", Phase.READY, INFO), served=1)
    said = status_of(served, SETTINGS)
    assert said.worker_state == "Answering a request"
    assert said.hint.startswith("A request is being answered")
    for name, family in (
        ("SmolLM2-135M-Instruct", "SmolLM2"),
        ("Qwen3-4bit", "Qwen3"),
        ("7B", "7B"),
        ("-it", "-it"),
    ):
        assert recognised(name) == family
