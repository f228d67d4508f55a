"""Marks that a model does not write exactly, examples in prose, and calls in thoughts, in every syntax."""

from __future__ import annotations

import json
import random
import re

import pytest

from core.answer_format import AnswerFormat, AnswerSplitter, ParsedAnswer, Part, parse_answer
from core.answer_format.calls import closing_tags
from core.answer_format.formats import CHANNELS, ThoughtTags, channels_of
from core.answer_format.parser import joined
from core.answer_format.syntaxes import SYNTAXES, TOLD
from core.events import Tool
from tests.core.answer_format.families import CALLING, THINKING
from tests.core.answer_format.test_families import format_of

TYPES = {"path": {"type": "string"}, "content": {"type": "string"}, "n": {"type": "integer"}}
WRITE = Tool("write_file", "", json.dumps({"type": "object", "properties": TYPES}))
READ = Tool("read_file", "", json.dumps({"type": "object", "properties": {"path": TYPES["path"]}}))
TOOLS = (WRITE, READ)
ARGUMENTS = {"path": "a.py", "content": "one\ntwo", "n": 3}
FIRST, SECOND = ("write_file", ARGUMENTS), ("read_file", {"path": "b"})
THOUGHT = ThoughtTags("<think>", "</think>")


def tagged(head: str, key: str, close: str, tail: str, *, lined: bool = False) -> list[list[str]]:
    """The pieces of both calls; the closing marks begin with “~”."""
    line = "\n" if lined else ""
    return [
        [head.format(name), *(one for name, value in arguments.items()
         for one in (f"\n{key.format(name)}{line}{value}", f"~{line}{close}")), f"~\n{tail}"]
        for name, arguments in (FIRST, SECOND)
    ]  # fmt: skip


def named(head: str, *ends: str) -> list[list[str]]:
    return [[head.format(name), json.dumps(given), *(f"~{end}" for end in ends)] for name, given in CALLS]


CALLS = (FIRST, SECOND)
FUNCTION = tagged("<function={}>", "<parameter={}>", "</parameter>", "</function>", lined=True)
INVOKE = ('invoke name="{}">', 'parameter name="{}">')
OBJECTS = [json.dumps({"name": name, "arguments": given}) for name, given in CALLS]


def apart(begin: str, calls: list[list[str]], end: str) -> list[str]:
    """Each call in a section of its own."""
    return [one for call in calls for one in (f"{begin}\n", *call, f"~\n{end}", "\n")][:-1]


def together(begin: str, calls: list[list[str]], end: str) -> list[str]:
    return [begin, *(one for call in calls for one in ("\n", *call)), *([f"~\n{end}"] if end else [])]


def as_list(begin: str, end: str) -> list[str]:
    return [begin, f"[{OBJECTS[0]}, {OBJECTS[1]}", "~]", *([f"~{end}"] if end else [])]


