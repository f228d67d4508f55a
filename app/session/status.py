"""The worker's status as shown in the window, as one record made from the link. Pure.

Header, composer, sidebar and gauges read the same record, so they never disagree.
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from app.session import strings
from app.session.turn.link_state import Link, Phase
from core.documents.strings import PAGE_MARK
from core.events import Attachment, Message, ModelInfo
from core.settings import Settings
from core.settings.declaration import find

ComposerState = Literal["idle", "busy", "later", "blocked"]


class Status(Struct, frozen=True):
    """`subtitle` is the header's. `hint` gives further details.

    `composer`: later messages are queued, or nothing is sent (blocked), for `reason`. `waits_for`: what the
    running answer waits for; empty if there is none, or while it is written.
    """

    subtitle: str
    composer: ComposerState
    reason: str
    worker_title: str
    worker_state: str
    level: Literal["ready", "busy", "bad", "idle"]
    stale: bool
    hint: str = ""
    waits_for: str = ""


class _Row(Struct, frozen=True):
    composer: ComposerState
    reason: str
    state: str
    level: Literal["ready", "busy", "bad", "idle"]


_ROWS: dict[Phase, _Row] = {
    Phase.STARTING: _Row("later", strings.BLOCKED_STARTING, strings.STARTING, "busy"),
    Phase.LOADING: _Row("later", strings.BLOCKED_LOADING, strings.LOADING, "busy"),
    Phase.NO_MODEL: _Row("blocked", strings.BLOCKED_NO_MODEL, strings.NO_MODEL, "idle"),
    Phase.READY: _Row("idle", "", strings.READY, "ready"),
    Phase.READING: _Row("busy", "", strings.READING, "busy"),
    Phase.WRITING: _Row("busy", "", strings.WRITING, "busy"),
    Phase.STOPPING: _Row("busy", "", strings.STOPPING, "busy"),
    Phase.DEAD: _Row("blocked", strings.BLOCKED_DEAD, strings.RESTART_TO_GO_ON, "bad"),
    Phase.CLOSED: _Row("blocked", "", strings.CLOSING, "idle"),
}


def status_of(
    link: Link,
    settings: Settings,
    *,
    answering_elsewhere: str = "",
    racing: bool = False,
    served_client: str = "",
) -> Status:
    """`answering_elsewhere` is the title of another chat whose answer is running, if any.

    `racing`: the running answer belongs to a race. `served_client` is the client of the local server being
    answered.
    """
    row = _ROWS[link.phase]
    composer, reason = row.composer, row.reason
    if composer == "busy" and answering_elsewhere:
        composer, reason = "later", strings.blocked_by_other_chat(answering_elsewhere)
    elif composer == "busy" and racing:
        composer, reason = "later", strings.BLOCKED_BY_RACE
    state, level, hint = row.state, row.level, ""
    loads = link.before or link.loads or (link.released and link.works)
    if loads:
        state, level = strings.LOADING, "busy"
    elif link.released and link.phase is Phase.READY:
        state, level, hint = strings.RELEASED, "idle", strings.LOADS_AGAIN
    if link.serving and not link.released:
        state, level = state if loads else strings.answering_client(served_client), "busy"
        hint = strings.next_after(served_client)
    if link.ahead:
        hint = strings.waiting_for(link.ahead)
    name = link.info.name if link.info else strings.model_name(link.model)
    dead = link.phase is Phase.DEAD
    return Status(
        subtitle=_subtitle(link, settings),
        composer=composer,
        reason=reason,
        worker_title=strings.WORKER_STOPPED if dead else name[:1].upper() + name[1:],
        worker_state=strings.STUCK if link.quiet else state,
        level="bad" if link.quiet else level,
        stale=dead,
        hint=hint,
        waits_for=_waits_for(link, name, bool(loads)) if link.busy else "",
    )


def _waits_for(link: Link, model: str, loads: bool) -> str:
    if link.quiet:
        return strings.STUCK_TITLE
    if link.phase is Phase.STOPPING:
        return strings.ANSWER_STOPS
    if link.ahead:
        return strings.waiting_for(link.ahead)
    if loads:
        return strings.answer_loads(model)
    return strings.ANSWER_READS if link.phase is Phase.READING else ""


def _subtitle(link: Link, settings: Settings) -> str:
    if link.phase is Phase.DEAD:
        return strings.header_stopped(link.info.name if link.info else "")
    if link.info is None:
        return strings.NO_MODEL if link.phase is Phase.NO_MODEL else strings.header_loading(link.model)
    name = link.info.name
    drafter = settings.drafting.drafter
    label = find("drafting.drafter").labels.get(drafter, drafter)
    if not link.info.speculates:
        return strings.header_subtitle(name, label, drafts=False)
    return strings.header_subtitle(name, label, drafts=drafter != "off")


# Begins the part of a name that distinguishes members of a family: size, training, quantisation.
_MEMBER = re.compile(
    r"[-_ ](?:\d+(?:\.\d+)?[bmk]\b|a?\d+x\d|instruct|chat|base|it\b|\d+-?bit|mlx|bf16|fp16).*", re.I
)


def recognised(family_name: str) -> str:
    """Returns the common name of a tokenizer family: SmolLM2 for `SmolLM2-135M-Instruct`."""
    return _MEMBER.sub("", family_name).strip("-_ ") or family_name


_MARK_CHARACTERS = 120  # of the longest mark with the space around it


def why_unseen(info: ModelInfo | None, message: Message) -> str:
    """Why the loaded model cannot answer `message` because of its images; empty if it can, or without one.

    Of documents, those count that are pictures alone: pages of others are sent to models that see only.
    """
    if info is None or info.sees:
        return ""
    why = info.why_unseeing or strings.NO_EYES
    if count := sum(not image.page for image in message.images):
        return strings.cannot_see(info.name, count, why)
    scan = next((each.name for each in message.attachments if _is_scan_alone(each)), "")
    return strings.cannot_read_scan(info.name, scan, why) if scan else ""


def _is_scan_alone(attachment: Attachment) -> bool:
    """Whether the text of a document is nothing but marks of pages without text."""
    scans, text = attachment.scans, attachment.text
    if scans is None or len(text) > _MARK_CHARACTERS * len(scans.pages):
        return False
    return not PAGE_MARK.sub("", text).strip()
