"""LoadedModel: a model, its tokenizer and what is known of both. Worker's main thread only.

`load()` takes `starter`, a model folder or the hub name of a model that is here, and checks what it
can before any weight is read, so that a bad folder fails with the name of the file and leaves the
model in use alone. It never downloads: whoever does that shows it and can stop it.

On MLX's CPU build quantised and half-precision weights are several times slower than float32
(measured, SmolLM2-135M: float32 41 ms a token, bf16 130, 4-bit 115), so there they are expanded
at load. On Metal the checkpoint's own format stays.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
from mlx.utils import tree_flatten
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import dequantize_model, load_model, load_tokenizer
from msgspec import Struct
from msgspec.structs import replace

from core.errors import ModelError, ModelNotHereError, RequestError
from core.events import MachineUse, ModelInfo
from core.kv.entries import why_no_rollback
from core.models.answers import format_of
from core.models.chat_template import switches_thinking
from core.models.decoder import repair_decoder
from core.models.expand import expand
from core.models.family import fingerprint
from core.models.folder import check, check_fits
from core.models.generation_config import readable, sampling_defaults, stop_ids
from core.models.library.naming import base_name, display_name, is_hub_name
from core.models.library.need import context_tokens
from core.models.library.places import find
from core.models.runtime.memory import machine
from core.models.starter import STARTER, ensure_starter
from core.models.template import renderer

Progress = Callable[[str, float | None], None]


# Names that mlx-lm's model types have for the embedding of tokens.
_EMBEDDINGS = frozenset(
    {
        "embed",
        "embed_in",
        "embed_tokens",
        "embedding",
        "embeddings",
        "tok_embeddings",
        "token_embeddings",
        "word_embeddings",
        "wte",
    }
)
# Added tokens that may have no embedding row; of large vocabularies 1%.
_ROWLESS_TOKENS = 8
# Of byte-level pieces, of SentencePiece, and of tokenizers that do not mark it.
_WORD_BEGINS = ("Ġ", "▁", "")


class LoadedModel:
    """`model(tokens[1, n], cache=…)` gives logits [1, n, vocabulary]; `eos` are the stop ids."""

    def __init__(self, model: nn.Module, tokenizer: TokenizerWrapper, info: ModelInfo) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.info = info
        self.eos: frozenset[int] = frozenset(tokenizer.eos_token_ids)

    @property
    def use(self) -> tuple[MachineUse, ...]:
        """The machines at work on it, this one first; none if it is here alone. Any thread."""
        return ()

    def doubt(self, error: BaseException) -> None:
        """An answer or a trial ended with `error`. A model that is here alone has nothing to fear of it."""

    def settle(self) -> None:
        """Wait until what was asked of it is done everywhere, so that what was found may be kept."""

    def close(self) -> None:
        """It is not used any more."""

    def new_cache(self) -> list[Any]:
        """A fresh KV cache, one entry a layer."""
        cache: list[Any] = make_prompt_cache(self.model)
        return cache

    def has_rows(self, ids: Sequence[int]) -> bool:
        """Whether each of `ids` has an embedding row; MLX reads foreign memory for one that has none."""
        return not ids or (min(ids) >= 0 and max(ids) < self.info.vocabulary)

    def check_ids(self, ids: Sequence[int]) -> None:
        """Raises `RequestError` if one of the prompt's `ids` has no embedding row."""
        if not self.has_rows(ids):
            info, rows = self.info, self.info.vocabulary
            strange = next(token for token in ids if not 0 <= token < rows)
            raise RequestError(
                f"The prompt has the token id {strange:,}; the ids of {info.name} go up to {rows - 1:,}.",
                "Remove the control token from the text, or load the model that the ids belong to.",
            )

    def word_rank(self, word: str) -> float:
        """How late the tokenizer learned `word`, 0 to 1; 1 if it has no token of its own.

        `word` is as pieces write it, in lower case. Common words are learned first, in any language that the
        tokenizer was trained on.
        """
        tokenizer = self.tokenizer
        forms = [f"{space}{word}" for space in _WORD_BEGINS]
        found = [tokenizer.convert_tokens_to_ids(form) for form in forms]
        own = [at for at, form in zip(found, forms) if at is not None and _piece_of(tokenizer, at) == form]
        return min([min(own) / max(1, self.info.vocabulary), 1.0]) if own else 1.0


