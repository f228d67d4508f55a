"""OpenAI's own client: chat completions, completions, responses."""

import json
import time

import openai
from cases import BASE, KEY, MODEL, QUESTION, SCHEMA, SLOW_READING, Weather, long_text, refused, run
from openai import OpenAI

client = OpenAI(base_url=BASE, api_key=KEY, max_retries=0)
HELLO = [{"role": "user", "content": "Say hello."}]
TOOL = {"type": "function", "function": {"name": "tell_weather", "parameters": SCHEMA, "strict": True}}
FLAT_TOOL = {"type": "function", "name": "tell_weather", "parameters": SCHEMA, "strict": True}
FILE = "def depth(tide):\n    return tide.level - tide.ground\n"


def case_models():
    model, encoder = client.models.list().data
    assert client.models.retrieve(model.id) == model
    assert client.models.retrieve(encoder.id) == encoder


def case_embeddings():
    """The client asks for base64 by itself, and decodes it."""
    texts = ["The ferry leaves at nine.", "At nine the boat departs.", "Copper conducts heat."]
    made = client.embeddings.create(model="all-MiniLM-L6-v2", input=texts)
    plain = client.embeddings.create(model="all-MiniLM-L6-v2", input=texts, encoding_format="float")
    vectors = [one.embedding for one in made.data]
    assert vectors == [one.embedding for one in plain.data]
    near, far = (sum(a * b for a, b in zip(vectors[0], other)) for other in vectors[1:])
    assert near > far + 0.3
    assert made.usage.prompt_tokens == made.usage.total_tokens > 0
    error = refused(
        openai.BadRequestError,
        lambda: client.embeddings.create(model="all-MiniLM-L6-v2", input="x", dimensions=64),
    )
    assert error.param == "dimensions"


def case_chat():
    answer = client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=12, seed=1)
    [choice] = answer.choices
    assert choice.message.content
    assert choice.finish_reason in ("stop", "length")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def case_chat_streamed():
    asked = {"model": MODEL, "messages": HELLO, "max_tokens": 12, "temperature": 0}
    whole = client.chat.completions.create(**asked)
    chunks = list(
        client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    )
    assert len({chunk.id for chunk in chunks}) == 1
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == whole.usage.completion_tokens


def case_chat_logprobs():
    answer = client.chat.completions.create(
        model=MODEL, messages=HELLO, max_tokens=6, logprobs=True, top_logprobs=3
    )
    content = answer.choices[0].logprobs.content
    assert "".join(one.token for one in content) == answer.choices[0].message.content
    assert all(len(one.top_logprobs) == 3 for one in content)


def case_tools():
    messages = [{"role": "user", "content": QUESTION}]
    asked = {"model": MODEL, "tools": [TOOL], "max_tokens": 80}
    answer = client.chat.completions.create(messages=messages, tool_choice="required", **asked)
    [call] = answer.choices[0].message.tool_calls
    assert answer.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "tell_weather"
    Weather.model_validate_json(call.function.arguments)
    result = {"role": "tool", "tool_call_id": call.id, "content": "told"}
    messages += [answer.choices[0].message.to_dict(), result]
    after = client.chat.completions.create(messages=messages, model=MODEL, tools=[TOOL], max_tokens=8)
    assert after.choices[0].finish_reason in ("stop", "length", "tool_calls")


def case_tools_streamed():
    with client.chat.completions.stream(
        model=MODEL, messages=[{"role": "user", "content": QUESTION}], tools=[TOOL], max_tokens=80,
        tool_choice={"type": "function", "function": {"name": "tell_weather"}},
    ) as stream:  # fmt: skip
        kinds = {event.type for event in stream}
        final = stream.get_final_completion()
    assert "tool_calls.function.arguments.delta" in kinds
    [call] = final.choices[0].message.tool_calls
    assert set(json.loads(call.function.arguments)) == {"sky", "windy"}


def case_parse():
    answer = client.chat.completions.parse(
        model=MODEL, messages=[{"role": "user", "content": QUESTION}], response_format=Weather, max_tokens=60
    )
    assert isinstance(answer.choices[0].message.parsed, Weather)


def case_json_object():
    # Any object: a small model may not come to an end, but all that it writes begins as one.
    answer = client.chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": "The weather as JSON, please."}],
        response_format={"type": "json_object"}, max_tokens=40,
    )  # fmt: skip
    choice = answer.choices[0]
    assert choice.message.content.lstrip().startswith("{")
    if choice.finish_reason == "stop":
        json.loads(choice.message.content)


def case_predicted_outputs():
    asked = {
        "model": MODEL,
        "messages": [{"role": "user", "content": f"Repeat this file:\n```python\n{FILE}```"}],
        "max_tokens": 40,
        "temperature": 0,
    }
    plain = client.chat.completions.create(**asked)
    predicted = client.chat.completions.create(**asked, prediction={"type": "content", "content": FILE})
    assert predicted.choices[0].message.content == plain.choices[0].message.content
    assert plain.usage.completion_tokens_details.accepted_prediction_tokens == 0
    details = predicted.usage.completion_tokens_details
    assert details.accepted_prediction_tokens + details.rejected_prediction_tokens > 0
    assert predicted.usage.completion_tokens == plain.usage.completion_tokens


