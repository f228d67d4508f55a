"""How a model writes its answers: thought tags, channels, and the syntax of its tool calls.

`answer_format` derives an `AnswerFormat` from the chat template's source, the end of the rendered prompt and
the tokenizer's added tokens. The format is plain data, so that it can travel to the window and the server.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format.syntaxes import TOLD, syntaxes_of, syntaxes_of_template

Kind = Literal["thought", "text", "call"]
# Only this many characters at the end of a prompt are searched.
_TAIL_CHARACTERS = 400


class ThoughtTags(Struct, frozen=True):
    """Tags around a thought.

    `anywhere`: the tags are control tokens and count anywhere in an answer; other tags count at its beginning
    only, because an answer may write about them. `hidden`: further marks in such answers, never shown;
    `answer`: the mark before the answer's text. `around`: pairs of tags around the answer's text, which are
    text elsewhere.
    """

    begin: str
    end: str
    anywhere: bool = False
    hidden: tuple[str, ...] = ()
    answer: str = ""
    around: tuple[str, str] | None = None


class HeaderRule(Struct, frozen=True):
    """Kind of the part after a header that matches the regular expression `pattern`; a call's group is
    `name`.
    """

    pattern: str
    kind: Kind


class Channels(Struct, frozen=True):
    """An answer in parts, each with a header that names the kind of the part.

    A header is between one of `begins` and one of `header_ends`; the first rule that matches the header, with
    its end, decides. A part ends at one of `part_ends` or at the next header. `tail`: text at the end of a
    prompt that leaves a header open. `answer`: the header of the answer's text. `keeps_unknown`: text that
    matches no rule is text, not a header.
    """

    name: str
    begins: tuple[str, ...]
    header_ends: tuple[str, ...]
    part_ends: tuple[str, ...]
    rules: tuple[HeaderRule, ...]
    tail: str
    clues: tuple[str, ...]
    answer: str
    keeps_unknown: bool = False


class AnswerFormat(Struct, frozen=True):
    """How a model writes its answers. The default is for unknown models: any known thought tags, no calls.

    `begins`: what the end of the rendered prompt left open; a thought then ends with `thought_end`.
    `channels`: a key of `CHANNELS`; `calls`: keys of `SYNTAXES`.
    """

    thoughts: tuple[ThoughtTags, ...] = ()
    begins: Literal["text", "thought", "header"] = "text"
    thought_end: str = ""
    channels: str = ""
    calls: tuple[str, ...] = ()

    @property
    def thinks(self) -> bool:
        """Whether the model is known to think before it answers."""
        channels = channels_of(self.channels)
        return bool(self.thoughts) or (
            channels is not None and any(rule.kind == "thought" for rule in channels.rules)
        )

    def with_described_calls(self) -> AnswerFormat:
        """The format if the system prompt describes the tools and the syntax of calls."""
        return replace(self, calls=tuple(dict.fromkeys((*self.calls, TOLD))))

    def without_calls(self) -> AnswerFormat:
        """The format for a request without tools."""
        return replace(self, calls=()) if self.calls else self


_COHERE = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")
_SEED = ("<seed:cot_budget_reflect>", "</seed:cot_budget_reflect>")
_APRIEL = ("[END FINAL RESPONSE]",)
_OPEN_THOUGHTS = ("<|begin_of_solution|>", "<|end_of_solution|>")
_KIMI_K3 = (
    "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>",
)  # fmt: skip

# Tags, and other texts in a template that indicate them if neither tag is in it. Those with `around` need a
# template with all of their tags.
_TAGS: tuple[tuple[ThoughtTags, tuple[str, ...]], ...] = (
    (ThoughtTags("<think>", "</think>", around=("<response>", "</response>")), ()),
    (ThoughtTags("<think>", "</think>", around=("<answer>", "</answer>")), ()),
    (ThoughtTags("<think>", "</think>"), ()),
    (ThoughtTags("<thinking>", "</thinking>"), ()),
    (ThoughtTags("<thought>", "</thought>"), ()),
    (ThoughtTags("<reasoning>", "</reasoning>"), ()),
    (ThoughtTags("<reflection>", "</reflection>"), ()),
    (ThoughtTags("<mm:think>", "</mm:think>", True), ()),
    (ThoughtTags("<think:opensource>", "</think:opensource>", True), ("'<think{}>'",)),
    (ThoughtTags("[THINK]", "[/THINK]", True), ()),
    (ThoughtTags("<seed:think>", "</seed:think>", True, _SEED), ()),
    (ThoughtTags("<longcat_think>", "</longcat_think>", True), ()),
    (ThoughtTags("◁think▷", "◁/think▷", True), ()),
    (ThoughtTags("<|think:start|>", "<|think:end|>", True), ()),
    (ThoughtTags("<|START_THINKING|>", "<|END_THINKING|>", True, _COHERE), ()),
    (ThoughtTags("<|channel>thought", "<channel|>", True), ("<|channel>",)),
    (
        ThoughtTags("<|open|>think<|sep|>", "<|close|>think<|sep|>", True, _KIMI_K3, _KIMI_K3[0]),
        ("<|open|>",),
    ),
    (ThoughtTags("<|inner_prefix|>", "<|inner_suffix|>", True), ()),
    (ThoughtTags("<|begin_of_thought|>", "<|end_of_thought|>", True, _OPEN_THOUGHTS), ()),
    (ThoughtTags("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", hidden=_APRIEL), ()),
    (ThoughtTags("Here is my thought process:", "Here is my response:"), ()),
)
# Tags that any model's answer may begin with. Plain words need a template that contains them.
GENERAL_TAGS = tuple(tags for tags, _ in _TAGS if tags.begin[0] in "<[◁" and not (tags.hidden or tags.around))

CHANNELS = (
    Channels(
        "harmony",
        ("<|start|>", "<|channel|>"),
        ("<|message|>",),
        ("<|end|>", "<|return|>", "<|call|>"),
        (
            HeaderRule(r"to=(?:functions\.)?(?P<name>[\w.-]+)", "call"),
            HeaderRule(r"analysis", "thought"),
            HeaderRule(r"", "text"),
        ),
        "<|start|>assistant",
        ("<|channel|>", "<|message|>"),
        "<|channel|>final<|message|>",
    ),
    Channels(
        "muse",
        ("<|start|>",),
        ("<|message|>",),
        ("<|eom|>", "<|eot|>"),
        (HeaderRule(r"to=self\b", "thought"), HeaderRule(r"", "text")),
        "<|start|>assistant",
        ("<|message|>", "<|eom|>", "to=self"),
        " to=user<|message|>",
    ),
    Channels(
        "inkling",
        ("<|message_model|>",),
        ("<|content_thinking|>", "<|content_text|>", "<|content_invoke_tool_json|>"),
        ("<|end_message|>", "<|content_model_end_sampling|>"),
        (
            HeaderRule(r"<\|content_thinking\|>$", "thought"),
            HeaderRule(r"(?P<name>[\w.-]+)\s*<\|content_invoke_tool_json\|>$", "call"),
            HeaderRule(r"", "text"),
        ),
        "<|message_model|>",
        ("<|message_model|>", "<|content_text|>"),
        "<|content_text|>",
    ),
    Channels(
        "solar",
        ("<|begin|>",),
        ("<|think|>", "<|content|>", "<|tool_calls|>"),
        ("<|end|>", "<|flush|>"),
        (HeaderRule(r"<\|think\|>$", "thought"), HeaderRule(r"", "text")),
        "<|begin|>assistant",
        ("<|begin|>", "<|think|>", "<|content|>"),
        "<|content|>",
    ),
    Channels(
        "functionary",
        (">>>",),
        ("\n",),
        (),
        (HeaderRule(r"^all\n$", "text"), HeaderRule(r"^(?P<name>[\w.-]+)\n$", "call")),
        ">>>",
        (">>>all",),
        "all\n",
        True,
    ),
)  # fmt: skip


def channels_of(name: str) -> Channels | None:
    """The entry `name` of `CHANNELS`."""
    return next((each for each in CHANNELS if each.name == name), None)


def channels_in(text: str) -> str:
    """The name of the channels used in the answer `text`; empty without channels."""
    begun = text.lstrip()[:_TAIL_CHARACTERS]
    for each in CHANNELS:
        if begun.startswith(each.begins) and any(end in begun for end in each.header_ends):
            return "" if each.keeps_unknown else each.name
    return ""


def lone_closing_tag(text: str, start: int = 0) -> tuple[int, str] | None:
    """The first closing tag that ends after `start` and that no tag in `text` opens: its offset and text."""
    found: list[tuple[int, str]] = []
    for tags in GENERAL_TAGS:
        at = text.find(tags.end, max(0, start - len(tags.end) + 1))
        if at >= 0 and tags.begin not in text[:at]:
            found.append((at, tags.end))
    return min(found, key=lambda each: each[0] + len(each[1]), default=None)


def answer_opening(format: AnswerFormat, prompt: str) -> str:
    """Text that closes the thought or header that `prompt` leaves open, so that the answer's text follows."""
    if format.begins == "header":
        return next(each.answer for each in CHANNELS if each.name == format.channels)
    if format.begins == "text":
        return ""
    after = next((tags.answer for tags in format.thoughts if tags.end == format.thought_end), "")
    return format.thought_end + ("\n\n" if prompt.endswith("\n") else "") + after


