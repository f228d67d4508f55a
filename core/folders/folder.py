"""Model folders: completeness, support, description, and the tokenizer family.

Reads the config, the headers of the weights and the tokenizer's vocabulary, but no weights. `check()` raises
with the file or figure that is wrong; `describe()` never raises and puts the same text into the entry's
`problem`, so that a broken model is listed with its reason. No MLX.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import stat
import struct
from collections.abc import Iterator, Mapping
from importlib.machinery import PathFinder
from importlib.util import find_spec
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from core.errors import ModelError, ModelTooLargeError, reason_of
from core.events import MemoryNeed, ModelEntry, ModelSource
from core.folders.config import (
    CONTEXT_NAMES,
    NAMES,
    WINDOW_NAMES,
    Machine,
    context_tokens,
    is_supported,
    layer_kinds,
    need_of,
    text_config,
)
from core.folders.eyes import VISION_PARTS, why_unseeing
from core.folders.json_files import MOST_BYTES, MOST_LARGE_BYTES, object_in, read_bytes, read_object
from core.folders.places import display_name, is_head_file, is_head_folder
from core.folders.tokenizer_limits import MOST_BYTES as MOST_BYTES_OF_TOKENIZER
from core.folders.tokenizer_limits import read_tokenizer
from core.system.files import write_atomic
from core.system.paths import cache_dir, shown
from core.system.prepared import prepared
from core.system.private import make_folder

TOKENIZER_FILES = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.json")
# Where transformers saves and reads the other templates of a model with several, such as one for tools.
TEMPLATES_FOLDER = "additional_chat_templates"
# Files that MLX and transformers read, by their endings; they would wait for ever for a named pipe.
_READ_ENDINGS = (".json", ".txt", ".jinja", ".model", ".tiktoken", ".safetensors")
_MOST_ENTRIES = 10_000
# Keys of tokenizer_config.json that name a module of mlx-lm, and its package.
_MODULES = {"chat_template_type": "chat_templates", "tool_parser_type": "tool_parsers"}
# Types for which mlx-lm has a built-in template.
_LIBRARY_TEMPLATES = ("deepseek_v32", "muse_spark")
# Tensors of parts that a language model does not load.
_OTHER_PARTS = (*VISION_PARTS, "audio_tower.", "model.audio_tower.", "embed_audio.", "model.embed_audio.")
# File types of other runtimes, with advice.
_FOREIGN = {
    "*.gguf": "a GGUF file, which other programs use",
    "pytorch_model*.bin": "PyTorch weights",
    "*.pt": "PyTorch weights",
    "*.npz": "weights in MLX's old form",
}
# Too short for a question and its answer.
_LEAST_CONTEXT_TOKENS = 2048
# Far above any model's context; position ids are 32-bit numbers.
_MOST_CONTEXT_TOKENS = 1 << 30
_MLX_VERSION = "Choose a version for MLX, with config.json and model*.safetensors."

# Real headers have at most some megabytes; the format allows 100.
_LONGEST_HEADER_BYTES = 32_000_000
# Limits of config.json's figures from which lists are built, by names. Real models have at most a quarter.
_MOST_BY_NAME = (
    (re.compile(r"^(num|n)_.*(layer|block)|(layers|blocks|_types?|_pattern|_idxs)$"), 2_048),
    (re.compile(r"^(num|n)_.*expert|experts$|expand$"), 4_096),
    (re.compile(r"^(num|n)_.*(head|group)|(heads|head_dim|groups)$"), 16_384),
    (re.compile("|".join(sorted((*CONTEXT_NAMES, *WINDOW_NAMES)))), 1 << 53),
    (re.compile("|".join(sorted(NAMES))), 1 << 22),
)
_MOST_GROUP = 65_536
_MOST_NEED_BYTES = 1 << 62
_TYPE = re.compile(r"[\w.-]{1,100}")
_BITS = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "U16": 16, "I16": 16, "F16": 16,
    "BF16": 16, "U32": 32, "I32": 32, "F32": 32, "U64": 64, "I64": 64, "F64": 64, "C64": 64,
}  # fmt: skip
_NAME_CODE = ("tokenizer_config.json", "config.json")
NO_CODE = "Draftlight never runs code of a model. Choose a version of the model that needs none."
_COPY_AGAIN = "Download the model again, or copy it again from where it came."


class Tensor(Struct, frozen=True):
    """One tensor of a safetensors file; `dtype` is the format's name (BF16, U32 …)."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int


