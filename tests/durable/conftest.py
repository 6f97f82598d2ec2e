"""Databases for durable runs: SQLite files, one PostgreSQL server for all tests of a process, and workers on it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durable.crew import workers as workers
from tests.durable.postgres import new_postgres as new_postgres
from tests.durable.postgres import new_server as new_server
from tests.durable.postgres import server as server


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    """The address of a SQLite file that isn't there yet."""
    return f"sqlite:///{tmp_path / 'runs.db'}"
