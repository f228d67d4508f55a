"""Libraries over the SDKs, and frameworks of agents: a case each, of what people use most in them."""

import asyncio
import json
from typing import Literal

import agents
import anthropic
import dspy
import instructor
import litellm
import openai
from cases import BASE, KEY, MODEL, QUESTION, ROOT, SCHEMA, SLOW_READING, Weather, long_text, refused, run
from huggingface_hub import InferenceClient
from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

ASKED = [{"role": "user", "content": QUESTION}]
HELLO = [{"role": "user", "content": "Say hello."}]
TOOL = {"type": "function", "function": {"name": "tell_weather", "parameters": SCHEMA}}
SHORT, LONG = {"max_tokens": 12}, {"max_tokens": 80}
agents.set_tracing_disabled(True)


def tell_weather(sky: Literal["clear", "cloudy", "rainy"], windy: bool) -> str:
    """Tells the weather."""
    return f"{sky}, {windy}"


def case_litellm():
    by_openai = {"model": "openai/starter", "api_base": BASE, "api_key": KEY, "num_retries": 0}
    by_anthropic = {"model": "anthropic/starter", "api_base": ROOT, "api_key": KEY, "num_retries": 0}
    for client in (by_openai, by_anthropic):
        answer = litellm.completion(**client, messages=HELLO, **SHORT)
        assert answer.choices[0].message.content
        assert answer.usage.completion_tokens
        chunks = list(litellm.completion(**client, messages=HELLO, **SHORT, stream=True))
        assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
        called = litellm.completion(**client, messages=ASKED, **LONG, tools=[TOOL], tool_choice="required")
        Weather.model_validate_json(called.choices[0].message.tool_calls[0].function.arguments)
    typed = litellm.completion(**by_openai, messages=ASKED, **LONG, response_format=Weather)
    Weather.model_validate_json(typed.choices[0].message.content)
    assert litellm.responses(**by_openai, input="Say hello.", max_output_tokens=12).output[0].content[0].text


def case_langchain():
    told = {"model": MODEL, "base_url": BASE, "api_key": KEY, "max_retries": 0, "timeout": 120}
    hello = [SystemMessage("Be brief."), HumanMessage("Say hello.")]
    tell = tool(args_schema=Weather)(tell_weather)
    assert ChatOpenAI(**told, **SHORT).invoke(hello).usage_metadata["output_tokens"]
    chunks = list(ChatOpenAI(**told, **SHORT, stream_usage=True).stream(hello))
    assert "".join(chunk.content for chunk in chunks)
    assert any(chunk.usage_metadata for chunk in chunks)
    chat = ChatOpenAI(**told, **LONG).bind_tools([tell], tool_choice="any")
    answer = chat.invoke(QUESTION)
    [call] = answer.tool_calls
    result = ToolMessage(tell.invoke(call["args"]), tool_call_id=call["id"])
    after = ChatOpenAI(**told, max_tokens=8).bind_tools([tell])
    assert after.invoke([HumanMessage(QUESTION), answer, result])
    first, *others = chat.stream(QUESTION)
    assert set(sum(others, first).tool_calls[0]["args"]) == {"sky", "windy"}
    for method in ("json_schema", "function_calling"):
        typed = ChatOpenAI(**told, **LONG).with_structured_output(Weather, method=method)
        assert isinstance(typed.invoke(QUESTION), Weather), method
    assert ChatOpenAI(**told, **SHORT, use_responses_api=True).invoke(hello).content


def case_langchain_prompts():
    told = {"model": MODEL, "base_url": BASE, "api_key": KEY, "max_retries": 0, "timeout": 120}
    assert list(ChatOpenAI(**told, max_tokens=4, extra_body=SLOW_READING).stream(long_text("Chain")))
    error = refused(openai.BadRequestError, lambda: ChatOpenAI(**told).invoke("word " * 20_000))
    assert error.code == "context_length_exceeded"
    # By default the client sends token ids of another tokenizer, which are refused in words.
    told = {"base_url": BASE, "api_key": KEY, "model": "all-MiniLM-L6-v2"}
    [one] = OpenAIEmbeddings(**told, check_embedding_ctx_length=False).embed_documents(["low water"])
    assert len(one) == 384


