"""LiteLLM, as a client of OpenAI's API and of Anthropic's."""

import json

import litellm
from cases import BASE, KEY, QUESTION, ROOT, SCHEMA, SLOW_READING, Weather, long_text, run

OPENAI = {"model": "openai/starter", "api_base": BASE, "api_key": KEY, "num_retries": 0}
ANTHROPIC = {"model": "anthropic/starter", "api_base": ROOT, "api_key": KEY, "num_retries": 0}
HELLO = [{"role": "user", "content": "Say hello."}]
ASKED = [{"role": "user", "content": QUESTION}]
TOOL = {"type": "function", "function": {"name": "tell_weather", "parameters": SCHEMA}}


def case_chat():
    answer = litellm.completion(**OPENAI, messages=HELLO, max_tokens=12)
    assert answer.choices[0].message.content
    assert answer.usage.completion_tokens


def case_chat_streamed():
    chunks = list(
        litellm.completion(
            **OPENAI, messages=HELLO, max_tokens=12, stream=True, stream_options={"include_usage": True}
        )
    )
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-1].usage.completion_tokens


def case_tools():
    answer = litellm.completion(**OPENAI, messages=ASKED, max_tokens=80, tools=[TOOL], tool_choice="required")
    [call] = answer.choices[0].message.tool_calls
    assert set(json.loads(call.function.arguments)) == {"sky", "windy"}


def case_schema():
    answer = litellm.completion(**OPENAI, messages=ASKED, max_tokens=60, response_format=Weather)
    Weather.model_validate_json(answer.choices[0].message.content)


def case_responses():
    answer = litellm.responses(**OPENAI, input="Say hello.", max_output_tokens=12)
    assert answer.output[0].content[0].text


def case_a_long_prompt_keeps_the_stream_alive():
    messages = [{"role": "user", "content": long_text("Lite")}]
    chunks = list(
        litellm.completion(**OPENAI, messages=messages, max_tokens=4, stream=True, extra_body=SLOW_READING)
    )
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


def case_by_anthropics_api():
    answer = litellm.completion(**ANTHROPIC, messages=HELLO, max_tokens=12)
    assert answer.choices[0].message.content
    chunks = list(litellm.completion(**ANTHROPIC, messages=HELLO, max_tokens=12, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks)


def case_tools_by_anthropics_api():
    answer = litellm.completion(
        **ANTHROPIC, messages=ASKED, max_tokens=80, tools=[TOOL], tool_choice="required"
    )
    [call] = answer.choices[0].message.tool_calls
    assert set(json.loads(call.function.arguments)) == {"sky", "windy"}


if __name__ == "__main__":
    run(globals())
