"""Settings that do nothing as the others stand: named, with the reason; kept; and used again."""

from __future__ import annotations

import pytest

from core.settings import Settings, assign_all, declared, unused

SPARSE = {setting.key for setting in declared() if setting.key.startswith("prefill.")} - {
    "prefill.mode",
    "prefill.chunk_tokens",
    "prefill.context_tokens",
    "prefill.memory_mib",
    "prefill.save",
    "prefill.read_ahead",
}
DRAWS = {"sampling.top_p", "sampling.min_p", "sampling.top_k", "sampling.seed"}
PLANNED = {"cacheback.reserved_tokens"}
AT_FIRST = DRAWS | PLANNED


def of(**changes: object) -> set[str]:
    changed = [(key.replace("__", "."), value) for key, value in changes.items()]
    return set(unused(assign_all(Settings(), changed)))


def test_only_settings_that_there_are() -> None:
    keys = {setting.key for setting in declared()}
    assert of(prefill__mode="off", drafting__drafter="off", gate__mode="always") < keys


def test_sparse_prefill_that_is_off_uses_none_of_its_own() -> None:
    assert of(prefill__mode="off") - AT_FIRST == SPARSE
    assert unused(assign_all(Settings(), [("prefill.mode", "off")]))["prefill.keep_pct"] == (
        "Not used while sparse prefill is off."
    )


def test_patience_and_threshold_are_for_automatic() -> None:
    automatic = {"prefill.threshold_tokens", "prefill.patience_s", "prefill.read_ahead"}
    assert automatic <= of(prefill__mode="on")
    assert not automatic & of()


def test_greedy_sampling_filters_nothing_and_draws_nothing() -> None:
    assert of() >= DRAWS
    assert not of(sampling__temperature=0.05) & DRAWS


@pytest.mark.parametrize("mode", ["auto", "on"])
def test_a_text_of_which_all_is_kept_is_not_scored(mode: str) -> None:
    assert of(prefill__mode=mode, prefill__keep_pct=100) - AT_FIRST - {"prefill.read_ahead"} == (
        SPARSE - {"prefill.keep_pct"}
    )


def test_the_parts_of_drafters_that_what_is_chosen_in_them_does_not_use() -> None:
    assert of(cacheback__mode="dynamic") - of() == {"cacheback.frozen_file"}
    frozen = {"cacheback.leader_capacity", "cacheback.follower_capacity"}
    assert of(cacheback__mode="frozen") - of() == frozen
    assert of() - of(cacheback__tree="paper") == PLANNED


def test_the_gate_and_exactness_are_about_drafts() -> None:
    assert of(drafting__drafter="off") >= {"gate.mode", "decoding.exactness"}
    assert not of() & {"gate.mode", "decoding.exactness"}
