"""A process that streams an answer into a library, prints how far it is, and waits to be killed."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from app.session.chats.conversation import Conversation
from app.store.library import Library
from core.events import Message
from tests.app.store.chats import NOON, written


def main() -> None:
    library = Library(Path(sys.argv[1]))
    chat = Conversation("c", NOON).ask("t", Message("user", "Tell me everything."))
    tokens = written("t", 200_000)
    for begin in range(0, len(tokens), 10):
        chat = chat.write("t", tokens[begin : begin + 10])
        library.save(chat)
        print(begin + 10, flush=True)
        time.sleep(0.005)


if __name__ == "__main__":
    main()
