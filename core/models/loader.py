"""LoadedModel: a model, its tokenizer and their description. Worker's main thread only.

`load()` checks everything it can before it reads a weight, so that a bad folder fails with the name of the
file and the model in use stays loaded. It never downloads.

On MLX's CPU build quantised and half-precision weights are several times slower than float32 (measured,
SmolLM2-135M: float32 41 ms per token, bf16 130, 4-bit 115), so they are expanded at load. On Metal the
checkpoint's format is kept.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
from mlx.utils import tree_flatten, tree_unflatten
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import _get_classes, dequantize_model, get_total_parameters, load_model, load_tokenizer
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from core.errors import ModelError, ModelNotHereError, RequestError, reason_of
from core.events import FIRST_IMAGE_ROW, MemoryNeed, ModelInfo
from core.folders.config import context_tokens, is_number, wrong_field
from core.folders.folder import (
    check,
    check_code,
    check_fits,
    fingerprint,
    least_context,
    template_settings,
)
from core.folders.generation_config import readable, sampling_defaults, stop_ids
from core.folders.heads import found_heads
from core.folders.json_files import read_object
from core.folders.mtp_files import head_names
from core.folders.places import base_name, display_name, find, is_hub_name
from core.folders.starter import STARTER, ensure_starter
from core.folders.tokenizer_limits import check_tokenizer
from core.kv.mlx_lm_caches import Cache, quantisable, why_no_rollback
from core.models.decoders import repair_decoder
from core.models.memory import fault, machine
from core.models.parts import use_plain_attributes
from core.prompt import format_of, renderer, switches_thinking, thinks_by_default
from core.system.paths import shown

Progress = Callable[[str, float | None], None]
MakeRoom = Callable[[int], None]


# Names of the token embedding in mlx-lm's model types.
_EMBEDDINGS = {
    *("embed", "embed_in", "embed_tokens", "embedding", "embeddings", "wte"),
    *("tok_embeddings", "token_embeddings", "word_embeddings"),
}
# Added tokens that may have no embedding row; of large vocabularies 1%.
_ROWLESS_TOKENS = 8
# Prefixes of a word's first token: byte-level, SentencePiece, none.
_WORD_BEGINS = ("Ġ", "▁", "")


class LoadedModel:
    """`model(tokens[1, n], cache=…)` gives logits [1, n, vocabulary]; `eos` are the stop ids.

    `need`: the estimated memory; None where it is unknown.
    """

    def __init__(
        self,
        model: nn.Module,
        tokenizer: TokenizerWrapper,
        info: ModelInfo,
        need: MemoryNeed | None = None,
    ) -> None:
        self.model = model
        self.tokenizer = tokenizer
        self.info = info
        self.need = need
        self.eos: frozenset[int] = frozenset(tokenizer.eos_token_ids)

    def report_error(self, error: BaseException) -> None:
        """Reports that an answer or a trial raised `error`. Has no effect without a cluster."""

    def settle(self) -> None:
        """Waits until all machines have finished, so that results may be saved."""

    def close(self) -> None:
        """Releases the model."""

    def new_cache(self) -> Cache:
        """An empty KV cache, one entry per layer."""
        cache: Cache = make_prompt_cache(self.model)
        return cache

    def has_rows(self, ids: Sequence[int]) -> bool:
        """Whether all `ids` have embedding rows; for others MLX would read out of bounds."""
        return not ids or (min(ids) >= 0 and max(ids) < self.info.vocabulary)

    def why_not_read(self, ids: Sequence[int]) -> str:
        """Why this model, as a draft model, cannot read `ids` and continue them; empty if it can."""
        info = self.info
        if max(ids, default=0) >= FIRST_IMAGE_ROW:
            return f"{info.name} is not asked while the chat holds images, which it does not see"
        if len(ids) >= info.context_tokens:
            return f"{info.name} reads {info.context_tokens - 1:,} tokens, and the text has {len(ids):,}"
        return "" if self.has_rows(ids) else f"the text has tokens that {info.name} does not have"

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
        """The rank of `word` in the vocabulary, 0 to 1; 1 if it is not a single token.

        `word` is in lower case, as in the vocabulary. Tokenizers learn common words first, in every language
        of their training.
        """
        tokenizer = self.tokenizer
        forms = [f"{space}{word}" for space in _WORD_BEGINS]
        found = [tokenizer.convert_tokens_to_ids(form) for form in forms]
        pieces = [None if at is None else tokenizer.convert_ids_to_tokens([at])[0] for at in found]
        own = [at for at, form, piece in zip(found, forms, pieces) if piece == form]
        return min([min(own) / max(1, self.info.vocabulary), 1.0]) if own else 1.0


def load(
    reference: str,
    progress: Progress = lambda stage, fraction: None,
    make_room: MakeRoom = lambda size_bytes: None,
) -> LoadedModel:
    """Loads `reference`: `starter`, a model folder, or a hub name on this machine. Raises `ModelError`.

    `make_room` is called after all checks and before the first weight is read, with the bytes that the model
    needs for a short context; it may raise `ModelTooLargeError`. Faults of the machine are not converted.
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
    make_room(need.total_at(least_context(config)) - need.process)
    # Quantised modules are checked before expansion: their scales are far fewer numbers.
    packed = {name for name, module in model.named_modules() if "scales" in module}
    _check_numbers(folder, model, lambda module: module in packed)
    if mx.default_device() == mx.cpu:
        model = expand_for_cpu(model)
    mx.eval(model.parameters())
    use_plain_attributes(model)
    _check_numbers(folder, model, lambda module: module not in packed)
    check_sound(folder, model)
    progress("Almost ready", 0.95)
    info = _describe(folder, config, model, tokenizer, vocabulary, stops_problem)
    why_not = quantisable(model, lambda: make_prompt_cache(model)).why_not
    unseeing = checked.why_unseeing
    info = replace(info, reference=reference, kv_why_not=why_not, sees=not unseeing, why_unseeing=unseeing)
    return LoadedModel(model, tokenizer, info, need)


