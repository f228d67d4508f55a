"""Own answers by replay: what is learned before is from other prompts, and it pays."""

from __future__ import annotations

import json
import random
from importlib import import_module
from pathlib import Path

import pytest

from tests.tuning.__main__ import main, parser
from tests.tuning.own_answers import OwnRow
from tests.tuning.streams import Stream, write_streams


def answers(count: int) -> list[Stream]:
    """Answers to different prompts that share phrases of four tokens."""
    rng = random.Random(4)
    phrases = [rng.sample(range(50, 900), 4) for _ in range(12)]
    return [
        Stream(
            [1, 2, 3 + at],
            [each for _ in range(12) for each in (*rng.choice(phrases), rng.randrange(5000, 9000))],
        )
        for at in range(count)
    ]


def rows(out: Path) -> list[OwnRow]:
    lines = (out / "own-answers.jsonl").read_text().splitlines()[1:]
    return [OwnRow(**json.loads(line)) for line in lines]


@pytest.fixture
def toy(toy_folder: Path) -> list[str]:
    return ["own-answers", "--model", str(toy_folder), "--quiet", "--costs", "cpu"]


def test_own_answers_pay_and_only_other_prompts_are_learned(toy: list[str], tmp_path: Path) -> None:
    path, out = tmp_path / "a.jsonl", tmp_path / "out"
    looping = Stream([9], list(range(30, 45)) * 6)
    held = answers(30)
    write_streams(path, [*held[:13], looping, *held[13:]])
    assert main([*toy, "--answers", str(path), "--own", "600,1200", "--folds", "2", "--out", str(out)]) == 0
    at_first, some, more = rows(out)
    assert (at_first.own, some.own, more.own) == (0, 600, 1200)
    assert at_first.answers == 5, "of two thirteenths, without the one that repeats itself"
    assert at_first.speed * 1.05 < some.speed <= more.speed * 1.02
    assert "+" in (out / "own-answers.md").read_text()
    # One answer alone teaches nothing about itself.
    write_streams(path, answers(1))
    assert main([*toy, "--answers", str(path), "--own", "10", "--out", str(tmp_path / "alone")]) == 1


def test_published_answers_get_the_ids_of_the_tokenizer(
    toy: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model" / "model_outputs.json"
    path.parent.mkdir()
    lines = [{"instruction": f"hello {at}", "output": "hello hello", "other": 1} for at in range(14)]
    path.write_text(json.dumps(lines))
    assert main([*toy, "--answers", str(path), "--own", "5", "--out", str(tmp_path / "out")]) == 0
    assert {(row.file, row.answers) for row in rows(tmp_path / "out")} == {("model", 2)}
    path.write_text('{"instruction": 1}')
    assert main([*toy, "--answers", str(path), "--out", str(tmp_path / "bad")]) == 1
    assert "list of instructions" in capsys.readouterr().err


def test_every_command_has_its_module() -> None:
    (commands,) = (each for each in parser()._actions if isinstance(each.choices, dict))
    assert commands.choices is not None
    for name in commands.choices:
        assert callable(import_module(f"tests.tuning.{name.replace('-', '_')}").run), name
