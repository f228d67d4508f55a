"""Every text of this folder that a person reads."""

from __future__ import annotations

# ---- answer footer
SPEED = "{value} tok/s"
FIRST_TOKEN = "TTFT {seconds}"
DRAFTS = "{accepted:,}/{tested:,} drafts accepted ({percent}%)"
NO_DRAFTS = "no drafts tested"
MEAN = "mean {value:.1f}/step"
READ_ALL = "read all {total:,} tokens"
READ_REST = "read {read:,} of {total:,} tokens, rest remembered"
READ_SOME = "read {read:,} of {total:,} tokens"
CHOSEN_BY = "Passages chosen by {scorer}."
STOPPED_EARLY = "stopped early"
STOPPED_BY_YOU = "stopped by you"
STOPPED_AT_LIMIT = "stopped at the token limit"
CHANGE = "{title} {used} instead of {asked}: {reason}"
COPY_ANSWER = "Copy answer"
COPY_FIGURE = "Copy “{figure}”"
COPY_FIGURES = "Copy all figures"
REGENERATE = "Answer again"
CONTINUE = "Continue writing"
BRANCH = "Go on from here in a new chat"
EDIT_MESSAGE = "Edit and send again"
IMPORTED = "imported, without figures"
READ_PERCENT = "{size} · read {percent}%"
OPEN_DOCUMENT = "Show {name} in the Document tab"

# ---- messages
ANSWER_NAME = "Answer"
ANSWER_DONE = "The answer is complete"
MESSAGE_NAME = "Your message"
COPY_MESSAGE = "Copy message"

# ---- inside an answer
THINKING = "Thinking, {seconds}"
THOUGHT = "Thought for {seconds}"
THOUGHT_SAYS = "What the model wrote before its answer. Press to fold out or in."
MENU_COPY_MARKDOWN = "Copy answer as Markdown"
SOURCES = "Sources"
OPEN_SOURCE = "Show source {number} in the document"