def load_part(folder: Path, split: Callable[[nn.Module], None]) -> nn.Module:
    """Loads the part of a model that `split` selects; only its weights are read. Raises `ModelError`.

    `split` receives the model before its weights are read.
    """
    check(folder)
    model = _unread(folder)
    if mx.default_device() == mx.cpu:
        model = expand_for_cpu(model)
    split(model)
    mx.eval(model.parameters())
    _check_numbers(folder, model, lambda module: True)
    return model


def describe_part(
    folder: Path, reference: str, part: nn.Module, machines: tuple[str, ...]
) -> tuple[TokenizerWrapper, ModelInfo]:
    """The tokenizer, and the description of the model of which `part` is loaded. Raises `ModelError`."""
    checked = check(folder)
    tokenizer = _tokenizer(folder)
    if tokenizer.has_chat_template:
        renderer().start()
    vocabulary = _vocabulary(folder, tokenizer, part)
    stops_problem = _use_stop_ids(folder, checked.config, tokenizer, part)
    info = _describe(folder, checked.config, part, tokenizer, vocabulary, stops_problem)
    info = replace(info, reference=reference, machines=machines, parameters=checked.parameters)
    several = "the model runs on several machines"
    return tokenizer, replace(info, kv_why_not=several, why_unseeing=several)


def _unread(folder: Path) -> nn.Module:
    try:
        with readable(folder) as path, _no_input():
            model, _ = load_model(path, lazy=True, get_model_classes=_classes, trust_remote_code=False)
    except Exception as error:  # mlx-lm raises ValueError, KeyError, FileNotFoundError, RuntimeError …
        if fault(error):
            raise
        raise _wrong_config(folder, error) or ModelError(
            f"The model in {folder} cannot be loaded: {reason_of(error)}.",
            "Check that it is a complete MLX model, or choose another.",
        ) from error
    found: nn.Module = model
    return found


# transformers' errors about a value of config.json.
_NAMED_FIELD = re.compile(r"[Ff]ield '(\w+)'")


