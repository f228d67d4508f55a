"""One family's trial: rendering, stopping, thoughts, calls and reuse, each against its reference.

A column is `yes`, `-` where the family has nothing of the kind, or a sentence that says what differs. A fault
is a difference that nobody explained; `limits` are differences that the template or the cache brings about.
"""

from __future__ import annotations

import json
import re
import string
from pathlib import Path
from typing import Any

from msgspec import Struct

from tests.zoo.conversations import (
    ANSWER,
    ARGUMENTS,
    FOLLOW,
    QUESTION,
    SHAPES,
    SYSTEM,
    THOUGHT,
    TOOL_SHAPES,
    TYPED_ARGUMENTS,
    Turn,
    assistant,
    call,
    calls,
    user,
    words,
)
from tests.zoo.families import Family
from tests.zoo.product import Answer, Product
from tests.zoo.reference import Reference, is_in, weather_tools

COLUMNS = ("renders", "stops", "thinks", "calls", "reuses")
YES, NONE = "yes", "-"
LEAST_REUSE = 0.95
_LONG = " ".join(
    f"Note {number}: the {word} of the house is kept in order."
    for number, word in enumerate(
        ["roof", "cellar", "garden", "kitchen", "stair", "door", "window", "wall", "gate", "path"] * 2
    )
)


class Outcome(Struct):
    """What was found of one family. `cells` by column; `counts` are figures for the summary."""

    name: str
    cells: dict[str, str] = {}
    faults: list[str] = []
    counts: dict[str, float] = {}


def try_family(family: Family, folder: Path, *, stops: bool = True) -> Outcome:
    """Run every column of the family whose model folder was written to `folder`; stop tokens if `stops`."""
    outcome = Outcome(family.name)
    reference, product = Reference(folder), Product(folder)
    try:
        _renders(family, reference, product, outcome)
        _controls(family, reference, product, outcome)
        _thinks(family, reference, product, outcome)
        _calls(family, reference, product, outcome)
        if stops:
            _stops(reference, product, outcome)
        else:
            outcome.cells["stops"] = NONE
        _reuses(reference, product, outcome)
    finally:
        product.close()
    return outcome


def _renders(family: Family, reference: Reference, product: Product, outcome: Outcome) -> None:
    """Every shape gives the ids that transformers gives for one form of the conversation."""
    found: list[str] = []
    raw = reference.thought_text(SHAPES["single"], ANSWER, THOUGHT, family.answer) or ""
    for name, turns in SHAPES.items():
        found += _shape(name, turns, None, raw, reference, product, outcome)
    if _declares(reference):
        for name, turns in TOOL_SHAPES.items():
            found += _shape(name, turns, weather_tools(), raw, reference, product, outcome)
    document = f"{_LONG}\n\nThe end."
    attached = [user(_attached(document))]
    found += _shape("attachment", attached, None, raw, reference, product, outcome, document)
    _note(outcome, "renders", found)


def _attached(document: str) -> str:
    """The question with `document` attached as notes.txt, as the prompt has it."""
    return f'<document name="notes.txt">\n{document}\n</document>\n\n{QUESTION}'


def _shape(
    name: str,
    turns: list[Turn],
    tools: list[dict[str, Any]] | None,
    raw: str,
    reference: Reference,
    product: Product,
    outcome: Outcome,
    document: str = "",
) -> list[str]:
    outcome.counts["shapes"] = outcome.counts.get("shapes", 0) + 1
    renderings = reference.renderings(turns, tools, raw)
    first = next(renderings, None)
    try:
        asked = [user(QUESTION)] if document else turns
        prompt = product.prompt(asked, weather_tools() if tools else None, document, raw)
    except Exception as error:  # refusals, and whatever else it raises
        if first is None:
            return []
        outcome.counts["refused"] = outcome.counts.get("refused", 0) + 1
        return [f"{name}: refused ({type(error).__name__}: {str(error)[:120]})"]
    if first is None:
        return []
    lost = [said for said in words(turns) if not is_in(said, prompt.text)]
    if lost:
        outcome.counts["lost"] = outcome.counts.get("lost", 0) + 1
        return [f"{name}: left out {lost[0][:40]!r}"]
    if any("tool_calls" in turn for turn in turns) and not _shows_calls(reference):
        return []  # calls are put in words
    shown = _without_ids(prompt.text)
    if any(_without_ids(text) == shown for text, _, _ in (first, *renderings)):
        same = reference.tokenizer.encode(prompt.text, add_special_tokens=False) == prompt.ids
        return [] if same else [f"{name}: other tokens for the same text"]
    outcome.counts["other text"] = outcome.counts.get("other text", 0) + 1
    return [f"{name}: no form of the conversation renders so"]


