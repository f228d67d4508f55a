"""Rules for requests of the local server to the window's worker. Pure.

The server's requests and the turn share one queue, which decides when each may be sent: while `Link.served`
is being answered, a turn can only be waiting. Events of a served request change nothing in the turn; each
becomes the effect `ServedHeard`.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from app.session import strings
from app.session.turn.effects import Effect, Send, ServedCutOff, ServedHeard
from app.session.turn.intents import Serve, StopServed
from app.session.turn.link_state import Link, Phase, Transition
from core.events import Cancel, Event, Failed, Finished, Generate

_LOADED = frozenset({Phase.READY, Phase.WAITING, Phase.READING, Phase.WRITING, Phase.STOPPING})
_FREE = frozenset({Phase.READY, Phase.WAITING})


def event_of(link: Link, given: Any) -> Event | None:
    """Returns the event if it belongs to a request of the local server, with that request's id."""
    request = getattr(given, "request", None)
    if request and (request == link.served or request in link.counting):
        return given  # type: ignore[no-any-return]
    # The failure of a command that could not be decoded has no id.
    if link.served and isinstance(given, Failed) and not request and given.command in ("", "generate"):
        return replace(given, request=link.served)
    return None


def on_event(link: Link, event: Event) -> Transition:
    """Handle an event from `event_of`."""
    request = getattr(event, "request", "")
    if request in link.counting:
        link = replace(link, counting=link.counting - {request})
    elif isinstance(event, Finished | Failed):
        link = replace(link, served="")
    return Transition(link, (ServedHeard(event),))


def serve(link: Link, given: Serve) -> Transition:
    """Send the command. Without a loaded model it fails at once, so that no client waits for it."""
    command = given.command
    if isinstance(command, Generate):
        if link.phase in _FREE and not link.served:
            return Transition(replace(link, served=command.request), (Send(command),))
    elif link.phase in _LOADED:
        return Transition(replace(link, counting=link.counting | {command.request}), (Send(command),))
    name = str(command.__struct_config__.tag)
    failed = Failed(command.request, name, "worker", "worker-failed", strings.NOT_SERVED)
    return Transition(link, (ServedHeard(failed),))


def stop_served(link: Link, given: StopServed) -> Transition:
    """Cancel the request; its end arrives as any other."""
    return Transition(link, (Send(Cancel(given.request)),) if given.request == link.served else ())


def cut_off(link: Link) -> tuple[Effect, ...]:
    """The effects for the server after the worker's exit."""
    return (ServedCutOff(),) if link.served or link.counting else ()