def _wrong_config(folder: Path, error: Exception) -> ModelError | None:
    """The error about the value of config.json that made loading fail with `error`; None if it is not known.

    Libraries report a wrong type where they first compute with it, in their own words.
    """
    config = read_object(folder / "config.json")
    field = wrong_field(config)
    if not field and (named := _NAMED_FIELD.search(str(error))):
        field = f"{named[1]} is wrong: {reason_of(error)}"
    if not field:
        return None
    return ModelError(
        f"{folder / 'config.json'}: {shown(field)}.", "Correct the value, or choose another model."
    )


def _classes(config: dict[str, Any]) -> tuple[Callable[[Any], Any], Any]:
    """mlx-lm's classes for a model that drops the tensors of MTP heads, which some types refuse."""
    model_class, args_class = _get_classes(config)
    of_head = head_names(config).search

    def build(args: Any) -> Any:
        model = model_class(args)
        sanitize = getattr(model, "sanitize", lambda weights: weights)
        own = {name for name, _ in tree_flatten(model.parameters()) if of_head(name)}
        model.sanitize = lambda weights: sanitize(
            {name: each for name, each in weights.items() if name in own or not of_head(name)}
        )
        return model

    return build, args_class


def _vocabulary(folder: Path, tokenizer: TokenizerWrapper, model: nn.Module) -> dict[str, int]:
    """The tokenizer's tokens and ids. Raises `ModelError` if it does not belong to the model.

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
    """Sets the model's stop ids in `tokenizer`. Returns a message about invalid values in the files."""
    rows = _embedding_rows(model) or max(tokenizer.get_vocab().values()) + 1
    tokenizer.eos_token_ids, problem = stop_ids(folder, config, tokenizer, rows)
    return problem


def _check_numbers(folder: Path, model: nn.Module, of_module: Callable[[str], bool]) -> None:
    """Raises `ModelError` if a weight of the selected modules is not a number.

    A forward pass would reach only some rows of an embedding and some experts. Vectors may contain infinities
    (log 0); matrices may not.
    """
    bad = {
        name: _has_no_number(value) if value.ndim > 1 else mx.any(mx.isnan(value))
        for name, value in tree_flatten(model.parameters())
        if mx.issubdtype(value.dtype, mx.floating) and of_module(name.rpartition(".")[0])
    }
    mx.eval(bad)
    if name := next((name for name, found in bad.items() if found.item()), ""):
        raise ModelError(
            f"Invalid weights in {folder}: {name} contains NaN or infinity.",
            "Download the model again, or choose another.",
        )


# NaN and infinity have an exponent of all ones. MLX reads no other floating-point types from files.
_EXPONENTS = {
    mx.float16: (mx.uint16, 0x7C00),
    mx.bfloat16: (mx.uint16, 0x7F80),
    mx.float32: (mx.uint32, 0x7F800000),
}


def _has_no_number(value: mx.array) -> mx.array:
    """Whether `value` contains NaN or infinity. `isfinite` in half precision is 30 times slower on a CPU."""
    kind, ones = _EXPONENTS[value.dtype]
    return mx.max(value.view(kind) & ones) == ones


def check_sound(folder: Path, model: nn.Module) -> None:
    """Checks the logits of one forward pass, which shows weights that overflow or contradict the config.

    Some logits may be −inf, but not all, and none may be NaN. Raises `ModelError`.
    """
    try:
        logits = model(mx.array([[1, 2]]), cache=make_prompt_cache(model))
        sound = not mx.any(mx.isnan(logits)).item() and bool(mx.all(mx.isfinite(logits.max(-1))).item())
    except Exception as error:
        if fault(error):
            raise
        raise _wrong_config(folder, error) or ModelError(
            f"The model in {folder} fails at its first tokens: {reason_of(error)}.",
            "Its config.json and its weights may not belong together; download the model again.",
        ) from error
    if not sound:
        raise ModelError(
            f"The model in {folder} gives logits that are not numbers: its weights are damaged.",
            "Download the model again, or choose another.",
        )


