"""Failures in plain words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from app.session.trouble import (
    Trouble,
    Troubles,
    Until,
    of_death,
    of_failed_load,
    of_failure,
    of_silence,
    of_tables,
)
from app.session.turn.effects import WorkerDied, WorkerStuck
from core.events import Failed, TableStatus
from tests.app.session.words import KILLED, failed


def test_death_by_signal_in_mid_answer() -> None:
    trouble = of_death(WorkerDied(KILLED, "writing"), 138)
    assert trouble.title == "The engine stopped unexpectedly."
    assert "SIGKILL" in trouble.text
    assert trouble.text.endswith("The chat is kept, with the 138 tokens written so far.")
    assert (trouble.remedy, trouble.log) == ("restart", ("last words",))


def test_where_memory_may_have_run_out_a_smaller_context_is_offered() -> None:
    writing = WorkerDied(KILLED, "writing")
    assert of_death(writing, 138, 8192).smaller_tokens == 4096
    assert of_death(writing, 138, 40_960).smaller_tokens == 32_768
    assert of_death(writing, 138, 600).smaller_tokens == 512
    assert of_death(writing, 138, 512).smaller_tokens == 0  # there is no smaller one worth having
    assert of_death(writing, 138).smaller_tokens == 0  # no model was loaded yet
    assert of_death(writing, None, 8192).smaller_tokens == 0
    crashed = replace(KILLED, signal_name="SIGSEGV")
    assert of_death(WorkerDied(crashed, "writing"), 138, 8192).smaller_tokens == 0
    full = Failed("r1", "generate", "worker", "out-of-memory", "No memory.")
    assert of_failure(full, context_tokens=8192).smaller_tokens == 4096
    refused = Failed("r1", "generate", "request", "not-enough-memory", "A context of 9,000 tokens …")
    assert of_failure(refused, context_tokens=8192).smaller_tokens == 4096
    assert of_failure(failed(), context_tokens=8192).smaller_tokens == 0


MEMORY = "libc++abi: … (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"
WATCHDOG = "libc++abi: … (0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)"


@pytest.mark.parametrize(
    ("signal", "line", "text", "smaller_tokens"),
    [
        ("SIGABRT", MEMORY, "Its memory was exhausted.", 4096),
        ("SIGABRT", WATCHDOG, "macOS stopped the work of the GPU", 0),
        ("SIGABRT", "Assertion failed: x", "signal SIGABRT", 0),
        ("SIGKILL", WATCHDOG, "macOS stopped the work of the GPU", 0),
    ],
)
def test_the_log_says_why_the_worker_ended(signal: str, line: str, text: str, smaller_tokens: int) -> None:
    exited = replace(KILLED, signal_name=signal, log=("Loading", line, "Abort trap: 6"))
    trouble = of_death(WorkerDied(exited, "writing"), 138, 8192)
    assert text in trouble.text
    assert trouble.smaller_tokens == smaller_tokens


def test_one_token_is_one_token() -> None:
    assert "with the 1 token written" in of_death(WorkerDied(KILLED, "writing"), 1).text


def test_death_with_a_status_while_loading() -> None:
    died = WorkerDied(replace(KILLED, returncode=1, signal_name="", log=()), "loading")
    trouble = of_death(died)
    assert trouble.title == "The engine stopped while the model was loading."
    assert "status 1" in trouble.text
    assert trouble.log  # even an empty log says so


def test_what_the_worker_said_is_the_reason() -> None:
    trouble = of_death(WorkerDied(KILLED, "starting", "OpenBLAS is missing. Install it."))
    assert trouble.text.startswith("OpenBLAS is missing. Install it.")


def test_a_worker_that_never_started() -> None:
    trouble = of_death(WorkerDied(None, "starting", "No such file."))
    assert (trouble.title, trouble.text) == ("The engine could not be started.", "No such file.")


def test_silence_passes() -> None:
    trouble = of_silence(WorkerStuck(15.0))
    assert trouble.until is Until.MOVES
    assert trouble.remedy == "restart"
    assert "15 s" in trouble.text


def test_request_errors_name_no_restart_and_say_where_the_text_is() -> None:
    trouble = of_failure(failed(), text_is_back=True)
    assert trouble.title == "Too long."
    assert trouble.text == "Shorten it. Your text is in the message field again."
    assert trouble.remedy == ""


def test_faults_of_the_worker_offer_a_restart() -> None:
    assert of_failure(Failed("r1", "generate", "worker", "out-of-memory", "No memory.")).remedy == "restart"
    assert of_failure(Failed("r1", "generate", "internal", "internal", "A bug.")).remedy == "restart"


def test_a_failed_load_can_be_repeated() -> None:
    trouble = of_failed_load(failed("", "load_model", "bad-model"))
    assert (trouble.remedy, trouble.text) == ("load", "Too long. Shorten it.")


def test_tables_that_cannot_be_used_outlast_the_loading_in_which_they_were_found() -> None:
    notes = ("x is damaged; it was set aside as y.", "A fresh table takes its place.")
    trouble = of_tables(TableStatus("cold", "f" * 64, "Qwen3-4B", notes=notes, refused=True))
    assert trouble.title == "Some of the learned data for Qwen3 cannot be used."
    assert trouble.text == " ".join(notes)
    assert (trouble.remedy, trouble.until) == ("tables", Until.ASKED)


def test_tables_that_are_not_saved_say_why_first() -> None:
    trouble = of_tables(TableStatus("failed", "f" * 64, "Qwen3-4B", notes=("No room.",)))
    assert (trouble.title, trouble.text, trouble.remedy) == ("No room.", "", "tables")


STUCK = Trouble("stuck", "", until=Until.MOVES)
DEAD = Trouble("dead", "", until=Until.READY)
TABLES = Trouble("tables", "", until=Until.ASKED)
UNSAVED = Trouble("unsaved", "", until=Until.OVER)


def of(*troubles: Trouble) -> Troubles:
    """These, said in this order."""
    held = Troubles()
    for trouble in troubles:
        held = held.with_new(trouble)
    return held


def test_the_newest_is_in_front_and_covers_nothing_for_good() -> None:
    held = of(UNSAVED, DEAD)
    assert (held.shown, len(held.held)) == (DEAD, 2)
    assert held.next().shown == UNSAVED
    assert held.next().next().shown == DEAD
    assert held.without(DEAD).shown == UNSAVED
    assert held.without(DEAD).without(UNSAVED).shown is None


def test_the_same_again_is_one_and_does_not_push_forward() -> None:
    held = of(UNSAVED, DEAD)
    assert held.with_new(UNSAVED) is held
    assert held.next().with_new(DEAD).shown == UNSAVED


def test_each_ends_in_its_time() -> None:
    held = of(UNSAVED, TABLES, DEAD, STUCK)
    assert held.after(Until.MOVES) == of(UNSAVED, TABLES, DEAD)
    assert held.after(Until.READY) == of(UNSAVED, TABLES)
    assert held.after(Until.ASKED) == of(UNSAVED)


def test_what_a_person_looks_at_stays_in_front_while_others_end() -> None:
    looked_at = of(UNSAVED, TABLES, DEAD).next()
    assert looked_at.shown == TABLES
    assert looked_at.after(Until.READY).shown == TABLES
    assert looked_at.without(UNSAVED).shown == TABLES
    assert looked_at.without(TABLES).shown == UNSAVED
    assert of(UNSAVED, DEAD).next().without(UNSAVED).shown == DEAD


def test_with_nothing_there_is_nothing_to_do() -> None:
    assert Troubles().next() == Troubles().without(None) == Troubles().after(Until.ASKED) == Troubles()


def test_one_that_is_not_open_changes_nothing() -> None:
    """Its source may end it after a person has dismissed it."""
    held = of(UNSAVED, TABLES)
    assert held.without(DEAD) == held.next().without(DEAD).next() == held
    assert held.without(TABLES).without(TABLES) == of(UNSAVED)
    assert Troubles().without(DEAD) == Troubles()
