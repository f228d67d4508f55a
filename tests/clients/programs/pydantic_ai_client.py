"""Pydantic AI: agents by chat completions and by responses, with tools and typed output."""

import asyncio

from cases import BASE, KEY, MODEL, QUESTION, Weather, long_text, run
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

PROVIDER = OpenAIProvider(base_url=BASE, api_key=KEY)
CHAT = OpenAIChatModel(MODEL, provider=PROVIDER)
RESPONSES = OpenAIResponsesModel(MODEL, provider=PROVIDER)


def case_chat():
    result = Agent(CHAT, instructions="Be brief.", model_settings={"max_tokens": 12}).run_sync("Say hello.")
    assert result.output
    assert result.usage.output_tokens


def case_chat_streamed():
    async def streamed(text: str) -> list[str]:
        async with Agent(CHAT, model_settings={"max_tokens": 12}).run_stream(text) as result:
            return [part async for part in result.stream_text(delta=True, debounce_by=None)]

    assert "".join(asyncio.run(streamed("Say hello.")))
    assert "".join(asyncio.run(streamed(long_text("Agent"))))


def case_native_output():
    agent = Agent(CHAT, output_type=NativeOutput(Weather), model_settings={"max_tokens": 60})
    assert isinstance(agent.run_sync(QUESTION).output, Weather)


def case_output_by_a_tool():
    agent = Agent(CHAT, output_type=Weather, model_settings={"max_tokens": 80})
    assert isinstance(agent.run_sync(QUESTION).output, Weather)


def case_responses():
    agent = Agent(RESPONSES, instructions="Be brief.", model_settings={"max_tokens": 12})
    assert agent.run_sync("Say hello.").output
    typed = Agent(RESPONSES, output_type=Weather, model_settings={"max_tokens": 80})
    assert isinstance(typed.run_sync(QUESTION).output, Weather)


if __name__ == "__main__":
    run(globals())
