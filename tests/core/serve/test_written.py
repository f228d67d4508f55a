"""What was thought before an answer, in the shape of each API."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from msgspec.structs import replace

from core.answer_format import answer_format
from core.events import Effective, Event, Finished, Generate, Likely, Message, PrefillProgress, Stats, Token
from core.serve import answering
from core.serve.answering import Prepared
from core.serve.chat import ChatWriter, chat_request
from core.serve.http import EventLine
from core.serve.messages import MessageWriter, message_request
from core.serve.responses import ResponseWriter, response_request
from core.settings import Settings
from tests.core.serve.served import question

TEXT = "<think>\nOne and one.\n</think>\n\nTwo."
THOUGHT, SAID = "One and one.", "Two."


def tokens(text: str = TEXT, logprob: float | None = None) -> list[Token]:
    """A letter each; the stop token has no text."""
    return [
        Token("r", at, one, "normal", at + 1, at, logprob=logprob, likely=(Likely(at, one, -1.0),))
        for at, one in enumerate([*text, ""])
    ]


def finished() -> Finished:
    stats = Stats(prompt_tokens=5, tokens=len(TEXT) + 1)
    return Finished("r", "stop", stats, Effective("toy", "float32", "off", Settings()))


def chat_writer(**fields: Any) -> ChatWriter:
    return ChatWriter(chat_request(question(**fields)), Prepared(Generate("chatcmpl-1", ()), "toy"))


def message_writer(**fields: Any) -> MessageWriter:
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 90, **fields}
    return MessageWriter(message_request(body), Prepared(Generate("msg_1", ()), "toy"))


def response_writer(**fields: Any) -> ResponseWriter:
    asked = response_request({"input": "hello", **fields})
    generate = Generate("resp_1", (Message("user", "hello"),))
    return ResponseWriter(asked, Prepared(generate, "toy"))


def streamed(writer: ChatWriter | MessageWriter | ResponseWriter, some: list[Token]) -> list[dict[str, Any]]:
    """The events of a stream in which each token came alone."""
    out = writer.opening() + b"".join(writer.written([one]) for one in some) + writer.finished(finished())
    return [json.loads(line[6:]) for line in out.decode().split("\n") if line.startswith("data: {")]


def test_a_thought_is_apart_from_the_content() -> None:
    whole = chat_writer().whole(tokens(), finished())
    [choice] = whole["choices"]
    assert (choice["message"]["content"], choice["message"]["reasoning_content"]) == (SAID, THOUGHT)
    counted = whole["usage"]["completion_tokens_details"]["reasoning_tokens"]
    assert len(THOUGHT) <= counted <= len(TEXT) - len(SAID)
    chunks = streamed(chat_writer(stream=True, stream_options={"include_usage": True}), tokens())
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    assert "".join(delta.get("content", "") for delta in deltas) == SAID
    assert "".join(delta.get("reasoning_content", "") for delta in deltas) == THOUGHT
    assert not any("content" in delta and "reasoning_content" in delta for delta in deltas)
    assert chunks[-1]["usage"] == whole["usage"]


def test_a_thought_is_a_block_before_the_text() -> None:
    content = message_writer().whole(tokens(), finished())["content"]
    assert content == [
        {"type": "thinking", "thinking": THOUGHT, "signature": ""},
        {"type": "text", "text": SAID},
    ]


def test_a_thought_is_streamed_as_a_block_that_is_signed_at_its_end() -> None:
    told = streamed(message_writer(stream=True), tokens())
    [first, second] = [one["content_block"] for one in told if one["type"] == "content_block_start"]
    assert (first["type"], second["type"]) == ("thinking", "text")
    deltas = [one for one in told if one["type"] == "content_block_delta"]
    thought = [one["delta"] for one in deltas if one["index"] == 0]
    assert "".join(one.get("thinking", "") for one in thought) == THOUGHT
    assert thought[-1] == {"type": "signature_delta", "signature": ""}
    assert "".join(one["delta"]["text"] for one in deltas if one["index"] == 1) == SAID
    stops = [one["index"] for one in told if one["type"] == "content_block_stop"]
    assert stops == [0, 1]


@pytest.mark.parametrize("thinking", [{"type": "adaptive"}, {"type": "enabled", "budget_tokens": 1024}])
def test_thoughts_that_are_to_be_left_out_leave_an_empty_block(thinking: dict[str, Any]) -> None:
    thinking = thinking | {"display": "omitted"}
    [block, said] = message_writer(thinking=thinking).whole(tokens(), finished())["content"]
    assert block == {"type": "thinking", "thinking": "", "signature": ""}
    assert said["text"] == SAID
    told = streamed(message_writer(thinking=thinking, stream=True), tokens())
    assert not any(one.get("delta", {}).get("type") == "thinking_delta" for one in told)
    assert [one["type"] for one in told].count("content_block_start") == 2


def test_a_thought_that_the_answers_length_cut_off_is_a_block() -> None:
    cut = tokens(TEXT[:12])
    [block] = message_writer().whole(cut, finished())["content"]
    assert (block["type"], block["thinking"]) == ("thinking", TEXT[8:12])
    told = streamed(message_writer(stream=True), cut)
    assert [one["type"] for one in told][-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_a_thought_is_an_item_before_the_message() -> None:
    response = response_writer().whole(tokens(), finished())
    [thought, message] = response["output"]
    assert (thought["type"], thought["summary"]) == ("reasoning", [])
    assert thought["content"] == [{"type": "reasoning_text", "text": THOUGHT}]
    assert message["content"][0]["text"] == SAID
    counted = response["usage"]["output_tokens_details"]["reasoning_tokens"]
    assert len(THOUGHT) <= counted <= len(TEXT) - len(SAID)


def test_a_thought_is_streamed_as_an_item_of_its_own() -> None:
    told = streamed(response_writer(stream=True), tokens())
    deltas = [one for one in told if one["type"] == "response.reasoning_text.delta"]
    assert "".join(one["delta"] for one in deltas) == THOUGHT
    kinds = [one["type"].removeprefix("response.") for one in told if not one["type"].endswith(".delta")]
    assert kinds == [
        "created",
        "in_progress",
        "output_item.added",
        "content_part.added",
        "reasoning_text.done",
        "content_part.done",
        "output_item.done",
        "output_item.added",
        "content_part.added",
        "output_text.done",
        "content_part.done",
        "output_item.done",
        "completed",
    ]
    assert [one["output_index"] for one in told if one["type"].endswith("item.done")] == [0, 1]
    whole = response_writer().whole(tokens(), finished())
    assert [one["content"] for one in told[-1]["response"]["output"]] == [
        one["content"] for one in whole["output"]
    ]


def test_a_thought_is_a_summary_where_one_is_requested() -> None:
    asked = {"reasoning": {"effort": "high", "summary": "auto"}}
    [thought, message] = response_writer(**asked).whole(tokens(), finished())["output"]
    assert thought["summary"] == [{"type": "summary_text", "text": THOUGHT}]
    assert "content" not in thought
    assert message["content"][0]["text"] == SAID
    told = streamed(response_writer(**asked, stream=True), tokens())
    kinds = [one["type"].removeprefix("response.") for one in told if not one["type"].endswith(".delta")]
    assert kinds[2:7] == [
        "output_item.added",
        "reasoning_summary_part.added",
        "reasoning_summary_text.done",
        "reasoning_summary_part.done",
        "output_item.done",
    ]
    assert told[2]["item"]["summary"] == []
    deltas = [one for one in told if one["type"] == "response.reasoning_summary_text.delta"]
    assert "".join(one["delta"] for one in deltas) == THOUGHT
    # It comes back with the conversation.
    sent = response_request({"input": [{"role": "user", "content": "hello"}, thought, message]})
    assert sent.conversation()[1].thought == THOUGHT


@pytest.mark.parametrize("stream", [False, True])
def test_logprobs_stand_with_the_text_alone(stream: bool) -> None:
    fields: dict[str, Any] = {"include": ["message.output_text.logprobs"], "top_logprobs": 1}
    some = tokens(logprob=-0.5)
    if stream:
        output = streamed(response_writer(stream=True, **fields), some)[-1]["response"]["output"]
    else:
        output = response_writer(**fields).whole(some, finished())["output"]
    part = output[1]["content"][0]
    assert "".join(one["token"] for one in part["logprobs"]).endswith(SAID)
    assert len(part["logprobs"]) < len(TEXT) - len(THOUGHT)


@pytest.mark.parametrize("writer_of", [chat_writer, response_writer])
def test_tokens_without_text_at_the_end_keep_their_log_probabilities(writer_of: Any) -> None:
    fields = {"logprobs": True} if writer_of is chat_writer else {"include": ["message.output_text.logprobs"]}
    some = [*tokens(SAID, logprob=-0.5), *tokens("", logprob=-0.5)]
    told = streamed(writer_of(stream=True, **fields), some)
    if writer_of is chat_writer:
        whole = writer_of(**fields).whole(some, finished())["choices"][0]["logprobs"]["content"]
        split = [e for one in told for e in (one["choices"][0]["logprobs"] or {"content": ()})["content"]]
    else:
        whole = writer_of(**fields).whole(some, finished())["output"][0]["content"][0]["logprobs"]
        split = [entry for one in told if "delta" in one for entry in one["logprobs"]]
    assert [entry["token"] for entry in whole] == [entry["token"] for entry in split] == [*SAID, "", ""]


def formatted(text: str, template: str, tail: str) -> list[Token]:
    first, *rest = tokens(text)
    return [replace(first, format=answer_format(template, tail)), *rest]


@pytest.mark.parametrize(
    ("template", "tail", "text"),
    [
        ("<think></think>", "<a><think>\n", "One and one.\n</think>\n\nTwo."),
        ("<think></think>", "<a><think>", "One and one.</think>Two."),
        ("<|channel>", "<a>", "<|channel>thought\nOne and one.\n<channel|>Two."),
        (
            "<|channel|><|message|>",
            "<|start|>assistant",
            "<|channel|>analysis<|message|>One and one.<|end|>"
            "<|start|>assistant<|channel|>final<|message|>Two.",
        ),
    ],
)
def test_the_prompt_says_how_the_answer_begins(template: str, tail: str, text: str) -> None:
    content = message_writer().whole(formatted(text, template, tail), finished())["content"]
    assert [block.get("thinking") or block["text"] for block in content] == [THOUGHT, SAID]
    response = response_writer().whole(formatted(text, template, tail), finished())
    assert [item["content"][0]["text"] for item in response["output"]] == [THOUGHT, SAID]
    told = streamed(message_writer(stream=True), formatted(text, template, tail))
    deltas = [one["delta"] for one in told if one["type"] == "content_block_delta"]
    assert "".join(one.get("thinking", "") for one in deltas) == THOUGHT
    assert "".join(one.get("text", "") for one in deltas) == SAID


def test_a_thought_after_a_text_is_a_block_of_its_own() -> None:
    analysis, final = "<|channel|>analysis<|message|>A.<|end|>", "<|channel|>final<|message|>B.<|end|>"
    text = "<|start|>assistant".join([analysis, final] * 2)
    some = formatted(text, "<|channel|><|message|>", "<|start|>assistant")
    content = message_writer().whole(some, finished())["content"]
    assert [block["type"] for block in content] == ["thinking", "text"] * 2


class Batches:
    """An answer whose events came together."""

    def __init__(self, writer: MessageWriter, *batches: list[Event]) -> None:
        self.writer = writer
        self._batches = iter(batches)

    async def next(self, timeout_s: float) -> list[Event]:
        return next(self._batches)


def test_progress_that_comes_with_the_first_token_is_in_the_first_event() -> None:
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    progress = PrefillProgress("r", 30, 30, 28)
    answer = Batches(message_writer(stream=True), [progress, tokens()[0]], [finished()])
    asyncio.run(answering._stream(answer, EventLine(send, {})))  # type: ignore[arg-type]
    started = next(line for line in b"".join(sent).split(b"\n") if line.startswith(b"data: "))
    usage = json.loads(started.removeprefix(b"data: "))["message"]["usage"]
    assert (usage["cache_read_input_tokens"], usage["input_tokens"]) == (28, 3)