class FamilyTokenizer(Struct, frozen=True):
    """A tokenizer without its model. `vocabulary`: highest id plus one."""

    tokenizer: TokenizerWrapper
    family: str
    family_name: str
    vocabulary: int

    def encode(self, text: str) -> list[int]:
        """Ids of `text`, without special tokens."""
        return [int(i) for i in self.tokenizer.encode(text, add_special_tokens=False)]


def load_family(reference: str) -> FamilyTokenizer:
    """The tokenizer of `reference`, without weights. Raises `ModelError`."""
    folder = ensure_starter() if reference == STARTER else _folder(reference)
    tokenizer = _tokenizer(folder)
    vocabulary = tokenizer.get_vocab()
    return FamilyTokenizer(
        tokenizer, fingerprint(vocabulary), _family_name(tokenizer, folder), max(vocabulary.values()) + 1
    )


def _tokenizer(folder: Path) -> TokenizerWrapper:
    check_tokenizer(folder / "tokenizer.json")
    check_code(folder)
    try:
        with readable(folder) as path, _no_input():
            settings, _ = template_settings(folder)
            tokenizer = load_tokenizer(path, {"trust_remote_code": False, **settings})
        tokenizer.name_or_path = tokenizer.name_or_path.replace(str(path), str(folder))
        repair_decoder(tokenizer)
        return tokenizer
    except SystemExit as error:  # imports the type's code, which raises if a package is missing (olmo)
        raise ModelError(
            f"The model in {folder} has a type for which mlx-lm needs a package that is not installed.",
            "Choose a language model of another type.",
        ) from error
    except Exception as error:  # transformers raises many error types
        raise _wrong_config(folder, error) or ModelError(
            f"The tokenizer in {folder} cannot be read: {reason_of(error)}.",
            "Download the model again, tokenizer files included.",
        ) from error


@contextmanager
def _no_input() -> Iterator[None]:
    """Within the block, libraries that ask on stdin get no answer."""
    before = sys.stdin
    with open(os.devnull) as sys.stdin:
        try:
            yield
        finally:
            sys.stdin = before


def _family_name(tokenizer: TokenizerWrapper, folder: Path) -> str:
    name = str(getattr(tokenizer, "name_or_path", ""))
    return base_name(folder) if not name or Path(name) == folder else name.split("/")[-1]


def _folder(reference: str) -> Path:
    if found := find(reference):
        return found
    if not is_hub_name(reference) or Path(reference).exists():
        raise ModelError(
            f"There is no model folder at “{reference}”.",
            f"Use a folder with config.json and *.safetensors, a hub name like owner/name, or “{STARTER}”.",
        )
    raise ModelNotHereError(
        f"{reference} is not on this computer.", f"To get it: draftlight models download {reference}"
    )


def expand_for_cpu(model: nn.Module) -> nn.Module:
    """`model` in float32, without quantised modules."""
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
    bits = quantisation.get("bits") if isinstance(quantisation, dict) else None
    stored = f"{bits}-bit" if is_number(bits) else ""
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
        parameters=int(get_total_parameters(model)),
        size_bytes=sum(value.nbytes for _, value in parameters),
        context_tokens=context_tokens(config),
        vocabulary=_embedding_rows(model) or len(vocabulary),
        layers=len(getattr(model, "layers", [])),
        speculates=not why_not,
        why_not=why_not,
        defaults=defaults,
        defaults_problem=" ".join(filter(None, (problem, stops_problem, template_settings(folder)[1]))),
        thinks=switches_thinking(tokenizer),
        thinks_by_default=not switches_thinking(tokenizer) or thinks_by_default(tokenizer),
        has_head=any(not head.problem for head in found_heads(folder)),
        format=format_of(tokenizer),
    )


# ---- expansion of quantised weights to float32, with the bits of MLX's own dequantize and cast
#
# MLX's CPU build computes in half precision, which x86 has no arithmetic for, and copies every weight: four
# to five seconds for the starter model. Here each weight is written once, in pieces that fit the cache:
# `value = round(round(code · scale) + bias)`, where `round` is to the precision of the scales.
# float32 has enough bits for the product and the sum, so rounding them equals half-precision arithmetic.
#
# Affine 4 and 8 bits with float16 or bfloat16 scales; MLX expands the others.


