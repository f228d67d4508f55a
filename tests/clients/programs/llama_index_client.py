"""LlamaIndex's client of OpenAI-like servers, in an environment of its own: it needs an older openai."""

import asyncio
from typing import Literal

from cases import BASE, KEY, MODEL, QUESTION, run
from llama_index.core.llms import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai_like import OpenAILike

SHORT, LONG = {"max_tokens": 12}, {"max_tokens": 80}
TOLD = {"model": MODEL, "api_base": BASE, "api_key": KEY, "is_chat_model": True, "max_retries": 0}
HELLO = [ChatMessage("Be brief.", role="system"), ChatMessage("Say hello.")]


def tell_weather(sky: Literal["clear", "cloudy", "rainy"], windy: bool) -> str:
    """Tells the weather."""
    return f"{sky}, {windy}"


def case_llama_index():
    model = OpenAILike(**TOLD, **SHORT, timeout=120)
    answer = model.chat(HELLO)
    assert answer.message.content
    assert answer.raw.usage.completion_tokens
    assert "".join(chunk.delta or "" for chunk in model.stream_chat(HELLO))
    assert model.complete("Say hello.").text

    async def streamed() -> str:
        return "".join([chunk.delta or "" async for chunk in await model.astream_chat(HELLO)])

    assert asyncio.run(streamed())


def case_llama_index_tools():
    tell, asked = FunctionTool.from_defaults(tell_weather), [ChatMessage(QUESTION)]
    model = OpenAILike(**TOLD, **LONG, is_function_calling_model=True, timeout=120)
    called = model.chat_with_tools([tell], chat_history=asked, tool_required=True)
    [call] = model.get_tool_calls_from_response(called)
    result = tell(**call.tool_kwargs).content
    result = ChatMessage(result, role="tool", additional_kwargs={"tool_call_id": call.tool_id})
    model.chat_with_tools([tell], chat_history=[*asked, called.message, result])
    *_, last = model.stream_chat_with_tools([tell], chat_history=asked, tool_required=True)
    [call] = model.get_tool_calls_from_response(last)
    assert set(call.tool_kwargs) == {"sky", "windy"}


if __name__ == "__main__":
    run(globals())
