"""Cases are read, drawn and generated alike; settings are combined once each, or refused before a run."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from core.bench.cases import MOST_CONFIGURATIONS, configurations, document_text, read_cases, read_prompts
from core.drafting.registry import DRAFTERS
from core.errors import RequestError, SettingError
from core.settings import declared, read

NAMES = list(DRAFTERS)


def test_a_class_is_drawn_by_a_seed(tmp_path: Path) -> None:
    path = tmp_path / "spec.jsonl"
    lines = [
        {"category": category, "turns": [f"{category} {n}"], "question_id": n}
        for n in range(9)
        for category in ("writing", "coding", "qa", "rag")
    ]
    path.write_text("\ufeff" + "\n".join(map(json.dumps, lines)))
    found = read_cases([str(path)], (), each=5, seed=1)
    # Spec-Bench counts the categories of MT-Bench as one class.
    assert Counter(case.kind for case in found) == {"multi-turn": 5, "qa": 5, "rag": 5}
    assert found == read_cases([str(path)], (), each=5, seed=1)
    assert found != read_cases([str(path)], (), each=5, seed=2)
    whole = read_cases([str(path)], (), each=0, seed=1)
    assert len(whole) == 36
    assert [case for case in whole if case in found] == found


def test_generated_documents_are_long_enough_and_the_same_for_a_seed() -> None:
    assert document_text(1, 3000) == document_text(1, 3000) != document_text(2, 3000)
    assert document_text(1, 4000).startswith(document_text(1, 3000))
    pasted, attached = read_cases(["document", "document-attached"], (), each=0, seed=1)
    assert (pasted.document, pasted.tokens) == (attached.document, attached.tokens)
    assert (pasted.attached, attached.attached) == (False, True)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no prompts"),
        ('{"class": "a"}', "line 1"),
        ('{"prompt": "a", "turns": ["b"]}', "line 1"),
        ('{"turns": [1]}', "line 1"),
        ('{"prompt": "a"}\nnot json', "line 2"),
    ],
)
def test_bad_prompt_files(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(content)
    with pytest.raises(RequestError, match=words):
        read_prompts(path)


def test_the_product_of_all_values_is_tried_with_those_who_use_it() -> None:
    found = configurations(
        ["off", "ngram-simple", "ngram-mod"],
        [("gate.mode", "always")],
        ["ngram_mod.n=8", "ngram_mod.k=2,4", "ngram_mod.slots=4096,8192", "ngram_simple.n_min=2,5"],
    )
    assert [each.name for each in found] == [
        "off",
        *(f"ngram-simple n_min={n}" for n in (2, 5)),
        *(f"ngram-mod n=8 k={k} slots={s}" for k in (2, 4) for s in (4096, 8192)),
    ]
    shape = found[-1].settings.ngram_mod
    assert (shape.n, shape.k, shape.slots) == (8, 4, 8192)
    assert found[-1].given == {"ngram_mod.n": "8", "ngram_mod.k": "4", "ngram_mod.slots": "8192"}
    assert all(each.settings.gate.mode == "always" for each in found)
    assert found[2].settings.ngram_simple.n_max == 5


def test_given_values_replace_the_benchs_own_and_texts_are_one_value() -> None:
    sets = ["gate.mode=auto", "chat.system_prompt=Hello, world"]
    (found,) = configurations(["ngram-simple"], [("gate.mode", "always")], sets)
    assert found.settings.gate.mode == "auto"
    assert found.settings.chat.system_prompt == "Hello, world"


@pytest.mark.parametrize(
    ("sets", "words"),
    [
        (["nothing"], "has no value"),
        (["=3"], "has no value"),
        (["ngram_mod.most_tokens=2"], "no setting “ngram_mod.most_tokens”"),
        (["ngram_mod.k=2,0"], "“0” is not allowed"),
        (["ngram_mod.k=2,,3"], "not allowed"),
        (["ngram_mod.k=2,2"], "a value twice"),
        (["ngram_mod.k=2", "ngram_mod.k=3"], "given twice"),
        (["ngram_mod.slots=5000"], "5,000 slots"),
        (["drafting.drafter=off"], "--drafters"),
        (["frequency.k=2"], "None of ngram-mod uses frequency.k"),
        ([f"ngram_mod.k={','.join(map(str, range(1, 65)))}", "ngram_mod.n=2,3,4,5,6"], "limit of 256"),
    ],
)
def test_what_is_not_allowed_is_refused(sets: list[str], words: str) -> None:
    with pytest.raises(SettingError, match=words):
        configurations(["ngram-mod"], [], sets)


def test_rules_that_span_fields_hold_for_each_combination() -> None:
    with pytest.raises(SettingError, match="longer than the longest match"):
        configurations(["ngram-simple"], [], ["ngram_simple.n_min=2,6", "ngram_simple.n_max=4,8"])
    with pytest.raises(SettingError, match="leaves no space"):
        configurations(["cacheback"], [], ["cacheback.tree_tokens=8,96"])
    assert len(configurations(["ngram-simple"], [], ["ngram_simple.n_min=6"])) == 1


@pytest.mark.parametrize("seed", range(300))
def test_any_value_is_refused_in_words_or_is_what_was_asked(seed: int) -> None:
    rng = random.Random(seed)
    known = [setting.key for setting in declared()]
    sets = []
    for _ in range(rng.randrange(4)):
        key = rng.choice([*known, rng.choice(known)[:-1], "", "a.b", "ngram-mod.k", "é.ü"])
        values = [
            rng.choice(["1", "2", "4", "8", "16", "-1", "1e9", "true", "auto", "", "nan", "4096", "½"])
            for _ in range(rng.randrange(1, 6))
        ]
        sets.append(f"{key}{rng.choice(['=', '=', '=', ''])}{','.join(values)}")
    drafters = rng.sample(NAMES, rng.randrange(1, 4))
    try:
        found = configurations(drafters, [], sets)
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


def test_a_drafters_settings_are_tried_with_it_and_who_also_reads_them() -> None:
    found = {setting.group: setting for setting in declared() if setting.kind == "integer"}
    owned = {spec.group for spec in DRAFTERS.values()} & found.keys()
    assert len(owned) > 4
    for group in owned:
        chosen = configurations(NAMES, (), [f"{found[group].key}={found[group].minimum:g}"])
        users = {each.name for each in DRAFTERS.values() if group in (each.group, *each.also_reads)}
        assert {each.drafter for each in chosen if each.given} == users
