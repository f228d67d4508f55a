"""Projects as rows of the chat database: one blob a project, with a checksum.

Invariant: a project that is read equals the one written, or `ValueError` is raised. A database of an older
version has no projects.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from app.session.chats.projects import Project
from app.store import schema
from app.store.database import ChecksumError, check, checksum, version_of
from app.store.packing import forgiving


class ProjectGone(Struct, frozen=True):
    """A project is deleted permanently."""

    id: str


ProjectJob = Project | ProjectGone


class ProjectRows:
    """Reads and writes over one connection; writing needs a transaction. All methods raise `sqlite3.Error`.

    `doubt` gets the damage of a row; if it does not raise, the row is read as it is or left out.
    """

    def __init__(
        self, connection: sqlite3.Connection, doubt: Callable[[Exception], None] | None = None
    ) -> None:
        self._connection = connection
        self._doubt = doubt or _refuse
        self._there = version_of(connection) >= schema.PROJECTS_VERSION

    def all(self) -> Iterator[Project]:
        """Yields every project, in no order."""
        if not self._there:
            return
        for project_id, state, found in self._connection.execute("SELECT id, state, sum FROM projects"):
            try:
                check(found, project_id, state)
            except ChecksumError as error:
                self._doubt(error)
            try:
                project: Project = forgiving(msgspec.msgpack.decode(state), Project)
                if project.id != project_id:
                    raise ValueError(f"the project {project.id!r} has the row of another one")
            except (ValueError, TypeError) as error:
                self._doubt(error)
                continue
            yield project

    def do(self, job: ProjectJob) -> None:
        """Writes or deletes a project."""
        if isinstance(job, ProjectGone):
            self._connection.execute("DELETE FROM projects WHERE id = ?", (job.id,))
            return
        values = (job.id, msgspec.msgpack.encode(job))
        self._connection.execute(
            "INSERT OR REPLACE INTO projects (id, state, sum) VALUES (?, ?, ?)", (*values, checksum(*values))
        )


def key_of(job: ProjectJob) -> str:
    """Returns the key under which `job` waits until a newer job replaces it. No chat has such an id."""
    return f"project {job.id}"


def _refuse(error: Exception) -> None:
    raise error