MM, ARG = "]<]minimax[>[", ("<arg_key>{}</arg_key>\n<arg_value>", "</arg_value>")
WRITTEN: dict[str, list[str]] = {
    "solar": together(
        "",
        named("<|tool_call:begin|>ab<|tool_call:name|>{}<|tool_call:args|>", "<|tool_call:end|>"),
        "<|calls|>",
    ),
    "hunyuan": together(
        "<tool_calls:opensource>",
        tagged(
            "<tool_call:opensource>{}<tool_sep:opensource>",
            "<arg_key:opensource>{}</arg_key:opensource>\n<arg_value:opensource>",
            "</arg_value:opensource>",
            "</tool_call:opensource>",
        ),
        "</tool_calls:opensource>",
    ),
    "mcp": apart(
        "<use_mcp_tool>",
        named("<tool_name>{}</tool_name>\n<arguments>\n", "\n</arguments>"),
        "</use_mcp_tool>",
    ),
    "dsml": together(
        "<｜DSML｜function_calls>",
        tagged(f"<｜DSML｜{INVOKE[0]}", f"<｜DSML｜{INVOKE[1]}", "</｜DSML｜parameter>", "</｜DSML｜invoke>"),
        "</｜DSML｜function_calls>",
    ),
    "deepseek": together(
        "<｜tool▁calls▁begin｜>",
        named("<｜tool▁call▁begin｜>{}<｜tool▁sep｜>", "<｜tool▁call▁end｜>"),
        "<｜tool▁calls▁end｜>",
    ),
    "kimi_k2": together(
        "<|tool_calls_section_begin|>",
        named("<|tool_call_begin|>functions.{}:0<|tool_call_argument_begin|>", "<|tool_call_end|>"),
        "<|tool_calls_section_end|>",
    ),
    "kimi_k3": together(
        "<|open|>tools<|sep|>",
        tagged(
            '<|open|>call tool="{}" index="1"<|sep|>',
            '<|open|>argument key="{}"<|sep|>',
            "<|close|>argument<|sep|>",
            "<|close|>call<|sep|>",
        ),
        "<|close|>tools<|sep|>",
    ),
    "atem": together(
        "<atem:function_calls>",
        tagged(f"<atem:{INVOKE[0]}", f"<atem:{INVOKE[1]}", "</atem:parameter>", "</atem:invoke>"),
        "</atem:function_calls>",
    ),
    "minimax_m2": together(
        "<minimax:tool_call>",
        tagged(f"<{INVOKE[0]}", f"<{INVOKE[1]}", "</parameter>", "</invoke>"),
        "</minimax:tool_call>",
    ),
    "minimax_m3": together(
        f"{MM}<tool_call>",
        [
            [f'{MM}<invoke name="{name}">', *(one for key, value in given.items() for one in
             (f"{MM}<{key}>{value}", f"~{MM}</{key}>")), f"~{MM}</invoke>"]
            for name, given in CALLS
        ],
        f"{MM}</tool_call>",
    ),
    "seed": apart("<seed:tool_call>", FUNCTION, "</seed:tool_call>"),
    "longcat": apart(
        "",
        tagged(
            "<longcat_tool_call>{}",
            "<longcat_arg_key>{}</longcat_arg_key>\n<longcat_arg_value>",
            "</longcat_arg_value>",
            "</longcat_tool_call>",
        ),
        "",
    ),
    "minicpm5": apart("", tagged('<function name="{}">', '<param name="{}">', "</param>", "</function>"), ""),
    "gemma4": [one for call in named("<|tool_call>call:{}", "<tool_call|>") for one in call],
    "function_gemma": [
        one for call in named("<start_function_call>call:{}", "<end_function_call>") for one in call
    ],
    "lfm2": [
        "<|tool_call_start|>[write_file(path='a.py', content='''one\ntwo''', n=3", "~)",
        ", read_file(path='b'", "~)", "~]", "~<|tool_call_end|>",
    ],
    "olmo3": [
        "<function_calls>write_file(path='a.py', content='one\\ntwo', n=3)\nread_file(path='b')",
        "~</function_calls>",
    ],
    "mistral": [one for call in named("[TOOL_CALLS]{}[ARGS]") for one in call],
    "cohere": as_list("<|START_ACTION|>", "<|END_ACTION|>"),
    "command_r": as_list("Action: ```json\n", "\n```"),
    "granite": as_list("<|tool_call|>", "<|/tool_call|>"),
    "function_call": as_list("<function_call>", ""),
    "gigachat": as_list("<|function_call|>", ""),
    "gigachat3": as_list("function call<|role_sep|>\n", ""),
    "apertus": as_list("<|tools_prefix|>", "<|tools_suffix|>"),
    "internlm2": as_list("<|action_start|><|plugin|>", "<|action_end|>"),
    "nemotron": as_list("<TOOLCALL>", "</TOOLCALL>"),
    "functools": as_list("functools", ""),
    "tool_calls": as_list("<tool_calls>", "</tool_calls>"),
    "glm": apart("", tagged("<tool_call>{}", *ARG, "</tool_call>"), ""),
    "function_tags": apart("<tool_call>", FUNCTION, "</tool_call>"),
    "glm4": [one for call in named("<|assistant|>{}\n") for one in call],
    "hermes": apart("<tool_call>", [[f"{one[:-1]}", "~}"] for one in OBJECTS], "</tool_call>"),
    "function_json": [one for call in named("<function={}>", "</function>") for one in call],
    "python_list": ["[write_file(path='a.py', content='one\\ntwo', n=3), read_file(path='b')", "~]"],
    "llama3": as_list("<|python_tag|>", ""),
}  # fmt: skip
IN_HEADERS = {"harmony", "inkling", "functionary"}


