"""All texts of the open chat that a person reads."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from app.session.strings import MACHINE
from core.documents.folder import Skipped

RESTART_WORKER = "Restart Engine"
TRY_AGAIN = "Try Again"
DOWNLOAD_MODEL = "Download and Load"
RESTORE_CHATS = "Restore from Backup"
REPAIR_CHATS = "Repair"
REPAIR_INCOMPLETE = "Repair Without Them"
OPEN_TABLES = "Open Tables"
DETAILS = "Details"
HIDE_DETAILS = "Hide Details"
CLOSE_BANNER = "Dismiss"
CLOSE_NOTICE = "Dismiss"
UNDO = "Undo"
NEXT_TROUBLE = "Next"
LOG_NAME = "Last lines of the engine’s log"


def smaller_context(tokens: int) -> str:
    return f"Smaller context: {tokens:,} tokens"


def trouble_count(number: int, count: int) -> str:
    return f"{number} of {count}"


# ---- answer footer
SPEED = "{value} tok/s"
GAIN = "{times} times: {value} instead of {plain} tok/s"
GAIN_DETAIL = "Without drafts the model writes {plain} tokens a second here."
RESTED = "drafting paused"
RESTED_DETAIL = "Drafts would have slowed this answer down, so drafting was paused where it saves no time."
DRAWN = "Sampled with seed {seed}."
FIRST_TOKEN = "first token {seconds}"
ACCEPTED_PERCENT = "{percent}% of drafts accepted"
DRAFTS = "{accepted:,} of {tested:,} drafted tokens accepted"
NO_DRAFTS = "no drafts tested"
MEAN = "{value:.1f} tokens per step"
READ_ALL = "read all {total:,} tokens"
IMAGES_READ = "{tokens:,} in images, computed in {seconds}"
READ_SOME = "read {read:,} of {total:,} tokens"
CACHED = "{cached:,} cached"
SKIPPED = "{skipped:,} skipped"
ATTENDED = "attends to {attended:,}"
CHOSEN_BY = "Passages chosen by {scorer}."
CHOSEN_OF = "Passages chosen by {scorer}: {chosen}."
STOPPED_EARLY = "stopped early"
STOPPED_BY_YOU = "stopped by you"
STOPPED_REPEATING = "stopped: the answer repeated itself"
STOPPED_AT_LIMIT = "stopped at the token limit"
CHANGE = "{title} {used} instead of {asked}: {reason}"
EDIT_ANSWER = "Edit answer"
EDIT_ANSWER_SAYS = "The Markdown source of the answer. The model continues from what you write."
EDITED = "Edited"
SAVE = "Save"
SAVE_KEYS = "⌘Return" if sys.platform == "darwin" else "Ctrl+Return"
DISCARD_TITLE = "Discard your changes to this answer?"
DISCARD_DETAIL = "The answer stays as it was before."
DISCARD = "Discard"
KEEP_EDITING = "Keep Editing"
CALL = "Call"
COPY_FIGURE = "Copy “{figure}”"
COPY_FIGURES = "Copy All Figures"
CONTINUE = "Continue"
EDIT_MESSAGE = "Edit and resend"
DELETE_MESSAGE = "Delete question and answer"
VERSION = "Version {number} of {count}"
VERSION_KEYS = "Use ← and → for other versions"
IMPORTED = "imported, without figures"
READ_PERCENT = "{size} · read {percent}%"
SHOW_MORE = "Show More of {count} Characters"
SHOW_LESS = "Show Less"
SHOW_LESS_OF_MANY = "Show Less ({count} More Characters Can Be Copied)"
SHOW_ATTACHMENTS = "Show {count} Attachments"
HIDE_ATTACHMENTS = "Hide {count} Attachments"
OPEN_DOCUMENT = "Show {name} in the Document tab"

# ---- messages
ANSWER_NAME = "Answer"
WRITES = "Writing…"
YOU = "You"
EXPORTED_ATTACHMENT = "Attached: {name}"
EXPORTED_IMAGE = "Image: {name}"
EXPORTED_IMAGE_MISSING = "The image “{name}” is missing."
EXPORTED_THOUGHT = "Thought"
ANSWER_DONE = "The answer is complete"
MESSAGE_NAME = "Your message"
COPY_MESSAGE = "Copy message"

# ---- inside an answer
THINKING = "Thinking, {seconds}"
THOUGHT = "Thought for {seconds}"
IMPORTED_THOUGHT = "Thought"
ACCEPTED_SHARE = "{accepted:,} from drafts ({percent}%)"
ANSWER_ALONE = "answer {tokens} in {seconds}"
WITH_THOUGHT = "{tokens} with the thought"
WITH_THOUGHT_DETAIL = "The following figures include the thought."
THOUGHT_SAYS = "The model’s reasoning before its answer. Press to show or hide it."
REPEATED = "Repeated text"
REPEATED_SAYS = "The answer repeats the text above. Press to show or hide the repetition."
MENU_COPY_MARKDOWN = "Copy Answer as Markdown"
MENU_EDIT = "Edit Answer"
MENU_DELETE = "Delete Question and Answer"
MENU_CONTINUE = "Continue from Here"
UNMATCHED = "Nothing in the text matches this question."
SOURCES = "Similar passages"
OPEN_SOURCE = "Show passage {number} in the document"
MENU_COPY_WITH_SOURCES = "Copy with Sources"
IN_SKIPPED = "In a passage that was not read"
OPEN_PLACE = "Click or press Return to show it in the document."
OPEN_MESSAGE = "Click or press Return to show the message."
SHOW_NOWHERE = "Show in Answer"
SHOW_NOWHERE_SAYS = "Points at the next figure or name that is not in your documents."
NO_WORDS_MARKED = "Nothing in this answer is marked"
MOST_LISTED = 4


def other_places(count: int) -> str:
    return "Also at another place" if count == 1 else f"Also at {count} other places"


def facts_line(counts: Mapping[str, int], nowhere: Sequence[str]) -> str:
    """How many facts of each state an answer has, and those without a source; empty without facts."""
    total, found = sum(counts.values()), counts.get("document", 0)
    if not total:
        return ""
    parts = [f"{found} {'is' if found == 1 else 'are'} in the documents"] if found else []
    if asked := counts.get("question", 0):
        parts.append(f"{asked} in the question")
    if computed := counts.get("computed", 0):
        parts.append(f"{computed} computed")
    if skipped := counts.get("skipped", 0):
        parts.append(f"{skipped} in passages that were not read")
    if nowhere:
        listed = ", ".join(nowhere[:MOST_LISTED]) + (", …" if len(nowhere) > MOST_LISTED else "")
        verb = "is not" if len(nowhere) == 1 else "are not"
        if not parts:
            verb = "is in no document" if len(nowhere) == 1 else "are in no document"
        parts.append(f"{len(nowhere)} {verb}: {listed}")
    name = "figure or name" if total == 1 else "figures and names"
    return f"{total} {name}: {', '.join(parts)}"


def skipped_line(texts: Sequence[str]) -> str:
    """“8,400 is in a passage that was not read.”"""
    listed = ", ".join(texts[:MOST_LISTED]) + (", …" if len(texts) > MOST_LISTED else "")
    if len(texts) == 1:
        return f"{listed} is in a passage that was not read."
    return f"{listed} are in passages that were not read."


def remove_attachment(name: str) -> str:
    return f"Remove {name}"


def stop_reading(name: str) -> str:
    return f"Stop reading {name}"


def indexing(fraction: float) -> str:
    return f"Indexing, {fraction:.0%}"


ONE_TOKEN = "1 token"
TOKENS = "{tokens:,} tokens"


def tokens(count: int) -> str:
    """`count` with its unit."""
    return ONE_TOKEN if count == 1 else TOKENS.format(tokens=count)


def about(words: str) -> str:
    """An estimated figure: “~3,200 tokens”."""
    return f"~{words}"


# Common names of encodings. Others are shown as their codec in capitals.
_ENCODINGS = {
    "cp1250": "Windows Central European", "cp1251": "Windows Cyrillic", "cp1252": "Windows Western",
    "cp1253": "Windows Greek", "cp1254": "Windows Turkish", "cp1255": "Windows Hebrew",
    "cp1256": "Windows Arabic", "cp1257": "Windows Baltic", "cp932": "Shift JIS", "gb18030": "GB 18030",
    "cp949": "Korean", "big5hkscs": "Big5", "mac_roman": "Mac Roman", "cp437": "DOS US",
    "cp850": "DOS Western", "cp852": "DOS Central European", "cp866": "DOS Cyrillic", "cp874": "Thai",
}  # fmt: skip


def encoding_name(codec: str) -> str:
    return _ENCODINGS.get(codec, codec.upper().replace("_", "-"))


def guessed(size: str, codec: str) -> str:
    return f"{size}, {encoding_name(codec)}?"


def read_already(size: str) -> str:
    """“3,201 tokens, read”."""
    return f"{size}, read"


def reading_ahead(fraction: float | None) -> str:
    return f"{fraction or 0:.0%} read before you ask"


def without(size: str, missing: str) -> str:
    """“~44 tokens, without 1 hidden row”."""
    return f"{size}, without {missing}" if missing else size


def read_as(codec: str) -> str:
    return f"Read as {encoding_name(codec)}"


# ---- attaching files
READING_FILE = "Reading"
READING_PAGE = "Page {page:,} of {pages:,}"


READING_FOLDER = "Listing files"


def reading_folder(number: int, files: int) -> str:
    return f"File {number:,} of {files:,}"


def folder_text_full(most_characters: int) -> str:
    return f"more than {most_characters:,} characters in all"


EMPTY_FOLDER = "The folder is empty. Choose another folder, or files."


def nothing_in_folder(name: str) -> str:
    return f"The folder “{name}” contains no readable files."


def folder_attached(name: str, files: int, skipped: int) -> str:
    what = "1 file" if files == 1 else f"{files:,} files"
    left_out = f", {skipped:,} skipped" if skipped else ""
    return f"Attached {what} of “{name}”{left_out}"


SHOW_SKIPPED = "Show Skipped Files"


def skipped_title(name: str) -> str:
    return f"Skipped in “{name}”"


def skipped_note(count: int) -> str:
    return "1 was skipped" if count == 1 else f"{count:,} were skipped"


def skipped_text(skipped: Sequence[Skipped]) -> str:
    return "\n".join(f"{each.name}: {each.reason.rstrip('.')}" for each in skipped)


def files_not_attached(count: int) -> str:
    return f"{count} files were not attached."


def and_more_files(count: int) -> str:
    return f"And {count:,} more."


ASK_FIRST = "Ask anything, or drop a file"
ASK_QUEUED = "Your next message, sent after this answer"
MESSAGE = "Message"
ATTACH = "Attach files and images"
ATTACH_FILE = "Attach Files"
ATTACH_FOLDER = "Attach Folder"
FROM_FILES = "Files…"
FROM_FOLDER = "Folder…"
FROM_LIBRARY = "From Library…"


DROP_TO_ATTACH = "Drop to attach"
DROP_TO_IMPORT = "Drop to import chats"
SEND = "Send message"
STOP = "Stop generating"
THINK_FIRST = "Think first"
THINK_FIRST_SAYS = "Whether the model thinks before it answers in this chat"
PASTED_TEXT = "Pasted text"
PASTED_IMAGE = "Pasted image"
QUOTED_TEXT = "Quoted text"


def reading_first(name: str) -> str:
    return f"“{name}” is still being read."


def remove_first(name: str) -> str:
    return f"“{name}” cannot be sent. Remove it first."


def numbered(name: str, number: int) -> str:
    return f"{name} {number}"


BEGINNING = " (beginning)"
WAY_NEW_CHAT = "Continue in New Chat"


def beginning_of(name: str) -> str:
    return name if name.endswith(BEGINNING) else name + BEGINNING


def short(name: str) -> str:
    """The name, elided for a button."""
    return name if len(name) <= 24 else f"{name[:14]}…{name[-9:]}"


def over_limit(over_tokens: int, limit_tokens: int, *, exact: bool = True) -> str:
    over = tokens(over_tokens)
    return f"{over if exact else about(over)} over this model’s limit of {limit_tokens:,}."


def way_shorten(name: str, tokens: int) -> str:
    """`name` is empty if there is only one document."""
    # Rounded, because the text is cut by characters.
    about = tokens if tokens < 1_000 else tokens // 100 * 100
    return f"Keep about the first {about:,} tokens" + (f" of {short(name)}" if name else "")


def way_remove(name: str, tokens: int) -> str:
    """`name` is empty if there is only one document."""
    return f"Remove {short(name) if name else 'document'} ({tokens:,} tokens)"


# ---- images
MOVE_LEFT = "Move Left"
MOVE_RIGHT = "Move Right"
OPEN_IMAGE = "Open Image"
COPY_IMAGE = "Copy Image"
SAVE_IMAGE_AS = "Save Image As…"
SAVE_IMAGE = "Save Image"
IMAGE_MISSING = "The image is missing"
IMAGE_MISSING_HINT = "Its file was removed from Draftlight’s data folder. Attach the image again."
MOVE_KEYS = "⌥← and ⌥→ move it" if sys.platform == "darwin" else "Alt+← and Alt+→ move it"
NOT_SEEN = "not seen by this model"
COPY_SHOWN = "Copy image"
SAVE_SHOWN = "Save image as…"
ZOOM_IN = "Zoom in"
ZOOM_OUT = "Zoom out"
ZOOM_TO_FIT = "Zoom to Fit"
PREVIOUS_IMAGE = "Previous image"
NEXT_IMAGE = "Next image"
VIEWER_NAME = "Image"
REMOVE_IMAGE = "Remove Image"
REMOVE_IMAGES = "Remove Images"


def image_not_saved(name: str, why: str) -> str:
    return f"“{name}” cannot be copied: {why.rstrip('.')}."


def pixels(width: int, height: int) -> str:
    return f"{width:,} × {height:,} pixels"


def image_rows(rows: int, width: int, height: int) -> str:
    """The size of an image in the prompt, and the size to which it is scaled for the model."""
    return f"about {tokens(rows)}, scaled to {width:,} × {height:,}"


def only_thumbnail(why: str) -> str:
    return f"Enlarged thumbnail. {why}"


def image_name(number: int, count: int, name: str) -> str:
    """For assistive technology."""
    return f"Image {number} of {count}, {name}" if count > 1 else f"Image, {name}"


def with_images(done: str, count: int) -> str:
    """Progress of the reading card, with the number of images."""
    return f"{done}, with {'an image' if count == 1 else f'{count:,} images'}"


IMAGES_LEFT_HINT = "Copy each image alone and paste it, or attach its file."


def images_left(count: int) -> str:
    return f"The text was pasted without its {'image' if count == 1 else f'{count:,} images'}."


def images_left_out(used: str, asked: str, reason: str) -> str:
    """`used` of `asked` images were in the prompt."""
    return f"Images in the prompt: {used} of {asked}. {reason[:1].upper()}{reason[1:].rstrip('.')}."


def context_pill(used_tokens: int, limit_tokens: int, *, exact: bool) -> str:
    used = f"{used_tokens:,}" if exact else about(f"{used_tokens:,}")
    return f"{used} of {limit_tokens:,} tokens" if limit_tokens else f"{used} tokens"


def context_spoken(figures: str) -> str:
    return f"Context: {figures}"


def context_parts(
    chat: tuple[int, bool], documents: tuple[int, bool], images: tuple[int, bool], typed: tuple[int, bool]
) -> str:
    """The parts of the sum: tokens, and whether they are counted. Images are listed only if any exist."""
    named = [
        ("This chat, with system prompt and template", chat),
        ("Attached documents", documents),
        ("Attached images", images),
        ("Typed text", typed),
    ]
    if images == (0, True):
        del named[2]
    lines = [f"{name}: {tokens(n) if exact else about(tokens(n))}" for name, (n, exact) in named]
    if not all(exact for _, (_, exact) in named):
        lines.append("~ marks an estimate, until the model has counted the tokens")
    return "\n".join(lines)


CANCEL = "Cancel"
REMOVE = "Remove"


SEND_NOW = "Send Now"


# Over the list of queued messages.
QUEUED = "Sent after this answer"
QUEUED_FOR_MODEL = "Sent as soon as the model is ready"
QUEUED_FOR_OTHERS = "Sent as soon as the model is free"
QUEUED_FOR_PAGES = "Sent as soon as its pages are drawn"
QUEUED_FOR_EDIT = "Sent after you send or cancel the edit"
# Why a queue is on hold, by the status of the last answer; empty: it was withdrawn.
HELD_BY = {
    "stopped": "On hold: last answer stopped. “Send Now” continues.",
    "failed": "On hold: last answer failed. “Send Now” continues.",
    "cut_off": "On hold: last answer cut off. “Send Now” continues.",
    "": "On hold: last message unsent. “Send Now” continues.",
}
HELD_SINCE_START = "On hold since the last start. “Send Now” continues."
HELD_DELETED = "On hold: chat was deleted. “Send Now” continues."
HELD_PAGES = "On hold: reading its pages as images was canceled. “Send Now” continues."
HELD_UNSEEN = "On hold: the model cannot see the image of the next message."
EDIT_QUEUED = "Edit"
QUEUE_NAME = "Waiting messages"


def queued_for(model: str) -> str:
    return f"Sent when {model} is ready"


def folded_queue(count: int, *, held: bool) -> str:
    return f"{count:,} on hold" if held else f"{count:,} waiting"


def queued_with(changes: Sequence[str]) -> str:
    """The settings of a queued message that differ from the chat's."""
    more = "" if len(changes) < 2 else f" and {len(changes) - 1} more"
    return f"{changes[0]}{more}" if changes else ""