class Checked(Struct, frozen=True):
    """A model folder whose files passed all checks. `eyes`: the tensors of its part for images."""

    folder: Path
    config: dict[str, Any]
    tensors: tuple[Tensor, ...]
    eyes: tuple[Tensor, ...] = ()

    @property
    def why_unseeing(self) -> str:
        """Why the model cannot see images; empty if it can."""
        return why_unseeing(self.config, (each.name for each in self.eyes))

    @property
    def parameters(self) -> int:
        """Number of parameters; quantised ones count as parameters, not as packed words."""
        # Each group has one scale. Bits differ within a model and are not always in the config.
        scaled = {each.name.removesuffix(".scales") for each in self.tensors if each.name.endswith(".scales")}
        count = 0
        for tensor in self.tensors:
            stem, _, leaf = tensor.name.rpartition(".")
            if stem not in scaled or leaf not in ("weight", "scales", "biases"):
                count += math.prod(tensor.shape)
            elif leaf == "scales":
                count += math.prod(tensor.shape) * self._group_of(stem)
        return count

    @property
    def stored_bytes(self) -> int:
        """Bytes of the tensors."""
        return sum(tensor.size_bytes for tensor in self.tensors)

    @property
    def quantisation(self) -> dict[str, Any]:
        """The config's description of the quantisation; empty if the weights are not quantised."""
        found = self.config.get("quantization") or self.config.get("quantization_config") or {}
        return found if isinstance(found, dict) else {}

    @property
    def dtype(self) -> str:
        """MLX's name for the dtype of the first floating-point tensor."""
        names = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
        return next((names[each.dtype] for each in self.tensors if each.dtype in names), "")

    def _group_of(self, stem: str) -> int:
        own = self.quantisation.get(stem)
        return _quantised(own if isinstance(own, dict) else self.quantisation, "group_size") or 64


def check(folder: Path) -> Checked:
    """Raises `ModelError` with the first problem, and what to do about it."""
    try:
        return _check(folder)
    except OSError as error:
        named = shown(str(error.filename or folder))
        raise ModelError(f"{named} cannot be read: {error.strerror}.", "Make it readable.") from error


def _check(folder: Path) -> Checked:
    if is_head_folder(folder):
        raise ModelError(f"{folder} holds a drafting head, not a model.", "Load the model it belongs to.")
    config = _config(folder)
    _check_files(folder)
    files = weight_files(folder)
    if not any((folder / name).is_file() for name in TOKENIZER_FILES):
        raise ModelError(
            f"{folder} holds no tokenizer ({', '.join(TOKENIZER_FILES[:3])}).",
            "Download the model again, tokenizer files included.",
        )
    if (code := config.get("model_file")) is not None:
        raise ModelError(
            f"The model in {folder} wants to run its own Python file {shown(str(code))}"
            " (model_file in config.json).",
            NO_CODE,
        )
    if not is_supported(config["model_type"]):
        raise ModelError(
            f"The model in {folder} is of the type “{config['model_type']}”, which MLX cannot load.",
            "Choose a language model of another type, or update Draftlight.",
        )
    _check_figures(folder, config)
    _check_context(folder, config)
    tied = bool(text_config(config).get("tie_word_embeddings"))
    dropped = (*_OTHER_PARTS, "lm_head.") if tied else _OTHER_PARTS
    tensors = [tensor for file in files for tensor in read_header(file)]
    return Checked(
        folder,
        config,
        tuple(each for each in tensors if not each.name.startswith(dropped)),
        tuple(each for each in tensors if each.name.startswith(VISION_PARTS)),
    )


