"""Conversations that a chat template does not accept as they are: adapted, with every word in the prompt."""

from __future__ import annotations

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.errors import ChatTemplateError, EmptyPromptError
from core.events import Message, Tool, ToolCall
from core.prompt import Prompt, render
from tests.core.prompt.tokenizer_kinds import tokenizer_of

END = "{% if add_generation_prompt %}<A>{% endif %}"
TURNS = "{% for m in messages %}{{ turn(m) }}{% endfor %}" + END
TURN = "{% macro turn(m) %}<{{ m.role[0] | upper }}>{{ m.content }}{% endmacro %}"
PLAIN = TURN + TURNS
SYSTEM_FIRST = TURN + (
    "{% for m in messages %}{% if m.role == 'system' and not loop.first %}{{ raise_exception('Only first') }}"
    "{% endif %}{{ turn(m) }}{% endfor %}" + END
)
ONE_SYSTEM = TURN + (
    "{% if messages[0].role == 'system' %}<S>{{ messages[0].content }}{% endif %}"
    "{% for m in messages if m.role != 'system' %}{{ turn(m) }}{% endfor %}" + END
)
HOISTED = TURN + (
    "{% for m in messages if m.role == 'system' %}<S>{{ m.content }}{% endfor %}"
    "{% for m in messages if m.role != 'system' %}{{ turn(m) }}{% endfor %}" + END
)
IN_TURN = (
    "{% set rest = messages[1:] if messages[0].role == 'system' else messages %}"
    "{% for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Questions and answers must alternate') }}{% endif %}{% endfor %}"
)
ALTERNATE = IN_TURN + PLAIN
NO_SYSTEM = (
    "{% if messages[0].role == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
    + IN_TURN
    + PLAIN
)
PARTS = (
    "{% for m in messages %}<{{ m.role[0] | upper }}>{% for part in m.content %}"
    "{% if part.type == 'text' %}{{ part.text }}{% elif part.type == 'image' %}<image>{% endif %}{% endfor %}"
    "{% endfor %}" + END
)
# Questions are lists of parts, and all else is text.
MIXED = (
    "{% for m in messages %}<{{ m.role[0] | upper }}>{% if m.role == 'user' %}{{ m.content[0].text }}"
    "{% else %}{{ m.content | trim }}{% endif %}{% endfor %}" + END
)
TEMPLATES = {
    "plain": PLAIN,
    "system first": SYSTEM_FIRST,
    "one system": ONE_SYSTEM,
    "hoisted": HOISTED,
    "alternate": ALTERNATE,
    "no system": NO_SYSTEM,
    "parts": PARTS,
    "mixed": MIXED,
}


def system(text: str) -> Message:
    return Message("system", text)


def user(text: str) -> Message:
    return Message("user", text)


def answer(text: str, *calls: ToolCall) -> Message:
    return Message("assistant", text, tool_calls=calls)


def rendered(
    template: str, *messages: Message, system_prompt: str = "", tools: tuple[Tool, ...] = ()
) -> Prompt:
    return render(tokenizer(template), messages, system_prompt, tools)


def tokenizer(template: str) -> TokenizerWrapper:
    return tokenizer_of("byte-level BPE", template)


CALLS = (ToolCall("a", "f", '{"x": 1}'), ToolCall("b", "f", '{"x": 2}'))
SHAPES = {
    "question": (user("q1"),),
    "system prompt": (system("s1"), user("q1")),
    "two system prompts": (system("s1"), system("s2"), user("q1")),
    "second turn": (user("q1"), answer("a1"), user("q2")),
    "later system": (system("s1"), user("q1"), answer("a1"), system("s2"), user("q2")),
    "last system": (user("q1"), answer("a1"), user("q2"), system("s2")),
    "system after an answer": (user("q1"), answer("a1"), system("s2")),
    "empty answer": (user("q1"), answer(""), user("q2")),
    "two questions": (user("q1"), user("q2"), answer("a1"), user("q3")),
    "two answers": (user("q1"), answer("a1"), answer("a2"), user("q2")),
    "answer first": (answer("a1"), user("q1")),
    "system alone": (system("s1"),),
    "two systems alone": (system("s1"), system("s2")),
    "begun answer": (user("q1"), answer("a1 is")),
    "begun answer after a system": (system("s1"), user("q1"), answer("a1"), user("q2"), answer("a2")),
    "results": (user("q1"), answer("", *CALLS), Message("tool", "r1", tool_call_id="a"),
                Message("tool", "r2", tool_call_id="b")),
    "results and a question": (system("s1"), user("q1"), answer("t1", CALLS[0]),
                               Message("tool", "r1", tool_call_id="a"), user("q2")),
}  # fmt: skip


