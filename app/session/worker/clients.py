"""What to call a client of the local server. Pure."""

from __future__ import annotations

import re

_VERSION = re.compile(r"/v?\d[\w.+-]*$")
_BROWSER = "Mozilla"


def short_name(agent: str) -> str:
    """The program in a user agent, without its version: `OpenAI/Python 2.8.1` is `OpenAI/Python`."""
    first = agent.split(maxsplit=1)[0] if agent.strip() else ""
    name = _VERSION.sub("", first)
    if name == _BROWSER:
        return "Browser"
    return agent if agent == "Unknown client" else name
