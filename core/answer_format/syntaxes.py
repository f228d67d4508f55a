"""Syntaxes of tool calls, as data.

A section of calls is between two marks. Each call in it has one of the forms in `calls`; the forms of a
section are tried in order.
"""

from __future__ import annotations

import re
from collections.abc import Collection

from core.answer_format.calls import Elements, Json, Named, Python, Syntax, Tagged

_NAME = r"(?P<name>[\w.:/-]+?)"


# Models write spaces inside of tags, and line ends of Windows.
_INVOKE = r"""name\s*=\s*["']?(?P<name>[\w.:/-]+)["']?\s*>"""
_PARAMETER = r"""name\s*=\s*["']?(?P<key>[^"'>]+)["']?\s*"""
_LINE = r"\r?\n?"


def _pairs(head: str, tail: str, before: str = "", after: str = "") -> Tagged:
    """Parameters as pairs of key and value; `before` and `after` are parts of the tags' names."""
    key, value = (f"{before}arg_{part}{after}" for part in ("key", "value"))
    return Tagged(head, rf"<{key}\s*>(?P<key>[^<]+)(?:</{key}\s*>)?\s*<{value}\s*>", rf"</{value}\s*>", tail)


def _invoke(before: str, attributes: str = "", line: str = "") -> Tagged:
    """Anthropic's tags, with `before` in their names; parameters may have more `attributes`."""
    key = rf"<{before}parameter {_PARAMETER}{attributes}>{line}"
    return Tagged(
        rf"<{before}invoke {_INVOKE}", key, rf"{line}</{before}parameter\s*>", rf"</{before}invoke\s*>"
    )


_FUNCTION_TAGS = Tagged(
    rf"<function\s*=\s*{_NAME}\s*>",
    rf"<parameter\s*=(?P<key>[^>]+)>{_LINE}",
    rf"{_LINE}</parameter\s*>",
    r"</function\s*>",
)
_ARG_KEYS = _pairs(
    rf"(?:<tool_call>|^)\s*{_NAME}\s*(?=<arg_key\s*>|</tool_call>|\{{|$)", r"(?:</tool_call>|$)"
)
_FUNCTION_LOOSE = (("<function=", "</function>"),)
_GIGACHAT = ("<|message_sep|>\n\nfunction call<|role_sep|>\n", "function call<|role_sep|>\n")

