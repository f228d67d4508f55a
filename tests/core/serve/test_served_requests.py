"""What whoever watches is told of the requests, while they come and go."""

from __future__ import annotations

from core.events import Event, Failed, Finished, Generate, Likely, Message, Token, ToolCall
from core.serve.served_requests import ServedRequest, ServedRequests
from tests.core.serve.served import CHAT, Served, question


class Watcher:
    def __init__(self) -> None:
        self.changed: list[ServedRequest] = []
        self.heard: list[Event] = []

    def request_changed(self, request: ServedRequest) -> None:
        self.changed.append(request)

    def request_heard(self, request: str, event: Event) -> None:
        self.heard.append(event)


def test_a_request_is_told_from_its_coming_to_its_end(served: Served) -> None:
    watcher = Watcher()
    stop = served.answers.requests.listen(watcher)
    try:
        long = {"max_tokens": 30, "logit_bias": {"0": -100}}
        headers = {"user-agent": "Editor/1.2 (x; y)\x7f"}
        reply = served.ask("POST", CHAT, question("watched " * 20, stream=True, **long), headers)
    finally:
        stop()
    states = [record.state for record in watcher.changed]
    assert list(dict.fromkeys(states)) == ["waiting", "reading", "writing", "finished"]
    last = watcher.changed[-1]
    assert last.client == "Editor/1.2 (x; y)"
    assert (last.path, last.model, last.streams) == (CHAT, "toy", True)
    assert last.tokens == 30
    assert last.prompt_tokens > 160
    assert last.tokens_per_s > 0
    assert 0 < last.ttft_s <= last.total_s
    assert 0 <= last.acceptance <= 1
    tokens = [event for event in watcher.heard if isinstance(event, Token)]
    assert "".join(token.text for token in tokens) == reply.text
    assert isinstance(watcher.heard[-1], Finished)
    kept = served.answers.requests
    assert kept.of(last.id) == last
    assert kept.events(last.id) == tuple(watcher.heard)
    asked = kept.asked(last.id)
    assert asked is not None
    assert asked.messages[0].content == "watched " * 20
    before = len(watcher.changed)
    served.chat()
    assert len(watcher.changed) == before


def test_the_first_tokens_time_stays_while_others_are_heard() -> None:
    log = ServedRequests()
    log.add(ServedRequest("r", CHAT, "editor", "toy", 0.0, True))
    for count, time_s in enumerate((0.5, 0.75), 1):
        log.hear("r", Token("r", 1, "a", "normal", 1, count, time_s=time_s))
        record = log.of("r")
        assert record is not None
        assert (record.tokens, record.ttft_s) == (count, 0.5)


def test_only_the_newest_are_kept_and_nothing_of_them_unless_wanted(served: Served) -> None:
    log = ServedRequests(2)
    asked = served.answers.requests.asked(served.chat().json["id"])
    assert asked is not None
    for number in range(4):
        log.add(ServedRequest(str(number), CHAT, "x", "toy", 0.0, False), asked)
    assert len(log.all) == 4
    for number in range(4):
        log.change(str(number), state="finished")
    assert [record.id for record in log.all] == ["2", "3"]
    assert log.asked("3") is None
    assert log.events("3") == ()
    log.change("3", state="failed")
    assert log.of("3").state == "finished"  # type: ignore[union-attr]
    log.clear()
    assert log.all == ()


def test_beyond_so_many_bytes_the_oldest_words_go_and_the_records_stay() -> None:
    kept, long = ServedRequests(10, whole=True, most_bytes=100_000), "x" * 40_000
    asked = (
        Message("assistant", "", thought=long),
        Message("user", long),
        Message("assistant", "", tool_calls=(ToolCall("c", "f", long),)),
        Message("user", ""),
    )
    for number, message in enumerate(asked):
        name = f"r{number}"
        record = ServedRequest(name, "/v1/completions", "editor", "toy", 0.0, True)
        kept.add(record, Generate(name, (message,)))
        if number == 3:
            kept.hear(name, Token(name, 1, "", "normal", 1, 0, likely=(Likely(1, long, -1.0),)))
        if number != 1:
            kept.hear(name, Failed(name, "generate", "request", "no-model", "No model is loaded."))
    assert [record.id for record in kept.all] == ["r0", "r1", "r2", "r3"]
    # One that is not over keeps what it has.
    assert [kept.asked(record.id) is not None for record in kept.all] == [False, True, False, True]
    assert kept.events("r0") == ()
    assert len(kept.events("r3")) == 2