def _piece_of(tokenizer: TokenizerWrapper, token: int) -> str:
    return str(tokenizer.convert_ids_to_tokens([token])[0])


def load(
    reference: str,
    progress: Progress = lambda stage, fraction: None,
    make_room: Callable[[int], None] = lambda size_bytes: None,
) -> LoadedModel:
    """Load `reference`. Raises `ModelError` saying which file or figure is wrong and what to do.

    `make_room` is called with the bytes that will be needed once everything was checked that can be,
    before the first weight is read.
    """
    folder = ensure_starter(progress) if reference == STARTER else _folder(reference)
    checked = check(folder)
    config = checked.config
    need = check_fits(checked, machine())
    progress("Reading the tokenizer", 0.3)
    tokenizer = _tokenizer(folder)
    if tokenizer.has_chat_template:
        renderer().start()
    progress("Reading the weights", 0.5)
    model = _unread(folder)
    vocabulary = _vocabulary(folder, tokenizer, model)
    stops_problem = _use_stop_ids(folder, config, tokenizer, model)
    progress("Preparing the weights", 0.7)
    make_room(need.total_at(0))
    # What is packed has its floats in its scales: far fewer of them before they are expanded than after.
    packed = {name for name, module in model.named_modules() if "scales" in module}
    _check_numbers(folder, model, lambda module: module in packed)
    if mx.default_device() == mx.cpu:
        model = _expand_for_cpu(model)
    mx.eval(model.parameters())
    _check_numbers(folder, model, lambda module: module not in packed)
    check_sound(folder, model)
    progress("Almost ready", 0.95)
    info = _describe(folder, config, model, tokenizer, vocabulary, stops_problem)
    return LoadedModel(model, tokenizer, replace(info, reference=reference))


def load_part(folder: Path, split: Callable[[nn.Module], None]) -> nn.Module:
    """What `split` leaves of the model in `folder`; no more of it is read. Raises `ModelError`.

    `split` gets a model whose weights are not read yet.
    """
    check(folder)
    model = _unread(folder)
    if mx.default_device() == mx.cpu:
        model = _expand_for_cpu(model)
    split(model)
    mx.eval(model.parameters())
    _check_numbers(folder, model, lambda module: True)
    return model


def describe_part(
    folder: Path, reference: str, part: nn.Module, machines: tuple[str, ...]
) -> tuple[TokenizerWrapper, ModelInfo]:
    """The tokenizer, and what is known of the whole model of which `part` is here. Raises `ModelError`."""
    checked = check(folder)
    tokenizer = _tokenizer(folder)
    if tokenizer.has_chat_template:
        renderer().start()
    vocabulary = _vocabulary(folder, tokenizer, part)
    stops_problem = _use_stop_ids(folder, checked.config, tokenizer, part)
    info = _describe(folder, checked.config, part, tokenizer, vocabulary, stops_problem)
    return tokenizer, replace(info, reference=reference, machines=machines, parameters=checked.parameters)


def _unread(folder: Path) -> nn.Module:
    try:
        with readable(folder) as path:
            model, _ = load_model(path, lazy=True)
    except Exception as error:  # mlx-lm raises ValueError, KeyError, FileNotFoundError, RuntimeError …
        raise ModelError(
            f"The model in {folder} cannot be loaded: {_first_line(error)}.",
            "Check that it is a complete MLX model, or choose another.",
        ) from error
    found: nn.Module = model
    return found


