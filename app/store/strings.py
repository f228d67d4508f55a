"""The words about stored chats."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import shorten

_MOST_NAMES = 3

NEWER = "These chats were written by a newer Draftlight."
FOREIGN = "The file chats.db holds the data of another program."
FOREIGN_HINT = "Draftlight does not change it. Move it elsewhere and open Draftlight again to keep chats."
DISK_FULL = "The disk is full. Free some space; saving then resumes automatically."
DISK_IS_SLOW = "The disk is slow."
STORE_BUSY = "Another program is using the chat database."
NOT_WRITABLE = "The chat database is not writable. Check the permissions of its folder."


def newer_hint(found: int, known: int) -> str:
    return (
        f"Their format is version {found}; this Draftlight supports up to {known}. Update Draftlight to see"
        " them. Until then new chats are not saved."
    )


def not_saved(reason: str) -> str:
    return f"The chat database reports: {reason}."


def folder_missing(folder: str, reason: str) -> str:
    return f"Chats cannot be saved in {folder}: {reason}."


def image_not_kept(name: str) -> str:
    return f"The image “{name}” cannot be added."


def images_folder(folder: str, reason: str) -> str:
    return (
        f"Images cannot be saved in {folder}: {reason}. Check the folder and its permissions, and try again."
    )


OLDER = "These chats were written by an older Draftlight, whose format is not supported."


def older_hint(found: int, known: int) -> str:
    return f"Their format is version {found}, this Draftlight reads version {known}."


def set_aside(name: str) -> str:
    return f"The file was kept as {name}."


DAMAGED = "The chat database is damaged."
DAMAGED_HINT = (
    "Changes are kept in memory until it is repaired. Repairing saves readable chats in a new database and"
    " keeps the damaged file."
)
ANSWER_LOST = "This answer could not be read from the damaged chat database."


def question_lost(number: int) -> str:
    return f"[Question {number:,} could not be read from the damaged chat database.]"


def turns_lost(first: int, last: int) -> str:
    """Placeholder of the lost questions `first` to `last` of a chat, counted from 1, and their answers."""
    if first == last:
        what = f"Question {first:,} and its answer"
    else:
        what = f"Questions {first:,} to {last:,} and their answers"
    return f"[{what} could not be read from the damaged chat database.]"


def readable(readable: int, partial: int, known: int, backup: int | None) -> str:
    """`readable` of `known` chats, `partial` of them with missing turns; `backup` chats in the newest one."""
    chats = "chat" if known == 1 else "chats"
    text = f"{readable:,} of {known:,} {chats} can be read"
    if partial:
        text += f", {partial:,} of them only in part"
    if backup is None:
        return f"{text}. There is no backup."
    return f"{text}. The newest backup has {backup:,}, from which missing parts are taken."


def image_missing(name: str) -> str:
    return f"The image “{name}” is missing."


FOLDER = "a folder"
SPECIAL = "a pipe, a socket or a device"


def dangling(target: str) -> str:
    return f"a link to {target}, which does not exist"


def not_a_file(name: str, what: str) -> str:
    return f"Instead of the file {name} there is {what}."


def no_database(name: str) -> str:
    return f"The file {name} is not a database, or nothing in it can be read."


CHAT_UNREADABLE = "This chat cannot be read from the chat database or from a backup."
MISSING = "Some of your chats are missing."
NOT_REPAIRED = "The chat database was not repaired."
ELSEWHERE = "Your chats are open in another Draftlight."
ELSEWHERE_HINT = (
    "This window shows them but saves nothing. Close the other one and open this one again to continue."
)
DAMAGED_ELSEWHERE = "It was damaged when this window read it. Close this window and look in the other one."
UNUSABLE = "The chat database cannot be opened."
UNSAVED_TAKEN = "Unsaved changes of the last run were restored."
UNSAVED_DAMAGED = "The unsaved changes of the last run could not be read."


def unsaved_taken(names: Sequence[str]) -> str:
    """About chats, projects and documents; a chat that is only a draft has no name."""
    shown = [f"“{shorten(name, 40, placeholder='…')}”" for name in names if name][:_MOST_NAMES]
    more = len(names) - len(shown)
    if more:
        shown.append(f"{more:,} more" if shown else "One change" if more == 1 else f"{more:,} changes")
    what = " and ".join([", ".join(shown[:-1]), shown[-1]]) if len(shown) > 1 else shown[0]
    return f"{what} could not be saved when Draftlight last closed. Delete what you do not want to keep."


def missing(count: int) -> str:
    what = "1 chat, project or document is" if count == 1 else f"{count:,} chats, projects or documents are"
    return f"{what} in a backup but not in the chat database."


def incomplete(count: int) -> str:
    what = "1 chat, project or document" if count == 1 else f"{count:,} chats, projects or documents"
    return (
        f"{what} cannot be read from the damaged database or any backup, so nothing was replaced. A repair"
        " without them keeps the damaged file until the next permanent deletion."
    )


def repaired(chats: int, partial: int, lost: int, name: str) -> str:
    text = "1 chat was" if chats == 1 else f"{chats:,} chats were"
    without = f" {lost:,} could not be read." if lost else ""
    kept = f" The damaged file was kept as {name}." if name else ""
    some = f" {partial:,} of them only in part: each names the missing parts." if partial else ""
    return f"{text} saved in a new database.{some}{without}{kept}"


def restored(count: int, lost: int) -> str:
    text = "1 item was restored." if count == 1 else f"{count:,} items were restored."
    return f"{text} {lost:,} could not be read from any backup." if lost else text


# ---- files

YOU = "You"
ANSWER = "Answer"
NOT_JSON = "This file is not JSON."
DAMAGED_FILE = "The chats in this file are damaged."
NOT_TEXT = "it is not UTF-8 text"
TOO_LARGE = "it is larger than 32 MB"
NOT_UTF_8 = "Its text is not UTF-8."
TOO_DEEP = "It is nested too deep."
CANNOT_BE_SAVED = "A chat in this file cannot be saved."
CANNOT_BE_SAVED_HINT = "A number or a text in it is none that Draftlight writes."
NO_TURNS = "No question was found in this file."
NO_TURNS_HINT = "Headings such as “## You” and “## Assistant” say who speaks."


def branch(title: str, number: int) -> str:
    return f"{title} ({number})"


def attached(name: str) -> str:
    return f"Attached: {name}"


DOCUMENT_UNREADABLE = "The document cannot be read from the library."


def not_written(path: str, reason: str) -> str:
    return f"The file {path} could not be written: {reason}."


def not_read(path: str, reason: str) -> str:
    return f"The file {path} could not be read: {reason}."


def in_file(path: str, message: str) -> str:
    return f"{path}: {message}"
