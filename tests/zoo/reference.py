"""What transformers renders and mlx-lm stops on: the references that Draftlight is compared with.

Nothing of Draftlight is imported here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mlx_lm.utils import load_config, load_tokenizer

from tests.zoo.conversations import THOUGHT, TOOLS, Turn, assistant, forms, words

# Tags that begin a thought, and what ends it.
THOUGHT_TAGS = {
    "<think>": "</think>",
    "[THINK]": "[/THINK]",
    "<seed:think>": "</seed:think>",
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<longcat_think>": "</longcat_think>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|open|>think<|sep|>": "<|close|>think<|sep|>",
    "<|channel>thought\n": "<channel|>",
    "Here are my reasoning steps:\n": "[BEGIN FINAL RESPONSE]",
}
# What callers may pass to a template beside the conversation.
_THINKS: dict[str, Any] = {"enable_thinking": True, "thinking": True}
_KEEPS: dict[str, Any] = {
    "preserve_thinking": True,
    "clear_thinking": False,
    "truncate_history_thinking": False,
}
VARIABLES: tuple[dict[str, Any], ...] = (
    {"enable_thinking": True},
    {},
    _THINKS,
    {"enable_thinking": False},
    {"enable_thinking": True, **_KEEPS},
    {**_THINKS, **_KEEPS},
)

# A template that takes no list writes it as one.
_LIST = re.compile(r"""['"]type['"]: ['"]thinking['"]""")


class Reference:
    """transformers' tokenizer of a model folder, as mlx-lm loads it."""

    def __init__(self, folder: Path) -> None:
        config = load_config(folder)
        self.wrapper = load_tokenizer(folder, eos_token_ids=config.get("eos_token_id"))
        self.tokenizer: Any = self.wrapper._tokenizer
        self._folder = folder

    def render(
        self,
        turns: list[Turn],
        tools: list[dict[str, Any]] | None = None,
        variables: dict[str, Any] | None = None,
        *,
        answers: bool = True,
        tokenize: bool = False,
        sanitize: bool = False,
    ) -> Any:
        """The text or the ids; None if the template refuses the conversation."""
        named = dict(VARIABLES[0] if variables is None else variables)
        try:
            return self.tokenizer.apply_chat_template(
                turns,
                tools=tools,
                add_generation_prompt=answers,
                tokenize=tokenize,
                return_dict=False,
                sanitize_control_tokens=sanitize,
                **named,
            )
        except Exception:  # templates raise jinja2's and every other kind
            return None

    def renderings(
        self, conversation: list[Turn], tools: list[dict[str, Any]] | None, written: str
    ) -> Iterator[tuple[str, list[Turn], dict[str, Any]]]:
        """Texts of every form that the template takes without losing a word of people or the system."""
        needed = words(conversation)
        for turns in forms(conversation, written):
            for variables in VARIABLES:
                text = self.render(turns, tools, variables)
                if text is None:
                    break
                if all(is_in(said, text) for said in needed):
                    yield text, turns, variables

    def variables_of(
        self, turns: list[Turn], tools: list[dict[str, Any]] | None, text: str
    ) -> dict[str, Any]:
        """The variables with which the template gives `text`; the usual ones if none do."""
        found = (each for each in VARIABLES if self.render(turns, tools, each) == text)
        return next(found, VARIABLES[0])

    def stop_ids(self) -> frozenset[int]:
        """mlx-lm's, with those that generation_config.json and a `text_config` name."""
        found = set(self.wrapper.eos_token_ids)
        for name in ("config.json", "generation_config.json"):
            path = self._folder / name
            named = json.loads(path.read_text()) if path.is_file() else {}
            for part in (named, named.get("text_config") or {}):
                stops = part.get("eos_token_id")
                found |= set(stops if isinstance(stops, list) else [] if stops is None else [stops])
        return frozenset(found)

    def written(
        self,
        conversation: list[Turn],
        answer: Turn,
        tools: list[dict[str, Any]] | None,
        variables: dict[str, Any] | None = None,
    ) -> str | None:
        """What the model would have written to be rendered as `answer`; None if the template hides it.

        A thought that the prompt opened and the template dropped is put in front.
        """
        prompt = self.render(conversation, tools, variables)
        whole = self.render([*conversation, answer], tools, variables, answers=False)
        if prompt is None or whole is None:
            return None
        opener = opened(prompt)
        base = prompt.rstrip()[: -len(opener.rstrip())] if opener else prompt
        if not whole.startswith(base):
            base = base.rstrip()
            if not whole.startswith(base):
                return None
        text = whole[len(base) :]
        if opener:
            closer = THOUGHT_TAGS[opener]
            if text.lstrip().startswith(opener.rstrip()):
                text = text.lstrip()[len(opener.rstrip()) :]
            elif closer not in text or text.lstrip().startswith(closer):
                text = f"{THOUGHT}\n{closer}\n\n" + text.lstrip().removeprefix(closer).lstrip()
        return self.cut(text)

    def cut(self, text: str) -> str:
        """`text` up to its first stop token."""
        stops = [self.tokenizer.convert_ids_to_tokens(stop) for stop in self.stop_ids()]
        at = min((place for stop in stops if stop and (place := text.find(stop)) >= 0), default=len(text))
        return text[:at]

    def thought_text(
        self,
        conversation: list[Turn],
        answer: str,
        thought: str,
        form: str,
        variables: dict[str, Any] | None = None,
    ) -> str | None:
        """What the model writes when it thinks `thought` and says `answer`; None: it does not think.

        `form` is the family's own way, with {thought} and {answer}; else what the template makes of a
        thought, else mlx-lm's tags.
        """
        prompt = self.render(conversation, None, variables)
        if prompt is None:
            return None
        opener = opened(prompt)
        if not form:
            turn = assistant(answer)
            for named in (
                {"reasoning_content": thought, "reasoning": thought, "thinking": thought},
                {"content": [{"type": "thinking", "thinking": thought}, {"type": "text", "text": answer}]},
            ):
                shown = self.written(conversation, {**turn, **named}, None, variables)
                if (
                    shown is not None
                    and is_in(thought, shown)
                    and is_in(answer, shown)
                    and not _LIST.search(shown)
                ):
                    return shown
            tags = self._tags(opener)
            if tags is None:
                return None
            form = f"{tags[0]}\n{{thought}}\n{tags[1]}\n\n{{answer}}"
        text = form.format(thought=thought, answer=answer)
        return text[len(opener) :] if opener and text.startswith(opener) else text

    def _tags(self, opener: str) -> tuple[str, str] | None:
        if opener:
            return opener, THOUGHT_TAGS[opener]
        if self.wrapper.has_thinking:
            return self.wrapper.think_start, self.wrapper.think_end
        template = str(self.tokenizer.get_chat_template())
        return next(
            ((tag, end) for tag, end in THOUGHT_TAGS.items() if tag in template and end in template), None
        )


def opened(prompt: str) -> str:
    """The tag with which the prompt opens a thought; empty if it opens none."""
    stripped = prompt.rstrip()
    return next((tag for tag in THOUGHT_TAGS if stripped.endswith(tag.rstrip())), "")


def is_in(said: str, text: str) -> bool:
    """Whether `text` holds the words, as they are or within JSON."""
    return said in text or said.strip() in text or json.dumps(said)[1:-1] in text


def weather_tools() -> list[dict[str, Any]]:
    """The functions, each time anew: a template may change them."""
    return json.loads(json.dumps(TOOLS))  # type: ignore[no-any-return]