def check_whole(folder: Path) -> None:
    """Raises `ModelError` if the model or the head in `folder` is incomplete or cannot be loaded."""
    if not is_head_folder(folder):
        check(folder)
    elif not (files := sorted(folder.glob("*.safetensors"))):
        raise ModelError(f"{folder} holds no weights (*.safetensors).", "Download the head again.")
    else:
        for file in files:
            read_header(file)


def has_template(folder: Path, model_type: str = "") -> bool:
    """Whether the folder has a chat template, or mlx-lm one for its type."""
    files = ("chat_template.jinja", "chat_template.json", TEMPLATES_FOLDER)
    if any((folder / name).exists() for name in files):
        return True
    config = object_in(folder / "tokenizer_config.json")
    named = config.get("chat_template_type")
    return (
        bool(config.get("chat_template"))
        or model_type in _LIBRARY_TEMPLATES
        or (named is not None and _is_known("chat_template_type", named))
    )


def template_settings(folder: Path) -> tuple[dict[str, Any], str]:
    """Extra arguments for the tokenizer's loader, and a message about ignored settings.

    transformers reads `chat_template.json` for images only. Names of templates and parsers that this mlx-lm
    does not have would stop it, although a template in the folder replaces them.
    """
    config = object_in(folder / "tokenizer_config.json")
    given: dict[str, Any] = {}
    if not config.get("chat_template") and not (folder / "chat_template.jinja").exists():
        template = object_in(folder / "chat_template.json").get("chat_template")
        given |= {"chat_template": template} if isinstance(template, str) else {}
    unknown = [key for key in _MODULES if key in config and not _is_known(key, config[key])]
    names = " and ".join(f"{key} “{shown(str(config[key]))[:60]}”" for key in unknown)
    problem = f"{names} in tokenizer_config.json: ignored, this mlx-lm does not have it." if unknown else ""
    return given | dict.fromkeys(unknown), problem


def _is_known(key: str, name: object) -> bool:
    """Whether mlx-lm has the template or parser `name` of tokenizer_config.json's `key`."""
    if not isinstance(name, str) or not name.isidentifier():
        return name is None
    library = find_spec("mlx_lm")  # the module's own name would import MLX
    folders = library.submodule_search_locations or () if library else ()
    return PathFinder.find_spec(name, [f"{each}/{_MODULES[key]}" for each in folders]) is not None


def check_code(folder: Path) -> None:
    """Raises `ModelError` if the tokenizer needs Python code of the folder; many name code and need none."""
    if not (code := _named_code(folder)):
        return
    from transformers import AutoTokenizer

    with TemporaryDirectory() as probe:  # the two files decide it; with more, a tokenizer would be read
        for name in _NAME_CODE:
            (Path(probe) / name).symlink_to((folder / name).absolute())
        try:
            AutoTokenizer.from_pretrained(probe, trust_remote_code=False)
        except Exception as error:  # without a tokenizer it fails in many ways
            if "trust_remote_code" in str(error):
                why = f"The tokenizer in {folder} wants to run Python code: {code}."
                raise ModelError(why, NO_CODE) from error


def _named_code(folder: Path) -> str:
    """The Python class that the folder's `auto_map` names, with its file; empty if there is none."""
    found: list[str] = []
    for name in _NAME_CODE:
        named = object_in(folder / name, MOST_LARGE_BYTES).get("auto_map")
        named = named if isinstance(named, dict) else {"": named}
        classes = named.get("AutoTokenizer", named.get("AutoConfig", named.get("")))
        for each in classes if isinstance(classes, list) else [classes]:
            if isinstance(each, str) and each:
                module = each.rpartition("--")[2].rpartition(".")[0]
                found.append(f"{shown(each)} of {shown(module)}.py, named by auto_map in {name}")
    return next(iter(found), "")