def _vocabulary(folder: Path, tokenizer: TokenizerWrapper, model: nn.Module) -> dict[str, int]:
    """The tokenizer's tokens and ids. Raises `ModelError` if it is not the model's.

    A few added tokens may have no embedding row (Gemma 3 270M: `<image_soft_token>`), as in mlx-lm.
    `LoadedModel.check_ids` refuses a prompt that has one.
    """
    vocabulary: dict[str, int] = tokenizer.get_vocab()
    rows = _embedding_rows(model)
    if rows is None:
        return vocabulary
    added = tokenizer.get_added_vocab()
    beyond = [token for token, at in vocabulary.items() if at >= rows]
    if len(beyond) > max(_ROWLESS_TOKENS, rows // 100) or any(token not in added for token in beyond):
        raise ModelError(
            f"The tokenizer in {folder} does not belong to the model: it has ids up to"
            f" {max(vocabulary.values()):,}, the model only {rows:,} embedding rows.",
            "Use the tokenizer files that came with this model.",
        )
    return vocabulary


def _use_stop_ids(folder: Path, config: dict[str, Any], tokenizer: TokenizerWrapper, model: nn.Module) -> str:
    """Give `tokenizer` the model's stop ids. Returns what is wrong with the files' values."""
    rows = _embedding_rows(model) or max(tokenizer.get_vocab().values()) + 1
    stops = stop_ids(folder, config, tokenizer, rows)
    tokenizer.eos_token_ids = stops.ids
    return stops.problem


def _check_numbers(folder: Path, model: nn.Module, of_module: Callable[[str], bool]) -> None:
    """Every weight of the modules chosen: one forward sees few rows of an embedding, and few experts.

    Vectors may hold infinities (the logarithm of a zero is one); matrices may not.
    """
    bad = {
        name: _has_no_number(value) if value.ndim > 1 else mx.any(mx.isnan(value))
        for name, value in tree_flatten(model.parameters())
        if mx.issubdtype(value.dtype, mx.floating) and of_module(name.rpartition(".")[0])
    }
    mx.eval(bad)
    if name := next((name for name, found in bad.items() if found.item()), ""):
        raise ModelError(
            f"The weights of the model in {folder} are not numbers: {name} holds NaN or infinity.",
            "Download the model again, or choose another.",
        )


# The exponent of what is no number is all ones.
_EXPONENTS = {
    mx.float16: (mx.uint16, 0x7C00),
    mx.bfloat16: (mx.uint16, 0x7F80),
    mx.float32: (mx.uint32, 0x7F800000),
}


def _has_no_number(value: mx.array) -> mx.array:
    """Whether NaN or an infinity is in it. In half precision `isfinite` takes a CPU thirty times as long."""
    if value.dtype not in _EXPONENTS:
        return mx.any(~mx.isfinite(value))
    kind, ones = _EXPONENTS[value.dtype]
    return mx.max(value.view(kind) & ones) == ones


def check_sound(folder: Path, model: nn.Module) -> None:
    """One forward: weights that are not what the config says, or overflow, show in its logits.

    An id may be forbidden (−inf); none may be not-a-number, and not all of them forbidden.
    """
    try:
        logits = model(mx.array([[1, 2]]), cache=make_prompt_cache(model))
        sound = not mx.any(mx.isnan(logits)).item() and bool(mx.all(mx.isfinite(logits.max(-1))).item())
    except Exception as error:
        raise ModelError(
            f"The model in {folder} fails at its first tokens: {_first_line(error)}.",
            "Its config.json and its weights may not belong together; download the model again.",
        ) from error
    if not sound:
        raise ModelError(
            f"The model in {folder} gives logits that are not numbers: its weights are damaged.",
            "Download the model again, or choose another.",
        )


class FamilyTokenizer(Struct, frozen=True):
    """A tokenizer without its model. `vocabulary` is one more than its highest id."""

    tokenizer: TokenizerWrapper
    family: str
    family_name: str
    vocabulary: int

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, without special tokens."""
        return [int(i) for i in self.tokenizer.encode(text, add_special_tokens=False)]


def load_family(reference: str, progress: Progress = lambda stage, fraction: None) -> FamilyTokenizer:
    """The tokenizer of `reference` alone: no weight is read. Raises `ModelError`."""
    folder = ensure_starter(progress) if reference == STARTER else _folder(reference)
    tokenizer = _tokenizer(folder)
    vocabulary = tokenizer.get_vocab()
    return FamilyTokenizer(
        tokenizer, fingerprint(vocabulary), _family_name(tokenizer, folder), max(vocabulary.values()) + 1
    )


def _tokenizer(folder: Path) -> TokenizerWrapper:
    try:
        with readable(folder) as path:
            tokenizer = load_tokenizer(path)
        tokenizer.name_or_path = tokenizer.name_or_path.replace(str(path), str(folder))
        repair_decoder(tokenizer)
        return tokenizer
    except SystemExit as error:  # it asks the type's code, and that leaves if a package is missing (olmo)
        raise ModelError(
            f"The model in {folder} is of a type for which mlx-lm needs a package that is not here.",
            "Choose a language model of another type.",
        ) from error
    except Exception as error:  # transformers raises many kinds
        raise ModelError(
            f"The tokenizer in {folder} cannot be read: {_first_line(error)}.",
            "Download the model again, tokenizer files included.",
        ) from error


def _family_name(tokenizer: TokenizerWrapper, folder: Path) -> str:
    name = str(getattr(tokenizer, "name_or_path", ""))
    return base_name(folder) if not name or Path(name) == folder else name.split("/")[-1]


def _folder(reference: str) -> Path:
    if found := find(reference):
        return found
    if not is_hub_name(reference) or Path(reference).exists():
        raise ModelError(
            f"There is no model folder at “{reference}”.",
            f"Give a folder with config.json and *.safetensors, a hub name like owner/name, or “{STARTER}”.",
        )
    raise ModelNotHereError(
        f"{reference} is not on this computer.", f"To get it: draftlight models download {reference}"
    )


def _expand_for_cpu(model: nn.Module) -> nn.Module:
    model = dequantize_model(expand(model))
    model.set_dtype(mx.float32)
    return model


def _embedding_rows(model: nn.Module) -> int | None:
    for name, value in tree_flatten(model.parameters()):
        module, _, leaf = name.rpartition(".")
        if leaf == "weight" and module.rpartition(".")[2] in _EMBEDDINGS:
            return int(value.shape[0])
    return None


def _describe(
    folder: Path,
    config: dict[str, Any],
    model: nn.Module,
    tokenizer: TokenizerWrapper,
    vocabulary: dict[str, int],
    stops_problem: str,
) -> ModelInfo:
    parameters = tree_flatten(model.parameters())
    floats = [value.dtype for _, value in parameters if mx.issubdtype(value.dtype, mx.floating)]
    quantisation = config.get("quantization") or config.get("quantization_config") or {}
    stored = f"{quantisation['bits']}-bit" if "bits" in quantisation else ""
    why_not = why_no_rollback(make_prompt_cache(model))
    defaults, problem = sampling_defaults(folder)
    return ModelInfo(
        name=display_name(folder, config),
        path=str(folder),
        family=fingerprint(vocabulary),
        family_name=_family_name(tokenizer, folder),
        architecture=config["model_type"],
        dtype=str(floats[0] if floats else mx.float32).removeprefix("mlx.core."),
        quantisation=stored,
        parameters=_parameter_count(model),
        size_bytes=sum(value.nbytes for _, value in parameters),
        context_tokens=context_tokens(config),
        vocabulary=_embedding_rows(model) or len(vocabulary),
        layers=len(getattr(model, "layers", [])),
        speculates=not why_not,
        why_not=why_not,
        defaults=defaults,
        defaults_problem=" ".join(filter(None, (problem, stops_problem))),
        thinks=switches_thinking(tokenizer),
        format=format_of(tokenizer),
    )


def _parameter_count(model: nn.Module) -> int:
    from mlx_lm.utils import get_total_parameters

    return int(get_total_parameters(model))


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return (lines[0] if lines else type(error).__name__)[:300].rstrip(".")