SYNTAXES = (
    # Calls in channels (`formats.CHANNELS`) have their names in headers, and no sections.
    Syntax("harmony", (), (), (("<|channel|>", "<|message|>"),)),
    Syntax("inkling", (), (), (("<|content_invoke_tool_json|>",),)),
    Syntax("functionary", (), (), ((">>>all",),)),
    Syntax(
        "solar",
        (("<|tool_call:begin|>", "<|calls|>"),),
        (
            Named(
                rf"(?:<\|tool_call:begin\|>[^<\s]*)?<\|tool_call:name\|>\s*{_NAME}\s*<\|tool_call:args\|>\s*"
            ),
        ),
        (("<|tool_call:begin|>",),),
        loose=(("<|tool_call:name|>", "<|tool_call:end|>"),),
    ),
    Syntax(
        "minimax_m3",
        (("]<]minimax[>[<tool_call>", "]<]minimax[>[</tool_call>"),),
        (Elements(rf"\]<\]minimax\[>\[<invoke {_INVOKE}", "]<]minimax[>[", "]<]minimax[>[</invoke>"),),
        (("]<]minimax[>[",),),
        loose=(("]<]minimax[>[<invoke name=", "]<]minimax[>[</invoke>"),),
    ),
    Syntax(
        "hunyuan",
        (
            ("<tool_calls:opensource>", "</tool_calls:opensource>"),
            ("<tool_call:opensource>", "</tool_call:opensource>"),
        ),
        (
            _pairs(
                rf"<tool_call:opensource\s*>\s*{_NAME}\s*<tool_sep:opensource\s*>",
                r"</tool_call:opensource\s*>",
                after=":opensource",
            ),
        ),
        (("<tool_call:opensource>",), ("<tool_call{}>", ":opensource")),
    ),
    Syntax(
        "mcp",
        (("<use_mcp_tool>", "</use_mcp_tool>"),),
        (
            Named(
                r"(?:<server_name>[^<]*</server_name>\s*)?"
                rf"<tool_name\s*>\s*{_NAME}\s*</tool_name\s*>\s*<arguments\s*>\s*"
            ),
        ),
        (("<use_mcp_tool>",),),
        loose=(("<tool_name>", "</arguments>"),),
    ),
    Syntax(
        "dsml",
        (
            ("<｜DSML｜function_calls>", "</｜DSML｜function_calls>"),
            ("<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"),
        ),
        (_invoke("｜DSML｜", r"(?: string=\"(?P<type>\w+)\")?"),),
        (("｜DSML｜",),),
        loose=(("<｜DSML｜invoke name=", "</｜DSML｜invoke>"),),
    ),
    Syntax(
        "deepseek",
        (
            ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
            ("<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>"),
        ),
        (
            Named(
                rf"<｜tool▁call▁begin｜>\s*(?:function<｜tool▁sep｜>)?{_NAME}\s*"
                r"(?:<｜tool▁sep｜>|```(?:json)?)\s*"
            ),
        ),
        (("<｜tool▁calls▁begin｜>",), ("<｜tool▁call▁begin｜>",)),
    ),
    Syntax(
        "kimi_k2",
        (
            ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            ("<|tool_call_begin|>", "<|tool_call_end|>"),
        ),
        (
            Named(
                rf"<\|tool_call_begin\|>\s*(?:functions\.)?{_NAME}(?::\d+)?\s*<\|tool_call_argument_begin\|>"
            ),
        ),
        (("<|tool_call_argument_begin|>",),),
        ("kimi_k2",),
        loose=(("<|tool_call_section_begin|>", "<|tool_call_section_end|>"),),
    ),
    Syntax(
        "kimi_k3",
        (("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),),
        (
            Tagged(
                r"<\|open\|>call tool=\"(?P<name>[^\"]+)\"[^<]*<\|sep\|>",
                r"<\|open\|>argument key=\"(?P<key>[^\"]+)\"(?: type=\"(?P<type>\w+)\")?[^<]*<\|sep\|>",
                r"<\|close\|>argument<\|sep\|>",
                r"<\|close\|>call<\|sep\|>",
            ),
        ),
        (("<|open|>", "<|sep|>"),),
        ("kimi_k3",),
        loose=(("<|open|>call tool=", "<|close|>call<|sep|>"),),
    ),
    Syntax(
        "atem",
        (("<atem:function_calls>", "</atem:function_calls>"),),
        (_invoke("atem:", "[^>]*"),),
        (("<atem:function_calls>",),),
        ("muse_spark",),
        loose=(("<atem:invoke name=", "</atem:invoke>"),),
    ),
    Syntax(
        "minimax_m2",
        (("<minimax:tool_call>", "</minimax:tool_call>"),),
        (_invoke("", line=_LINE),),
        (("<minimax:tool_call>",), ("minimax:tool_call",)),
        ("minimax_m2",),
        loose=(("<invoke name=", "</invoke>"),),
    ),
    Syntax(
        "seed",
        (("<seed:tool_call>", "</seed:tool_call>"),),
        (_FUNCTION_TAGS,),
        (("<seed:tool_call>",), ("seed:tool_call",)),
        loose=_FUNCTION_LOOSE,
    ),
    Syntax(
        "longcat",
        (("<longcat_tool_call>", "</longcat_tool_call>"),),
        (
            _pairs(
                rf"<longcat_tool_call>\s*{_NAME}\s*(?=<longcat_arg_key\s*>|</longcat_tool_call>|\{{|$)",
                r"(?:</longcat_tool_call>|$)",
                "longcat_",
            ),
            Json(),
        ),
        (("<longcat_tool_call>",),),
        ("longcat",),
    ),
    Syntax(
        "minicpm5",
        (("<function name=", "</function>"),),
        (
            Tagged(
                rf"<function {_INVOKE}",
                rf"<param(?:eter)? {_PARAMETER}>",
                r"</param(?:eter)?\s*>",
                r"</function\s*>",
            ),
        ),
        (("<function name=", "<param name="),),
        ("minicpm5",),
    ),
    Syntax(
        "gemma4",
        (("<|tool_call>", "<tool_call|>"),),
        (Named(rf"call:\s*{_NAME}\s*(?=\{{)"),),
        (("<|tool_call>", "<tool_call|>"),),
        ("gemma4",),
        loose=(("call:", ""),),
    ),
    Syntax(
        "function_gemma",
        (("<start_function_call>", "<end_function_call>"),),
        (Named(rf"call:\s*{_NAME}\s*(?=\{{)"),),
        (("<start_function_call>",),),
        ("function_gemma",),
        loose=(("call:", ""),),
    ),
    Syntax(
        "lfm2",
        (("<|tool_call_start|>", "<|tool_call_end|>"),),
        (Python(), Json()),
        (("<|tool_call_start|>",), ("<|tool_list_start|>",)),
        ("pythonic",),
    ),
    Syntax(
        "mistral",
        (("[TOOL_CALLS]", ""),),
        (
            Named(
                r"(?:\[TOOL_CALLS\])?\s*(?P<name>[\w.-]+)\s*(?:\[CALL_ID\][^\[]*)?(?:\[ARGS\]\s*|(?=\{))",
                r"\s*",
            ),
            Json(),
        ),
        (("[TOOL_CALLS]",),),
        ("mistral",),
    ),
    Syntax("cohere", (("<|START_ACTION|>", "<|END_ACTION|>"),), (Json(),), (("<|START_ACTION|>",),)),
    Syntax(
        "command_r",
        (("Action:\n```json", "```"), ("Action: ```json", "```")),
        (Json(),),
        (("Action:", "```json", "tool_name"),),
    ),
    Syntax("granite", (("<|tool_call|>", "<|/tool_call|>"),), (Json(),), (("<|tool_call|>",),)),
    Syntax("function_call", (("<function_call>", ""),), (Json(),), (("<function_call>",),)),
    Syntax("gigachat", (("<|function_call|>", ""),), (Json(),), (("<|function_call|>",),)),
    Syntax("gigachat3", tuple((mark, "") for mark in _GIGACHAT), (Json(),), (("function call", "role_sep"),)),
    Syntax("apertus", (("<|tools_prefix|>", "<|tools_suffix|>"),), (Json(),), (("<|tools_prefix|>",),)),
    Syntax(
        "internlm2", (("<|action_start|><|plugin|>", "<|action_end|>"),), (Json(),), (("<|action_start|>",),)
    ),
    Syntax("nemotron", (("<TOOLCALL>", "</TOOLCALL>"),), (Json(),), (("<TOOLCALL>",),)),
    Syntax("functools", (("functools", ""),), (Json(),), (("functools[",),), (), "json"),
    Syntax("tool_calls", (("<tool_calls>", "</tool_calls>"),), (Json(),), (("<tool_calls>",),)),
    Syntax(
        "glm",
        (("<tool_call>", "</tool_call>"),),
        (_ARG_KEYS, _FUNCTION_TAGS, Json()),
        (("<arg_key>",),),
        ("glm47", "laguna"),
        loose=_FUNCTION_LOOSE,
    ),
    Syntax(
        "function_tags",
        (("<tool_call>", "</tool_call>"),),
        (_FUNCTION_TAGS, Json()),
        (("<tool_call>", "<function="),),
        ("qwen3_coder",),
        loose=(*_FUNCTION_LOOSE, ("<tools>", "</tools>")),
    ),
    Syntax(
        "glm4",
        (("<|assistant|>", ""),),
        (Named(rf"(?:^|<\|assistant\|>)\s*{_NAME}\r?\n\s*(?=\{{)", r"\s*"),),
        (("[gMASK]", "<|observation|>"), ("[gMASK]", "'observation'")),
        (),
        "named",
    ),
    Syntax(
        "hermes",
        (("<tool_call>", "</tool_call>"),),
        (Json(), _FUNCTION_TAGS),
        (("<tool_call>",),),
        ("json_tools",),
        loose=(*_FUNCTION_LOOSE, ("<tools>", "</tools>")),
    ),
    Syntax(
        "function_json",
        (("<function=", "</function>"),),
        (Named(rf"<function\s*=\s*{_NAME}\s*>\s*"),),
        (("<function=",),),
    ),
    Syntax(
        "olmo3", (("<function_calls>", "</function_calls>"),), (Python(), Json()), (("<function_calls>",),)
    ),
    Syntax(
        "python_list",
        (("<|python_start|>", "<|python_end|>"),),
        (Python(),),
        (("[func_name1(",), ("[func_name(",)),
        (),
        "python",
    ),
    Syntax(
        "llama3",
        (("<|python_tag|>", ""), ("<|python_start|>", "<|python_end|>")),
        (Json(),),
        (("<|python_tag|>",), ('"parameters": ',)),
        (),
        "json",
    ),
)


# Answers that begin with a list of Python calls of declared functions are calls, whatever the template says.
PYTHON_LIST = next(each for each in SYNTAXES if each.name == "python_list")

# The syntax described to a model whose template does not declare tools (`core.prompt.conversation`).
TOLD = "hermes"


def declares_tools(template: str) -> bool:
    """Whether a chat template declares tools to the model."""
    return bool(re.search(r"\btools\b", template))


def syntaxes_of(names: Collection[str]) -> list[Syntax]:
    """The entries of `SYNTAXES` with these names."""
    return [each for each in SYNTAXES if each.name in names]


def syntaxes_of_template(
    template: str, added_tokens: Collection[str] = (), tool_parser: str = ""
) -> tuple[str, ...]:
    """Names of the syntaxes in which a model with this chat template writes calls; empty if unknown."""
    found = _named_by(template) or _named_by(added_tokens)
    found = found or next((each.name for each in SYNTAXES if tool_parser and tool_parser in each.parsers), "")
    if not declares_tools(template):
        return (found, TOLD) if found and found != TOLD else (TOLD,)
    return (found,) if found else ()


def _named_by(texts: Collection[str]) -> str:
    """The first syntax whose clues are in a template or among tokens."""
    named = (each.name for each in SYNTAXES if any(all(c in texts for c in clues) for clues in each.clues))
    return next(named, "")
