"""Model families by what they demand: config keys, stop tokens, tokenizer, chat template.

No checkpoint's files are in here. Shapes are tiny and templates are our own; what a family shares with the
public models it is named after are the keys, the marker tokens and the rules that its template enforces.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.zoo.tokenizers import Added, TokenizerKind

TEMPLATES = Path(__file__).parent / "templates"


class Family(Struct, frozen=True):
    """One family. `model_type` is mlx-lm's, or one of its aliases; `base` is the type an alias is built as.

    `special`, `added` and `rstrip`: tokens beside the learned ones, separated by spaces; those in `added` are
    ordinary text to a decoder that skips special tokens, those in `rstrip` swallow the spaces behind them.
    `config_stops`, `text_stops`, `generation_stops`: what `eos_token_id` names in config.json, in its
    `text_config` and in generation_config.json. `config`: other keys; None leaves one out. `more_rows`:
    embedding rows minus ids of the tokenizer. `answer` is what the model writes, thought included, where the
    template leaves thoughts out of a conversation; empty: the template shows it.
    """

    name: str
    model_type: str
    template: str
    tokenizer: TokenizerKind
    special: str
    added: str = ""
    rstrip: str = ""
    bos: str = ""
    eos: str = ""
    adds_bos: bool = False
    config_stops: str = ""
    text_stops: str = ""
    generation_stops: str = ""
    base: str = ""
    config: Mapping[str, Any] = {}
    more_rows: int = 0
    answer: str = ""
    demands: str = ""
    source: str = ""

    @property
    def tokens(self) -> tuple[Added, ...]:
        """All added tokens, in the order of their ids."""
        swallowing = self.rstrip.split()
        special = [Added(text, True, text in swallowing) for text in self.special.split()]
        return (*special, *(Added(text, False, text in swallowing) for text in self.added.split()))

    @property
    def template_text(self) -> str:
        """The chat template."""
        return self.source or (TEMPLATES / f"{self.template}.jinja").read_text()


_IM = "<|endoftext|> <|im_start|> <|im_end|>"
_THINK = "<think> </think>"
_CALL = "<tool_call> </tool_call> <tool_response> </tool_response>"
_HEADERS = (
    "<|begin_of_text|> <|end_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|> <|eom_id|>"
    " <|python_tag|>"
)
_HEADER_STOPS = "<|end_of_text|> <|eom_id|> <|eot_id|>"
_INST = (
    "<s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_CALLS] [TOOL_RESULTS] [/TOOL_RESULTS]"
)
_INST_ARGS = f"{_INST} [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [ARGS]"
_TURN = "<pad> <eos> <bos> <start_of_turn> <end_of_turn> <start_of_image>"
_ROLES = "<s> <|endoftext|> <|assistant|> <|end|> <|system|> <|user|>"
_GLM = "<|endoftext|> [gMASK] <sop> <|system|> <|user|> <|assistant|> <|observation|>"
_GLM_STOPS = "<|endoftext|> <|user|> <|observation|>"
_PAIRS = "<arg_key> </arg_key> <arg_value> </arg_value>"
_DEEPSEEK = "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜User｜> <｜Assistant｜>"
_DEEPSEEK_CALLS = (
    "<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜> <｜tool▁sep｜>"
    " <｜tool▁outputs▁begin｜> <｜tool▁outputs▁end｜> <｜tool▁output▁begin｜> <｜tool▁output▁end｜>"
)
_KIMI = (
    "[BOS] [EOS] <|im_end|> <|im_user|> <|im_assistant|> <|im_system|> <|im_middle|>"
    " <|tool_calls_section_begin|>"
    " <|tool_calls_section_end|> <|tool_call_begin|> <|tool_call_argument_begin|> <|tool_call_end|>"
)
_COHERE = (
    "<BOS_TOKEN> <|END_OF_TURN_TOKEN|> <|START_OF_TURN_TOKEN|> <|USER_TOKEN|> <|CHATBOT_TOKEN|>"
    " <|SYSTEM_TOKEN|> <|START_RESPONSE|>"
    " <|END_RESPONSE|> <|START_THINKING|> <|END_THINKING|> <|START_ACTION|> <|END_ACTION|>"
    " <|START_TOOL_RESULT|> <|END_TOOL_RESULT|>"
)
_GRANITE = "<|end_of_text|> <|start_of_role|> <|end_of_role|> <|tool_call|>"
# The tiny llama has windows; these checkpoints have none.
_FULL: Mapping[str, Any] = {"layer_types": ["full_attention"] * 4, "sliding_window": None}
_THOUGHT_ANSWER = "<think>\n{thought}\n</think>\n\n{answer}"

FAMILIES: tuple[Family, ...] = (
    Family(
        "chatml",
        "qwen2",
        "chatml",
        "byte-level-nfc",
        _IM,
        eos="<|im_end|>",
        config_stops="<|endoftext|>",
        generation_stops="<|im_end|> <|endoftext|>",
        demands="ChatML",
    ),
    Family(
        "qwen2.5",
        "qwen2",
        "hermes_tools",
        "byte-level-nfc",
        _IM,
        _CALL,
        eos="<|im_end|>",
        config_stops="<|im_end|>",
        generation_stops="<|im_end|> <|endoftext|>",
        demands="a default system prompt; calls as JSON; results grouped under one user turn",
    ),
    Family(
        "qwen3",
        "qwen3",
        "think_switch",
        "byte-level-nfc",
        _IM,
        f"{_THINK} {_CALL}",
        eos="<|im_end|>",
        config_stops="<|im_end|>",
        generation_stops="<|im_end|> <|endoftext|>",
        demands="thoughts dropped from history; an empty thought when thinking is off",
    ),
    Family(
        "qwen3-moe-thinking",
        "qwen3_moe",
        "think_opened",
        "byte-level-nfc",
        _IM,
        _THINK,
        eos="<|im_end|>",
        config_stops="<|im_end|>",
        answer=_THOUGHT_ANSWER,
        demands="the prompt opens the thought; no switch",
    ),
    Family(
        "qwq",
        "qwen2",
        "think_opened",
        "byte-level-nfc",
        _IM,
        _THINK,
        eos="<|im_end|>",
        generation_stops="<|im_end|> <|endoftext|>",
        answer="<think>\n{thought}</think>{answer}",
        config={"sliding_window": None},
        demands="the prompt opens the thought, which ends within a line",
    ),
    Family(
        "qwen3-coder",
        "qwen3_next",
        "xml_calls",
        "byte-level-nfc",
        _IM,
        _CALL,
        eos="<|im_end|>",
        config_stops="<|im_end|>",
        demands="calls as XML parameters; a hybrid cache",
    ),
    Family(
        "qwen3.5",
        "qwen3_5",
        "hybrid_parts",
        "byte-level-nfc",
        _IM,
        f"{_THINK} {_CALL}",
        eos="<|im_end|>",
        text_stops="<|endoftext|>",
        demands="content parts; one system message, first; the prompt opens the"
        " thought; XML calls; a hybrid cache",
    ),
    Family(
        "llama2",
        "llama",
        "inst_alternating",
        "sentencepiece-prefix",
        "<s> </s>",
        bos="<s>",
        eos="</s>",
        adds_bos=True,
        config_stops="</s>",
        config=_FULL,
        demands="turns alternate; system prompt in the first question",
    ),
    Family(
        "llama3.1",
        "llama",
        "header_ids",
        "byte-level",
        _HEADERS,
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
        adds_bos=True,
        config_stops=_HEADER_STOPS,
        generation_stops=_HEADER_STOPS,
        config=_FULL,
        demands="bare JSON calls, one a turn; functions in the first question",
    ),
    Family(
        "llama3.2",
        "llama",
        "header_pythonic",
        "byte-level",
        _HEADERS,
        bos="<|begin_of_text|>",
        eos="<|eot_id|>",
        adds_bos=True,
        config_stops=_HEADER_STOPS,
        config=_FULL,
        demands="calls as a Python list",
    ),
    Family(
        "llama4",
        "llama4",
        "header_parts",
        "byte-level",
        "<|begin_of_text|> <|end_of_text|> <|header_start|> <|header_end|> <|eot|> <|eom|> <|image|>",
        bos="<|begin_of_text|>",
        eos="<|eot|>",
        adds_bos=True,
        text_stops="<|end_of_text|> <|eom|> <|eot|>",
        generation_stops="<|end_of_text|> <|eom|> <|eot|>",
        demands="stop tokens in text_config as a list; content parts; a chunked cache",
    ),
    Family(
        "mistral",
        "mistral",
        "inst_tools",
        "sentencepiece-prefix",
        _INST,
        bos="<s>",
        eos="</s>",
        adds_bos=True,
        config_stops="</s>",
        base="llama",
        config=_FULL,
        demands="an alias of a type; turns alternate; the system prompt"
        " moves to the last question; call ids of nine characters",
    ),
    Family(
        "mixtral",
        "mixtral",
        "inst_no_system",
        "metaspace",
        "<s> </s> [INST] [/INST]",
        bos="<s>",
        eos="</s>",
        adds_bos=True,
        config_stops="</s>",
        demands="no system role; turns alternate",
    ),
    Family(
        "mistral-small",
        "mistral3",
        "inst_args",
        "tekken",
        _INST_ARGS,
        bos="<s>",
        eos="</s>",
        text_stops="</s>",
        config=_FULL,
        demands="content parts; calls as NAME[ARGS]JSON; turns alternate",
    ),
    Family(
        "magistral",
        "ministral3",
        "inst_think",
        "byte-level",
        f"{_INST_ARGS} [THINK] [/THINK]",
        bos="<s>",
        eos="</s>",
        config_stops="</s>",
        answer="[THINK]{thought}[/THINK]{answer}",
        config=_FULL,
        demands="thoughts as content parts",
    ),
    Family(
        "gemma",
        "gemma",
        "turn_no_system",
        "sentencepiece",
        _TURN,
        bos="<bos>",
        eos="<eos>",
        adds_bos=True,
        config_stops="<eos>",
        generation_stops="<eos> <end_of_turn>",
        demands="no system role; the turn's end is a stop token in generation_config.json alone",
    ),
    Family(
        "gemma2",
        "gemma2",
        "turn_no_system",
        "sentencepiece",
        _TURN,
        bos="<bos>",
        eos="<eos>",
        adds_bos=True,
        config_stops="<eos> <end_of_turn>",
        demands="stop tokens in config.json as a list",
    ),
    Family(
        "gemma3",
        "gemma3",
        "turn_parts",
        "sentencepiece",
        f"{_TURN} <image_soft_token>",
        bos="<bos>",
        eos="<eos>",
        adds_bos=True,
        config_stops="<eos> <end_of_turn>",
        more_rows=-1,
        demands="one added token above the embedding rows; content parts; text_config names no context",
    ),
    Family(
        "gemma3n",
        "gemma3n",
        "turn_parts",
        "sentencepiece",
        _TURN,
        bos="<bos>",
        eos="<eos>",
        adds_bos=True,
        config_stops="<eos> <end_of_turn>",
        demands="text_config; content parts; shared caches",
    ),
    Family(
        "functiongemma",
        "gemma3_text",
        "function_turns",
        "sentencepiece",
        f"{_TURN} <start_function_call> <end_function_call> <start_function_response> <end_function_response>"
        " <start_function_declaration> <end_function_declaration> <escape>",
        bos="<bos>",
        eos="<eos>",
        adds_bos=True,
        config_stops="<eos> <end_of_turn>",
        generation_stops="<eos> <end_of_turn>",
        demands="a developer turn; calls in a notation of its own",
    ),
    Family(
        "gemma4",
        "gemma4",
        "channel_turns",
        "sentencepiece",
        "<pad> <eos> <bos> <|turn> <turn|> <|channel> <channel|> <|tool> <tool|> <|tool_call> <tool_call|>"
        ' <|tool_response> <tool_response|> <|"|> <|think|>',
        bos="<bos>",
        eos="<eos>",
        config_stops="<eos> <turn|>",
        generation_stops="<eos> <turn|> <|tool_response>",
        answer="<|channel>thought\n{thought}\n<channel|>{answer}",
        demands="thoughts in a channel; calls in a notation of its own; three stop tokens",
    ),
    Family(
        "phi3.5",
        "phi3",
        "role_newline",
        "sentencepiece-prefix",
        _ROLES,
        rstrip=_ROLES.removeprefix("<s> "),
        bos="<s>",
        eos="<|endoftext|>",
        config_stops="<|endoftext|>",
        generation_stops="<|end|> <|assistant|> <|endoftext|>",
        demands="role tokens that swallow spaces; the"
        " turn's end is a stop token in generation_config.json alone",
    ),
    Family(
        "phi4",
        "phi3",
        "im_sep",
        "byte-level",
        f"{_IM} <|im_sep|>",
        bos="<|endoftext|>",
        eos="<|im_end|>",
        config_stops="<|endoftext|> <|im_end|>",
        demands="a separator token behind the role",
    ),
    Family(
        "phi4-mini",
        "phi3",
        "role_tools",
        "byte-level",
        "<|endoftext|> <|end|> <|assistant|> <|system|> <|user|> <|tool|> <|/tool|> <|tool_call|>"
        " <|/tool_call|> <|tool_response|>",
        bos="<|endoftext|>",
        eos="<|endoftext|>",
        config_stops="<|endoftext|>",
        generation_stops="<|end|> <|endoftext|>",
        demands="calls as a JSON list between tokens",
    ),
    Family(
        "glm4",
        "glm4",
        "gmask",
        "byte-level",
        _GLM,
        eos="<|endoftext|>",
        config_stops=_GLM_STOPS,
        demands="no end of turn: the next role is the stop token; calls as NAME and a line of JSON",
    ),
    Family(
        "glm4.6",
        "glm4_moe",
        "arg_pairs",
        "byte-level",
        _GLM,
        f"{_THINK} {_CALL} {_PAIRS}",
        eos="<|endoftext|>",
        config_stops=_GLM_STOPS,
        demands="a switch within the question; thoughts dropped from history; calls as key and value pairs",
    ),
    Family(
        "glm4.7",
        "glm4_moe_lite",
        "arg_pairs_inline",
        "byte-level",
        _GLM,
        f"{_THINK} {_CALL} {_PAIRS}",
        eos="<|endoftext|>",
        config_stops=_GLM_STOPS,
        demands="the prompt opens the thought, which ends within a line; compressed keys",
    ),
    Family(
        "gpt-oss",
        "gpt_oss",
        "channels",
        "byte-level",
        "<|startoftext|> <|endoftext|> <|return|> <|constrain|> <|channel|> <|start|> <|end|> <|message|>"
        " <|call|>",
        bos="<|startoftext|>",
        eos="<|return|>",
        config_stops="<|return|>",
        generation_stops="<|return|> <|endoftext|> <|call|>",
        demands="channels; refuses earlier answers with their channels; thoughts under `thinking`; a window",
    ),
    Family(
        "deepseek-v3",
        "deepseek_v3",
        "fenced_calls",
        "byte-level",
        f"{_DEEPSEEK} {_DEEPSEEK_CALLS}",
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        adds_bos=True,
        config_stops="<｜end▁of▁sentence｜>",
        demands="calls in a fenced block between tokens",
    ),
    Family(
        "deepseek-r1",
        "llama",
        "r1_opened",
        "byte-level",
        f"{_DEEPSEEK} {_DEEPSEEK_CALLS}",
        _THINK,
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        adds_bos=True,
        config_stops="<｜end▁of▁sentence｜>",
        answer=_THOUGHT_ANSWER,
        config=_FULL,
        demands="the prompt opens the thought; answers are cut at its end",
    ),
    Family(
        "deepseek-v3.1",
        "deepseek_v2",
        "closed_prompt",
        "byte-level",
        f"{_DEEPSEEK} {_DEEPSEEK_CALLS}",
        _THINK,
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        config_stops="<｜end▁of▁sentence｜>",
        answer="<think>{thought}</think>{answer}",
        demands="the switch is called `thinking`; the prompt closes the thought when it is off",
    ),
    Family(
        "deepseek-v3.2",
        "deepseek_v32",
        "invoke_typed",
        "byte-level",
        _DEEPSEEK,
        f"{_THINK} ｜DSML｜",
        bos="<｜begin▁of▁sentence｜>",
        eos="<｜end▁of▁sentence｜>",
        config_stops="<｜end▁of▁sentence｜>",
        answer="<think>{thought}</think>{answer}",
        demands="calls as typed XML parameters",
    ),
    Family(
        "kimi-k2",
        "kimi_k2",
        "call_sections",
        "byte-level",
        _KIMI,
        _THINK,
        bos="[BOS]",
        eos="[EOS]",
        config_stops="<|im_end|>",
        generation_stops="<|im_end|>",
        base="deepseek_v3",
        answer="<think>{thought}</think>{answer}",
        demands="an alias of a type; call ids that hold the function's name; content parts",
    ),
    Family(
        "kimi-linear",
        "kimi_linear",
        "call_sections",
        "byte-level",
        _KIMI,
        bos="[BOS]",
        eos="[EOS]",
        config_stops="<|im_end|>",
        demands="the context is called model_max_length; a hybrid cache",
    ),
    Family(
        "kimi-k3",
        "kimi_k3",
        "open_close",
        "byte-level",
        "[BOS] [EOS] <|open|> <|close|> <|sep|> <|end_of_msg|>",
        bos="[BOS]",
        eos="[EOS]",
        config_stops="<|end_of_msg|>",
        demands="sections opened and closed by name; the prompt opens the"
        " thought; the switch is called `thinking`",
    ),
    Family(
        "minimax-m2",
        "minimax",
        "brackets_invoke",
        "byte-level",
        "]!p~[ ]~!b[ ]~b] [e~[",
        f"{_THINK} <minimax:tool_call> </minimax:tool_call>",
        bos="]~!b[",
        eos="[e~[",
        generation_stops="[e~[",
        demands="content parts; the prompt opens the thought; calls as XML parameters; results follow calls",
    ),
    Family(
        "command-r7b",
        "cohere2",
        "actions",
        "byte-level",
        _COHERE,
        bos="<BOS_TOKEN>",
        eos="<|END_OF_TURN_TOKEN|>",
        adds_bos=True,
        config_stops="<|END_OF_TURN_TOKEN|>",
        demands="answer, thought and calls each between tokens; a window",
    ),
    Family(
        "granite3.3",
        "granite",
        "roles_marked",
        "byte-level",
        _GRANITE,
        bos="<|end_of_text|>",
        eos="<|end_of_text|>",
        config_stops="<|end_of_text|>",
        answer="<think>{thought}</think><response>{answer}</response>",
        demands="thought and answer in tags that are plain text; the switch is called `thinking`",
    ),
    Family(
        "granite4",
        "granitemoehybrid",
        "roles_calls",
        "byte-level",
        _GRANITE,
        _CALL,
        bos="<|end_of_text|>",
        eos="<|end_of_text|>",
        config_stops="<|end_of_text|>",
        config={"mamba_n_heads": 8},
        demands="content parts; a hybrid cache",
    ),
    Family(
        "nemotron-nano2",
        "nemotron_h",
        "special_slots",
        "byte-level",
        "<s> </s> <SPECIAL_10> <SPECIAL_11> <SPECIAL_12>",
        _THINK,
        bos="<s>",
        eos="<SPECIAL_12>",
        config_stops="</s> <SPECIAL_12>",
        generation_stops="</s> <SPECIAL_12>",
        answer=_THOUGHT_ANSWER,
        config={"hybrid_override_pattern": "M*-E", "layer_types": None},
        demands="a switch within the messages; the prompt opens the thought; a hybrid cache",
    ),
    Family(
        "smollm3",
        "smollm3",
        "metadata_head",
        "byte-level",
        _IM,
        f"{_THINK} {_CALL}",
        eos="<|im_end|>",
        config_stops="<|im_end|>",
        answer=_THOUGHT_ANSWER,
        demands="a header with the mode; results without a role; a generation block",
    ),
    Family(
        "lfm2",
        "lfm2",
        "pythonic_marked",
        "byte-level",
        "<|startoftext|> <|im_start|> <|im_end|> <|tool_list_start|> <|tool_list_end|> <|tool_call_start|>"
        " <|tool_call_end|> <|tool_response_start|> <|tool_response_end|>",
        bos="<|startoftext|>",
        eos="<|im_end|>",
        adds_bos=True,
        config_stops="<|im_end|>",
        demands="calls as Python between tokens; a convolution cache",
    ),
    Family(
        "seed-oss",
        "seed_oss",
        "seed_tags",
        "byte-level",
        "<seed:bos> <seed:eos> <seed:think> </seed:think> <seed:tool_call> </seed:tool_call>",
        bos="<seed:bos>",
        eos="<seed:eos>",
        config_stops="<seed:eos>",
        demands="the switch is a number of tokens; calls as XML parameters",
    ),
    Family(
        "hunyuan",
        "hunyuan_v1_dense",
        "answer_tags",
        "byte-level",
        "<｜hy_begin▁of▁sentence｜> <｜hy_User｜> <｜hy_Assistant｜> <｜hy_place▁holder▁no▁2｜>"
        " <｜hy_place▁holder▁no▁3｜>",
        bos="<｜hy_begin▁of▁sentence｜>",
        eos="<｜hy_place▁holder▁no▁2｜>",
        config_stops="<｜hy_place▁holder▁no▁2｜>",
        answer="<think>\n{thought}\n</think>\n<answer>\n{answer}\n</answer>",
        demands="the answer in tags, too; no other roles",
    ),
    Family(
        "exaone4",
        "exaone4",
        "bar_roles",
        "byte-level",
        "[BOS] [|endofturn|] [|system|] [|user|] [|assistant|] [|tool|]",
        f"{_THINK} {_CALL}",
        bos="[BOS]",
        eos="[|endofturn|]",
        config_stops="[|endofturn|]",
        config={"layer_types": ["sliding_attention", "full_attention"] * 2},
        demands="the prompt opens or closes the thought; a window",
    ),
    Family(
        "ernie4.5",
        "ernie4_5",
        "plain_labels",
        "sentencepiece-prefix",
        "<s> </s> <|begin_of_sentence|>",
        bos="<s>",
        eos="</s>",
        generation_stops="</s>",
        demands="roles as plain words",
    ),
    Family(
        "internlm3",
        "internlm3",
        "plugin_actions",
        "sentencepiece-prefix",
        "<s> </s> <|im_start|> <|im_end|> <|action_start|> <|action_end|> <|plugin|>",
        bos="<s>",
        eos="</s>",
        config_stops="</s> <|im_end|>",
        demands="calls between tokens; stop tokens as a list",
    ),
    Family(
        "olmo3",
        "olmo3",
        "function_blocks",
        "byte-level",
        _IM,
        f"{_THINK} <functions> </functions> <function_calls> </function_calls>",
        bos="<|endoftext|>",
        eos="<|endoftext|>",
        config_stops="<|im_end|> <|endoftext|>",
        answer="<think>{thought}</think>{answer}",
        demands="the prompt opens the thought; calls as lines of Python; a window",
    ),
    Family(
        "stepfun",
        "step3p5",
        "hybrid_parts",
        "byte-level",
        _IM,
        f"{_THINK} {_CALL}",
        eos="<|im_end|>",
        config_stops="<|endoftext|> <|im_end|>",
        demands="content parts; the prompt opens the thought; XML calls; windows",
    ),
    Family(
        "apertus",
        "apertus",
        "inner_prefix",
        "tekken",
        "<s> </s> <|system_start|> <|system_end|> <|developer_start|> <|developer_end|> <|user_start|>"
        " <|user_end|> <|assistant_start|> <|assistant_end|> <|inner_prefix|> <|inner_suffix|>"
        " <|tools_prefix|> <|tools_suffix|>",
        bos="<s>",
        eos="<|assistant_end|>",
        config_stops="</s> <|assistant_end|>",
        demands="content parts; a developer block; thoughts between tokens; calls keyed by name",
    ),
    Family(
        "apriel",
        "llama",
        "final_response",
        "byte-level",
        "<s> </s> <|begin_system|> <|begin_user|> <|begin_assistant|> <|begin_tool_result|> <|end|>",
        bos="<s>",
        eos="<|end|>",
        config_stops="<|end|>",
        answer="Here are my reasoning steps:\n{thought}\n[BEGIN FINAL RESPONSE]\n{answer}",
        config=_FULL,
        demands="content parts; the thought ends in words; calls as a JSON list",
    ),
    Family(
        "falcon-h1",
        "falcon_h1",
        "chatml",
        "byte-level",
        _IM,
        eos="<|im_end|>",
        config_stops="<|endoftext|> <|im_end|>",
        demands="a hybrid cache",
    ),
    Family(
        "jamba",
        "jamba",
        "bom_roles",
        "byte-level",
        "<|startoftext|> <|endoftext|> <|bom|> <|eom|> <|system|> <|user|> <|assistant|> <|tool|>",
        bos="<|startoftext|>",
        eos="<|endoftext|>",
        config_stops="<|eom|> <|endoftext|>",
        demands="one system message, first; roles as tokens; a hybrid cache",
    ),
    Family(
        "ling",
        "bailing_moe",
        "role_tags",
        "byte-level",
        "<|startoftext|> <|endoftext|> <|role_end|>",
        f"<role> </role> {_THINK} {_CALL}",
        bos="<|startoftext|>",
        eos="<|role_end|>",
        config_stops="<|role_end|>",
        answer=_THOUGHT_ANSWER,
        demands="a switch in words; calls as JSON",
    ),
    Family(
        "zephyr",
        "mistral",
        "role_eos",
        "sentencepiece-prefix",
        "<s> </s>",
        bos="<s>",
        eos="</s>",
        config_stops="</s>",
        base="llama",
        config=_FULL,
        demands="roles as plain text, ended by the stop token",
    ),
    Family(
        "vicuna",
        "llama",
        "upper_labels",
        "sentencepiece-prefix",
        "<s> </s>",
        bos="<s>",
        eos="</s>",
        adds_bos=True,
        config_stops="</s>",
        config=_FULL,
        demands="roles as plain words; turns alternate",
    ),
    Family(
        "rwkv7",
        "rwkv7",
        "paragraphs",
        "byte-level",
        "<|rwkv_tokenizer_end_of_text|>",
        eos="<|rwkv_tokenizer_end_of_text|>",
        config_stops="<|rwkv_tokenizer_end_of_text|>",
        demands="roles as plain words; a recurrent cache",
    ),
    Family(
        "longcat",
        "longcat_flash",
        "rounds",
        "byte-level",
        "<longcat_s> </longcat_s>",
        "<longcat_think> </longcat_think> <longcat_tool_call> </longcat_tool_call> <longcat_arg_key>"
        " </longcat_arg_key> <longcat_arg_value> </longcat_arg_value>",
        bos="<longcat_s>",
        eos="</longcat_s>",
        config_stops="</longcat_s>",
        answer="<longcat_think>\n{thought}\n</longcat_think>\n{answer}",
        demands="numbered rounds; a switch within the question",
    ),
    Family(
        "minicpm5",
        "minicpm",
        "attribute_calls",
        "sentencepiece",
        f"<s> </s> {_IM}",
        _THINK,
        bos="<s>",
        eos="<|im_end|>",
        config_stops="</s> <|im_end|>",
        config={"tie_word_embeddings": False},
        demands="calls as XML with attributes",
    ),
    Family(
        "unigram-chat",
        "llama",
        "chatml",
        "unigram",
        f"<s> </s> {_IM}",
        bos="<s>",
        eos="<|im_end|>",
        config_stops="</s> <|im_end|>",
        config=_FULL,
        demands="a Unigram tokenizer",
    ),
    Family(
        "mamba2-chat",
        "mamba2",
        "chatml",
        "byte-level",
        _IM,
        eos="<|im_end|>",
        config_stops="<|im_end|>",
        config={"num_heads": 8, "head_dim": 8},
        demands="a recurrent cache",
    ),
)


def family(name: str) -> Family:
    """The family of that name."""
    return next(each for each in FAMILIES if each.name == name)
