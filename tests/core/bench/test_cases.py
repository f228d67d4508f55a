"""Grids: every combination once, each with a name; what is not allowed is refused before anything runs."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from core.bench.cases import MOST_CONFIGURATIONS, configurations
from core.drafting.registry import DRAFTERS
from core.errors import SettingError
from core.settings import declared, read

NAMES = list(DRAFTERS)


def test_the_product_of_all_grids_is_tried_with_those_who_look_at_it() -> None:
    found = configurations(
        ["off", "ngram-simple", "ngram-mod"],
        [("gate.mode", "always")],
        sets=["ngram_mod.n=8"],
        grids=["ngram_mod.k=2,4", "ngram_mod.slots=4096,8192"],
        defaults={"ngram_simple.k": (2, 7), "ngram_simple.n_min": (2, 5)},
    )
    assert [each.name for each in found] == [
        "off",
        *(f"ngram-simple k={k} n_min={n}" for k in (2, 7) for n in (2, 5)),
        *(f"ngram-mod n=8 k={k} slots={s}" for k in (2, 4) for s in (4096, 8192)),
    ]
    last = found[-1]
    assert (last.settings.ngram_mod.n, last.settings.ngram_mod.k, last.settings.ngram_mod.slots) == (
        8,
        4,
        8192,
    )
    assert last.given == {"ngram_mod.n": "8", "ngram_mod.k": "4", "ngram_mod.slots": "8192"}
    assert all(each.settings.gate.mode == "always" for each in found)
    assert found[4].settings.ngram_simple.n_max == 5


def test_a_given_list_takes_the_place_of_the_default_one() -> None:
    found = configurations(
        ["ngram-simple"],
        [("gate.mode", "always")],
        sets=["gate.mode=auto"],
        grids=["ngram_simple.k=3"],
        defaults={"ngram_simple.k": (2, 7)},
    )
    assert [each.name for each in found] == ["ngram-simple gate.mode=auto k=3"]
    assert found[0].settings.gate.mode == "auto"


@pytest.mark.parametrize(
    ("sets", "grids", "words"),
    [
        (["nothing"], [], "has no value"),
        (["=3"], [], "has no value"),
        ([], ["ngram_mod.most_tokens=2"], "no setting “ngram_mod.most_tokens”"),
        ([], ["ngram_mod.k=2,0"], "“0” is not allowed"),
        ([], ["ngram_mod.k=2,,3"], "not allowed"),
        ([], ["ngram_mod.k=2,2"], "a value twice"),
        (["ngram_mod.k=2"], ["ngram_mod.k=3"], "given twice"),
        ([], ["ngram_mod.slots=5000"], "5,000 slots"),
        (["drafting.drafter=off"], [], "--drafters"),
        (["frequency.k=2"], [], "None of ngram-mod uses frequency.k"),
        ([], [f"ngram_mod.k={','.join(map(str, range(1, 65)))}", "ngram_mod.n=2,3,4,5,6"], "limit of 256"),
    ],
)
def test_what_is_not_allowed_is_refused(sets: list[str], grids: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        configurations(["ngram-mod"], [], sets=sets, grids=grids)


def test_rules_that_span_fields_hold_for_each_combination() -> None:
    with pytest.raises(SettingError, match="longer than the longest match"):
        configurations(["ngram-simple"], [], grids=["ngram_simple.n_min=2,6", "ngram_simple.n_max=4,8"])
    with pytest.raises(SettingError, match="leaves no space"):
        configurations(["cacheback"], [], grids=["cacheback.tree_tokens=8,96"])
    assert len(configurations(["ngram-simple"], [], sets=["ngram_simple.n_min=6"])) == 1


@pytest.mark.parametrize("seed", range(300))
def test_any_grid_is_refused_in_words_or_is_what_was_asked(seed: int) -> None:
    rng = random.Random(seed)
    known = [setting.key for setting in declared()]
    grids = []
    for _ in range(rng.randrange(4)):
        key = rng.choice([*known, rng.choice(known)[:-1], "", "a.b", "ngram-mod.k", "é.ü"])
        values = [
            rng.choice(["1", "2", "4", "8", "16", "-1", "1e9", "true", "auto", "", "nan", "4096", "½"])
            for _ in range(rng.randrange(1, 6))
        ]
        grids.append(f"{key}{rng.choice(['=', '=', '=', ''])}{','.join(values)}")
    drafters = rng.sample(NAMES, rng.randrange(1, 4))
    try:
        found = configurations(drafters, [], grids=grids)
    except SettingError as refused:
        said = str(refused)
    else:
        said = ""
    if said:
        assert len(said) > 20
        return
    assert len({each.name for each in found}) == len(found) <= MOST_CONFIGURATIONS
    for each in found:
        assert each.settings.drafting.drafter == each.drafter
        for key, text in each.given.items():
            value = read(each.settings, key)
            # A path that was typed starts at the current folder.
            if not (isinstance(value, str) and value == str(Path(text).absolute())):
                assert text.lower() == str(value).lower() or float(text) == value
