"""What the transcript says. Every text a person sees in it is here, so it can be translated."""

from __future__ import annotations

# ---- token classes
CLASS_NAMES = {"accepted": "Accepted draft", "bonus": "Bonus", "normal": "Normal"}
CLASS_EXPLAINED = {
    "accepted": "Guessed ahead by the drafter, then checked by the model. Solid underline.",
    "bonus": "The extra token the model gives for free after a check. Dotted underline.",
    "normal": "Written one at a time, with no draft to check. No mark.",
}
LEGEND_HINT = "Hover over a token for details"

# ---- tooltip
TIP_CLASS = "Class"
TIP_STEP = "Step"
TIP_DRAFTER = "Drafter"
TIP_POSITION = "Position"
TIP_ARRIVED = "Arrived"
NONE = "–"
TOKEN_ID = "id {id}"
STEP_OF = "{step:,} of {steps:,}"
POSITION_OF = "{index} of {length} drafted"
ARRIVED_ALONE = "{seconds}, alone"
ARRIVED_WITH_ONE = "{seconds}, with 1 other"
ARRIVED_WITH = "{seconds}, with {others} others"
SECONDS = "{value} s"
END_OF_ANSWER = "end of answer"
PART_OF = "part of {text}"

# ---- answer footer
SPEED = "{value} tok/s"
FIRST_TOKEN = "TTFT {seconds}"
ONE_TOKEN = "1 token"
TOKENS = "{tokens:,} tokens"
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
COPIED = "Copied"
COPY_FIGURE = "Copy “{figure}”"
COPY_FIGURES = "Copy all figures"
REGENERATE = "Answer again"
CONTINUE = "Continue writing"
BRANCH = "Go on from here in a new chat"
EDIT_MESSAGE = "Edit and send again"
IMPORTED = "imported, without figures"
STRIP_NAME = "Where the tokens came from"
STRIP_SAYS = "{accepted:,} accepted, {bonus:,} bonus, {normal:,} normal"

# ---- reading
READING = "Reading {total:,} tokens"
READING_REST = "Reading {unread:,} of {total:,} tokens"
READING_DONE = "{done:,} of {unread:,} tokens read"
LEFT = "About {time} left"
DURATION_S = "{seconds} s"
DURATION_MIN = "{minutes} min {seconds} s"
DURATION_H = "{hours} h {minutes} min"
SCORING_TITLE = "Looking through {total:,} tokens"
SCORING_DONE = "Finding the passages that matter"
READING_SOME_OF = "Reading {read:,} of {total:,} tokens"
READING_KEPT = "{done:,} of {kept:,} kept tokens read"
SCORING = "Scoring"
SCORED = "Scored"
CHOSEN = "Chosen"
READING_PHASE = "Reading"
SCORING_NOTE = "{done:,} of {total:,} tokens"
SCORED_BY = "{passages:,} passages by {scorer}"
SCORED_IN = ", {seconds:.1f} s"
CHOSEN_NOTE = "{passages:,} passages, {percent}% of the text"
READING_SPEED = "{rate:,.0f} tok/s"
KEY_READ = "Read"
KEY_KEPT = "Kept, waiting"
KEY_SKIPPED = "Skipped"
MAP_HINT = "Click the map to see that place in the document"
MAP_NAME = "Reading map"
READ_EVERYTHING = "Read everything"
EVERYTHING = "All {tokens:,} tokens"
EVERYTHING_IN = "All {tokens:,} tokens, about {time}"
CANCEL = "Cancel"
READ_PERCENT = "{size} · read {percent}%"
OPEN_DOCUMENT = "Show {name} in the Document tab"
READING_NOTE = "The answer starts as soon as this is done. You can keep typing."

# ---- messages
ANSWER_NAME = "Answer"
ANSWER_DONE = "The answer is complete"
MESSAGE_NAME = "Your message"
COPY_MESSAGE = "Copy message"
COPY_SOURCE = "Copy as it was written"
COPY_CODE = "Copy"
COPY_CODE_NAME = "Copy code"
UNSHOWN = "This text cannot be shown. “Copy” gives it as it was written."
NEWEST = "Newest"
TRANSCRIPT_NAME = "Conversation"
SELECTED_MESSAGES = "Selected in {count} messages"


def tokens(count: int) -> str:
    """So many of them."""
    return ONE_TOKEN if count == 1 else TOKENS.format(tokens=count)


def about(words: str) -> str:
    """A figure that is not exact."""
    return f"about {words}"


# ---- first page
READY = "{model} is ready."
GETTING_READY = "Getting {model} ready…"
A_MODEL = "the model"
RUNS_HERE_MAC = "It runs on this Mac. Nothing you write leaves it."
RUNS_HERE = "It runs on this computer. Nothing you write leaves it."
HOW_WRITTEN = "How an answer is written"
EXAMPLE_DOCUMENT = "Ask about a long document"
EXAMPLE_DOCUMENT_SAYS = "Paste it, then ask. An answer that quotes it is drafted from it."
EXAMPLE_DOCUMENT_TEXT = "Quote the sentences that say what has to be done, and by when:\n\n"
EXAMPLE_CODE = "Change some code"
EXAMPLE_CODE_SAYS = "Code repeats itself, so most of the draft tends to be accepted."
EXAMPLE_CODE_TEXT = """Rename `total` to `sum_of_prices` in this function and give all of it back:

def bill(prices):
    total = 0
    for price in prices:
        total = total + price
    return total
"""
EXAMPLE_LIST = "Tidy up a list"
EXAMPLE_LIST_SAYS = "Copying with small changes is where drafting helps most."
EXAMPLE_LIST_TEXT = """Give this list back in alphabetical order, one a line:

lanterns
ropes
anchors
signal flags
charts
"""

# ---- attaching files
READING_FILE = "Reading"
READING_PAGE = "Page {page:,} of {pages:,}"


def files_not_attached(count: int) -> str:
    return f"{count} files were not attached."


def and_more_files(count: int) -> str:
    return f"And {count:,} more."


# ---- inside an answer
THINKING = "Thinking, {seconds}"
THOUGHT = "Thought for {seconds}"
THOUGHT_SAYS = "What the model wrote before its answer. Press to fold out or in."
MENU_COPY = "Copy"
MENU_COPY_MARKDOWN = "Copy answer as Markdown"
MENU_COPY_CODE = "Copy code"
MENU_COPY_LINK = "Copy link"
MENU_OPEN_LINK = "Open link"
MENU_SELECT_ALL = "Select all"
TIP_LINK = "Opens outside:"

# ---- finding
FIND = "Find in chat"
FIND_NEXT = "Next match"
FIND_PREVIOUS = "Previous match"
FIND_CLOSE = "Close"
FIND_COUNT = "{number:,} of {count:,}"
FIND_NONE = "No matches"