def _check_files(folder: Path) -> None:
    """Raises `ModelError` for a file that libraries could not read to its end."""
    found: list[os.DirEntry[str]] = []
    templates = folder / TEMPLATES_FOLDER
    for place in (folder, templates) if templates.is_dir() else (folder,):
        with os.scandir(place) as entries:
            found += islice(entries, _MOST_ENTRIES + 1)
    if len(found) > _MOST_ENTRIES:
        raise ModelError(
            f"{folder} has more than {_MOST_ENTRIES:,} files.", "Choose a folder with one model."
        )
    for entry in found:
        if entry.name.endswith(_READ_ENDINGS) and not is_head_file(entry.name):
            _check_file(entry)


def _check_file(entry: os.DirEntry[str]) -> None:
    try:
        found = entry.stat()
    except FileNotFoundError:  # a link to nothing
        return
    if stat.S_ISDIR(found.st_mode):
        return
    if not stat.S_ISREG(found.st_mode):
        raise ModelError(f"{shown(entry.path)} is not a regular file.", _COPY_AGAIN)
    if not entry.name.endswith(".safetensors") and found.st_size > MOST_BYTES_OF_TOKENIZER:
        most = f"such files have at most {MOST_BYTES_OF_TOKENIZER / 1e6:,.0f} MB"
        raise ModelError(f"{shown(entry.path)} has {found.st_size / 1e6:,.0f} MB; {most}.", _COPY_AGAIN)
    if not os.access(entry.path, os.R_OK):
        raise ModelError(f"{shown(entry.path)} cannot be read: no permission.", "Make it readable.")


def _check_figures(folder: Path, config: dict[str, Any]) -> None:
    """Raises `ModelError` for a figure from which a library would build more than any machine has."""
    for key, value in _figures(config):
        # The context is checked below, in its own words.
        most = next((most for names, most in _MOST_BY_NAME if names.search(key)), None)
        if most is not None and key not in CONTEXT_NAMES and not abs(value) <= most:
            given = f"{shown(key)} as {shown(f'{value:,}')}"
            raise ModelError(
                f"{folder / 'config.json'} gives {given}; the limit is {most:,}.",
                "Correct the figure, or download the model again.",
            )


