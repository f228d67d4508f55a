"""Images: each client sends one, and the model has its rows in the prompt."""

import json

import anthropic
import httpx
import litellm
import openai
from anthropic import Anthropic
from cases import BASE, IMAGE, IMAGE_BASE64, IMAGE_ROWS, IMAGE_URL, KEY, MODEL, ROOT, SEES, refused, run
from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from openai import OpenAI
from pydantic_ai import Agent, BinaryContent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

by_openai = OpenAI(base_url=SEES, api_key=KEY, max_retries=0)
by_anthropic = Anthropic(base_url=SEES.removesuffix("/v1"), api_key=KEY, max_retries=0)
WORDS = "What is it?"
# Of the image, and the two tokens around it.
MORE = IMAGE_ROWS + 2
PARTS = [{"type": "text", "text": WORDS}, {"type": "image_url", "image_url": {"url": IMAGE_URL}}]
SHORT = {"model": "sees", "max_tokens": 4}
BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": IMAGE_BASE64}}


def said(content):
    return [{"role": "user", "content": content}]


def case_openai_chat():
    plain = by_openai.chat.completions.create(**SHORT, messages=said(WORDS))
    answer = by_openai.chat.completions.create(**SHORT, messages=said(PARTS))
    assert answer.model_extra["draftlight"]["image_tokens"] == IMAGE_ROWS
    assert answer.usage.prompt_tokens == plain.usage.prompt_tokens + MORE
    asked = {**SHORT, "messages": said(PARTS), "stream": True, "stream_options": {"include_usage": True}}
    *_, last = by_openai.chat.completions.create(**asked)
    assert last.usage.prompt_tokens == answer.usage.prompt_tokens


def case_openai_responses():
    content = [{"type": "input_text", "text": WORDS},
               {"type": "input_image", "image_url": IMAGE_URL, "detail": "auto"}]  # fmt: skip
    asked = {"model": "sees", "max_output_tokens": 4}
    first = by_openai.responses.create(**asked, input=said(content))
    assert first.model_extra["draftlight"]["image_tokens"] == IMAGE_ROWS
    counted = by_openai.responses.input_tokens.count(model="sees", input=said(content))
    assert counted.input_tokens == first.usage.input_tokens
    second = by_openai.responses.create(**asked, input="And now?", previous_response_id=first.id)
    assert second.model_extra["draftlight"]["image_tokens"] == IMAGE_ROWS
    call = {"type": "function_call", "call_id": "c", "name": "look", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": content[1:]}
    after = by_openai.responses.create(**asked, input=[*said("Look."), call, result])
    assert after.model_extra["draftlight"]["image_tokens"] == IMAGE_ROWS


def case_anthropic():
    content = [BLOCK, {"type": "text", "text": WORDS}]
    answer = by_anthropic.messages.create(**SHORT, messages=said(content))
    assert answer.model_extra["draftlight"]["image_tokens"] == IMAGE_ROWS
    counted = by_anthropic.messages.count_tokens(model="sees", messages=said(content)).input_tokens
    assert counted == answer.usage.input_tokens + answer.usage.cache_read_input_tokens
    with by_anthropic.messages.stream(**SHORT, messages=said(content)) as stream:
        usage = stream.get_final_message().usage
    assert counted == usage.input_tokens + usage.cache_read_input_tokens
    call = {"type": "tool_use", "id": "c", "name": "look", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": [BLOCK]}
    turns = [*said("Look."), {"role": "assistant", "content": [call]}, *said([result])]
    after = by_anthropic.messages.create(**SHORT, messages=turns)
    assert after.model_extra["draftlight"]["image_tokens"] == IMAGE_ROWS


def case_open_webui():
    """Its body, with the fields that it adds, and its stream of lines."""
    turns = [{"role": "system", "content": "Be brief."}, *said(PARTS)]
    body = {**SHORT, "messages": turns, "stream": True, "stream_options": {"include_usage": True}}
    headers = {"authorization": f"Bearer {KEY}", "content-type": "application/json"}
    with httpx.stream("POST", f"{SEES}/chat/completions", json=body, headers=headers, timeout=60) as reply:
        lines = [line[6:] for line in reply.iter_lines() if line.startswith("data: ")]
    assert lines[-1] == "[DONE]"
    assert json.loads(lines[-2])["draftlight"]["image_tokens"] == IMAGE_ROWS


def case_litellm():
    by_chat = {"model": "openai/sees", "api_base": SEES, "api_key": KEY, "num_retries": 0}
    by_messages = {**by_chat, "model": "anthropic/sees", "api_base": SEES.removesuffix("/v1")}
    for client in (by_chat, by_messages):
        counts = [
            litellm.completion(**client, messages=said(each), max_tokens=4).usage.prompt_tokens
            for each in (WORDS, PARTS)
        ]
        assert counts[1] == counts[0] + MORE, counts


def case_langchain():
    chat = ChatOpenAI(model="sees", base_url=SEES, api_key=KEY, max_retries=0, max_tokens=4)
    blocks = [{"type": "text", "text": WORDS},
              {"type": "image", "base64": IMAGE_BASE64, "mime_type": "image/png"}]  # fmt: skip
    plain, seen = (chat.invoke([HumanMessage(content=each)]) for each in (WORDS, blocks))
    assert seen.usage_metadata["input_tokens"] == plain.usage_metadata["input_tokens"] + MORE


def case_pydantic_ai():
    provider = OpenAIProvider(base_url=SEES, api_key=KEY)
    for kind in (OpenAIChatModel, OpenAIResponsesModel):
        agent = Agent(kind("sees", provider=provider), model_settings={"max_tokens": 16})
        plain = agent.run_sync(WORDS).usage
        seen = agent.run_sync([WORDS, BinaryContent(IMAGE, media_type="image/png")]).usage
        counts = [(each() if callable(each) else each).input_tokens for each in (plain, seen)]
        assert counts[1] == counts[0] + MORE, (kind, counts)


def case_models_that_see():
    [model, _] = by_openai.models.list().data
    assert "vision" in model.model_extra["capabilities"]
    assert by_anthropic.models.list().data[0].id == model.id


def case_refused():
    remote = [{"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]
    error = refused(
        openai.BadRequestError,
        lambda: by_openai.chat.completions.create(**SHORT, messages=said(remote)),
    )
    assert (error.param, error.code) == ("messages[0].content[0].image_url.url", "invalid_image")
    blind = OpenAI(base_url=BASE, api_key=KEY, max_retries=0)
    error = refused(
        openai.BadRequestError,
        lambda: blind.chat.completions.create(model=MODEL, max_tokens=4, messages=said(PARTS)),
    )
    assert (error.param, error.code) == ("messages[0].content[1]", "model_does_not_see")
    blind = Anthropic(base_url=ROOT, api_key=KEY, max_retries=0)
    error = refused(
        anthropic.BadRequestError,
        lambda: blind.messages.create(model=MODEL, max_tokens=4, messages=said([BLOCK])),
    )
    assert "messages[0].content[0]" in error.body["error"]["message"]


if __name__ == "__main__":
    run(globals())
