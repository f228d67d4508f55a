"""Tools in a prompt: given to templates that know them, told in words to those that do not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.answer_format.syntaxes import SYNTAXES
from core.engine.engine import Engine
from core.errors import EmptyPromptError, RequestError
from core.events import Finished, Generate, Message, Tool, ToolCall
from core.models.loader import LoadedModel, load
from core.prompt import format_of, plain, render, unread_calls
from core.settings import Settings, assign
from tests.core.prompt.tokenizer_kinds import tokenizer_of
from tests.core.toy import write_toy_model

KNOWS = (
    "{% if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% for call in m.tool_calls or [] %}{% set f = call.function %}[{{ f.name }} {{ f.arguments.city }}]"
    "{% endfor %}"
    "{% if m.tool_call_id %}({{ m.tool_call_id }}){% endif %}<|end|>{% endfor %}<|assistant|>"
)
WEATHER = Tool("weather", "Of a city.", '{"type": "object", "properties": {"city": {"type": "string"}}}')
CALL = ToolCall("call_1", "weather", '{"city": "Köln"}')
TALK = (
    Message("user", "Rain?"),
    Message("assistant", "", tool_calls=(CALL,)),
    Message("tool", "7 °C", tool_call_id="call_1"),
)


@pytest.fixture
def knowing(tmp_path: Path) -> LoadedModel:
    write_toy_model(tmp_path / "toy")
    config = tmp_path / "toy" / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "chat_template": KNOWS}))
    return load(str(tmp_path / "toy"))


def test_a_template_that_knows_tools_gets_them(knowing: LoadedModel) -> None:
    prompt = render(knowing.tokenizer, TALK, tools=(WEATHER,))
    declared, rest = prompt.text.removeprefix("<|system|>").split("<|end|>", 1)
    (tool,) = json.loads(declared)
    assert tool["function"]["parameters"]["properties"] == {"city": {"type": "string"}}
    assert rest == (
        "<|user|>Rain?<|end|><|assistant|>[weather Köln]<|end|><|tool|>7 °C(call_1)<|end|><|assistant|>"
    )
    assert prompt.changes == ()
    assert prompt.asked == "Rain?"


def test_the_config_of_a_tokenizer_names_the_syntax_that_its_template_does_not_show(
    knowing: LoadedModel,
) -> None:
    tokenizer = knowing.tokenizer
    assert unread_calls(format_of(tokenizer), (WEATHER,))
    for syntax in SYNTAXES:
        for parser in syntax.parsers:
            tokenizer.init_kwargs["tool_parser_type"] = parser
            first = next(each.name for each in SYNTAXES if parser in each.parsers)
            assert format_of(tokenizer).calls == (first,)
            assert unread_calls(format_of(tokenizer), (WEATHER,)) == ()


def test_another_template_gets_them_in_words(toy_engine: Engine) -> None:
    messages = (Message("system", "Be brief."), *TALK)
    prompt = render(toy_engine.loaded.tokenizer, messages, tools=(WEATHER,))
    system, *turns = prompt.text.split("<|end|>")
    assert system.startswith("<|system|>Be brief.\n\nYou can call functions.")
    assert '"name": "weather"' in system
    assert turns == [
        "<|user|>Rain?",
        '<|assistant|><tool_call>\n{"name": "weather", "arguments": {"city": "Köln"}}\n</tool_call>',
        "<|user|><tool_response>\n7 °C\n</tool_response>",
        "<|assistant|>",
    ]
    (change,) = prompt.changes
    assert (change.setting, change.asked, change.used) == (
        "tools",
        "weather",
        "described in the system prompt",
    )


def test_the_answer_says_how_tools_were_told(toy_engine: Engine) -> None:
    chosen = assign(assign(Settings(), "sampling.max_tokens", 2), "drafting.drafter", "off")
    *_, finished = toy_engine.generate(Generate("r", (Message("user", "Rain?"),), chosen, tools=(Tool("t"),)))
    assert isinstance(finished, Finished)
    assert [change.setting for change in finished.effective.changes] == ["tools"]


@pytest.mark.parametrize("wrong", ["{", "[1]", "7", '{"a": ' * 100_000])
def test_what_is_no_object_is_refused_by_name(toy_engine: Engine, wrong: str) -> None:
    tokenizer = toy_engine.loaded.tokenizer
    with pytest.raises(RequestError, match="parameters of the tool “t”"):
        render(tokenizer, (Message("user", "?"),), tools=(Tool("t", "", wrong),))
    talk = (Message("user", "?"), Message("assistant", "", tool_calls=(ToolCall("1", "f", wrong),)), TALK[2])
    with pytest.raises(RequestError, match="arguments of the call of “f”"):
        render(tokenizer, talk)


def test_a_raw_prompt_stands_as_it_is(toy_engine: Engine) -> None:
    chosen = assign(assign(Settings(), "sampling.max_tokens", 2), "drafting.drafter", "off")
    asked = Message("user", "Once upon a time")
    *_, finished = toy_engine.generate(Generate("r", (asked,), chosen, raw=True))
    assert isinstance(finished, Finished)
    assert finished.stats.prompt_tokens == len("Once upon a time")
    assert plain(toy_engine.loaded.tokenizer, "abc").text == "abc"
    with pytest.raises(EmptyPromptError):
        list(toy_engine.generate(Generate("r", (Message("user", ""),), chosen, raw=True)))


@pytest.mark.parametrize(
    ("template", "calls"),
    [
        (KNOWS, ()),
        (KNOWS + "{# <tool_call> #}", ("hermes",)),
        (KNOWS + "{# <tool_call>\n<function= #}", ("function_tags",)),
        (KNOWS + "{# [TOOL_CALLS] #}", ("mistral",)),
        ("{# [TOOL_CALLS] #}{{ messages }}", ("mistral", "hermes")),
    ],
)
def test_a_model_has_the_syntax_of_its_calls(tmp_path: Path, template: str, calls: tuple[str, ...]) -> None:
    """Tools that the system prompt describes are called as it says, or as the template knows."""
    assert load(str(_model(tmp_path, template))).info.format.calls == calls


def _model(tmp_path: Path, template: object) -> Path:
    folder = tmp_path / "toy"
    write_toy_model(folder)
    config = folder / "tokenizer_config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "chat_template": template}))
    return folder


def _changes(folder: Path, tools: tuple[Tool, ...]) -> list[str]:
    engine = Engine()
    engine.load(str(folder))
    chosen = assign(assign(Settings(), "sampling.max_tokens", 2), "drafting.drafter", "off")
    *_, finished = engine.generate(Generate("r", (Message("user", "a"),), chosen, tools=tools))
    assert isinstance(finished, Finished)
    return [change.setting for change in finished.effective.changes]


def test_an_answer_says_that_its_calls_cannot_be_read(tmp_path: Path) -> None:
    unknown = _model(tmp_path / "unknown", KNOWS)
    assert "tools" in _changes(unknown, (Tool("f"),))
    assert "tools" not in _changes(unknown, ())
    assert "tools" not in _changes(_model(tmp_path / "known", KNOWS + "{# <tool_call> #}"), (Tool("f"),))


def test_of_several_templates_the_one_for_tools_says_how_calls_are_written(tmp_path: Path) -> None:
    named = [
        {"name": "default", "template": "{{ messages[0].content }}"},
        {"name": "tool_use", "template": KNOWS + "{# [TOOL_CALLS] #}"},
    ]
    assert load(str(_model(tmp_path, named))).info.format.calls == ("mistral",)


STRICT = (
    "{% set ns = namespace(ids=[]) %}{% for m in messages %}{% if m.role == 'tool' %}"
    "{% if m.tool_call_id not in ns.ids %}{{ raise_exception('A result without its call') }}{% endif %}"
    "[result {{ m.tool_call_id }}]{{ m.content }}{% else %}[{{ m.role }}]{{ m.content }}"
    "{% for c in m.tool_calls or [] %}{% set ns.ids = ns.ids + [c.id] %}[call {{ c.id }}]"
    "{{ c.function.name }}{{ c.function.arguments }}{% endfor %}{% endif %}{% endfor %}"
    "{% for t in tools or [] %}{{ t.function.name }}{% endfor %}"
)


@pytest.mark.parametrize("count", [1, 2])
def test_a_template_that_compares_the_ids_of_calls_and_results_gets_them(count: int) -> None:
    calls = tuple(ToolCall(f"c{number}", "rain", '{"at": 1}') for number in range(count))
    results = [Message("tool", f"wet {each.id}", tool_call_id=each.id) for each in calls]
    talk = [Message("user", "Rain?"), Message("assistant", "", tool_calls=calls), *results]
    text = render(tokenizer_of("byte-level BPE", STRICT), talk, tools=(WEATHER,)).text
    assert text.count("[call ") == text.count("[result ") == count
    assert all(f"[result {each.id}]wet {each.id}" in text for each in calls)
