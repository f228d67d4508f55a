"""Projects: folders of chats, with defaults for new chats in them. Pure.

A chat has the id of its project; an id without a living project means none, so deleting a project and
restoring it changes one record, whatever the number of its chats.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from unicodedata import combining, normalize
from uuid import uuid4

from msgspec import Struct
from msgspec.structs import replace

from core.events.wire import well_formed

_NUMBERS = re.compile(r"(\d{1,18})")


class Project(Struct, frozen=True):
    """`preset` is the name of a preset and `model` a model's reference, empty for the usual ones.

    `documents` are ids of kept documents, which are attached to each new chat. `folded`: the list shows the
    name only. `deleted` is set while the deletion can be undone; `with_chats`: the chats were deleted, too.
    """

    id: str
    name: str
    created: datetime
    system_prompt: str = ""
    preset: str = ""
    model: str = ""
    documents: tuple[str, ...] = ()
    folded: bool = False
    deleted: datetime | None = None
    with_chats: bool = False


class ProjectArchive(Protocol):
    """The storage of projects: `app.store.library.Library`. All calls return at once; saving is later."""

    def projects(self) -> Sequence[Project]:
        """Returns all projects, deleted ones included, in no order."""
        ...

    def save_project(self, project: Project) -> None: ...

    def purge_project(self, project_id: str) -> None: ...


class Projects:
    """The projects of one archive. `now` returns the time, `steady_now` that of deletions."""

    def __init__(
        self,
        archive: ProjectArchive,
        now: Callable[[], datetime],
        steady_now: Callable[[], datetime] | None = None,
    ) -> None:
        self._archive = archive
        self._now = now
        self._steady_now = steady_now or now
        self._known: dict[str, Project] = {}
        self.refresh()

    def refresh(self) -> None:
        """Reads the archive again after damage was found or repaired."""
        self._known = {each.id: each for each in self._archive.projects()}

    def listed(self) -> tuple[Project, ...]:
        """Returns the projects by name."""
        living = [each for each in self._known.values() if each.deleted is None]
        return tuple(sorted(living, key=lambda each: (_order(each.name), each.created.timestamp())))

    def find(self, project_id: str) -> Project | None:
        """Returns a project; None if there is none with this id, or it was deleted."""
        found = self._known.get(project_id) if project_id else None
        return found if found and found.deleted is None else None

    def last_deleted(self, after: datetime | None = None) -> Project | None:
        """Returns the project that was deleted last, unless before `after`; None if there is none."""
        gone = {each.deleted.timestamp(): each for each in self._known.values() if each.deleted}
        last_s = max(gone, default=0.0)
        return gone.get(last_s) if after is None or last_s >= after.timestamp() else None

    def chats_deleted(self, project_id: str) -> datetime | None:
        """Returns when the project was deleted together with its chats; None if it was not."""
        found = self._known.get(project_id) if project_id else None
        return found.deleted if found and found.with_chats else None

    def add(self, name: str) -> Project:
        """Creates a project. The name may be in use; white space in it is collapsed."""
        project = Project(uuid4().hex, _name(name), self._now())
        self.change(project)
        return project

    def change(self, project: Project) -> None:
        if project != self._known.get(project.id):
            self._known[project.id] = project
            self._archive.save_project(project)

    def rename(self, project_id: str, name: str) -> None:
        """Renames a project; an empty name changes nothing."""
        found = self.find(project_id)
        if found and _name(name):
            self.change(replace(found, name=_name(name)))

    def rename_preset(self, name: str, new: str) -> None:
        """Replaces the name of a preset in all projects; empty for none."""
        for each in list(self._known.values()):
            if each.preset == name:
                self.change(replace(each, preset=new))

    def delete(self, project_id: str, *, with_chats: bool) -> None:
        """Deletes a project, and its chats if `with_chats`; they are kept outside of it otherwise."""
        found = self.find(project_id)
        if found:
            self.change(replace(found, deleted=self._steady_now(), with_chats=with_chats))

    def restore(self, project_id: str) -> None:
        self.change(replace(self._known[project_id], deleted=None, with_chats=False))

    def purge_deleted_until(self, time_s: float) -> None:
        """Deletes permanently the projects that were deleted until this Unix time.

        A deletion in the future counts as one of now.
        """
        now = self._steady_now()
        for each in list(self._known.values()):
            if each.deleted and each.deleted.timestamp() <= time_s:
                del self._known[each.id]
                self._archive.purge_project(each.id)
            elif each.deleted and each.deleted.timestamp() > now.timestamp():
                self.change(replace(each, deleted=now))


def _name(text: str) -> str:
    return " ".join(well_formed(text).split())


def _order(name: str) -> list[str | int]:
    """A sorting key that ignores case and accents, and compares numbers by their values."""
    plain = "".join(each for each in normalize("NFKD", name.casefold()) if not combining(each))
    # Text and numbers alternate.
    return [int(part) if number % 2 else part for number, part in enumerate(_NUMBERS.split(plain))]