@pytest.mark.parametrize("template", TEMPLATES)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_conversation_is_rendered_with_all_its_words(template: str, shape: str) -> None:
    messages = SHAPES[shape]
    prompt = rendered(TEMPLATES[template], *messages)
    for message in messages:
        assert prompt.text.count(message.content) >= 1 or not message.content
    if messages[-1].role == "assistant":
        assert prompt.text.endswith(messages[-1].content)
    else:
        assert prompt.text.endswith("<A>")
    if "later" not in shape and "system" not in shape and "result" not in shape:
        words = [message.content for message in messages if message.content]
        assert sorted(words, key=prompt.text.index) == words
    for call in (call for message in messages for call in message.tool_calls):
        assert call.name in prompt.text


@pytest.mark.parametrize(
    "shape",
    # An empty answer is left out, a begun one is continued, and the template supports no calls.
    [shape for shape in SHAPES if not shape.startswith(("empty", "begun", "results"))],
)
def test_what_a_template_accepts_is_rendered_as_it_is(shape: str) -> None:
    messages = SHAPES[shape]
    turns = [{"role": message.role, "content": message.content} for message in messages]
    made = tokenizer(PLAIN)
    prompt = render(made, messages)
    expected = made._tokenizer.apply_chat_template(turns, add_generation_prompt=True, return_dict=False)
    assert prompt.ids == expected
    assert prompt.changes == ()


@pytest.mark.parametrize("template", ["system first", "hoisted", "one system", "alternate"])
def test_a_later_system_message_leaves_the_prompt_before_it_as_it_was(template: str) -> None:
    before = rendered(TEMPLATES[template], system("s1"), user("q1"), answer("a1"), user("q2"))
    prompt = rendered(TEMPLATES[template], system("s1"), user("q1"), answer("a1"), system("s2"), user("q2"))
    assert prompt.text == "<S>s1<U>q1<A>a1<U>s2\n\nq2<A>"
    assert prompt.text.startswith(before.text.split("q2")[0])
    assert prompt.asked == "q2"
    assert [change.setting for change in prompt.changes] == ["messages"]


def test_a_system_prompt_becomes_part_of_the_first_question() -> None:
    prompt = rendered(NO_SYSTEM, system("s2"), user("q1"), answer("a1"), user("q2"), system_prompt="s1")
    assert prompt.text == "<U>s1\n\nq1<A>a1<U>q2<A>"
    assert [(change.setting, change.used) for change in prompt.changes] == [
        ("chat.system_prompt", "part of the first question")
    ]
    assert [prompt.text[region.start : region.end] for region in prompt.regions] == ["s1", "q1", "a1", "q2"]
    assert prompt.regions[0].kind == "system"


def test_joined_turns_change_no_meaning() -> None:
    prompt = rendered(ALTERNATE, system("s1"), system("s2"), user("q1"), answer(" "), user("q2"))
    assert prompt.text == "<S>s1\n\ns2<U>q1\n\nq2<A>"
    assert prompt.changes == ()


def test_a_content_whose_parts_are_read_is_given_in_parts() -> None:
    prompt = rendered(PARTS, system("s1"), user("q1"), answer("a1"), user("q2"))
    assert prompt.text == "<S>s1<U>q1<A>a1<U>q2<A>"
    assert prompt.asked == "q2"


CALLING = TURN + (
    "{{ tools | tojson if tools }}{% for m in messages %}{{ turn(m) }}"
    "{% if m.tool_calls and m.tool_calls | length > 1 %}{{ raise_exception('One call at once') }}{% endif %}"
    "{% for call in m.tool_calls or [] %}"
    "{% if call.id | length != 9 %}{{ raise_exception('Ids have 9 characters') }}{% endif %}"
    "[{{ call.id }} {{ call.function.name + ' ' + call.function.arguments }}]{% endfor %}"
    "{% if m.role == 'tool' %}({{ m.tool_call_id }}){% endif %}{% endfor %}" + END
)


