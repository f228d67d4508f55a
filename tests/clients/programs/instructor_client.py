"""Instructor: typed answers by tools, by a schema and by Anthropic's API."""

import instructor
from anthropic import Anthropic
from cases import BASE, KEY, MODEL, QUESTION, ROOT, Weather, run
from openai import OpenAI

ASKED = {"model": MODEL, "messages": [{"role": "user", "content": QUESTION}], "max_retries": 1}


def _by(mode: instructor.Mode) -> None:
    client = instructor.from_openai(OpenAI(base_url=BASE, api_key=KEY, max_retries=0), mode=mode)
    told = client.chat.completions.create(response_model=Weather, max_tokens=80, **ASKED)
    assert isinstance(told, Weather)


def case_by_tools():
    _by(instructor.Mode.TOOLS)


def case_by_a_schema():
    _by(instructor.Mode.JSON_SCHEMA)


def case_by_anthropics_api():
    client = instructor.from_anthropic(
        Anthropic(base_url=ROOT, api_key=KEY, max_retries=0), mode=instructor.Mode.ANTHROPIC_TOOLS
    )
    told = client.messages.create(response_model=Weather, max_tokens=80, **ASKED)
    assert isinstance(told, Weather)


if __name__ == "__main__":
    run(globals())