def about_queued(action: str, number: int) -> str:
    return f"{action} waiting message {number:,}"


# ---- first page
READY = "{model} is ready."
GETTING_READY = "Loading {model}…"
A_MODEL = "the model"
NOT_LOADED = "No model is loaded."
STOPPED = "The engine has stopped."
UNLOADED = "{model} is unloaded."
RUNS_HERE = f"It runs on {MACHINE}. Nothing you write leaves it."
HOW_WRITTEN = "How an answer is written"
HOW_WRITTEN_SAYS = (
    "The drafter guesses the next words, and the model checks them all in one step."
    " The text stays the same, only faster."
)
EXAMPLE_DOCUMENT = "Read a long document"
EXAMPLE_DOCUMENT_SAYS = (
    "Ask about the manual of a heat pump, and see which passages are read and which are skipped."
)
EXAMPLE_DOCUMENT_TEXT = "How many litres does the cylinder hold?"
EXAMPLE_FILE = "heat-pump.md"
EXAMPLE_CODE = "Write some code"
EXAMPLE_CODE_SAYS = "Code repeats itself, so most of the draft tends to be accepted."
EXAMPLE_CODE_TEXT = "Write a Python function that adds two numbers. Reply with the code only."
EXAMPLE_LIST = "Write a list"
EXAMPLE_LIST_SAYS = "In a regular format, the next tokens are easy to predict."
EXAMPLE_LIST_TEXT = "List the twelve months of the year."