def _without_ids(text: str) -> str:
    """`text` without the ids of calls, which Draftlight may choose."""
    text = re.sub(r"\b[0-9a-f]{9}\b", "", text)
    return re.sub(r'("(?:id|call_id|tool_call_id)": ?)"[^"]*"', r"\1", text)


def _shows_calls(reference: Reference) -> bool:
    return _written_call(reference, TOOL_SHAPES["functions"], calls(call(ARGUMENTS))) is not None


def _controls(family: Family, reference: Reference, product: Product, outcome: Outcome) -> None:
    """Added tokens in a question, a document or a system prompt stay text."""
    hostile = "".join(each.text for each in family.tokens)
    control = {reference.tokenizer.convert_tokens_to_ids(each.text) for each in family.tokens}
    found: list[str] = []
    shapes: dict[str, tuple[list[Turn], str]] = {
        "a question": ([user(f"{QUESTION} {{}} Say.")], ""),
        "a document": ([user(QUESTION)], "Hello {} there."),
        "a system prompt": ([{"role": "system", "content": "Be {} kind."}, user(QUESTION)], ""),
    }
    for name, (turns, document) in shapes.items():
        found += [
            f"{name}: {said}" for said in _hostile(turns, document, hostile, control, reference, product)
        ]
    if found:
        outcome.counts["control tokens"] = 1
    _note(outcome, "renders", found)


def _hostile(
    turns: list[Turn], document: str, hostile: str, control: set[int], reference: Reference, product: Product
) -> list[str]:
    """What the text `hostile` brings about where `turns` and `document` have {}."""

    def filled(text: str) -> list[Turn]:
        return [{**turn, "content": turn["content"].replace("{}", text)} for turn in turns]

    try:
        plain = product.prompt(filled("quite plain"), None, document.replace("{}", "quite plain"))
        marked = product.prompt(filled(hostile), None, document.replace("{}", hostile))
    except Exception:  # a refusal, which `_renders` counts
        return []
    found: list[str] = []
    count = [sum(token in control for token in prompt.ids) for prompt in (plain, marked)]
    if count[0] != count[1]:
        found.append(f"{count[1] - count[0]} control tokens arise from contents")
    attached = _attached(document.replace("{}", hostile))
    rendered = reference.render([user(attached)] if document else filled(hostile)) or hostile
    if not is_in(hostile, marked.text) and is_in(hostile, rendered):
        found.append("contents were changed")
    return found


def _thinks(family: Family, reference: Reference, product: Product, outcome: Outcome) -> None:
    """A thought that the model writes is told apart, whoever opened it."""
    conversation = SHAPES["single"]
    if reference.render(conversation) is None:
        outcome.cells["thinks"] = NONE
        return
    variables = reference.variables_of(conversation, None, product.prompt(conversation).text)
    written = reference.thought_text(conversation, ANSWER, THOUGHT, family.answer, variables)
    if written is None:
        outcome.cells["thinks"] = NONE
        return
    outcome.counts["thinking"] = 1
    read = product.read(conversation, None, reference.cut(written), _encoder(reference))
    found = []
    if (read.thought.strip(), read.text.strip()) != (THOUGHT, ANSWER):
        found.append(f"{written!r} gives the thought {read.thought!r} and the text {read.text!r}")
    else:
        outcome.counts["thoughts"] = 1
    _note(outcome, "thinks", found)


def _calls(family: Family, reference: Reference, product: Product, outcome: Outcome) -> None:
    """Calls that the template renders are read again, by name and types."""
    if not _declares(reference):
        outcome.cells["calls"] = NONE
        return
    conversation = TOOL_SHAPES["functions"]
    if not _shows_calls(reference):
        conversation = conversation[1:]  # a template may move the system prompt to the last question
    variables = reference.variables_of(
        conversation, weather_tools(), product.prompt(conversation, weather_tools()).text
    )
    found: list[str] = []
    shown = 0
    answers = {
        "one call": calls(call(ARGUMENTS)),
        "types": calls(call(TYPED_ARGUMENTS)),
        "two calls": calls(call(ARGUMENTS), call({"start": "Vienna", "end": "Graz"}, "find_route", 2)),
    }
    for name, answer in answers.items():
        written = _written_call(reference, conversation, answer, variables)
        if written is None:
            continue
        shown += 1
        expected = [
            (each["function"]["name"], each["function"]["arguments"]) for each in answer["tool_calls"]
        ]
        read = product.read(conversation, weather_tools(), written, _encoder(reference))
        if _json(list(read.calls)) != _json(expected):
            found.append(f"{name}: {written!r} gives {read.calls or read.text!r}")
        elif read.text.strip():
            found.append(f"{name}: the text {read.text!r} is left over")
    if not shown:
        outcome.cells["calls"] = NONE  # the template declares functions and never shows a call
        return
    outcome.counts["declaring"] = 1
    if not found:
        outcome.counts["calling"] = 1
    _note(outcome, "calls", found)


