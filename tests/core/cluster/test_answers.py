"""Answers of two machines: the cluster's drafted ones are its plain ones, on two ranks of real processes."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from core.drafting.registry import DRAFTERS
from tests.core.architectures import ARCHITECTURES
from tests.core.cluster.machines import machines, run_trial, write_architecture
from tests.core.toy import write_toy_model

DRAFTING = [name for name, spec in DRAFTERS.items() if spec.drafts]
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


def tried(
    home: Path, folder: Path, count: int, split: str = "auto", **spec: object
) -> list[dict[str, object]]:
    """The findings of a trial with `count` machines beside this one; all of them fine."""
    with machines(home, count, split=split) as cluster:
        draft_model = home / "draft-model"
        write_toy_model(draft_model)
        words = {
            "cluster": msgspec.to_builtins(cluster),
            "model": str(folder),
            "draft_model": str(draft_model),
            **spec,
        }
        found = run_trial(home, words)
    assert [each for each in found if not each["fine"]] == []
    return found


def test_two_machines_answer_as_one(tmp_path: Path) -> None:
    folder = tmp_path / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    found = tried(tmp_path, folder, 1, drafters=["auto", "cacheback", "ngram-simple"], tokens=80, sparse=1200)
    by_name = {str(each["what"]): each for each in found}
    assert by_name["plain"]["flips_at"] == -1
    assert by_name["greedy cacheback"]["tree"]
    assert int(str(by_name["greedy cacheback"]["accepted"])) > 0
    assert float(str(by_name["logits"]["error"])) > 0  # they really are two halves


@pytest.mark.cluster
@pytest.mark.parametrize(
    ("split", "architecture"),
    [*(("tensor", name) for name in TENSOR), *(("pipeline", name) for name in PIPELINE)],
)
def test_every_architecture_that_can_be_split(tmp_path: Path, architecture: str, split: str) -> None:
    folder = tmp_path / architecture
    write_architecture(folder, architecture, twice=split == "pipeline")
    found = tried(tmp_path, folder, 1, split, drafters=DRAFTING, tokens=200)
    trees = {str(each["what"]): each for each in found}["greedy cacheback"]["tree"]
    assert trees == ARCHITECTURES[architecture].trees