def without(pieces: list[str], *missing: int) -> str:
    return "".join(each.removeprefix("~") for at, each in enumerate(pieces) if at not in missing)


def closing(pieces: list[str]) -> list[int]:
    return [at for at, each in enumerate(pieces) if each.startswith("~") and each.strip("~\n")]


def parts(text: str, format: AnswerFormat, step: int = 1) -> list[list[Part]]:
    splitter = AnswerSplitter(format, TOOLS)
    return [*(splitter.add(text[at : at + step]) for at in range(0, len(text), step)), splitter.end()]


def read(text: str, format: AnswerFormat) -> tuple[str, str, list[tuple[str, object]]]:
    """Thought, text and calls, which are the same however the text was cut."""
    whole = parse_answer(text, format, TOOLS)
    for step in (1, 2, 5):
        assert joined([one for each in parts(text, format, step) for one in each]) == whole, step
    for at in random.Random(text).sample(range(len(text)), min(8, len(text))):
        splitter = AnswerSplitter(format, TOOLS)
        assert joined([*splitter.add(text[:at]), *splitter.add(text[at:]), *splitter.end()]) == whole, at
    return whole.thought, whole.text, [(call.name, json.loads(call.arguments)) for call in whole.calls]


PIECES = (
    *(
        "I look.",
        "Done. ",
        "The result",
        " ",
        "\n",
        " \n\n",
        "a",
        "x" * 300,
        "<",
        "</",
        "<|",
        "{",
        "}",
        "[",
        "]",
        "(",
    ),
    *(
        ")",
        '"',
        "`",
        "```",
        "```json\n",
        ">",
        ",",
        ";",
        "\\",
        "~~~",
        "<think>",
        "</think>",
        "<answer>",
        "</answer>",
    ),
    *(OBJECTS[1], "[read_file(path='b')]", "read_file\n{}", "e[ARGS]", "call:read_file{}"),
)
FORMATS = {
    **{f"calls {name}": AnswerFormat(calls=(name,)) for name in WRITTEN},
    **{f"thought {name}": AnswerFormat((THOUGHT,), "thought", "</think>", "", (name,)) for name in WRITTEN},
    **{family.name: format_of(family) for family in (*THINKING, *CALLING)},
    "unknown": AnswerFormat(),
}


def drawn_answer(draw: random.Random, format: AnswerFormat, whole: list[str]) -> str:
    """Whole answers, some of them damaged, marks of `format` and other pieces, one after the other."""
    syntaxes = [each for each in SYNTAXES if each.name in format.calls]
    marks = [mark for each in syntaxes for pair in (*each.marks, *each.loose) for mark in pair if mark]
    marks += [mark for tags in format.thoughts for mark in (tags.begin, tags.end, *tags.hidden)]
    if channels := channels_of(format.channels):
        marks += [*channels.begins, *channels.header_ends, *channels.part_ends]
    pieces: list[str] = []
    for _ in range(draw.randint(1, 8)):
        piece = draw.choice(draw.choice((whole, marks or PIECES, PIECES, PIECES)))
        if len(piece) > 20 and draw.random() < 0.3:
            at = draw.randrange(len(piece))
            piece = piece[:at] + piece[at + draw.randint(1, 9) :]
        pieces.append(piece)
    return "".join(pieces)