def _figures(config: dict[str, Any]) -> Iterator[tuple[str, int | float]]:
    """All numbers of `config` with their keys; of lists and texts the lengths, too."""
    waiting: list[tuple[str, Any]] = list(config.items())
    while waiting:
        key, value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            yield key, len(value)
            waiting += ((key, each) for each in value if not isinstance(each, str))
        elif isinstance(value, str):
            yield key, len(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield key, value


def _check_context(folder: Path, config: dict[str, Any]) -> None:
    text = text_config(config)
    named = [(name, value) for name in CONTEXT_NAMES if isinstance(value := text.get(name), int | float)]
    for name, value in named[:1]:
        if not 1 <= value <= _MOST_CONTEXT_TOKENS:
            raise ModelError(
                f"{folder / 'config.json'} gives {name} as {shown(f'{value:,}')}; a context has from 1 to"
                f" {_MOST_CONTEXT_TOKENS:,} tokens.",
                "Correct the figure, or download the model again.",
            )


def check_fits(checked: Checked, machine: Machine) -> MemoryNeed:
    """Raises `ModelTooLargeError` if not even a short context would fit."""
    need = _need(checked, machine)
    least = least_context(checked.config)
    if need.total_at(least) > machine.limit_bytes:
        raise ModelTooLargeError(
            f"{display_name(checked.folder, checked.config)} needs {gigabytes(need.total_at(least))} GB with"
            f" a context of {least:,} tokens, and this machine gives it"
            f" {gigabytes(machine.limit_bytes)} GB.",
            "Choose a smaller model, or a version of it with fewer bits.",
        )
    return need


def _need(checked: Checked, machine: Machine) -> MemoryNeed:
    need = need_of(checked.config, checked.parameters, checked.stored_bytes, machine)
    if not checked.why_unseeing:
        eyes = replace(checked, tensors=checked.eyes)
        need = replace(need, eyes=4 * eyes.parameters if machine.expands else eyes.stored_bytes)
    if max(msgspec.structs.astuple(need)) > _MOST_NEED_BYTES:
        raise ModelError(
            f"{checked.folder / 'config.json'} describes a model that is too large for any machine.",
            "Correct its figures, or download the model again.",
        )
    return need


def least_context(config: dict[str, Any]) -> int:
    """The context, in tokens, that must fit for the model to be loaded."""
    return min(_LEAST_CONTEXT_TOKENS, context_tokens(config))


def describe(folder: Path, reference: str, source: ModelSource, machine: Machine) -> ModelEntry:
    """The catalogue's entry for the folder. Never raises."""
    try:
        os.fspath(folder).encode()
    except UnicodeEncodeError:
        path = shown(str(folder))
        problem = f"The name of {path} is not UTF-8."
        return ModelEntry(path, shown(folder.name), source, path, problem=problem, hint="Rename the folder.")
    entry = ModelEntry(
        reference, display_name(folder, {}), source, str(folder), disk_bytes=disk_bytes(folder)
    )
    try:
        return _described(entry, check(folder), machine)
    except ModelError as error:
        return replace(entry, problem=error.message, hint=error.hint)
    except Exception as error:  # a config may hold anything anywhere
        why = f"{shown(str(folder))} cannot be understood ({shown(reason_of(error))})."
        return replace(entry, problem=why, hint="Choose another model.")


def _described(entry: ModelEntry, checked: Checked, machine: Machine) -> ModelEntry:
    folder, config = checked.folder, checked.config
    text = text_config(config)
    entry = replace(
        entry,
        name=display_name(folder, config),
        architecture=config["model_type"],
        family=family_of(folder),
        parameters=checked.parameters,
        bits=_quantised(checked.quantisation, "bits"),
        group_size=_quantised(checked.quantisation, "group_size"),
        dtype=checked.dtype,
        context_tokens=context_tokens(config),
        layers=len(layer_kinds(text)),
        has_template=has_template(folder, config["model_type"]),
        need=_need(checked, machine),
        sees=not checked.why_unseeing,
    )
    try:
        check_code(folder)
        check_fits(checked, machine)
    except ModelError as error:
        return replace(entry, problem=error.message, hint=error.hint)
    return entry


def _quantised(quantisation: dict[str, Any], name: str) -> int:
    """`group_size` or `bits` of a description; 0 if it is missing or impossible."""
    value = quantisation.get(name)
    return value if isinstance(value, int) and 0 < value <= _MOST_GROUP else 0


def disk_bytes(folder: Path) -> int:
    """Size of the files in the folder, at most the first 10,000; links to files count with their targets."""
    total, waiting = 0, [str(folder)]
    for _ in range(_MOST_ENTRIES):
        if not waiting:
            break
        path = waiting.pop()
        try:
            if os.path.isdir(path) and (path == str(folder) or not os.path.islink(path)):
                waiting += (entry.path for entry in os.scandir(path))
            elif os.path.isfile(path):
                total += os.stat(path).st_size
        except OSError:
            continue
    return total


def gigabytes(size_bytes: int) -> str:
    """11.2 for 11.2 × 2^30, as the window writes memory."""
    return f"{size_bytes / 2**30:,.1f}"


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not folder.is_dir():
        raise ModelError(
            f"There is no folder {folder} any more.", "Connect the disk it is on, or remove it from the list."
        )
    try:
        config = read_object(path)
    except FileNotFoundError:
        _refuse_foreign(folder)
        raise ModelError(f"{path} is missing.", "Choose the folder of a complete MLX model.") from None
    except (OSError, ValueError) as error:
        why = f"{path} cannot be read: {shown(reason_of(error))}."
        raise ModelError(why, "Download the model again.") from error
    kind = config.get("model_type")
    if not isinstance(kind, str) or not _TYPE.fullmatch(kind):
        raise ModelError(f"{path} has no model_type.", "Choose the folder of a complete MLX model.")
    return config


def weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if os.path.lexists(index):
        try:
            names = msgspec.convert(
                read_object(index, MOST_LARGE_BYTES), prepared(_Index)
            ).weight_map.values()
        except (OSError, ValueError) as error:
            raise ModelError(
                f"{index} cannot be read: {shown(reason_of(error))}.", "Download the model again."
            ) from error
        missing = sorted(
            shown(name)
            for name in set(names)
            if not is_head_file(name) and not os.path.isfile(os.path.join(folder, name))
        )
        if missing:
            more = f" and {len(missing) - 3} more" if len(missing) > 3 else ""
            raise ModelError(f"{folder} lacks {', '.join(missing[:3])}{more}.", "Download the model again.")
    files = sorted(file for file in folder.glob("model*.safetensors") if not is_head_file(file.name))
    if not files:
        _refuse_foreign(folder)
        raise ModelError(
            f"{folder} holds no weights (model*.safetensors).", "Download the model again, weights included."
        )
    return files


class _Index(Struct):
    weight_map: dict[str, str]


def _refuse_foreign(folder: Path) -> None:
    for pattern, what in _FOREIGN.items():
        if found := sorted(folder.glob(pattern)):
            raise ModelError(f"{found[0]} is {what}, not an MLX model.", _MLX_VERSION)


def read_header(path: Path) -> tuple[Tensor, ...]:
    """The tensors of a safetensors file, from its header alone.

    The format: eight bytes of little-endian length, that many bytes of JSON, then the tensors' bytes; offsets
    count from the end of the JSON. Raises `ModelError` if the file has another format or is truncated.
    """
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise ModelError(f"{path} is not a regular file.", _COPY_AGAIN)
            size, start = found.st_size, file.read(8)
            length = struct.unpack("<Q", start)[0] if len(start) == 8 else -1
            if not 2 <= length <= _LONGEST_HEADER_BYTES:
                raise ModelError(f"{path} is not a safetensors file.", _COPY_AGAIN)
            text = file.read(length)
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}.", _COPY_AGAIN) from error
    if len(text) < length:
        raise ModelError(f"{path} is cut off in its header ({size:,} bytes).", _COPY_AGAIN)
    try:
        entries = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        entries.pop("__metadata__", None)
        header = {
            name: msgspec.json.decode(entry, type=prepared(_HeaderEntry)) for name, entry in entries.items()
        }
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(
            f"{path} has a header that cannot be read ({shown(reason_of(error))}).", _COPY_AGAIN
        ) from error
    tensors = tuple(
        Tensor(name, entry.dtype, entry.shape, entry.data_offsets[1] - entry.data_offsets[0])
        for name, entry in header.items()
    )
    end = max((entry.data_offsets[1] for entry in header.values()), default=0)
    if size < 8 + length + end:
        raise ModelError(f"{path} is cut off: it has {size:,} of {8 + length + end:,} bytes.", _COPY_AGAIN)
    for tensor in tensors:
        bits = _BITS.get(tensor.dtype)
        if tensor.size_bytes < 0 or (bits and math.prod(tensor.shape) * bits != 8 * tensor.size_bytes):
            raise ModelError(
                f"{path} gives {shown(tensor.name)} a shape that {tensor.size_bytes:,} bytes do not have.",
                _COPY_AGAIN,
            )
    return tensors


