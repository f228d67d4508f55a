"""Answers with thoughts, texts, calls and results in any order, cut into tokens anywhere (hypothesis)."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import strategies as st

from app.session.chats.conversation import Answer
from app.session.tools.calls import CallRecord
from core.answer_format import AnswerFormat
from core.answer_format.formats import ThoughtTags
from core.events import Effective, Finished, Stats, Token
from core.settings import Settings

SECRET, TOOL = "secret", "find"
_TAGS = (ThoughtTags("<think>", "</think>", anywhere=True),)
ANYWHERE = AnswerFormat(_TAGS, calls=("hermes",))
PREFILLED = AnswerFormat(_TAGS, begins="thought", thought_end="</think>", calls=("hermes",))
CHANNELS = AnswerFormat(channels="harmony")
_words = st.sampled_from(("plain words", "# A heading\n\n- item", "`code`", "x < y", "🙂 日本"))
_thoughts = st.sampled_from((f"\n{SECRET} idea\n", f"{SECRET} one\n\n{SECRET} two", "", "\n"))
_call = f'\n<tool_call>\n{{"name": "{TOOL}", "arguments": {{}}}}\n</tool_call>'


def returned(name: str, result: str, after: int) -> CallRecord:
    """A call of `name` that returned `result`."""
    return CallRecord(f"call-{after}", name, tool=name, state="done", result=result, after=after)


@st.composite
def _generation(draw: st.DrawFn, format: AnswerFormat, *, calls: bool) -> str:
    """The source of one generation; the last of its parts may be incomplete."""
    if format == CHANNELS:
        kinds = draw(st.lists(st.booleans(), max_size=4))
        ends = [draw(_thoughts) if is_thought else draw(_words) for is_thought in kinds]
        channel = ["analysis" if is_thought else "final" for is_thought in kinds]
        made = [f"<|start|>assistant<|channel|>{c}<|message|>{t}<|end|>" for c, t in zip(channel, ends)]
        return "".join(made)
    begun = f"{draw(_thoughts)}</think>\n\n" if format.begins == "thought" else ""
    made = []
    for kind in draw(st.lists(st.sampled_from(("thought", "text", "text")), max_size=5)):
        made.append(f"<think>{draw(_thoughts)}</think>" if kind == "thought" else f"\n\n{draw(_words)}\n\n")
    if calls:
        return begun + "".join(made) + _call
    return (
        begun + "".join(made) + draw(st.sampled_from(("", f"<think>{SECRET} that goes on", "</thi", "<th")))
    )


def _cut(draw: st.DrawFn, source: str, first: int) -> list[Token]:
    """Tokens that make `source`; some of them have no text."""
    places = draw(st.lists(st.integers(0, len(source)), max_size=8))
    bounds = [0, *sorted(places), len(source)]
    return [
        Token("r", 7, source[start:end], "normal", first + n, first + n, time_s=first + n)
        for n, (start, end) in enumerate(pairwise(bounds))
    ]


@st.composite
def answers(draw: st.DrawFn, *, calls: bool = True) -> Answer:
    """A finished answer. Its thoughts have the word `SECRET`, its results `returned`."""
    format = draw(st.sampled_from((ANYWHERE, PREFILLED, CHANNELS)))
    count = draw(st.integers(0, 2)) if calls and format.calls else 0
    tokens: list[Token] = []
    records: list[CallRecord] = []
    for number in range(count + 1):
        tokens += _cut(draw, draw(_generation(format, calls=number < count)), len(tokens))
        if number < count:
            content = draw(
                st.sampled_from(("returned", f"returned {number} 日本", "returned <think>x</think>"))
            )
            records += [returned(TOOL, content, len(tokens))] * draw(st.integers(1, 2))
    effective = Effective("toy", "float32", "off", Settings(), format=format)
    finished = Finished("r", "stop", Stats(tokens=len(tokens)), effective)
    tools = (TOOL,) if count else ()
    return Answer(tuple(tokens), "finished", finished, tools=tools, calls=tuple(records))
