"""From messages to token ids, through the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence

from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.errors import EmptyPromptError, ModelError
from core.events import Message


def render(tokenizer: TokenizerWrapper, messages: Sequence[Message], system_prompt: str = "") -> list[int]:
    """The prompt's ids, ending where the answer begins.

    A message's attachments come before its own words, each under its name. A tokenizer without
    a chat template gets the plain texts. Raises `EmptyPromptError` if the last message says
    nothing, `ModelError` if the template refuses the conversation.
    """
    if not messages or messages[-1].role != "user" or not _says_something(messages[-1]):
        raise EmptyPromptError("There is nothing to answer: the message is empty.", "Type a question.")
    turns = [{"role": m.role, "content": _content(m)} for m in messages if _says_something(m)]
    if system_prompt.strip():
        turns = [{"role": "system", "content": system_prompt}, *(t for t in turns if t["role"] != "system")]
    if not tokenizer.has_chat_template:
        return [int(i) for i in tokenizer.encode("\n\n".join(t["content"] for t in turns))]
    try:
        ids = tokenizer.apply_chat_template(turns, add_generation_prompt=True)
    except Exception as error:  # templates raise jinja2's and their own kinds
        raise ModelError(
            f"The model's chat template refuses this conversation: {error}.",
            "Some models take no system prompt, or need question and answer to alternate.",
        ) from error
    return [int(i) for i in ids]


def _says_something(message: Message) -> bool:
    return bool(message.content.strip() or any(a.text.strip() for a in message.attachments))


def _content(message: Message) -> str:
    documents = [f"{a.name}:\n\n{a.text.strip()}" for a in message.attachments if a.text.strip()]
    return "\n\n".join([*documents, message.content]) if documents else message.content