def case_a_long_prompt_keeps_the_stream_alive():
    asked = {"model": MODEL, "max_tokens": 4, "stream": True, "extra_body": SLOW_READING}
    seen = [{"role": "user", "content": long_text("Raw")}]
    with client.chat.completions.with_streaming_response.create(messages=seen, **asked) as raw:
        lines = list(raw.iter_lines())
    assert sum(line.startswith(": keepalive") for line in lines) > 5, lines
    parsed = [{"role": "user", "content": long_text("Parsed")}]
    chunks = list(client.chat.completions.create(messages=parsed, **asked))
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


def case_completions():
    asked = {
        "model": MODEL,
        "prompt": "The tide comes in and the tide goes",
        "max_tokens": 8,
        "temperature": 0,
    }
    whole = client.completions.create(**asked)
    streamed = client.completions.create(**asked, stream=True)
    assert "".join(c.choices[0].text for c in streamed if c.choices) == whole.choices[0].text != ""


def case_responses():
    answer = client.responses.create(
        model=MODEL, input="Say hello.", instructions="Be brief.", max_output_tokens=12, store=False
    )
    assert answer.output_text
    assert answer.status in ("completed", "incomplete")
    assert answer.usage.total_tokens == answer.usage.input_tokens + answer.usage.output_tokens


def case_responses_streamed():
    asked = {"model": MODEL, "input": "Say hello.", "max_output_tokens": 12, "temperature": 0}
    whole = client.responses.create(**asked)
    with client.responses.stream(**asked) as stream:
        events = list(stream)
    assert events[0].type == "response.created"
    assert events[-1].type in ("response.completed", "response.incomplete")
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == whole.output_text == events[-1].response.output_text


def case_responses_tools():
    asked = {"model": MODEL, "tools": [FLAT_TOOL], "max_output_tokens": 80}
    items = [{"role": "user", "content": QUESTION}]
    answer = client.responses.create(input=items, tool_choice="required", **asked)
    [call] = answer.output
    assert (call.type, call.name) == ("function_call", "tell_weather")
    Weather.model_validate_json(call.arguments)
    items += [call.to_dict(), {"type": "function_call_output", "call_id": call.call_id, "output": "told"}]
    assert client.responses.create(input=items, model=MODEL, tools=[FLAT_TOOL], max_output_tokens=8).output
    with client.responses.stream(input=QUESTION, tool_choice="required", **asked) as stream:
        kinds = [event.type for event in stream]
    assert "response.function_call_arguments.delta" in kinds


def case_responses_parse():
    answer = client.responses.parse(model=MODEL, input=QUESTION, text_format=Weather, max_output_tokens=60)
    assert isinstance(answer.output_parsed, Weather)


def case_responses_a_long_prompt():
    with client.responses.stream(
        model=MODEL, input=long_text("Response"), max_output_tokens=4, extra_body=SLOW_READING
    ) as stream:
        kinds = [event.type for event in stream]
    assert kinds[0] == "response.created"
    assert kinds[-1] in ("response.completed", "response.incomplete")


def case_a_second_turn_is_cached():
    asked = {"model": MODEL, "max_tokens": 6, "temperature": 0}
    messages = [{"role": "user", "content": long_text("cached chat")}]
    first = client.chat.completions.create(messages=messages, **asked)
    said = {"role": "assistant", "content": first.choices[0].message.content}
    second = client.chat.completions.create(
        messages=[*messages, said, {"role": "user", "content": "Again."}], **asked
    )
    assert second.usage.prompt_tokens_details.cached_tokens > first.usage.prompt_tokens - 32


def case_a_closed_stream_ends_its_answer():
    """The server answers one request at a time, so the next one waits for the end of this one."""
    asked = {"model": MODEL, "messages": HELLO, "extra_body": {"logit_bias": {"2": -100, "0": -100}}}
    with client.chat.completions.create(**asked, stream=True, max_tokens=4000) as stream:
        next(iter(stream))
    begun_s = time.monotonic()
    client.chat.completions.create(model=MODEL, messages=HELLO, max_tokens=1)
    assert time.monotonic() - begun_s < 20


def case_errors():
    def asking(**fields):
        return lambda: client.chat.completions.create(**{"model": MODEL, "messages": HELLO} | fields)

    named = asking(model="gpt-5", max_tokens=4)()  # any name is answered, and the answer says so
    assert "model" in [change["setting"] for change in named.model_extra["draftlight"]["changes"]]
    too_long = [{"role": "user", "content": "word " * 20_000}]
    for stream in (False, True):
        assert refused(openai.BadRequestError, asking(n=3, stream=stream)).param == "n"
        error = refused(openai.BadRequestError, asking(messages=too_long, stream=stream))
        assert error.code == "context_length_exceeded"
    stranger = OpenAI(base_url=BASE, api_key="another", max_retries=0)
    refused(openai.AuthenticationError, stranger.models.list)


if __name__ == "__main__":
    run(globals())