# ---- reading
READING_DONE = "{done:,} of {unread:,} tokens read"
SCORING_DONE = "Finding the passages that matter"
READING_KEPT = "{done:,} of {kept:,} kept tokens read"
SCORING = "Scoring"
SCORED = "Scored"
CHOSEN = "Chosen"
READING_PHASE = "Reading"
SCORING_NOTE = "{done:,} of {total:,} tokens"
SCORED_BY = "{passages:,} passages by {scorer}"
SCORED_IN = ", {seconds:.1f} s"
CHOSEN_NOTE = "{chosen:,} of {all:,} tokens ({percent}%)"
ALWAYS_READ = " + {always:,} always read"
READING_SPEED = "{speed} tok/s"
KEY_READ = "Read"
KEY_KEPT = "Kept, waiting"
KEY_EARLIER = "Read earlier"
KEY_SKIPPED = "Skipped"
MAP_HINT = "Click the map to see that place in the document"
MAP_NAME = "Reading map"
READ_EVERYTHING = "Read Everything"
EVERYTHING = "All {tokens:,} tokens"
MORE_THAN_FITS = "Longer than the context: only passages that fit are read"
EVERYTHING_IN = "All {tokens:,} tokens, about {time}"
CANCEL = "Cancel"
READING_NOTE = "The answer starts as soon as this is done. You can keep typing."


