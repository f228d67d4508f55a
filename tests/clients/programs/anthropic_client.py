"""Anthropic's own client: messages, the count of their tokens."""

import anthropic
from anthropic import Anthropic
from cases import KEY, MODEL, QUESTION, ROOT, SCHEMA, SLOW_READING, Weather, long_text, refused, run

client = Anthropic(base_url=ROOT, api_key=KEY, max_retries=0)
HELLO = [{"role": "user", "content": "Say hello."}]
# This version has no argument for it any more.
GREEDY = {"extra_body": {"temperature": 0}}
TOOL = {"name": "tell_weather", "description": "Tells the weather.", "input_schema": SCHEMA}


def case_message():
    message = client.messages.create(model=MODEL, max_tokens=12, messages=HELLO, system="Be brief.")
    assert message.content[0].text
    assert message.stop_reason in ("end_turn", "max_tokens")
    assert message._request_id == message.id


def case_message_streamed():
    asked = {"model": MODEL, "max_tokens": 12, "messages": HELLO, **GREEDY}
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == whole.content[0].text == final.content[0].text
    assert final.stop_reason == whole.stop_reason
    assert final.usage.output_tokens == whole.usage.output_tokens


def case_blocks_and_stop_sequences():
    text = {"type": "text", "text": "Say hello.", "cache_control": {"type": "ephemeral"}}
    asked = {"model": MODEL, "max_tokens": 16, "messages": [{"role": "user", "content": [text]}], **GREEDY}
    system = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
    said = client.messages.create(system=system, **asked).content[0].text
    message = client.messages.create(system=system, stop_sequences=[said[2:6]], **asked)
    assert (message.stop_reason, message.stop_sequence) == ("stop_sequence", said[2:6])


def case_tools():
    messages = [{"role": "user", "content": QUESTION}]
    asked = {"model": MODEL, "tools": [TOOL], "max_tokens": 80}
    answer = client.messages.create(messages=messages, tool_choice={"type": "any"}, **asked)
    [call] = answer.content
    assert (call.type, answer.stop_reason) == ("tool_use", "tool_use")
    Weather.model_validate(call.input)
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "told"}
    messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": [result]}]
    after = client.messages.create(messages=messages, model=MODEL, tools=[TOOL], max_tokens=8)
    assert after.usage.output_tokens


def case_tools_streamed():
    with client.messages.stream(
        model=MODEL, max_tokens=80, messages=[{"role": "user", "content": QUESTION}], tools=[TOOL],
        tool_choice={"type": "tool", "name": "tell_weather"},
    ) as stream:  # fmt: skip
        kinds = {event.type for event in stream}
        [call] = stream.get_final_message().content
    assert "input_json" in kinds
    Weather.model_validate(call.input)


def case_parse():
    message = client.messages.parse(
        model=MODEL, max_tokens=60, messages=[{"role": "user", "content": QUESTION}], output_format=Weather
    )
    assert isinstance(message.parsed_output, Weather)


def case_count_tokens():
    asked = {"model": MODEL, "messages": HELLO, "system": "Be brief.", "tools": [TOOL]}
    usage = client.messages.create(max_tokens=1, **asked).usage
    counted = client.messages.count_tokens(**asked).input_tokens
    assert counted == usage.input_tokens + usage.cache_read_input_tokens


def case_a_long_prompt_keeps_the_stream_alive():
    asked = {"model": MODEL, "max_tokens": 4, "extra_body": SLOW_READING}
    seen = [{"role": "user", "content": long_text("Raw message")}]
    with client.messages.with_streaming_response.create(messages=seen, stream=True, **asked) as raw:
        lines = list(raw.iter_lines())
    assert lines.count("event: ping") > 5, lines
    parsed = [{"role": "user", "content": long_text("Parsed message")}]
    with client.messages.stream(messages=parsed, **asked) as stream:
        final = stream.get_final_message()
    assert final.usage.input_tokens > 500


def case_a_second_turn_is_cached():
    asked = {"model": MODEL, "max_tokens": 6, "extra_body": {"temperature": 0}}
    messages = [{"role": "user", "content": long_text("cached message")}]
    first = client.messages.create(messages=messages, **asked)
    said = {"role": "assistant", "content": first.content[0].text}
    second = client.messages.create(
        messages=[*messages, said, {"role": "user", "content": "Again."}], **asked
    )
    assert second.usage.cache_read_input_tokens > first.usage.input_tokens - 32


def case_a_prompt_that_is_too_long():
    """Claude Code compacts the conversation by these words."""
    messages = [{"role": "user", "content": "word " * 20_000}]
    error = refused(
        anthropic.BadRequestError,
        lambda: client.messages.create(model=MODEL, max_tokens=4, messages=messages),
    )
    assert error.body["error"]["message"].startswith("prompt is too long: ")


def case_errors():
    def asking(who=client, **fields):
        return lambda: who.messages.create(**{"model": MODEL, "max_tokens": 4, "messages": HELLO} | fields)

    assert asking(model="claude")().content  # any name is answered
    error = refused(anthropic.BadRequestError, asking(extra_body={"temperature": 9.0}))
    assert (error.body["type"], error.body["error"]["type"]) == ("error", "invalid_request_error")
    assert "temperature" in error.body["error"]["message"]
    stranger = Anthropic(base_url=ROOT, api_key="another", max_retries=0)
    refused(anthropic.AuthenticationError, asking(stranger))


if __name__ == "__main__":
    run(globals())