def test_calls_have_the_form_that_the_template_accepts() -> None:
    tools = (Tool("f"),)
    prompt = rendered(CALLING, *SHAPES["results"], tools=tools)
    calls = prompt.text.split("<U>")[1].replace('{"x": 1}', "ONE").replace('{"x": 2}', "TWO")
    first, second = (calls.split("]<T>")[at].split("[")[1][:9] for at in (0, 1))
    assert first != second
    assert calls == f"q1<A>[{first} f ONE]<T>r1({first})<A>[{second} f TWO]<T>r2({second})<A>"
    assert prompt.changes == ()


TOOLS_OF_SYSTEM = TURN + (
    "{% for m in messages %}{{ turn(m) }}{{ tools | tojson if tools and m.role == 'system' }}{% endfor %}"
    + END
)
SYSTEM_NOT_EMPTY = "{% if messages[0].content == '' %}{{ raise_exception('Empty') }}{% endif %}"


def test_tools_are_native_where_the_template_declares_them_in_a_system_message() -> None:
    for template in (TOOLS_OF_SYSTEM, SYSTEM_NOT_EMPTY + TOOLS_OF_SYSTEM):
        given = rendered(template, user("q1"), system_prompt="Be kind.", tools=(Tool("f"),))
        assert given.text.startswith('<S>Be kind.[{"type": "function"')
        assert given.text.endswith("<U>q1<A>")
        assert given.changes == ()
    added = rendered(TOOLS_OF_SYSTEM, user("q1"), tools=(Tool("f"),))
    assert added.text == given.text.replace("Be kind.", "")
    assert added.changes == ()
    told = rendered(SYSTEM_NOT_EMPTY + TOOLS_OF_SYSTEM, user("q1"), tools=(Tool("f"),))
    assert told.text.startswith("<S>You can call functions.")
    assert [change.setting for change in told.changes] == ["tools"]


NUMBERED = (
    "{{ '<S>' ~ tools | tojson if tools }}{% set all = namespace(calls=0) %}{% for m in messages %}"
    "<{{ m.role[0] | upper }}>{{ '(' ~ m.tool_call_id ~ ')' if m.role == 'tool' }}{{ m.content }}"
    "{% for call in m.tool_calls or [] %}[ID {{ call.function.arguments | tojson }}]"
    "{% set all.calls = all.calls + 1 %}{% endfor %}{% endfor %}" + END
)
IDS = {
    "given": ("{{ call.id }}", "f:0", "f:1", "g:2"),
    "written, by conversation": (
        "{{ 'functions.' ~ call.function.name ~ ':' ~ all.calls }}", "f:0", "f:1", "g:2"
    ),
    "written, by message": (
        "{{ 'functions.' ~ call.function.name ~ ':' ~ loop.index0 }}", "f:0", "f:0", "g:1"
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", IDS)
def test_ids_name_the_function_where_the_template_expects_that(kind: str) -> None:
    written, *ids = IDS[kind]
    one, two, three = (f"functions.{id}" for id in ids)
    # Clients may give the same id again.
    first, again, other = ToolCall("a", "f", "{}"), ToolCall("a", "f", "{}"), ToolCall("b", "g", "{}")
    prompt = rendered(
        NUMBERED.replace("ID", written),
        user("q1"),
        answer("", first),
        Message("tool", "r1", tool_call_id="a"),
        answer("a1", again, other),
        Message("tool", "r2", tool_call_id="b"),
        Message("tool", "r3", tool_call_id="a"),
        tools=(Tool("f"), Tool("g")),
    )
    assert prompt.text.partition("<U>")[2] == (
        f"q1<A>[{one} {{}}]<T>({one})r1<A>a1[{two} {{}}][{three} {{}}]<T>({three})r2<T>({two})r3<A>"
    )
    assert prompt.changes == ()


THINKING = TURN + (
    "{{ '<S>' ~ tools | tojson if tools }}"
    "{% set last = namespace(user=0) %}{% for m in messages %}{% if m.role == 'user' %}"
    "{% set last.user = loop.index0 %}{% endif %}{% endfor %}"
    "{% for m in messages %}"
    "{% if m.FIELD and loop.index0 > last.user %}<think>{{ m.FIELD }}</think>{% endif %}"
    "{{ turn(m) }}{% for call in m.tool_calls or [] %}[{{ call.function | tojson }}]{% endfor %}{% endfor %}"
    + END
)


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "thinking"])
def test_thoughts_are_kept_in_tool_loops_where_the_template_keeps_them(field: str) -> None:
    template = THINKING.replace("FIELD", field)
    result = Message("tool", "r1", tool_call_id="a")
    past = "<think>\nlong thought\n</think>\n\n"
    loop = (user("q1"), answer(f"{past}t1", CALLS[0]), result)
    kept = rendered(template, *loop, tools=(Tool("f"),)).text
    assert "<U>q1<think>long thought</think><A>t1[" in kept
    apart = Message("assistant", "t1", tool_calls=CALLS[:1], thought="long thought")
    assert rendered(template, loop[0], apart, result, tools=(Tool("f"),)).text == kept
    dropped = rendered(template, *loop, answer(f"{past}a1"), user("q2"), tools=(Tool("f"),)).text
    assert "thought" not in dropped
    assert "<A>a1<U>q2<A>" in dropped
    plain = rendered(template, user("q1"), answer(f"{past}  a1 \n"), user("q2"))
    assert "thought" not in plain.text