@pytest.mark.sweep
@pytest.mark.parametrize("name", FORMATS)
def test_the_cuts_leave_no_trace(name: str) -> None:
    draw, format = random.Random(name), FORMATS[name]
    whole = [without(WRITTEN[call]) for call in format.calls if call in WRITTEN]
    whole += [family.answer for family in (*THINKING, *CALLING) if family.name == name]
    for _ in range(3):
        text = drawn_answer(draw, format, whole or list(PIECES))
        made = [part for each in parts(text, format) for part in each]
        assert "".join(part.text for part in made) == text
        assert joined(made) == parse_answer(text, format, TOOLS)
        for step in draw.sample(range(2, 40), 3):
            assert joined([one for each in parts(text, format, step) for one in each]) == joined(made), step


@pytest.mark.sweep
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_nested_is_read_alike_in_pieces_of_any_size(name: str) -> None:
    """An answer, a call or a thought inside of another one, at any place, also damaged."""
    draw, format = random.Random(f"nested {name}"), FORMATS[name]
    whole = [without(WRITTEN[call]) for call in format.calls if call in WRITTEN]
    whole += [family.answer for family in (*THINKING, *CALLING) if family.name == name]
    whole += [f"{tags.begin}why{tags.end}" for tags in format.thoughts] or list(PIECES)
    for _ in range(2):
        text = draw.choice(whole)
        for _ in range(draw.randint(1, 3)):
            inner = draw.choice(whole) if draw.random() < 0.7 else drawn_answer(draw, format, whole)
            at = draw.randrange(len(text) + 1)
            text = text[:at] + inner + text[at:]
        at_once = parse_answer(text, format, TOOLS)
        for step in (1, draw.randrange(2, 40), len(text)):
            made = [part for each in parts(text, format, step) for part in each]
            assert "".join(part.text for part in made) == text
            assert joined(made) == at_once, (step, text)


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("unknown", "[read_file(path='b')] The result is 5. \nDone.", " The result is 5. \nDone."),
        ("llama3", f"{OBJECTS[1]}{{", "{"),
        ("mistral", '[TOOL_CALLS]read_file[ARGS]{"path": "b"}e[ARGS]', "e[ARGS]"),
        ("glm4", '<|assistant|>read_file\n{"path": "b"}<|assistant|>e\n{', "<|assistant|>e\n{"),
    ],
)
def test_text_after_a_call_is_kept(name: str, text: str, expected: str) -> None:
    assert read(text, FORMATS.get(name) or AnswerFormat(calls=(name,))) == ("", expected, [SECOND])


def test_a_header_that_is_too_long_is_text() -> None:
    text = f"<|channel|>{'x' * 300}<|message|>So."
    assert "x" * 300 in read(text, AnswerFormat(channels="harmony"))[1]


def thinking(name: str, *, opened: bool = True) -> AnswerFormat:
    if opened:
        return AnswerFormat((THOUGHT,), "thought", "</think>", "", (name,))
    return AnswerFormat((THOUGHT,), calls=(name,))


def test_every_syntax_is_tried() -> None:
    assert WRITTEN.keys() | IN_HEADERS == {each.name for each in SYNTAXES}


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRITTEN)
def test_calls_are_read_without_any_one_of_their_closing_marks(name: str) -> None:
    format = AnswerFormat(calls=(name,))
    before = "" if name == "python_list" else "I look.\n"
    for missing in [-1, *closing(WRITTEN[name])]:
        thought, text, calls = read(before + without(WRITTEN[name], missing), format)
        assert (thought, text.strip(), calls) == ("", before.strip(), list(CALLS)), WRITTEN[name][missing]


