"""Settings that do nothing as the others stand: named, with the reason; kept; and used again."""

from __future__ import annotations

import pytest

from core.settings import Settings, assign_all, declared, unused

SPARSE = {setting.key for setting in declared() if setting.key.startswith("prefill.")} - {
    "prefill.mode",
    "prefill.chunk_tokens",
    "prefill.context_tokens",
    "prefill.memory_mib",
}
FILTERS = {"sampling.top_p", "sampling.min_p", "sampling.top_k"}
GATE = {"gate.repetition", "gate.rest_tokens"}


def of(**changes: object) -> set[str]:
    changed = [(key.replace("__", "."), value) for key, value in changes.items()]
    return set(unused(assign_all(Settings(), changed)))


def test_only_settings_that_there_are() -> None:
    keys = {setting.key for setting in declared()}
    assert of(prefill__mode="off", drafting__drafter="off", gate__mode="always") < keys


def test_sparse_prefill_that_is_off_uses_none_of_its_own() -> None:
    assert of(prefill__mode="off") - FILTERS == SPARSE
    assert unused(assign_all(Settings(), [("prefill.mode", "off")]))["prefill.keep_pct"] == (
        "Not used while sparse prefill is off."
    )


@pytest.mark.parametrize(
    ("scorer", "not_used"),
    [
        ("auto", {"prefill.score_layers", "prefill.lookahead_tokens"}),
        ("lexical", {"prefill.score_layers", "prefill.lookahead_tokens"}),
        ("fusion", {"prefill.lookahead_tokens"}),
        ("early-layers", {"prefill.lookahead_tokens"}),
        ("draft-model", {"prefill.score_layers"}),
    ],
)
def test_a_scorer_uses_its_own(scorer: str, not_used: set[str]) -> None:
    assert of(prefill__scorer=scorer) - FILTERS == not_used


def test_patience_and_threshold_are_for_automatic() -> None:
    assert {"prefill.threshold_tokens", "prefill.patience_s"} <= of(prefill__mode="on")
    assert not {"prefill.threshold_tokens", "prefill.patience_s"} & of()


def test_greedy_sampling_filters_nothing() -> None:
    assert of() >= FILTERS
    assert not of(sampling__temperature=0.05) & FILTERS


def test_the_gate_and_exactness_are_about_drafts() -> None:
    assert of(drafting__drafter="off") >= {"gate.mode", "decoding.exactness", *GATE}
    assert of(gate__mode="always") & {"gate.mode", *GATE} == GATE
    assert of(gate__mode="prompt") & {"gate.mode", *GATE} == {"gate.rest_tokens"}
    assert not of() & {"gate.mode", "decoding.exactness", *GATE}
