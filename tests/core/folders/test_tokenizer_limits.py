"""A tokenizer.json that lengthens texts or takes for ever is refused before it is used."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from core.errors import ModelError
from core.folders import tokenizer_limits
from core.folders.tokenizer_limits import check_tokenizer, read_tokenizer
from core.models.loader import load, load_family
from tests.core.prompt.tokenizer_kinds import KINDS
from tests.core.toy import write_toy_model


def replace(content: str, **pattern: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


def sequence(*rules: Any) -> dict[str, Any]:
    return {"type": "Sequence", "normalizers": list(rules)}


def charsmap(longest: int) -> str:
    return base64.b64encode(bytes(4) + b"x" * longest + b"\0").decode()


def split(pattern: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}


def fields(**more: Any) -> Any:
    return lambda data: data.update(more)


BAD: dict[str, Any] = {
    "doubling": fields(normalizer=sequence(*[replace(c + c, String=c) for c in "aaaaaaaaaa"])),
    "long replacement": fields(normalizer=replace("x" * 10_000, String="e")),
    "long replacement of a pattern": fields(normalizer=replace("x" * 10_000, Regex="[e]")),
    "empty pattern": fields(normalizer=replace("x" * 100, String="")),
    "doubling patterns": fields(normalizer=sequence(*[replace("qq", Regex="q")] * 10)),
    "rare character": fields(normalizer=sequence(*[replace("\u2620\u2620", Regex="\u2620")] * 10)),
    "nested": fields(
        normalizer=sequence(sequence(replace("x" * 10, String="a")), replace("a" * 10, String="x"))
    ),
    "map": fields(normalizer={"type": "Precompiled", "precompiled_charsmap": charsmap(100_000)}),
    "bytes of bytes": fields(
        pre_tokenizer={
            "type": "Sequence",
            "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": False}] * 10,
        }
    ),
    "decoder": fields(decoder={"type": "Sequence", "decoders": [replace("xx", String="x")] * 10}),
    "prepend": fields(normalizer={"type": "Prepend", "prepend": "x" * 1000}),
    "many rules": fields(normalizer=sequence(*[{"type": "Lowercase"}] * 1000)),
    "padding": fields(
        padding={
            "strategy": {"Fixed": 10**9},
            "direction": "Right",
            "pad_id": 0,
            "pad_type_id": 0,
            "pad_token": "x",
            "pad_to_multiple_of": None,
        }
    ),
    "slow pattern": fields(pre_tokenizer=split("(a+)+$")),
    "slow pattern of words": fields(pre_tokenizer=split(r"(\w+\s?)*$")),
    "slow pattern of a rare letter": fields(pre_tokenizer=split("(ж+ж+)+y")),
    "token": lambda data: data["model"]["vocab"].update({"x" * 1_000_000: 259}),
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    write_toy_model(tmp_path / "model")
    return tmp_path / "model"


@pytest.mark.sweep
@pytest.mark.parametrize("name", list(BAD))
def test_a_tokenizer_without_bounds_is_refused(name: str, folder: Path) -> None:
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    BAD[name](data)
    path.write_text(json.dumps(data))
    with pytest.raises(ModelError, match="tokenizer"):
        load_family(str(folder))


def test_a_usual_pattern_is_tried_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = folder / "tokenizer.json"
    data = json.loads(path.read_text())
    usual = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}
    gpt = r"'s|'t|'re| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
    data["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split(gpt), usual]}
    path.write_text(json.dumps(data))
    assert load(str(folder)).info.architecture == "llama"
    monkeypatch.setattr(tokenizer_limits, "ReaderProcess", None)
    check_tokenizer(path)


@pytest.mark.parametrize("kind", list(KINDS))
def test_usual_tokenizers_pass_and_have_the_librarys_vocabulary(kind: str, tmp_path: Path) -> None:
    backend = KINDS[kind]()
    path = tmp_path / "tokenizer.json"
    backend.save(str(path))
    check_tokenizer(path)
    assert read_tokenizer(path).vocabulary() == backend.get_vocab(with_added_tokens=True)