def case_pydantic_ai():
    via = {"provider": OpenAIProvider(base_url=BASE, api_key=KEY)}
    chat, responses = OpenAIChatModel(MODEL, **via), OpenAIResponsesModel(MODEL, **via)

    async def streamed(text: str) -> list[str]:
        async with Agent(chat, model_settings=SHORT).run_stream(text) as result:
            return [part async for part in result.stream_text(delta=True, debounce_by=None)]

    assert "".join(asyncio.run(streamed(long_text("Agent"))))
    for model in (chat, responses):
        agent = Agent(model, instructions="Be brief.", model_settings=SHORT)
        assert agent.run_sync("Say hello.").usage.output_tokens
        agent = Agent(model, output_type=Weather, model_settings=LONG)
        assert isinstance(agent.run_sync(QUESTION).output, Weather)
    agent = Agent(chat, output_type=NativeOutput(Weather), model_settings=LONG)
    assert isinstance(agent.run_sync(QUESTION).output, Weather)


def case_instructor():
    modes = instructor.Mode
    asked = {"model": MODEL, "messages": ASKED, "max_retries": 1, **LONG, "response_model": Weather}
    for mode in (modes.TOOLS, modes.JSON_SCHEMA):
        client = instructor.from_openai(openai.OpenAI(base_url=BASE, api_key=KEY, max_retries=0), mode=mode)
        assert isinstance(client.chat.completions.create(**asked), Weather)
    client = anthropic.Anthropic(base_url=ROOT, api_key=KEY, max_retries=0)
    client = instructor.from_anthropic(client, mode=modes.ANTHROPIC_TOOLS)
    assert isinstance(client.messages.create(**asked), Weather)


def case_openai_agents():
    """Its loop ends at the first answer without a call, or by its own limit of turns."""
    client = openai.AsyncOpenAI(base_url=BASE, api_key=KEY, max_retries=0)
    must = agents.ModelSettings(tool_choice="required", **LONG)
    tells = {"tools": [agents.function_tool(tell_weather)], "tool_use_behavior": "stop_on_first_tool"}
    types = {"output_type": Weather, "model_settings": agents.ModelSettings(**LONG)}
    for kind in (agents.OpenAIResponsesModel, agents.OpenAIChatCompletionsModel):
        caller = agents.Agent("Caller", model=kind(MODEL, client), model_settings=must, **tells)
        assert "," in agents.Runner.run_sync(caller, QUESTION, max_turns=2).final_output
        writer = agents.Agent("Writer", model=kind(MODEL, client), **types)
        assert isinstance(agents.Runner.run_sync(writer, QUESTION, max_turns=1).final_output, Weather)


def case_huggingface_hub():
    client = InferenceClient(base_url=BASE, api_key=KEY)
    chunks = client.chat_completion(HELLO, **SHORT, stream=True)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    form = {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}}
    typed = client.chat_completion(ASKED, **LONG, response_format=form)
    Weather.model_validate_json(typed.choices[0].message.content)
    called = client.chat_completion(ASKED, **LONG, tools=[TOOL], tool_choice="required")
    assert json.loads(called.choices[0].message.tool_calls[0].function.arguments)


def case_dspy():
    class Tell(dspy.Signature):
        """Tells the weather."""

        question: str = dspy.InputField()
        weather: Weather = dspy.OutputField()

    form = {"type": "json_schema", "json_schema": {"name": "tell", "schema": {
        "type": "object", "properties": {"weather": SCHEMA}, "required": ["weather"],
        "additionalProperties": False}}}  # fmt: skip
    model = dspy.LM("openai/starter", api_base=BASE, api_key=KEY, **LONG, cache=False, num_retries=0)
    assert model("Say hello.", max_tokens=12)[0]
    with dspy.context(lm=model, adapter=dspy.JSONAdapter()):
        told = dspy.Predict(Tell, response_format=form)(question=QUESTION)
    assert isinstance(told.weather, Weather)


def case_anthropic_tool_runner():
    client = anthropic.Anthropic(base_url=ROOT, api_key=KEY, max_retries=0)
    runner = client.beta.messages.tool_runner(
        model=MODEL, **LONG, tools=[anthropic.beta_tool(tell_weather)], tool_choice={"type": "any"},
        messages=ASKED, max_iterations=2,
    )  # fmt: skip
    first, _ = runner
    assert first.stop_reason == "tool_use"
    Weather.model_validate(first.content[0].input)


if __name__ == "__main__":
    run(globals())