def _written_call(
    reference: Reference, conversation: list[Turn], answer: Turn, variables: dict[str, Any] | None = None
) -> str | None:
    """The text of the calls; templates take arguments as objects, as text, or ids of their own length."""
    names = [each["function"]["name"] for each in answer["tool_calls"]]
    for text in (False, True):
        for short in (False, "nine", "kimi"):
            changed: list[dict[str, Any]] = []
            for at, each in enumerate(answer["tool_calls"]):
                arguments = each["function"]["arguments"]
                function = {**each["function"], "arguments": _json(arguments) if text else arguments}
                id = {False: each["id"], "nine": each["id"][-9:], "kimi": f"functions.{names[at]}:{at}"}[
                    short
                ]
                if short != "kimi" and "tool_call_argument_begin" in str(reference.tokenizer.chat_template):
                    id = f"functions.{names[at]}:{at}"
                changed.append({**each, "id": id, "function": function})
            written = reference.written(
                conversation, {**answer, "tool_calls": changed}, weather_tools(), variables
            )
            if written and all(name in written for name in names):
                return written
    return None


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _declares(reference: Reference) -> bool:
    """Whether the template tells the model of functions."""
    text = reference.render(TOOL_SHAPES["functions"], weather_tools())
    return text is not None and "get_weather" in text and "find_route" in text


def _stops(reference: Reference, product: Product, outcome: Outcome) -> None:
    """Every stop id of mlx-lm and of the folder's files ends an answer."""
    expected, own = reference.stop_ids(), product.stop_ids
    found: list[str] = []
    name = reference.tokenizer.convert_ids_to_tokens
    if missing := expected - own:
        found.append(f"not among the stop tokens: {', '.join(name(id) for id in sorted(missing))}")
    turns = [user(QUESTION)]
    for stop in sorted(expected):
        answer = product.answer(turns, 3, {stop: 1e4})
        if answer.finished.reason != "stop" or answer.text:
            found.append(f"{name(stop)} does not end an answer ({answer.finished.reason})")
    if extra := own - expected:
        outcome.counts["more stops"] = len(extra)
    if found:
        outcome.counts["endless"] = 1
    _note(outcome, "stops", found)


def _reuses(reference: Reference, product: Product, outcome: Outcome) -> None:
    """A second turn reads again only what is new, and gives what a cold start gives."""
    letters = set(string.ascii_letters)
    vocabulary = reference.tokenizer.get_vocab()
    bias = {id: 1e3 for piece, id in vocabulary.items() if piece and set(piece) <= letters}
    first = [{"role": "system", "content": SYSTEM}, user(f"{_LONG} {QUESTION}")]
    product.forget()
    if reference.render(first) is None:
        first = first[1:]
        if reference.render(first) is None:
            outcome.cells["reuses"] = NONE
            return
    prompt = product.prompt(first)
    begun = product.answer(first, 12, bias)
    second = [*first, assistant(begun.text.strip() or ANSWER), user(FOLLOW)]
    if next(reference.renderings(second, None, ""), None) is None:
        outcome.cells["reuses"] = NONE  # the template accepts no second turn
        return
    follow = product.prompt(second)
    answer = product.answer(second, 12, bias)
    product.forget()
    cold = product.answer(second, 12, bias)
    found: list[str] = []
    if answer.ids != cold.ids:
        found.append("the second turn differs from a cold start's")
    shared = next(
        (at for at, pair in enumerate(zip(prompt.ids, follow.ids)) if pair[0] != pair[1]), len(prompt.ids)
    )
    reused = min(answer.finished.stats.reused_tokens, len(prompt.ids))
    outcome.counts |= {"reused": reused, "first turn": len(prompt.ids), "shared": shared}
    if reused < LEAST_REUSE * len(prompt.ids):
        outcome.counts["reread"] = 1
        told = f"{reused} of {len(prompt.ids)} tokens reused, {shared} are the same{_reasons(answer)}"
        if shared < LEAST_REUSE * len(prompt.ids) and reused >= LEAST_REUSE * shared:
            outcome.cells["reuses"] = f"{told}: the template changes the earlier text in a second turn"
        else:
            found.append(told)
    _note(outcome, "reuses", found)


def _reasons(answer: Answer) -> str:
    reasons = [each.reason for each in answer.finished.effective.changes if each.setting == "prefix cache"]
    return f": {reasons[0]}" if reasons else ""


def _encoder(reference: Reference) -> Any:
    return lambda text: reference.tokenizer.encode(text, add_special_tokens=False)


def _note(outcome: Outcome, column: str, found: list[str]) -> None:
    before = outcome.cells.get(column, YES)
    texts = ([] if before == YES else [before]) + found
    outcome.cells[column] = "; ".join(texts) or YES
    outcome.faults += [f"{column}: {text}" for text in found]
