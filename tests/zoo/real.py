"""Families made of the chat templates of public models, where a checkout has their folder beside it.

A template's markers become tokens, and the special token behind an answer becomes the stop token. The model
is a tiny one of the type that the template belongs to, so that its cache is of the real kind.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.zoo.families import Family

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "chat-templates"

_MARKERS = re.compile(
    r"<\|[^\s<>|'\"{}]{1,40}\|>|<\|[a-z_]+>|<[a-z_]+\|>|<｜[^｜\s]{1,40}｜>|</?s>|</?think>|</?tool_call>"
    r"|</?tool_response>|</?seed:[a-z_]+>|<(?:start|end)_of_(?:turn|image)>|\[/?(?:INST|TOOL_CALLS|AVAILABLE_TOOLS"
    r"|TOOL_RESULTS|SYSTEM_PROMPT|THINK|ARGS|TOOL_CONTENT|CALL_ID)\]|\[gMASK\]|<sop>|\]~!?b\]?\[?|\[e~\[|<SPECIAL_\d+>"
    r"|</?arg_(?:key|value)>|</?minimax:tool_call>|\[\|[a-z]{1,20}\|\]"
)
# Ordinary text to a decoder that skips special tokens.
_PLAIN = re.compile(r"</?(?:think|tool_call|tool_response|arg_key|arg_value|minimax:tool_call)>")
# What a template names its ends by; the first that it has is the stop token.
_STOPS = (
    *(
        "<|im_end|>",
        "<|eot_id|>",
        "<|eot|>",
        "<end_of_turn>",
        "<turn|>",
        "<|return|>",
        "<｜end▁of▁sentence｜>",
    ),
    *(
        "<|end_of_msg|>",
        "<|END_OF_TURN_TOKEN|>",
        "<|end_of_text|>",
        "<|assistant_end|>",
        "[e~[",
        "<SPECIAL_12>",
    ),
    *(
        "<seed:eos>",
        "<end_of_sentence>",
        "<|content_model_end_sampling|>",
        "<|end_message|>",
        "<|message_sep|>",
        "</assistant>",
        "<|end|>",
        "<|end_of_turn|>",
        "<|user|>",
        "[|endofturn|]",
    ),
)
# The type that a template belongs to, by a part of its file's name; an ordinary cache otherwise.
_TYPES = {
    "Qwen3.5": "qwen3_5",
    "qwen3.6": "qwen3_5",
    "qwen38": "qwen3_5",
    "Qwen3-Coder": "qwen3_next",
    "NVIDIA-Nemotron": "nemotron_h",
    "granite-4.0": "granitemoehybrid",
    "LFM2": "lfm2",
    "StepFun": "step3p5",
    "gemma-it": "gemma",
    "gemma4": "gemma4_text",
    "gemma-4": "gemma4_text",
    "llama4": "llama4",
    "rwkv": "rwkv7",
    "Cohere2MoE": "cohere2",
    "command-r7b": "cohere2",
    "phi": "phi3",
    "smollm3": "smollm3",
    "SmolLM3": "smollm3",
    "GLM-4.7": "glm4_moe_lite",
    "DeepSeek-V3": "deepseek_v3",
}


def real_families() -> tuple[Family, ...]:
    """One family for each template of the folder; none where it is absent."""
    return tuple(_family(path) for path in sorted(FOLDER.glob("*.jinja")))


def _family(path: Path) -> Family:
    source = path.read_text()
    markers = list(dict.fromkeys(_MARKERS.findall(source)))
    stop = next((each for each in _STOPS if each in source), "</s>")
    special = [each for each in markers if not _PLAIN.fullmatch(each)]
    # Classes of some types add a token for the end of a text if there is none.
    needed = ["<|bos|>", "<|endoftext|>", stop]
    if "'<|' +" in source:
        needed += ["<|system|>", "<|user|>", "<|assistant|>"]
    special += [each for each in dict.fromkeys(needed) if each not in markers]
    # A call ends the answer, too.
    stops = f"{stop} <|tool_response>" if "<|tool_response>" in markers else stop
    model_type = next((kind for part, kind in _TYPES.items() if part in path.name), "llama")
    full = {"layer_types": ["full_attention"] * 4, "sliding_window": None} if model_type == "llama" else {}
    shaped = {
        "granitemoehybrid": {"mamba_n_heads": 8},
        "nemotron_h": {"hybrid_override_pattern": "M*-E", "layer_types": None},
    }
    return Family(
        path.stem,
        model_type,
        "",
        "byte-level",
        " ".join(special),
        " ".join(each for each in markers if _PLAIN.fullmatch(each)),
        bos="<|bos|>",
        eos=stop,
        config_stops=stops,
        config=shaped.get(model_type, full),
        source=source,
    )
