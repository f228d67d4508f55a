"""LangChain's ChatOpenAI: chat, streams, tools, structured output, responses."""

import openai
from cases import BASE, KEY, MODEL, QUESTION, SLOW_READING, Weather, long_text, refused, run
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings

TOLD = {"model": MODEL, "base_url": BASE, "api_key": KEY, "max_retries": 0, "timeout": 120}
HELLO = [SystemMessage("Be brief."), HumanMessage("Say hello.")]


@tool(args_schema=Weather)
def tell_weather(sky: str, windy: bool) -> str:
    """Tells the weather."""
    return f"{sky}, {windy}"


def case_chat():
    answer = ChatOpenAI(**TOLD, max_tokens=12).invoke(HELLO)
    assert answer.content
    assert answer.usage_metadata["output_tokens"]


def case_chat_streamed():
    chunks = list(ChatOpenAI(**TOLD, max_tokens=12, stream_usage=True).stream(HELLO))
    assert "".join(chunk.content for chunk in chunks)
    assert any(chunk.usage_metadata for chunk in chunks)


def case_tools():
    chat = ChatOpenAI(**TOLD, max_tokens=80).bind_tools([tell_weather], tool_choice="any")
    asked = [HumanMessage(QUESTION)]
    answer = chat.invoke(asked)
    [call] = answer.tool_calls
    result = ToolMessage(tell_weather.invoke(call["args"]), tool_call_id=call["id"])
    assert ChatOpenAI(**TOLD, max_tokens=8).bind_tools([tell_weather]).invoke([*asked, answer, result])
    total = None
    for chunk in chat.stream(asked):
        total = chunk if total is None else total + chunk
    assert set(total.tool_calls[0]["args"]) == {"sky", "windy"}


def case_a_second_turn_is_cached():
    chat = ChatOpenAI(**TOLD, max_tokens=6, temperature=0)
    asked = [HumanMessage(long_text("cached chain"))]
    first = chat.invoke(asked)
    second = chat.invoke([*asked, first, HumanMessage("Again.")])
    read = first.usage_metadata["input_tokens"]
    assert second.usage_metadata["input_token_details"]["cache_read"] > read - 32


def case_embeddings():
    """By default the client sends token ids of another tokenizer, which are refused in words."""
    told = {"base_url": BASE, "api_key": KEY, "model": "all-MiniLM-L6-v2"}
    [one] = OpenAIEmbeddings(**told, check_embedding_ctx_length=False).embed_documents(["low water"])
    assert len(one) == 384


def case_a_prompt_that_is_too_long():
    error = refused(openai.BadRequestError, lambda: ChatOpenAI(**TOLD).invoke("word " * 20_000))
    assert error.code == "context_length_exceeded"


def case_structured_output():
    for method in ("json_schema", "function_calling"):
        chat = ChatOpenAI(**TOLD, max_tokens=80).with_structured_output(Weather, method=method)
        assert isinstance(chat.invoke(QUESTION), Weather), method


def case_responses():
    chat = ChatOpenAI(**TOLD, max_tokens=12, use_responses_api=True)
    assert chat.invoke(HELLO).content
    assert "".join(chunk.text for chunk in chat.stream(HELLO))


def case_a_long_prompt_keeps_the_stream_alive():
    chat = ChatOpenAI(**TOLD, max_tokens=4, extra_body=SLOW_READING)
    assert list(chat.stream(long_text("Chain")))


if __name__ == "__main__":
    run(globals())
