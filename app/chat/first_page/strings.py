"""Every text of this folder that a person reads."""

from __future__ import annotations

# ---- first page
READY = "{model} is ready."
GETTING_READY = "Loading {model}…"
A_MODEL = "the model"
RUNS_HERE_MAC = "It runs on this Mac. Nothing you write leaves it."
RUNS_HERE = "It runs on this computer. Nothing you write leaves it."
HOW_WRITTEN = "How an answer is written"
EXAMPLE_DOCUMENT = "Ask about a long document"
EXAMPLE_DOCUMENT_SAYS = (
    "Draftlight’s handbook comes along. See which passages are read, and which are skipped."
)
EXAMPLE_DOCUMENT_TEXT = "Does a table hold any texts, names or times, and what can be drawn out of it?"
HANDBOOK = "handbook.md"
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
