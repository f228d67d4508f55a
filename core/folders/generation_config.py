"""Stop ids and sampling defaults from a model's generation_config.json and config.json.

Stop ids are the token ids that end an answer. Every part of Draftlight that generates text (window, server,
command line, cluster, benches) uses the ids that `stop_ids` computes when a model is loaded. Sources, in this
order:

    tokenizer               its end-of-text token, and the defaults of the model type in mlx-lm
    generation_config.json  `eos_token_id`, a number or a list
    config.json             `eos_token_id`, at the top level and in `text_config`
    names                   control tokens of the tokenizer that end a turn in a known chat format

mlx-lm stops on the tokenizer's token and on the first of generation_config.json and config.json that
names any; transformers reads `text_config` where neither does. Both sets are included. An id that only
a file of lower rank names counts if it is a control token: configs carry end ids of other tokenizers.

Sampling defaults follow transformers' rules: without `do_sample` the file says nothing about greedy decoding,
`do_sample: false` is greedy whatever the temperature, and `do_sample: true` without a temperature means 1. A
top-k of 0 or below means all tokens. Values outside the range of Draftlight's settings are clamped. No MLX.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.errors import reason_of
from core.events import ModelDefault
from core.folders.json_files import object_in, read_object
from core.folders.places import is_head_file
from core.settings import FROM_MODEL
from core.settings.declaration import Setting, find

FILE = "generation_config.json"
_KEY = "eos_token_id"
# Parts of a multimodal model's config that describe its language model.
_TEXT_PARTS = ("text_config", "language_config", "llm_config")
_TURN_ENDS = frozenset(
    {
        "<|im_end|>",  # ChatML
        "<|eot_id|>",  # Llama 3
        "<|eom_id|>",  # Llama 3, after a call of a built-in tool
        "<|eot|>",  # Llama 4
        "<|eom|>",  # Llama 4; see below
        "<end_of_turn>",  # Gemma 2 and 3
        "<turn|>",  # Gemma 4
        "<|tool_response>",  # Gemma 4: the tool's result begins
        "<|return|>",  # Harmony
        "<|call|>",
        "<|end|>",  # Phi; see below
        "<|observation|>",  # GLM-4: the tool's result begins
        "<|END_OF_TURN_TOKEN|>",  # Command R
        "<|end_of_turn|>",
        "<|endofturn|>",
        "[|endofturn|]",  # EXAONE
        "<end_of_utterance>",
        "<|role_end|>",  # Ling
    }
)
# Where an answer has several messages (Harmony, Muse, Solar Open) these end one of them, such as a thought.
_MESSAGE_ENDS = frozenset({"<|end|>", "<|eom|>"})
_MESSAGE_MARKS = frozenset({"<|message|>", "<|channel|>", "<|content|>", "<|begin|>"})


def sampling_defaults(folder: Path) -> tuple[tuple[ModelDefault, ...], str]:
    """The sampling settings of the model in `folder`, and a message about its file; both empty without one.

    Values that are not numbers are left out and named in the message; the others apply.
    """
    path = folder / FILE
    try:
        content = read_object(path)
    except FileNotFoundError:
        return (), ""
    except (OSError, ValueError) as error:
        return (), f"{FILE} cannot be read ({reason_of(error)}); Draftlight’s own sampling is used."
    found: list[ModelDefault] = []
    wrong: list[str] = []
    for key, given in _defaults(content).items():
        if not _is_number(given):
            wrong.append(find(key).name)
        else:
            found.append(ModelDefault(key, _within(find(key), given), float(given)))
    problem = f"{FILE} gives no number for {', '.join(wrong)}." if wrong else ""
    return tuple(found), problem


def _defaults(content: dict[str, Any]) -> dict[str, Any]:
    """Values by the keys of Draftlight's settings; null counts as absent."""
    names = {key: key.partition(".")[2] for key in FROM_MODEL}
    found = {key: content[name] for key, name in names.items() if content.get(name) is not None}
    if content.get("do_sample") is False:
        found["sampling.temperature"] = 0.0
    elif content.get("do_sample") is True:
        found.setdefault("sampling.temperature", 1.0)
    if _is_number(top_k := found.get("sampling.top_k", 0)) and top_k < 0:
        found["sampling.top_k"] = 0
    return dict(sorted(found.items(), key=lambda item: FROM_MODEL.index(item[0])))


