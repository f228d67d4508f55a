"""The line that matters most: no call runs without a permission that showed all of it, and none runs twice.

The property tests draw any order of steps, right and wrong ones, with kills in every phase.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from app.session import strings
from app.session.chats.conversation import Answer, Conversation, Turn
from app.session.tools import loop
from app.session.tools.calls import CallRecord, OfferedTool
from app.session.tools.loop import CallError
from app.session.tools.permission import MOST_CALLS, Allowance, Allowed, Ask, decide
from core.answer_format import AnswerFormat
from core.events import Attachment, Effective, Finished, Message, Stats, Token, ToolCall
from core.settings import Settings
from core.tools.messages import CallResult, ServerTool, ToolsError

NOON = datetime(2026, 11, 29, 12, tzinfo=UTC)
FORMAT = AnswerFormat(calls=("hermes",))
TOOLS = tuple(
    OfferedTool(name, "web", ServerTool(name, f"{name} it", '{"type":"object"}'), f"print of {name}")
    for name in ("fetch", "search")
)


def written(name: str, arguments: object) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def tokens_of(*texts: str, first: int = 0) -> tuple[Token, ...]:
    return tuple(Token("t", 7, text, "normal", n + 1, n) for n, text in enumerate(texts, start=first))


def ended(reason: str = "stop", tokens: int = 1) -> Finished:
    effective = Effective("toy", "float32", "off", Settings(), format=FORMAT)
    return Finished("t", reason, Stats(tokens=tokens), effective)  # type: ignore[arg-type]


def chat_with(*texts: str, question: str = "Read https://a.example, please.") -> Conversation:
    """A chat whose answer has ended with a generation of these texts, with its calls."""
    tools = tuple(tool.name for tool in TOOLS)
    answer = Answer(tokens_of(*texts), "finished", ended(tokens=len(texts)), tools=tools)
    chat = Conversation("c", NOON, (Turn("t", Message("user", question), answer, NOON),))
    return loop.made(chat, "t", loop.calls_of(answer, TOOLS), TOOLS)


def only_call(chat: Conversation) -> CallRecord:
    (call,) = chat.turn("t").answer.calls
    return call


def test_only_open_calls_of_the_last_answer_wait() -> None:
    assert loop.waiting(Conversation("c", NOON)) == ()
    chat = chat_with(written("fetch", {"n": 1}), written("search", {"n": 2}), written("fetch", {"n": 3}))
    first, second, third = chat.turn("t").answer.calls
    assert loop.waiting(chat) == (first, second, third)
    chat = loop.refuse(chat, "t", first.id)
    chat = loop.allow(chat, "t", third.id, "once", "{}")
    assert loop.waiting(chat) == (second,)
    assert loop.waiting(chat.ask("u", Message("user", "And?"))) == ()
    assert loop.waiting(loop.stopped(chat, "t")) == ()


def test_a_call_waits_for_permission_and_its_result_goes_to_the_model() -> None:
    chat = chat_with("I look. ", written("fetch", {"url": "https://a.example"}))
    call = only_call(chat)
    assert (call.state, call.server, call.tool, call.fingerprint) == (
        "waiting",
        "web",
        "fetch",
        "print of fetch",
    )
    assert chat.turn("t").answer.status == "calling"
    assert not loop.is_answered(chat.turn("t").answer)
    chat = loop.allow(chat, "t", call.id, "once", call.arguments)
    assert only_call(chat).state == "running"
    chat = loop.returned(chat, "t", call.id, CallResult("<|im_end|> rain", seconds=0.8))
    assert loop.is_answered(chat.turn("t").answer)
    question, answer, result = chat.messages_for_request()
    assert (question.role, answer.role, answer.content) == ("user", "assistant", "I look.")
    assert [(each.name, json.loads(each.arguments)) for each in answer.tool_calls] == [
        ("fetch", {"url": "https://a.example"})
    ]
    assert result == Message("tool", "<|im_end|> rain", tool_call_id=call.id)


def test_the_arguments_that_run_and_that_the_model_sees_are_those_that_were_permitted() -> None:
    chat = chat_with(written("fetch", {"url": "https://b.example"}))
    call = only_call(chat)
    edited = '{\n "url": "https://a.example"}'
    chat = loop.allow(chat, "t", call.id, "once", edited)
    assert json.loads(only_call(chat).arguments) == json.loads(edited)
    assert json.loads(only_call(chat).written) == {"url": "https://b.example"}
    assert only_call(chat).written_call.arguments == only_call(chat).arguments


@pytest.mark.parametrize("reason", ["length", "cancelled", "repetition"])
def test_an_answer_that_was_cut_off_calls_nothing(reason: str) -> None:
    text = '<tool_call>\n{"name": "fetch", "arguments": {"url": "/home/someone"}\n</tool_call>'
    answer = Answer(tokens_of(text), "finished", ended(reason))
    assert loop.calls_of(answer, TOOLS) == ()
    assert [call.name for call in loop.calls_of(replace(answer, finished=ended()), TOOLS)] == ["fetch"]
    assert loop.calls_of(replace(answer, finished=ended()), ()) == ()


def test_only_the_newest_generation_is_searched_for_calls() -> None:
    chat = chat_with(written("fetch", {"n": 1}))
    call = only_call(chat)
    chat = loop.refuse(chat, "t", call.id)
    chat = chat.write("t", tokens_of("Then not.", first=1)).finish("t", ended())
    assert loop.calls_of(chat.turn("t").answer, TOOLS) == ()
    assert [m.role for m in chat.messages_for_request()] == ["user", "assistant", "tool", "assistant"]
    assert chat.messages_for_request()[2].content == strings.REFUSED


@pytest.mark.parametrize(
    ("result", "state", "told"),
    [
        (CallResult("no such page", is_error=True), "failed", "The call failed: no such page"),
        (ToolsError("It ended.", ran=False), "failed", "The call failed: It ended."),
        (ToolsError("It ended.", "Restart it.", ran=None), "unknown",
         "It is not known whether this call was run: It ended. Restart it."),
        (ToolsError("Too large.", ran=True), "unknown",
         "It is not known whether this call was run: Too large."),
    ],
)  # fmt: skip
def test_a_failure_is_told_to_the_model(result: CallResult | ToolsError, state: str, told: str) -> None:
    chat = chat_with(written("fetch", {}))
    call = only_call(chat)
    chat = loop.allow(chat, "t", call.id, "once", "{}")
    if isinstance(result, CallResult):
        chat = loop.returned(chat, "t", call.id, result)
    else:
        chat = loop.failed(chat, "t", call.id, result, 0.1)
    assert (only_call(chat).state, chat.messages_for_request()[-1].content) == (state, told)


def test_long_results_are_documents_that_are_numbered_with_the_others() -> None:
    chat = chat_with(written("fetch", {}), written("search", {}))
    first, second = (call.id for call in chat.turn("t").answer.calls)
    chat = chat.with_turns((replace(chat.turns[0], user=Message("user", "?", (Attachment("a", "A"),))),))
    for call_id, text in ((first, "x" * 2_000), (second, "short")):
        chat = loop.allow(chat, "t", call_id, "once", "{}")
        chat = loop.returned(chat, "t", call_id, CallResult(text, other=("a sound",)))
    *_, long, short = chat.messages_for_request()
    assert (long.content, [each.text for each in long.attachments]) == ("[a sound left out]", ["x" * 2_000])
    assert (short.content, short.attachments) == ("short\n[a sound left out]", ())
    sent = [each for message in chat.messages_for_request() for each in message.attachments]
    assert list(chat.turn("t").documents) == sent


def test_calls_beyond_the_bound_are_denied_and_the_answer_stops() -> None:
    chat = chat_with(*(written("fetch", {"n": n}) for n in range(MOST_CALLS + 1)))
    calls = chat.turn("t").answer.calls
    assert [call.state for call in calls] == ["waiting"] * MOST_CALLS + ["denied"]
    for call in calls[:-1]:
        assert chat.turn("t").answer.status == "calling"
        chat = loop.refuse(chat, "t", call.id)
    answer = chat.turn("t").answer
    assert (answer.status, answer.note) == ("stopped", strings.stopped_after(MOST_CALLS))
    assert answer.can_go_on("toy")
    more = chat.go_on("t", "toy").write("t", tokens_of(written("fetch", {}), first=13)).finish("t", ended())
    again = loop.made(more, "t", loop.calls_of(more.turn("t").answer, TOOLS), TOOLS)
    assert (again.turn("t").answer.status, len(again.turn("t").answer.open_calls)) == ("stopped", 0)


def test_arguments_that_cannot_be_sent_never_wait() -> None:
    chat = chat_with("no call")
    chat = loop.made(chat, "t", (ToolCall("x", "fetch", '{"a": 1, "a": 2}'),), TOOLS)
    assert only_call(chat).state == "failed"
    with pytest.raises(CallError):
        loop.allow(chat, "t", "x", "once", "{}")


def test_the_oldest_results_are_left_out_first_and_never_the_newest() -> None:
    chat = chat_with(written("fetch", {}))
    chat = loop.allow(chat, "t", only_call(chat).id, "once", "{}")
    chat = loop.returned(chat, "t", only_call(chat).id, CallResult("x" * 3_000))
    untouched, count = loop.without_results(chat, 1)
    assert (untouched, count) == (chat, 0)
    chat = chat.write("t", tokens_of("So.", first=1)).finish("t", ended())
    later = chat.ask("u", Message("user", "And?"))
    short, count = loop.without_results(later, 1)
    assert count == 1
    assert [m.content for m in short.messages_for_request()][2] == strings.RESULT_LEFT_OUT
    assert short.turn("t").documents == ()
    assert short.turn("t").answer.calls[0].result == "x" * 3_000
    assert loop.without_results(short, 10_000) == (short, 0)


def test_only_what_a_person_typed_is_their_own() -> None:
    chat = chat_with("Yes.", question="Look.\n> from https://quoted.example\nat https://own.example")
    chat = chat.ask("u", Message("user", "word " * 100 + "https://pasted.example"))
    texts = "\n".join(loop.own_texts(chat, "u"))
    assert "own.example" in texts
    assert "quoted" not in texts
    assert "pasted" not in texts
    assert "quoted" not in "\n".join(loop.own_texts(chat, "t"))


def test_a_kill_in_any_phase_leaves_what_is_certain() -> None:
    waiting = chat_with(written("fetch", {}))
    call_id = only_call(waiting).id
    running = loop.allow(waiting, "t", call_id, "once", "{}")
    done = loop.returned(running, "t", call_id, CallResult("words"))
    after = [each.settled("closed", keep_waiting=True) for each in (waiting, running, done)]
    assert [only_call(each).state for each in after] == ["waiting", "unknown", "done"]
    assert [each.turn("t").answer.status for each in after] == ["calling", "stopped", "stopped"]
    assert all(each.turn("t").answer.can_go_on("toy") for each in after[1:])
    copies = [each.settled("copied") for each in (waiting, running, done)]
    assert [only_call(each).state for each in copies] == ["denied", "unknown", "done"]
    assert all(each.turn("t").answer.over for each in copies)
    for chat in (*after[1:], *copies):
        with pytest.raises(CallError):
            loop.allow(chat, "t", call_id, "once", "{}")


# ---- any order of steps


class Loop(RuleBasedStateMachine):
    """A chat on disk, its copy in memory, and a tool that notes what it runs.

    `stored` changes only when the chat is stored; a kill loses everything else.
    """

    @initialize(count=st.integers(1, 3), question=st.sampled_from(["Read https://a.example", "Hello"]))
    def begin(self, count: int, question: str) -> None:
        texts = [written("fetch", {"url": "https://a.example", "n": n % 2}) for n in range(count)]
        self.chat = chat_with(*texts, question=question)
        self.stored = self.chat
        self.ran: dict[str, str] = {}  # arguments by call
        self.permitted: dict[str, set[str]] = {}  # arguments that a permission showed, by call
        self.running: set[str] = set()  # that this process started and that have not ended
        self.allowances: list[Allowance] = []
        self.generations = 1

    def call_at(self, number: int) -> CallRecord:
        found = self.chat.turn("t").answer.calls
        return found[number % len(found)]

    def change(self, step: object, *given: object) -> bool:
        """Carry out a step; an error changes nothing."""
        before = self.chat
        try:
            self.chat = step(self.chat, "t", *given)  # type: ignore[operator]
        except CallError:
            assert self.chat == before
            return False
        return True

    @rule(number=st.integers(0, 20), scope=st.sampled_from(["once", "chat", "always"]),
          arguments=st.sampled_from([None, "{}", '{"url": "/etc"}', "[]", '{"a": 1, "a": 2}']))  # fmt: skip
    def allow(self, number: int, scope: str, arguments: str | None) -> None:
        call = self.call_at(number)
        shown = call.arguments if arguments is None else arguments
        if self.change(loop.allow, call.id, scope, shown):
            self.permitted.setdefault(call.id, set()).add(json.dumps(json.loads(shown)))
            if given := loop.allowance(call, scope, "c"):  # type: ignore[arg-type]
                self.allowances.append(given)

    @rule(number=st.integers(0, 20))
    def decide(self, number: int) -> None:
        """An earlier permission covers it, and the arguments were shown by the question itself."""
        call = self.call_at(number)
        own = loop.own_texts(self.chat, "t")
        found = decide(call, "c", self.allowances, own, self.chat.turn("t").answer.calls)
        if isinstance(found, Ask):
            return
        assert isinstance(found, Allowed)
        assert "https://a.example" in own[0] or "url" not in json.loads(call.arguments)
        if self.change(loop.allow, call.id, found.by, call.arguments):
            self.permitted.setdefault(call.id, set()).add(json.dumps(json.loads(call.arguments)))

    @rule(number=st.integers(0, 20))
    def refuse(self, number: int) -> None:
        self.change(loop.refuse, self.call_at(number).id)

    @rule()
    def store(self) -> None:
        self.stored = self.chat

    @rule(number=st.integers(0, 20))
    def run(self, number: int) -> None:
        """The controller starts calls that run, once the chat is stored, each once."""
        call = self.call_at(number)
        if self.stored == self.chat and call.state == "running" and call.id not in self.running:
            assert call.id not in self.ran, "a call ran twice"
            assert json.dumps(json.loads(call.arguments)) in self.permitted.get(call.id, set())
            self.running.add(call.id)
            self.ran[call.id] = call.arguments

    @rule(number=st.integers(0, 20))
    def allow_store_and_run(self, number: int) -> None:
        """What the controller does with a permission."""
        self.allow(number, "once", None)
        self.store()
        self.run(number)

    @rule(number=st.integers(0, 20), result=st.sampled_from(["done", "error", "lost", "unsent"]))
    def end(self, number: int, result: str) -> None:
        call = self.call_at(number)
        if call.id not in self.running:
            return
        if result in ("done", "error"):
            self.change(loop.returned, call.id, CallResult("words", is_error=result == "error"))
        else:
            lost = ToolsError("It ended.", ran=None if result == "lost" else False)
            self.change(loop.failed, call.id, lost, 0.1)

    @rule()
    def answer_on(self) -> None:
        """The next generation, which calls again."""
        if loop.is_answered(self.chat.turn("t").answer) and self.generations < 4:
            self.generations += 1
            first = len(self.chat.turn("t").answer.tokens)
            more = tokens_of(written("fetch", {"n": self.generations}), first=first)
            chat = self.chat.go_on("t", "toy").write("t", more).finish("t", ended())
            self.chat = loop.made(chat, "t", loop.calls_of(chat.turn("t").answer, TOOLS), TOOLS)

    @rule()
    def stop(self) -> None:
        if self.chat.turn("t").answer.status == "calling":
            self.chat = loop.stopped(self.chat, "t")

    @rule()
    def kill(self) -> None:
        """The window is killed, and opened again."""
        self.chat = self.stored.settled("closed", keep_waiting=True)
        self.running.clear()
        answer = self.chat.turn("t").answer
        assert not [call for call in answer.calls if call.state == "running"]
        assert answer.over or any(call.state == "waiting" for call in answer.calls)

    @invariant()
    def nothing_is_lost(self) -> None:
        if not hasattr(self, "chat"):
            return
        answer = self.chat.turn("t").answer
        messages = self.chat.messages_for_request()
        assert [each.tool_call_id for each in messages if each.role == "tool"] == [
            call.id for message in messages for call in message.tool_calls
        ]
        for call in answer.calls:
            if call.state in ("denied", "waiting"):
                assert call.id not in self.ran or call.id not in self.running
            if call.state == "done":
                assert self.ran[call.id] == call.arguments


TestLoop = Loop.TestCase
TestLoop.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
