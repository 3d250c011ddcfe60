"""A store of waiting runs in a file."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from ..threads import in_thread


class SQLiteRuns:
    """Keeps runs that wait for an approval in a file, for `openai_agents_handler(store=…)`.

    All processes of an agent on one machine may share it. Agents on several machines need a database that they share: a class of your own
    with the methods of `RunStore`.
    """

    def __init__(self, path: str | Path = "runs.db") -> None:
        self._path = path
        self._execute("CREATE TABLE IF NOT EXISTS runs (message_id TEXT PRIMARY KEY, run TEXT NOT NULL, keep_until TEXT NOT NULL)")

    async def load(self, message_id: str) -> str | None:
        found = await in_thread(self._execute, "SELECT run FROM runs WHERE message_id = ?", message_id)
        return found[0][0] if found else None

    async def save(self, message_id: str, run: str, keep_until: datetime) -> None:
        def write() -> None:
            self._execute("DELETE FROM runs WHERE keep_until < ?", datetime.now(UTC).isoformat())
            self._execute("INSERT OR REPLACE INTO runs VALUES (?, ?, ?)", message_id, run, keep_until.astimezone(UTC).isoformat())

        await in_thread(write)

    async def delete(self, message_id: str) -> None:
        await in_thread(self._execute, "DELETE FROM runs WHERE message_id = ?", message_id)

    def _execute(self, statement: str, *values: str) -> list[tuple[str, ...]]:
        with closing(sqlite3.connect(self._path, timeout=10)) as database, database:
            return database.execute(statement, values).fetchall()