@pytest.mark.parametrize("name", WRITTEN)
def test_lines_may_end_as_on_windows(name: str) -> None:
    begin = "" if name != "gigachat3" else WRITTEN[name][0]  # its mark has a line end
    written = begin + without(WRITTEN[name]).removeprefix(begin).replace("\n", "\r\n")
    thought, text, calls = read(written, AnswerFormat(calls=(name,)))
    assert (thought, text.strip()) == ("", "")
    # A line end inside a value stays as it was written.
    assert json.loads(json.dumps(calls).replace(r"\r\n", r"\n")) == [[*call] for call in CALLS]


@pytest.mark.parametrize("name", WRITTEN)
def test_tags_may_have_spaces_inside(name: str) -> None:
    """But for the marks of sections, which are searched as they are."""
    syntax = next(each for each in SYNTAXES if each.name == name)
    marks = "".join(mark for pair in (*syntax.marks, *syntax.loose) for mark in pair)
    tag = re.compile(r"<[^<>|｜\[\]]+>")
    spaced = tag.sub(
        lambda found: found[0] if found[0] in marks else f"{found[0][:-1]} >", without(WRITTEN[name])
    )
    spaced = re.sub(r"(<\w*parameter)=", r"\1= ", spaced)
    assert read(spaced, AnswerFormat(calls=(name,))) == ("", "", list(CALLS))


@pytest.mark.parametrize("name", WRITTEN)
def test_braces_may_be_doubled(name: str) -> None:
    """As in a template of Python's `str.format`."""
    written = without(WRITTEN[name]).replace("{", "{{").replace("}", "}}")
    assert read(written, AnswerFormat(calls=(name,))) == ("", "", list(CALLS))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_call_may_end_with_another_closing_tag(name: str) -> None:
    syntax = next(each for each in SYNTAXES if each.name == name)
    pieces = WRITTEN[name]
    last = closing(pieces)[-1:]
    for wrong in sorted(closing_tags(syntax)) if last else ():
        text = without([*pieces[: last[0]], f"\n{wrong}", *pieces[last[0] + 1 :]])
        assert read(text, AnswerFormat(calls=(name,))) == ("", "", list(CALLS)), wrong


@pytest.mark.parametrize("name", [name for name in WRITTEN if "</parameter>" in without(WRITTEN[name])])
def test_an_object_may_take_the_place_of_parameters(name: str) -> None:
    given = iter(CALLS)
    parameters = re.compile(
        r"\n<[^<>]*parameter.*?</[^<>]*parameter>(?=\s*</[^<>]*(?:function|invoke)>)", re.S
    )
    text = parameters.sub(lambda found: f"\n{json.dumps(next(given)[1])}", without(WRITTEN[name]))
    assert "parameter" not in text
    assert read(text, AnswerFormat(calls=(name,))) == ("", "", list(CALLS))


def test_section_marks_of_kimi_may_be_singular() -> None:
    written = without(WRITTEN["kimi_k2"]).replace("_calls_section", "_call_section")
    assert read(f"I look.\n{written}", AnswerFormat(calls=("kimi_k2",))) == ("", "I look.", list(CALLS))


def test_a_nested_thought_leaves_no_tag_in_the_text() -> None:
    format = AnswerFormat((THOUGHT,), "text")
    assert read("<think>a<think>b</think>c</think>d", format) == ("a<think>b", "cd", [])
    assert read("<think>a</think>\n<think>b</think>d", format)[1:] == ("d", [])
    # A tag that a thought only mentions changes nothing.
    assert read("<think>a <think> b</think>c", format) == ("a <think> b", "c", [])


