"""How a model writes its answers: thought tags, channels, and the syntax of its tool calls.

`answer_format` derives an `AnswerFormat` from the chat template's source, the end of the rendered prompt and
the tokenizer's added tokens. The format is plain data, so that it can travel to the window and the server.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from core.answer_format.syntaxes import syntax_of_template

Kind = Literal["thought", "text", "call"]
# Longer ends of a prompt are not searched.
_TAIL_CHARACTERS = 400


class ThoughtTags(Struct, frozen=True):
    """Text that begins and ends a thought.

    `anywhere`: the tags are control tokens and count anywhere in an answer; others count at its beginning
    only, because an answer may write about them. `hidden` are further marks of such an answer, never shown.
    """

    begin: str
    end: str
    anywhere: bool = False
    hidden: tuple[str, ...] = ()


class HeaderRule(Struct, frozen=True):
    """What follows a header that matches the regular expression `pattern`; a call's group is `name`."""

    pattern: str
    kind: Kind


class Channels(Struct, frozen=True):
    """An answer in parts, each with a header that says what the part is.

    A header begins after one of `begins` and ends with one of `header_ends`; the first rule that matches the
    header, that end included, decides. The part ends at one of `part_ends` or at the next header.
    `tail`: the prompt ends with this text where it leaves a header open. `keeps_unknown`: what no rule
    matches is text and not a header.
    """

    name: str
    begins: tuple[str, ...]
    header_ends: tuple[str, ...]
    part_ends: tuple[str, ...]
    rules: tuple[HeaderRule, ...]
    tail: str
    clues: tuple[str, ...]
    keeps_unknown: bool = False


class AnswerFormat(Struct, frozen=True):
    """How a model writes its answers. The default is an unknown model's: any known thought tags, no calls.

    `begins`: what the end of the rendered prompt left open; a thought then ends with `thought_end`.
    `channels` and `calls` name entries of `CHANNELS` and of `SYNTAXES`; empty where a model has neither.
    """

    thoughts: tuple[ThoughtTags, ...] = ()
    begins: Literal["text", "thought", "header"] = "text"
    thought_end: str = ""
    channels: str = ""
    calls: str = ""

    def without_calls(self) -> AnswerFormat:
        """The format of an answer to a request that declares no tools."""
        return replace(self, calls="") if self.calls else self


_COHERE = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>", "<|END_TEXT|>")
_KIMI_K3 = (
    "<|open|>response<|sep|>", "<|close|>response<|sep|>", "<|close|>message<|sep|>", "<|end_of_msg|>",
)  # fmt: skip

THOUGHT_TAGS = (
    ThoughtTags("<think>", "</think>"),
    ThoughtTags("<thinking>", "</thinking>"),
    ThoughtTags("<thought>", "</thought>"),
    ThoughtTags("<reasoning>", "</reasoning>"),
    ThoughtTags("<reflection>", "</reflection>"),
    ThoughtTags("[THINK]", "[/THINK]", True),
    ThoughtTags("<seed:think>", "</seed:think>", True),
    ThoughtTags("<longcat_think>", "</longcat_think>", True),
    ThoughtTags("◁think▷", "◁/think▷", True),
    ThoughtTags("<|think:start|>", "<|think:end|>", True),
    ThoughtTags("<|START_THINKING|>", "<|END_THINKING|>", True, _COHERE),
    ThoughtTags("<|channel>thought", "<channel|>", True),
    ThoughtTags("<|open|>think<|sep|>", "<|close|>think<|sep|>", True, _KIMI_K3),
    ThoughtTags("<|inner_prefix|>", "<|inner_suffix|>", True),
    ThoughtTags(
        "<|begin_of_thought|>", "<|end_of_thought|>", True, ("<|begin_of_solution|>", "<|end_of_solution|>")
    ),
    ThoughtTags("Here are my reasoning steps:", "[BEGIN FINAL RESPONSE]", hidden=("[END FINAL RESPONSE]",)),
    ThoughtTags("Here is my thought process:", "Here is my response:"),
)

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
    ),
    Channels(
        "muse",
        ("<|start|>",),
        ("<|message|>",),
        ("<|eom|>", "<|eot|>"),
        (HeaderRule(r"to=self\b", "thought"), HeaderRule(r"", "text")),
        "<|start|>assistant",
        ("<|message|>", "<|eom|>", "to=self"),
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
    ),
    Channels(
        "functionary",
        (">>>",),
        ("\n",),
        (),
        (HeaderRule(r"^all\n$", "text"), HeaderRule(r"^(?P<name>[\w.-]+)\n$", "call")),
        ">>>",
        (">>>all",),
        True,
    ),
)  # fmt: skip


# Tags that the answer of any model may begin with. Those of plain words need a template that names them.
GENERAL_TAGS = tuple(tags for tags in THOUGHT_TAGS if tags.begin[0] in "<[◁")


def channels_of(name: str) -> Channels | None:
    """The entry `name` of `CHANNELS`."""
    return next((each for each in CHANNELS if each.name == name), None)


def answer_format(
    template: str,
    rendered_tail: str,
    added_tokens: Collection[str] = (),
    *,
    think_tags: tuple[str, str] | None = None,
    tool_parser: str = "",
) -> AnswerFormat:
    """The format of the answer to a prompt that ends with `rendered_tail`.

    `template` is the chat template's source, empty if unknown. `think_tags` are `think_start` and `think_end`
    of mlx-lm's tokenizer, `tool_parser` is the `tool_parser_type` of the tokenizer's config.
    """
    tail = rendered_tail[-_TAIL_CHARACTERS:].rstrip()
    calls = syntax_of_template(template, added_tokens, tool_parser)
    channels = next((each for each in CHANNELS if all(clue in template for clue in each.clues)), None)
    if channels is not None:
        begins: Literal["text", "header"] = "header" if tail.endswith(channels.tail) else "text"
        return AnswerFormat((), begins, "", channels.name, calls)
    known = [tags for tags in THOUGHT_TAGS if _mentions(template, tags) or tail.endswith(tags.begin)]
    if think_tags is not None and think_tags[0] not in {tags.begin for tags in known}:
        known += [t for t in THOUGHT_TAGS if t.begin == think_tags[0]] or [ThoughtTags(*think_tags, True)]
    opened = next((tags for tags in known if tail.endswith(tags.begin)), None)
    if opened is not None:
        return AnswerFormat(tuple(known), "thought", opened.end, "", calls)
    return AnswerFormat(tuple(known), "text", "", "", calls)


def _mentions(template: str, tags: ThoughtTags) -> bool:
    return tags.begin in template or tags.end in template