def test_a_thought_in_a_begun_answer_is_continued() -> None:
    opening = THINKING.replace("FIELD", "thinking").replace("<A>", "<A><think>\n")
    assert rendered(opening, user("q1"), answer("<think>\nlong th")).text == "<U>q1<A><think>\nlong th"
    closed = rendered(PLAIN + "{# <think></think> #}", user("q1"), answer("<think>\nlong</think>a1 is"))
    assert closed.text == "<U>q1<A>a1 is"


HARMONY = (
    "{# <|channel|> <|message|> #}{% for m in messages %}{% if '<|channel|>' in m.content %}"
    "{{ raise_exception('Pass the thought apart') }}{% endif %}"
    "<|start|>{{ m.role }}<|message|>{{ m.content }}"
    "<|end|>{% endfor %}{% if add_generation_prompt %}<|start|>assistant{% endif %}"
)


def test_an_earlier_answer_in_channels_is_given_without_them() -> None:
    past = "<|channel|>analysis<|message|>A greeting.<|end|><|start|>assistant<|channel|>final<|message|>Hi!"
    prompt = rendered(HARMONY, user("q1"), answer(past), user("q2"))
    assert prompt.text == (
        "<|start|>user<|message|>q1<|end|><|start|>assistant<|message|>Hi!<|end|>"
        "<|start|>user<|message|>q2<|end|><|start|>assistant"
    )
    plain = rendered(HARMONY, user("q1"), answer("Hi!"), user("q2"))
    assert plain.text == prompt.text


def test_what_cannot_be_rendered_is_refused_in_true_words() -> None:
    with pytest.raises(ChatTemplateError, match="refuses this conversation: Never"):
        rendered("{{ raise_exception('Never.') }}" + PLAIN, user("q1"))
    with pytest.raises(ChatTemplateError, match="leaves out the user message “Where is everyone”"):
        rendered("{% for m in messages %}<{{ m.role }}>{% endfor %}" + END, user("Where is everyone"))
    with pytest.raises(EmptyPromptError, match="The last message is empty"):
        rendered(PLAIN, user("q1"), answer("a1"), user(" "))
    with pytest.raises(EmptyPromptError, match="The conversation is empty"):
        rendered(PLAIN)


def test_probes_are_rendered_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from core.prompt.template import TemplateRenderer

    rendered(ALTERNATE, *SHAPES["later system"])
    renders: list[str] = []
    inner = TemplateRenderer.render

    def counted(self: TemplateRenderer, name: str, template: str, *rest: object) -> object:
        renders.append(template)
        return inner(self, name, template, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(TemplateRenderer, "render", counted)
    rendered(ALTERNATE, *SHAPES["later system"])
    assert len(renders) == 2  # with marks, too
