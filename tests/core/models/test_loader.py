"""Loading: good folders in, bad folders refused with the name of what is wrong."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import pytest
from mlx.utils import tree_flatten
from tokenizers import Tokenizer

from core.drafting.draft_model import NO_PROPOSAL
from core.engine.engine import Engine
from core.engine.model_session import ModelProposer
from core.errors import ModelError, RequestError
from core.events import Generate, Grammar, Token
from core.folders.folder import fingerprint
from core.models.loader import check_sound, load, load_family
from core.settings import Settings, assign
from tests.core.toy import toy_config, toy_model, write_toy_model


@pytest.fixture
def folder(toy_folder: Path, tmp_path: Path) -> Path:
    copy = tmp_path / "model"
    shutil.copytree(toy_folder, copy)
    return copy


def test_a_folder_loads(folder: Path) -> None:
    stages: list[str] = []
    loaded = load(str(folder), lambda stage, fraction: stages.append(stage))
    assert "self_attn" in vars(loaded.model.layers[0])
    info = loaded.info
    assert (info.name, info.architecture, info.dtype) == ("model", "llama", "float32")
    assert (info.context_tokens, info.vocabulary, info.layers) == (512, 260, 2)
    assert info.speculates
    assert not info.why_not
    assert len(info.family) == 64
    assert loaded.eos == {0}
    assert stages


Spoil = Callable[[Path], object]


def gone(*names: str) -> Spoil:
    return lambda folder: [(folder / name).unlink() for name in names]


def text(name: str, content: str) -> Spoil:
    return lambda folder: (folder / name).write_text(content)


def of_type(kind: str) -> Spoil:
    return text("config.json", json.dumps(toy_config(model_type=kind)))


def with_half_the_weights(folder: Path) -> None:
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[: len(content) // 2])


def with_weights_of_another_model(folder: Path) -> None:
    other = folder.parent / "other"
    write_toy_model(other, hidden_size=64)
    shutil.copy(other / "model.safetensors", folder / "model.safetensors")


def with_a_foreign_tokenizer(folder: Path) -> None:
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["foreign"] = 5000
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


INDEX = '{"weight_map": {"a": "model-00001-of-00002.safetensors"}}'


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (gone("model.safetensors"), "holds no weights"),
        (text("model.safetensors.index.json", INDEX), "lacks model-00001-of-00002"),
        (with_half_the_weights, "cut off: it has .* of .* bytes"),
        (with_weights_of_another_model, "cannot be loaded"),
        (gone("tokenizer.json", "tokenizer_config.json"), "holds no tokenizer"),
        (text("tokenizer.json", "{"), "tokenizer.json cannot be read"),
        (with_a_foreign_tokenizer, "does not belong to the model"),
        (gone("config.json"), "config.json is missing"),
        (text("config.json", "not json"), "config.json cannot be read"),
        (of_type("abacus"), "abacus"),
        (of_type("olmo"), "needs a package that is not installed"),
    ],
)
def test_a_bad_folder_is_refused_by_name(folder: Path, spoil: Spoil, words: str) -> None:
    spoil(folder)
    with pytest.raises(ModelError, match=words) as caught:
        load(str(folder))
    assert caught.value.hint


def with_added_tokens(folder: Path, count: int) -> None:
    """Tokens above the embedding's rows, as Gemma 3 270M's `<image_soft_token>`."""
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.add_special_tokens([f"<extra_{number}>" for number in range(count)])
    tokenizer.save(str(folder / "tokenizer.json"))


@pytest.mark.parametrize("count", [1, 8])
def test_added_tokens_may_have_no_embedding_row(folder: Path, count: int) -> None:
    with_added_tokens(folder, count)
    loaded = load(str(folder))
    assert loaded.info.vocabulary == 260
    assert max(loaded.tokenizer.get_vocab().values()) == 259 + count


def test_a_tokenizer_with_many_more_ids_is_refused(folder: Path) -> None:
    with_added_tokens(folder, 9)
    with pytest.raises(ModelError, match="does not belong to the model: it has ids up to 268"):
        load(str(folder))


@pytest.mark.parametrize("strange", [260, 10**9, -1])
def test_an_id_without_an_embedding_row_is_never_read(folder: Path, strange: int) -> None:
    with_added_tokens(folder, 1)
    engine = Engine()
    engine.load(str(folder))
    with pytest.raises(RequestError, match=r"token id .*; the ids of model go up to 259"):
        list(engine.generate_ids([70, strange, 71], Settings()))
    engine.close()


def test_an_answer_by_a_grammar_where_a_token_has_no_embedding_row(folder: Path) -> None:
    with_added_tokens(folder, 3)
    engine = Engine()
    engine.load(str(folder))
    settings = assign(Settings(), "sampling.max_tokens", 40)
    request = Generate("", (), settings, grammar=Grammar("json_schema", '{"enum": ["a<extra_0>b"]}'))
    events = list(engine.generate_ids([70, 71], settings, also=request))
    assert "".join(event.text for event in events if isinstance(event, Token)) == '"a<extra_0>b"'
    engine.close()


def test_a_draft_model_does_not_read_ids_that_it_does_not_have(folder: Path) -> None:
    drafts = ModelProposer(load(str(folder)))
    assert drafts.propose([70, 71], 2).tokens
    assert drafts.propose([70, 71, 260, 72], 2) == NO_PROPOSAL


@pytest.mark.parametrize("reference", ["/no/such/folder", "./nowhere", "word", "a/b/c"])
def test_something_that_is_no_model(reference: str) -> None:
    with pytest.raises(ModelError, match="no model folder"):
        load(reference)


def test_a_hub_name_that_is_not_here_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match=r"is not on this computer.*draftlight models download"):
        load("nobody/no-such-model-for-tests")


def test_a_family_is_that_of_its_models(folder: Path) -> None:
    family, model = load_family(str(folder)), load(str(folder))
    assert (family.family, family.family_name) == (model.info.family, model.info.family_name)
    assert family.vocabulary == max(model.tokenizer.get_vocab().values()) + 1
    assert family.encode("ab") == [int(token) for token in model.tokenizer.encode("ab")]


def test_fingerprint_is_of_the_map_alone() -> None:
    vocabulary = {"a": 1, "b": 2, "ünï": 3}
    assert fingerprint(vocabulary) == fingerprint(dict(reversed(vocabulary.items())))
    assert fingerprint(vocabulary) != fingerprint({**vocabulary, "a": 4})
    assert fingerprint(vocabulary) != fingerprint({**vocabulary, "c": 4})
    assert fingerprint({"a": 12}) != fingerprint({"a1": 2})


def test_fingerprint_stays_what_it_is() -> None:
    """The tables of every family are kept under it."""
    pairs = b"a\x001\nb\x0012\n\xc3\xbcn\xc3\xaf\x003\n\xed\xa0\x80\x004\n"
    given = {"\ud800": 4, "b": 12, "ünï": 3, "a": 1}
    assert fingerprint(given) == hashlib.sha256(pairs).hexdigest()


@pytest.mark.parametrize("figure", [0, -1, 1 << 40, 1e300])
def test_a_context_that_cannot_be_is_refused(folder: Path, figure: float) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": figure}))
    with pytest.raises(ModelError, match="max_position_embeddings"):
        load(str(folder))


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.1.mlp.up_proj.weight"])
def test_weights_that_are_not_numbers_are_refused(folder: Path, name: str, value: float) -> None:
    path = str(folder / "model.safetensors")
    weights: Any = mx.load(path)
    weights[name] = mx.full(weights[name].shape, value)
    mx.eval(weights)
    mx.save_safetensors(path, weights, metadata={"format": "mlx"})
    with pytest.raises(ModelError, match=r"contains NaN or infinity|not numbers"):
        load(str(folder))


def embed_row(folder: Path, value: float, dtype: mx.Dtype, bits: int = 0) -> None:
    """One number of the last row of the embedding, which no short prompt of the check reads."""
    model = toy_model(tie_word_embeddings=False)
    model.set_dtype(dtype)
    if bits:
        nn.quantize(model, group_size=32, bits=bits)
    weights = dict(tree_flatten(model.parameters()))
    name = "model.embed_tokens.scales" if bits else "model.embed_tokens.weight"
    weights[name][-1, 0] = value
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    said = {"quantization": {"bits": bits, "group_size": 32}} if bits else {}
    (folder / "config.json").write_text(json.dumps(toy_config(tie_word_embeddings=False, **said)))


@pytest.mark.parametrize("value", [float("nan"), float("-inf")])
@pytest.mark.parametrize(
    ("dtype", "bits"), [(mx.float32, 0), (mx.bfloat16, 0), (mx.float16, 4), (mx.bfloat16, 8)]
)
def test_one_number_that_is_none_is_found_in_a_row_that_nobody_reads(
    folder: Path, value: float, dtype: mx.Dtype, bits: int
) -> None:
    embed_row(folder, value, dtype, bits)
    with pytest.raises(ModelError, match=r"embed_tokens\.\w+ contains NaN"):
        load(str(folder))
    embed_row(folder, 0.5, dtype, bits)
    load(str(folder))


def test_a_model_says_why_it_cannot_continue_a_text(toy_engine: Engine) -> None:
    loaded, name = toy_engine.loaded, toy_engine.loaded.info.name
    size, rows = loaded.info.context_tokens, loaded.info.vocabulary
    assert loaded.why_not_read([5] * (size - 1)) == ""
    assert loaded.why_not_read([5] * size) == f"{name} reads {size - 1:,} tokens, and the text has {size:,}"
    assert loaded.why_not_read([rows - 1]) == ""
    assert loaded.why_not_read([rows]) == f"the text has tokens that {name} does not have"


class Answering(nn.Module):
    """Gives `logits` [1, 2, 4], or raises them."""

    def __init__(self, logits: list[float] | Exception) -> None:
        super().__init__()
        self.logits, self.layers = logits, [nn.Identity()]

    def __call__(self, ids: mx.array, cache: Any = None) -> mx.array:
        if isinstance(self.logits, Exception):
            raise self.logits
        return mx.broadcast_to(mx.array(self.logits), (1, 2, 4))


INFINITE = float("inf")


@pytest.mark.parametrize(
    ("logits", "config", "words"),
    [
        (ValueError("three heads"), {}, "fails at its first tokens: .*three heads"),
        (ValueError("three heads"), {"num_hidden_layers": "two"}, "config.json: .*num_hidden_layers"),
        ([1.0, float("nan"), 0.0, 0.0], {}, "gives logits that are not numbers"),
        ([1.0, INFINITE, 0.0, 0.0], {}, "gives logits that are not numbers"),
        ([-INFINITE] * 4, {}, "gives logits that are not numbers"),
        ([-INFINITE, 1.0, -INFINITE, 0.0], {}, ""),
    ],
)
def test_a_model_that_fails_at_its_first_tokens_is_refused_with_the_reason(
    folder: Path, logits: list[float] | Exception, config: dict[str, Any], words: str
) -> None:
    (folder / "config.json").write_text(json.dumps(toy_config(**config)))
    if not words:
        check_sound(folder, Answering(logits))
        return
    with pytest.raises(ModelError, match=words) as caught:
        check_sound(folder, Answering(logits))
    assert caught.value.hint


def test_a_fault_of_the_machine_is_no_fault_of_the_model(folder: Path) -> None:
    with pytest.raises(MemoryError):
        check_sound(folder, Answering(MemoryError()))