@pytest.mark.parametrize("channels", ["", *(each.name for each in CHANNELS)])
def test_a_thought_may_begin_with_its_tag_again(channels: str) -> None:
    assert read("<think>\n<think>Oh.</think>So.", AnswerFormat(channels=channels)) == ("Oh.", "So.", [])


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRITTEN)
def test_calls_that_end_an_open_thought_are_calls(name: str) -> None:
    written = without(WRITTEN[name])
    expected = ("I write.", "", list(CALLS))
    assert read(f"I write.\n{written}", thinking(name)) == expected
    assert read(f"<think>\nI write.\n{written}\n", thinking(name, opened=False)) == expected
    for missing in closing(WRITTEN[name]):
        assert read(f"I write.\n{without(WRITTEN[name], missing)}", thinking(name)) == expected


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRITTEN)
def test_drafts_of_calls_in_a_closed_thought_stay_there(name: str) -> None:
    written = without(WRITTEN[name]).rstrip()
    for more in ("", "\nNo, the user wants text."):
        thought = f"I write.\n{written}{more}"
        assert read(f"{thought}\n</think>\n\nYes.", thinking(name)) == (thought, "Yes.", [])
    # More of a thought that is cut off shows that the call was a draft.
    assert read(f"I write.\n{written}\nOr not", thinking(name))[2] == []
    text, calls = read(f"I write.\n{written}\n</think>\n{written}", thinking(name))[1:]
    assert (text, calls) == ("", list(CALLS))


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("So you call it:\n\n```\n", "\n```\n\nThat writes the file."),
        ("So you call it:\n```xml\n# in code\n", "\n```"),
        ("You write `", "` for that."),
        ("You write `", "`"),
        ("> ", ""),
        ('The text "', '" is a call.'),
    ],
)
def test_examples_are_text(name: str, before: str, after: str) -> None:
    written = without(WRITTEN[name])
    if not before.endswith("\n"):
        written = written.replace("\n", " ").strip() if name not in ("glm4", "command_r") else written.strip()
    text = f"{before}{written}{after}"
    assert read(text, AnswerFormat(calls=(name,))) == ("", text, [])


@pytest.mark.sweep
@pytest.mark.parametrize("name", WRITTEN)
def test_a_fenced_call_at_the_end_is_one(name: str) -> None:
    text = f"I write.\n```\n{without(WRITTEN[name])}\n```"
    assert read(text, AnswerFormat(calls=(name,))) == ("", "I write.", list(CALLS))


@pytest.mark.parametrize(
    "written",
    [
        f"```json\n{OBJECTS[0]}\n```\n```json\n{OBJECTS[1]}\n```",
        f"```json\n{OBJECTS[0]}\n{OBJECTS[1]}\n```",
        "\n".join(OBJECTS),
        f"[{', '.join(OBJECTS)}]",
        f"<tools>\n{OBJECTS[0]}\n{OBJECTS[1]}\n</tools>",
        f"<tools>\n{OBJECTS[0]}\n</tools>\n<tools>\n{OBJECTS[1]}\n</tools>",
    ],
)
@pytest.mark.parametrize("before", ["", "I look."])
def test_json_in_other_marks_is_a_call_at_the_end(written: str, before: str) -> None:
    format = AnswerFormat(calls=("hermes",))
    assert read(f"{before}\n\n{written}", format)[1:] == (before, list(CALLS))
    undeclared = written.replace("write_file", "other").replace("read_file", "other")
    assert read(f"{before}\n\n{undeclared}", format)[2] == []
    if before:
        text = f"{before}\n\n{written}\n\nThat is how."
        assert "<tools>" in written or read(text, format) == ("", text, [])


@pytest.mark.parametrize("name", ["function_tags", "seed", "glm", "hermes"])
def test_function_tags_need_no_mark_around_them(name: str) -> None:
    calls = "\n".join(without(pieces) for pieces in FUNCTION)
    format = AnswerFormat(calls=(name,))
    for end in ("", "\n</seed:tool_call>" if name == "seed" else "\n</tool_call>"):
        assert read(f"I look.\n\n{calls}{end}", format) == ("", "I look.", list(CALLS))
    prose = "Use <function=write_file> with <parameter=path> in <tool_call> for files."
    assert read(prose, format) == ("", prose, [])