def _is_number(given: Any) -> bool:
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    # JSON integers have no upper bound.
    return abs(given) < 2**53 and math.isfinite(given)


def _within(setting: Setting, given: float) -> float:
    """The nearest value that `setting` allows."""
    low, high = setting.minimum or 0.0, setting.maximum if setting.maximum is not None else given
    if setting.minimum_open:
        low += setting.step or 0.0
    value = float(min(max(given, low), high))
    return float(round(value)) if setting.kind == "integer" else value


def stop_ids(
    folder: Path, config: dict[str, Any], tokenizer: TokenizerWrapper, rows: int
) -> tuple[frozenset[int], str]:
    """The stop ids of the model in `folder`, each below `rows`, the number of embedding rows.

    `config` is the content of config.json. Values that are not ids of this model are ignored, and named in
    the message for the user.
    """
    named = [
        (FILE, _values(object_in(folder / FILE).get(_KEY))),
        ("config.json", _values(config.get(_KEY))),
        *(
            (f"{part} in config.json", _values(inner.get(_KEY)))
            for part in _TEXT_PARTS
            if isinstance(inner := config.get(part), dict)
        ),
    ]
    control = _control_tokens(tokenizer)
    ids = {int(token) for token in tokenizer.eos_token_ids if 0 <= int(token) < rows}
    problems: list[str] = []
    leading = True
    for source, values in named:
        good = [value for value in values if _is_id(value) and 0 <= value < rows]
        bad = [value for value in values if not (_is_id(value) and 0 <= value < rows)]
        if bad:
            problems.append(
                f"{_KEY} of {source} has {', '.join(_short(value) for value in bad)}, which is not among the"
                f" model's {rows:,} token ids; it is ignored."
            )
        ids.update(good if leading else [value for value in good if value in control.values()])
        leading = leading and not good
    ends = _TURN_ENDS - _MESSAGE_ENDS if control.keys() & _MESSAGE_MARKS else _TURN_ENDS
    ids.update(token for text, token in control.items() if text in ends and token < rows)
    return frozenset(ids), " ".join(problems)


@contextmanager
def readable(folder: Path) -> Iterator[Path]:
    """`folder`, or a temporary one of links to its files without what libraries refuse.

    mlx-lm reads all `model*.safetensors`, and refuses the tensors of an MTP head among them. transformers
    refuses a config.json whose `eos_token_id` is not made of numbers, mlx-lm a generation_config.json that
    holds no object; neither file is needed for anything else.
    """
    config = object_in(folder / "config.json")
    kept = {key: value for key, value in config.items() if key != _KEY or _is_accepted(value)}
    for part in _TEXT_PARTS:
        inner = kept.get(part)
        if isinstance(inner, dict) and not _is_accepted(inner.get(_KEY)):
            kept[part] = {key: value for key, value in inner.items() if key != _KEY}
    damaged = (folder / FILE).exists() and not object_in(folder / FILE)
    left_out = {path.name for path in folder.glob("model*.safetensors") if is_head_file(path.name)}
    if damaged:
        left_out.add(FILE)
    if kept == config and not left_out:
        yield folder
        return
    with TemporaryDirectory() as name:
        for path in folder.iterdir():
            if path.name != "config.json" and path.name not in left_out:
                (Path(name) / path.name).symlink_to(path.absolute())
        (Path(name) / "config.json").write_text(json.dumps(kept), encoding="utf-8")
        yield Path(name)


def _is_accepted(value: Any) -> bool:
    """Whether transformers accepts it as `eos_token_id`."""
    return value is None or all(_is_id(each) and abs(each) < 2**31 for each in _values(value))


def _values(given: Any) -> list[Any]:
    if given is None:
        return []
    return given if isinstance(given, list) else [given]


def _is_id(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _short(value: Any) -> str:
    text = f"{value:,}" if _is_id(value) and abs(value) < 10**15 else repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"


def _control_tokens(tokenizer: TokenizerWrapper) -> dict[str, int]:
    """Added and special tokens of the tokenizer, by their text."""
    added: dict[str, int] = tokenizer.get_added_vocab()
    special = zip(tokenizer.all_special_tokens, tokenizer.all_special_ids)
    return {**added, **{str(text): int(token) for text, token in special}}