# ---- token classes
CLASS_NAMES = {"accepted": "Accepted draft", "bonus": "Bonus", "normal": "Alone"}
CLASS_EXPLAINED = {
    "accepted": "Guessed by the drafter and confirmed by the model. Tinted.",
    "bonus": "The model’s own token after a check, at no extra cost. Dotted underline.",
    "normal": "Written without a draft, or after one of which nothing was accepted. No mark.",
}
LEGEND_HINT = "Hover over a token for details"
ORIGIN_KEYS = ("In a document", "Not in your documents")
ORIGINS_HINT = "Hover over marked words for their passage"
SOURCES_OF_DRAFTS = {
    "n-gram": "N-gram of the chat",
    "ranking": "Model’s earlier candidates",
    "table": "Learned table",
    "head": "Trained head",
    "draft model": "Draft model",
    "prediction": "Predicted answer",
    "grammar": "Grammar",
}
DRAFTED_FROM = "Drafts of the last answer: {sources}"
DRAFTED_FROM_ONE = "{source} {tokens:,}"

# ---- tooltip
TIP_ACCEPTED = "Guessed by {drafter}, then confirmed by the model."
TIP_BONUS = "The model’s own token after a check of guesses, at no extra cost."
TIP_NORMAL = "Written by the model alone: nothing was guessed, or no guess was right."
THE_DRAFTER = "the drafter"
DRAFTER_FROM = "{drafter} ({source})"
TIP_STEP = "Step {step:,} of {steps:,}"
TIP_GUESS = "guess {index} of {length}"
TIP_STEP_TOKENS = "Its tokens: {tokens}"
TIP_REJECTED = "{accepted} of {length} guesses accepted, {rejected} rejected"
TIP_INSTEAD = "Guessed instead: {texts}"
ARRIVED = "{seconds} after the question"
ARRIVED_WITH_ONE = "{seconds} after the question, with 1 other token"
ARRIVED_WITH = "{seconds} after the question, with {others} other tokens"
SECONDS = "{value} s"
END_OF_ANSWER = "end of answer"
PART_OF = "part of {text}"
STRIP_NAME = "Token classes"
STRIP_SAYS = "{accepted:,} accepted, {bonus:,} bonus, {normal:,} alone"
TIP_LINK = "Opens in your browser:"


COPY_SOURCE = "Copy Source"
NEWEST = "Scroll to the end"
FIND_IN_CHAT = "Find in chat"
TRANSCRIPT_NAME = "Conversation"
SELECTED_MESSAGES = "Selected in {count} messages"
