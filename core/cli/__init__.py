"""The command `draftlight`, which opens the window or runs a subcommand on the same engine.

Exit status: 0 success, 1 failure (explained on stderr), 2 wrong usage, 130 stopped by Ctrl-C, 141 the reader
of the output closed it. Nothing is imported before `main()`, so Ctrl-C never prints a traceback.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

# Processes that other processes of Draftlight start.
_CHILDREN = (
    "--worker",
    "--download",
    "--read",
    "--read-chats",
    "--read-image",
    "--draw-pages",
    "--template",
    "--try-tokenizer",
    "--read-pages",
    "--typeset",
    "--tools",
)


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point. `argv` defaults to `sys.argv[1:]`."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] and arguments[0] in _CHILDREN:
        from core.system.terminal import escape_stderr

        escape_stderr()
    if arguments == ["--worker"]:
        from core.worker.main import main as worker

        return worker()
    if arguments[:1] == ["--download"] and len(arguments) == 2:
        from core.worker.model_service import main as download

        return download(arguments[1])
    if arguments[:1] == ["--read"]:
        from core.documents.reading import main as read

        return read(arguments[1:])
    if arguments[:1] == ["--read-image"]:
        from core.documents.images import main as read_image

        return read_image(arguments[1:])
    if arguments[:1] == ["--draw-pages"]:
        from core.documents.page_images import main as draw_pages

        return draw_pages(arguments[1:])
    if arguments[:1] == ["--read-chats"]:
        from core.chat_archives.process import main as read_chats

        return read_chats(arguments[1:])
    if arguments[:1] == ["--template"]:
        from core.system.template_child import main as template

        return template(arguments[1:])
    if arguments[:1] == ["--try-tokenizer"]:
        from core.folders.tokenizer_limits import main as try_tokenizer

        return try_tokenizer(arguments[1:])
    if arguments[:1] == ["--read-pages"]:
        from core.system.sqlite_pages import main as read_pages

        return read_pages(arguments[1:])
    if arguments == ["--typeset"]:
        from core.typesetting.child import main as typeset

        return typeset()
    if arguments == ["--tools"]:
        from core.tools.host.main import main as tools

        return tools()
    try:
        from core.cli.command_line import run

        return run(arguments)
    except KeyboardInterrupt:
        return 130
