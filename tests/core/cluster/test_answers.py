"""Answers of two machines: the cluster's drafted ones are its plain ones, on two ranks of real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.drafting.registry import DRAFTERS
from tests.core.architectures import ARCHITECTURES
from tests.core.cluster.launch import run_trial, write_architecture
from tests.core.toy import write_toy_model

DRAFTING = [name for name, spec in DRAFTERS.items() if spec.drafts and spec.needs_proposer != "head"]
TENSOR = (
    "llama",
    "qwen2",
    "qwen3",
    "qwen3_moe",
    "gpt_oss",
    "mistral",
    "ministral3",
    "qwen3_5",
    "deepseek_v3",
)
PIPELINE = ("qwen2", "qwen3_moe", "ministral3", "qwen3_5", "deepseek_v3")


def tried(home: Path, folder: Path, count: int, **spec: object) -> list[dict[str, object]]:
    """The findings of a trial over `count` ranks; all of them fine."""
    draft_model = home / "draft-model"
    write_toy_model(draft_model)
    found = run_trial(home, count, {"model": str(folder), "draft_model": str(draft_model), **spec})
    assert [each for each in found if not each["fine"]] == []
    return found


@pytest.mark.sweep  # test_launch.py answers over two ranks in `make test`
def test_two_machines_answer_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    found = tried(tmp_path, folder, 2, drafters=["auto", "cacheback"], tokens=150)
    by_name = {str(each["what"]): each for each in found}
    assert by_name["plain"]["flips_at"] == -1
    assert by_name["greedy cacheback"]["tree"]
    # A random model repeats itself only after a while; how often drafts are tried depends on timing.
    assert sum(int(str(by_name[f"greedy {name}"]["accepted"])) for name in ("auto", "cacheback")) > 0, by_name
    assert float(str(by_name["logits"]["error"])) > 0  # they really are two halves


@pytest.mark.cluster
def test_two_machines_read_in_part_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    tried(tmp_path, folder, 2, drafters=["auto", "cacheback", "ngram-simple"], tokens=80, sparse=1200)


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("split", "architecture"),
    [*(("tensor", name) for name in TENSOR), *(("pipeline", name) for name in PIPELINE)],
)
def test_every_architecture_that_can_be_split(tmp_path: Path, architecture: str, split: str) -> None:
    folder = tmp_path / architecture
    write_architecture(folder, architecture, twice=split == "pipeline")
    found = tried(tmp_path, folder, 2, split=split, drafters=DRAFTING, tokens=200)
    trees = {str(each["what"]): each for each in found}["greedy cacheback"]["tree"]
    assert trees == ARCHITECTURES[architecture].trees


@pytest.mark.cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("split", "architecture"),
    [*(("tensor", name) for name in ("gpt_oss", "qwen3_5", "deepseek_v3")), ("pipeline", "qwen2")],
)
def test_a_prompt_read_in_part_keeps_what_one_machine_keeps(
    tmp_path: Path, architecture: str, split: str
) -> None:
    folder = tmp_path / architecture
    write_architecture(folder, architecture, twice=split == "pipeline", max_position_embeddings=4096)
    tried(
        tmp_path,
        folder,
        2,
        split=split,
        drafters=["auto", "cacheback"],
        tokens=70,
        sparse=1200,
        sampled=False,
    )


@pytest.mark.cluster
@pytest.mark.timeout(900)
@pytest.mark.parametrize("count", [3, 4])
def test_three_and_four_machines(tmp_path: Path, count: int) -> None:
    folder = tmp_path / "toy"
    sizes = {"num_attention_heads": 12, "num_key_value_heads": 12, "hidden_size": 96, "intermediate_size": 96}
    write_toy_model(folder, max_position_embeddings=4096, **sizes)
    tried(tmp_path, folder, count, drafters=["auto", "cacheback"], tokens=100, sparse=1200)


@pytest.mark.cluster
@pytest.mark.timeout(1800)
def test_the_starter_over_three_ranks(tmp_path: Path) -> None:
    drafters = ["auto", "cacheback", "ngram-simple"]  # of the starter's heads, 3 ranks hold 3 each
    found = tried(tmp_path, Path("starter"), 3, drafters=drafters, tokens=70, sampled=False)
    by_name = {str(each["what"]): each for each in found}
    assert int(str(by_name["greedy auto"]["accepted"])) > 0
