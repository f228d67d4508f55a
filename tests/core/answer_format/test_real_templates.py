"""Formats found for the chat templates of public models, if they are present.

What a template writes for an answer with a thought and calls is that model's own syntax: the turn, cut out of
a rendered conversation, must be parsed back.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, NoReturn

import pytest
from jinja2 import TemplateError
from jinja2.sandbox import SandboxedEnvironment

from core.answer_format import answer_format, parse_answer, parse_past_answer
from core.events import Tool
from core.prompt.probe import variables_of
from core.settings.request import ThinkingMode
from tests.thinned import thinned

FOLDER = Path(__file__).parents[4] / "shared" / "data" / "chat-templates"
TEMPLATES = sorted(FOLDER.glob("*.jinja"))
pytestmark = pytest.mark.skipif(not TEMPLATES, reason="the chat templates of public models are not present")

# The other templates are sweeps.
FEW = TEMPLATES[::4]
each_template = pytest.mark.parametrize(
    "path", thinned(TEMPLATES, FEW), ids=[each.stem for each in TEMPLATES]
)

THOUGHT, TEXT = "THOUGHTWORDS", "TEXTWORDS"
ARGUMENTS = {"city": "Zürich", "days": 3, "note": "CALLNOTE", "more": {"a": [1, True]}, "tags": ["x", "y"]}
CALLS = [("get_weather", ARGUMENTS), ("search", {"q": "two"})]
STRING, TYPES = {"type": "string", "description": "d"}, {"days": "integer", "more": "object", "tags": "array"}
FIRST = {
    key: STRING | {"type": TYPES.get(key, "string"), "additionalProperties": STRING} for key in ARGUMENTS
}
DECLARED = [
    {
        "type": "function",
        "function": {
            "name": name,
            "description": "d",
            "parameters": {"type": "object", "properties": properties, "required": [*properties]},
        },
    }
    for name, properties in (("get_weather", FIRST), ("search", {"q": STRING}))
]
TOOLS = [Tool(each["function"]["name"], "", json.dumps(each["function"]["parameters"])) for each in DECLARED]  # type: ignore[index]
NAMED: dict[str, Any] = {
    "bos_token": "<BOS>", "eos_token": "<EOS>", "pad_token": "<PAD>", "unk_token": "<UNK>", "documents": None,
    "functions": json.dumps(DECLARED), "datetime": "now",
}  # fmt: skip
# Tokens at which an answer ends; they are not part of it.
STOP = re.compile(
    r"(?:\s*(?:<\|[^|<>]*(?:end|eot|eom|call|return|END_OF_TURN|message_sep|tool_response|CHATBOT)[^|<>]*\|?>"
    r"|<(?:EOS|seed:eos|end_of_sentence|/assistant|turn\||SPECIAL_12)>|\[e~\[|<｜end▁of▁sentence｜>"
    r"|<\|(?:start_header_id|assistant|START_OF_TURN_TOKEN)\|>.*))+\s*$",
    re.S,
)
# Of these the template writes no calls, or refuses tools.
NO_CALLS = {
    "HuggingFaceTB-SmolLM3-3B",
    "LFM2.5-Instruct",
    "MiroThinker",
    "ibm-granite-granite-3.3-2B-Instruct",
    "smollm3",
}


def _to_json(value: Any, **given: Any) -> str:
    plain = list(value) if hasattr(value, "__next__") else value
    return json.dumps(plain, **{"ensure_ascii": False, **given})


def _refuse(message: str) -> NoReturn:
    raise TemplateError(message)


def rendered(source: str, messages: list[dict[str, Any]], **named: Any) -> str:
    """Lists may be changed here: some templates need that, and renderers of other engines allow it."""
    environment = SandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols"]
    )
    environment.filters["tojson"] = _to_json
    environment.globals |= {"raise_exception": _refuse, "strftime_now": lambda form: "today"}
    # Marks what a model wrote, for training.
    source = re.sub(r"\bendgeneration\b(?=\s*-?%\})", "endif", source)
    source = re.sub(r"(?<=%)(-?)\s*generation\b(?=\s*-?%\})", r"\1 if true", source)
    return environment.from_string(source).render(NAMED | named | {"messages": messages})


def answered(source: str, answer: dict[str, Any], **named: Any) -> tuple[str, str]:
    """The prompt, and the answer as the template writes it behind what it shares with the prompt."""
    before: list[dict[str, Any]] = [{"role": "user", "content": "USERWORDS"}]
    named |= variables_of(source, "on")
    prompt = rendered(source, before, add_generation_prompt=True, **named)
    whole = rendered(source, [*before, answer], add_generation_prompt=False, **named)
    shared = next((n for n, (a, b) in enumerate(zip(prompt, whole)) if a != b), min(len(prompt), len(whole)))
    mark = whole.rfind("<", 0, shared)
    if mark >= 0 and ">" not in whole[mark:shared]:
        shared = mark
    return prompt, STOP.sub("", whole[shared:])


def calling(source: str) -> tuple[str, str] | None:
    """A rendered answer that calls, in the first shape that the template accepts."""
    for text in (TEXT, "", None):
        for as_text in (False, True):
            calls = [
                {
                    "id": f"call1234{number}",
                    "type": "function",
                    "function": {"name": name, "arguments": json.dumps(given) if as_text else given},
                }
                for number, (name, given) in enumerate(CALLS)
            ]
            # Templates for one call at a time refuse two.
            for some in (calls, calls[:1]):
                answer: dict[str, Any] = {"role": "assistant", "content": text, "tool_calls": some}
                try:
                    prompt, written = answered(
                        source, answer | {"reasoning_content": THOUGHT}, tools=DECLARED
                    )
                except (TemplateError, TypeError):
                    continue
                if "CALLNOTE" in written:
                    return prompt, written
    return None


@pytest.mark.sweep
@each_template
def test_calls_are_parsed_back(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if "tool_calls" not in source:
        return
    found = calling(source)
    assert (found is None) == (path.stem in NO_CALLS)
    if found is None:
        assert answer_format(source, "").calls
        return
    prompt, written = found
    format = answer_format(source, prompt)
    parse = parse_answer if THOUGHT in written else parse_past_answer
    parsed = parse(written, format, TOOLS)
    calls = [(call.name, json.loads(call.arguments)) for call in parsed.calls]
    assert calls == (CALLS if "two" in written else CALLS[:1])
    assert parsed.thought == (THOUGHT if THOUGHT in written else "")
    # One template ends the turn between text and calls.
    assert parsed.text.strip().removesuffix("\n<SPECIAL_12>\n<SPECIAL_11>Assistant") in ("", TEXT)


@each_template
def test_every_template_that_declares_tools_has_a_syntax(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    if re.search(r"\btools\b", source) and path.stem != "LFM2.5-Instruct":  # its tokens name the syntax
        assert answer_format(source, "").calls
    assert answer_format(source, "", ["<|tool_call_start|>"]).calls


@each_template
def test_thoughts_are_parsed_back(path: Path) -> None:
    """Whatever the template writes between a question and the answer, in each mode."""
    source = path.read_text(encoding="utf-8")
    spoken = re.sub(r"\{#.*?#\}", "", source, flags=re.S)
    modes: tuple[ThinkingMode, ...] = ("auto", "on", "off")
    for variables in (variables_of(source, mode) for mode in modes):
        prompt = rendered(source, [{"role": "user", "content": "?"}], tools=[],
                          add_generation_prompt=True, **variables)  # fmt: skip
        format = answer_format(source, prompt)
        tags = r"</think|\[THINK\]|THINKING\|>|channel\||inner_prefix|'<\|open\|>'|content_thinking|to=self"
        assert format.thinks == bool(re.search(rf"{tags}|think_end_token|my reasoning steps", spoken))
        if not format.thinks or format.channels:
            continue
        begin, end = next(
            (tags.begin, tags.end)
            for tags in format.thoughts
            if format.begins == "text" or tags.end == format.thought_end
        )
        begin = "" if format.begins == "thought" else begin
        parsed = parse_answer(f"{begin}\n{THOUGHT}\n{end}\n\n{TEXT}", format)
        assert (parsed.thought, parsed.text) == (THOUGHT, TEXT)