_BITS = (4, 8)
# Low bits of a float32 that the scales' format lacks, and the format's greatest value.
_FORMATS = {mx.float16: (13, 65504.0), mx.bfloat16: (16, 3e38)}
# 256 KiB of results: with the codes and the scratch they fit a core's cache.
_PIECE_ELEMENTS = 1 << 16


def expand(model: nn.Module) -> nn.Module:
    """Replaces quantised linear layers and embeddings of `model` by expanded ones, where supported.

    The new weights are complete when this returns.
    """
    quantised = nn.QuantizedLinear | nn.QuantizedEmbedding
    replaced = [
        (name, _plain(module, _expanded(module)))
        for name, module in model.named_modules()
        if isinstance(module, quantised) and _is_known(module)
    ]
    if replaced:
        model.update_modules(tree_unflatten(replaced))
    return model


def _expanded(module: Any) -> mx.array:
    """float32 `[rows, columns]` of the packed `weight[rows, columns · bits / 32]`."""
    target = mx.zeros((module.weight.shape[0], module.weight.shape[1] * 32 // module.bits))
    mx.eval(target, module.weight)
    values: NDArray[np.float32] = np.asarray(target, copy=False)
    codes: NDArray[np.uint8] = np.asarray(module.weight, copy=False).view(np.uint8)
    scales, biases = (np.array(each.astype(mx.float32)) for each in (module.scales, module.biases))
    rows = max(1, _PIECE_ELEMENTS // target.shape[1])
    for start in range(0, len(values), rows):
        piece = slice(start, start + rows)
        _fill(values[piece], codes[piece], scales[piece], biases[piece], module)
    return target


def _is_known(module: Any) -> bool:
    """Whether `_fill` computes the same as MLX: a supported format, and values within half precision."""
    scales, biases = module.scales, module.get("biases")
    if biases is None or module.bits not in _BITS or module.mode != "affine" or scales.ndim != 2:
        return False
    if scales.dtype not in _FORMATS or biases.dtype != scales.dtype or module.weight.dtype != mx.uint32:
        return False
    most = mx.abs(scales.astype(mx.float32)) * (2**module.bits - 1) + mx.abs(biases.astype(mx.float32))
    return bool(mx.max(most) < _FORMATS[scales.dtype][1])


def _plain(module: Any, weight: mx.array) -> nn.Module:
    plain: nn.Module
    if isinstance(module, nn.QuantizedEmbedding):
        plain = nn.Embedding(1, 1)
    else:
        plain = nn.Linear(1, 1, bias="bias" in module)
        if "bias" in module:
            plain.bias = module.bias
    plain.weight = weight
    return plain


def _fill(
    values: NDArray[np.float32],
    codes: NDArray[np.uint8],
    scales: NDArray[np.float32],
    biases: NDArray[np.float32],
    module: Any,
) -> None:
    """Sets `values[rows, columns]` from packed `codes[rows, bytes]` and `scales`, `biases[rows, groups]`."""
    dropped = _FORMATS[module.scales.dtype][0]
    if module.bits == 4:  # the low half of a byte comes first
        np.bitwise_and(codes, 15, out=values[:, 0::2], casting="unsafe")
        np.right_shift(codes, 4, out=values[:, 1::2], casting="unsafe")
    else:
        values[:] = codes
    grouped = values.reshape(*scales.shape, -1)
    integers = values.view(np.uint32)
    scratch = np.empty_like(integers)
    grouped *= scales[:, :, None]
    _round(integers, scratch, dropped)
    grouped += biases[:, :, None]
    _round(integers, scratch, dropped)


def _round(integers: NDArray[np.uint32], scratch: NDArray[np.uint32], dropped: int) -> None:
    """Rounds float32s, viewed as integers, so that the `dropped` low bits are zero; ties to even."""
    np.right_shift(integers, np.uint32(dropped), out=scratch)
    scratch &= np.uint32(1)
    scratch += np.uint32((1 << (dropped - 1)) - 1)
    integers += scratch
    integers &= np.uint32(0xFFFFFFFF << dropped & 0xFFFFFFFF)