def call_marks(format: AnswerFormat) -> tuple[str, str]:
    """The texts around calls in this format; empty if there are none."""
    return next((marks for each in syntaxes_of(format.calls) for marks in each.marks), ("", ""))


def answer_format(
    template: str,
    rendered_tail: str,
    added_tokens: Collection[str] = (),
    *,
    think_tags: tuple[str, str] | None = None,
    tool_parser: str = "",
) -> AnswerFormat:
    """The format of the answer to a prompt that ends with `rendered_tail`.

    `template`: source of the chat template, empty if unknown. `think_tags`: `think_start` and `think_end` of
    mlx-lm's tokenizer. `tool_parser`: `tool_parser_type` in the tokenizer's config.
    """
    tail = rendered_tail[-_TAIL_CHARACTERS:].rstrip()
    calls = syntaxes_of_template(template, added_tokens, tool_parser)
    channels = next((each for each in CHANNELS if all(clue in template for clue in each.clues)), None)
    if channels is not None:
        begins: Literal["text", "header"] = "header" if tail.endswith(channels.tail) else "text"
        return AnswerFormat((), begins, "", channels.name, calls)
    known: list[ThoughtTags] = []
    for tags, clues in _TAGS:
        begins_so = tail.endswith(tags.begin) or think_tags == (tags.begin, tags.end)
        named = any(clue in template for clue in clues or (tags.begin, tags.end))
        if tags.around:
            begins_so, named = False, all(text in template for text in (tags.end, *tags.around))
        if (begins_so or named) and tags.begin not in {each.begin for each in known}:
            known.append(tags)
    if think_tags is not None and think_tags[0] not in {tags.begin for tags in known}:
        known.append(ThoughtTags(*think_tags, True))
    opened = next((tags for tags in known if tail.endswith(tags.begin)), None)
    if opened is not None:
        return AnswerFormat(tuple(known), "thought", opened.end, "", calls)
    return AnswerFormat(tuple(known), "text", "", "", calls)