_Count = Annotated[int, Meta(ge=0, le=1 << 53)]


class _HeaderEntry(Struct):
    dtype: Annotated[str, Meta(max_length=20)]
    shape: Annotated[tuple[_Count, ...], Meta(max_length=16)]
    data_offsets: tuple[_Count, _Count]


# ---- identity: whether a folder still holds the same weights

_SAMPLES = 16
_SAMPLE_BYTES = 1 << 16


def identity_of(folder: Path) -> str:
    """A SHA-256 that changes with the config or the weights in `folder`; empty if they cannot be read.

    Weights are too large to be read whole. A file's hash covers its name, size, time of change, its
    header, and samples from its beginning to its end, so that neither a new version of the same architecture
    nor one copied with its old time passes for the previous one.
    """
    digest = hashlib.sha256()
    try:
        digest.update(read_bytes(folder / "config.json", MOST_BYTES))
        for path in weight_files(folder):
            with path.open("rb") as file:
                found = os.fstat(file.fileno())
                digest.update(f"\0{path.name}\0{found.st_size}\0{found.st_mtime_ns}\0".encode())
                length = struct.unpack("<Q", file.read(8))[0]
                digest.update(file.read(min(length, _LONGEST_HEADER_BYTES)))
                for index in range(_SAMPLES):
                    file.seek(max(0, found.st_size - _SAMPLE_BYTES) * index // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE_BYTES))
    except (OSError, ValueError, struct.error, ModelError):
        return ""
    return digest.hexdigest()


# ---- tokenizer family: models whose token-to-id maps are identical
#
# Everything that uses token ids (drafters, tables, draft models) may be shared within a family only. The
# fingerprint is the SHA-256 of the sorted vocabulary with added tokens, so it does not depend on file formats
# or on the order of a JSON object.


def fingerprint(vocabulary: Mapping[str, int]) -> str:
    """64 hex digits that are equal exactly if the token-to-id maps are."""
    # Hashed as one string: 49,152 single updates take three times as long.
    lines = "".join([f"{token}\0{vocabulary[token]}\n" for token in sorted(vocabulary)])
    return hashlib.sha256(lines.encode("utf-8", "surrogatepass")).hexdigest()


def family_of(folder: Path) -> str:
    """The fingerprint of the tokenizer in `folder`, without loading it; empty without a tokenizer.json.

    Cached until the files change, because reading a vocabulary takes a quarter of a second.
    """
    path, settings = folder / "tokenizer.json", folder / "tokenizer_config.json"
    try:
        stats = [each.stat() for each in (path, settings) if each.exists()]
        seen = f"{path.resolve()}:{[(stat.st_size, stat.st_mtime_ns) for stat in stats]}"
        note = cache_dir() / "families" / hashlib.sha256(seen.encode()).hexdigest()[:32]
        # A power failure may have damaged it.
        if note.is_file() and re.fullmatch("[0-9a-f]{64}", kept := note.read_text("ascii", "replace")):
            return kept
        found = fingerprint(_vocabulary(path, settings))
        make_folder(note.parent)
        write_atomic(note, found.encode("ascii"), durable=False)
    except (OSError, ValueError, RecursionError):  # unreadable files
        return ""
    return found


class _AddedContent(Struct):
    content: str


class _TokenizerSettings(Struct):
    added_tokens_decoder: dict[int, _AddedContent] = {}


def _vocabulary(path: Path, settings: Path) -> dict[str, int]:
    """The vocabulary of the loaded tokenizer, including tokens that only the settings add.

    Read without the tokenizer library, which compiles the file's patterns.
    """
    vocabulary = read_tokenizer(path).vocabulary()
    if settings.exists():
        added = msgspec.json.decode(read_bytes(settings, MOST_LARGE_BYTES), type=prepared(_TokenizerSettings))
        for index, token in added.added_tokens_decoder.items():
            vocabulary.setdefault(token.content, index)
    return vocabulary