@pytest.mark.parametrize("name", WRITTEN)
def test_prose_about_marks_is_streamed(name: str) -> None:
    """Only so much is held back as may still begin a call."""
    marks = [begin for each in SYNTAXES if each.name == name for begin, _ in (*each.marks, *each.loose)]
    for mark in marks:
        text = f"The marker is {mark} and it begins a call. Then more text follows here."
        held, shown = 0, 0
        for number, made in enumerate(parts(text, AnswerFormat(calls=(name,)))[:-1], 1):
            shown += sum(len(one.text) for one in made if one.kind == "text")
            held = max(held, number - shown)
        assert held <= len(mark) + 12, mark
        assert read(text, AnswerFormat(calls=(name,))) == ("", text, [])


@pytest.mark.parametrize("text", ["Oh.</think>\n\n</think>\n\nHi.", "Oh.\n</think></think>Hi."])
def test_a_second_closing_tag_is_not_shown(text: str) -> None:
    assert read(text, thinking(TOLD)) == ("Oh.", "Hi.", [])
    assert read(text, AnswerFormat((THOUGHT,), "thought", "</think>")) == ("Oh.", "Hi.", [])


def test_a_value_may_hold_what_ends_a_value_elsewhere() -> None:
    format = AnswerFormat(calls=("function_tags",))
    values = ("<parameter=path>", "a\n<parameter=other>\nb", "</function>", "</tool_call>", "x</parameter>y")
    for value in values:
        text = without(["<tool_call>\n", *FUNCTION[0], "\n</tool_call>"]).replace("one\ntwo", value)
        assert read(text, format) == ("", "", [("write_file", ARGUMENTS | {"content": value})])


def test_a_cut_off_call_is_none() -> None:
    for name in ("function_tags", "hermes", "glm"):
        whole = without(WRITTEN[name])
        end = whole.index("one") + 2
        assert parse_answer(whole[:end], AnswerFormat(calls=(name,)), TOOLS) == ParsedAnswer("", whole[:end])


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"r'\d+'", r"\d+"),
        ('"""a\nb"""', "a\nb"),
        ("'a' 'b'", "ab"),
        ("'a'\n  'b'", "ab"),
        (r"'\x41\N{SNOWMAN}\U0001F600'", "A\u2603\U0001f600"),
        (r"'\ud83d\ude00'", "\U0001f600"),
        ("'raw\nline'", "raw\nline"),
        (r"r'(a]) '", "(a]) "),
        ("it's", "it's"),
    ],
)
def test_python_values_are_read_as_python_reads_them(written: str, value: str) -> None:
    format = AnswerFormat(calls=("lfm2",))
    text = f"<|tool_call_start|>[write_file(path='a', content={written}, n=1_000)]<|tool_call_end|>"
    expected = {"path": "a", "content": value, "n": 1000}
    assert read(text, format) == ("", "", [("write_file", expected)])


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 5000])
def test_numbers_that_json_cannot_have_stay_as_they_were_written(number: str) -> None:
    expected = [("read_file", {"path": "b", "x": number})]
    for name, text in (
        (
            "granite",
            f'<|tool_call|>{{"name": "read_file", "args": {{"path": "b", "x": {number}}}}}<|/tool_call|>',
        ),
        ("lfm2", f"<|tool_call_start|>[read_file(path='b', x={number})]<|tool_call_end|>"),
        (
            "function_tags",
            f"<tool_call><function=read_file><parameter=path>b</parameter><parameter=x>{number}</parameter>"
            "</function></tool_call>",
        ),
    ):
        parsed = parse_answer(text, AnswerFormat(calls=(name,)), TOOLS)
        assert [(call.name, json.loads(call.arguments)) for call in parsed.calls] == expected, name
