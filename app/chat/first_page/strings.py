"""Every text of this folder that a person reads."""

from __future__ import annotations

# ---- first page
READY = "{model} is ready."
GETTING_READY = "Loading {model}…"
A_MODEL = "the model"
RUNS_HERE_MAC = "It runs on this Mac. Nothing you write leaves it."
RUNS_HERE = "It runs on this computer. Nothing you write leaves it."
HOW_WRITTEN = "How an answer is written"
EXAMPLE_DOCUMENT = "Read a long document"
EXAMPLE_DOCUMENT_SAYS = (
    "See what is read of Draftlight’s handbook, what is skipped, and how fast."
    " Good answers need a larger model."
)
EXAMPLE_DOCUMENT_TEXT = "Does a table hold any texts, names or times, and what can be drawn out of it?"
HANDBOOK = "handbook.md"
EXAMPLE_CODE = "Write some code"
EXAMPLE_CODE_SAYS = "Code repeats itself, so most of the draft tends to be accepted."
EXAMPLE_CODE_TEXT = "Write a Python function that adds two numbers. Reply with the code only."
EXAMPLE_LIST = "Write a list"
EXAMPLE_LIST_SAYS = "In a regular format, the next tokens are easy to guess."
EXAMPLE_LIST_TEXT = "List the twelve months of the year."
