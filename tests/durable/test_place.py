"""Addresses of databases: what is read from them, and what is told of them."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.place import hidden, place_of
from agentloom.durable.dbos.sessions import engine_of
from agentloom.errors import UsageError

PAUSE = threading.Event()


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("postgresql://ann:hush@h:5433/loom", "postgresql://ann@h:5433/loom"),
        ("postgres://ann:hush@h/loom?sslmode=verify-full", "postgres://ann@h/loom?sslmode=verify-full"),
        ("postgresql://h/loom?user=ann&password=hush", "postgresql://h/loom?user=ann"),
        ("postgresql://h/loom?password=hush", "postgresql://h/loom"),
        (
            "postgresql://h/loom?sslkey=k&sslpassword=hush&sslmode=require",
            "postgresql://h/loom?sslkey=k&sslmode=require",
        ),
        ("postgresql://ann:hu%40sh@h/loom", "postgresql://ann@h/loom"),
    ],
)
def test_a_name_has_no_password(url: str, name: str) -> None:
    """Wherever in the address it stands; everything else is kept, also for the connection."""
    place = place_of(url)
    assert place.name == name
    assert place.url == "postgresql://" + url.partition("://")[2]


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hu@sh/x@h/loom",
        "postgresql://ann:hu/sh@h/loom",
        "postgresql://ann:hu:sh@h/loom",
        "postgresql://ann:hu#sh@h/loom",
        "postgresql://ann:hu[sh@h/loom",
        "postgresql://ann:hu?sh@h/loom",
    ],
)
def test_a_password_that_must_be_written_otherwise(url: str) -> None:
    """What the address means can't be known, so the password might be told as a part of something else: it is refused, with the cure."""
    with pytest.raises(UsageError, match=r"can't be read: write what is special in a password as `%40`") as refused:
        place_of(url)
    assert "sh" not in str(refused.value).partition("can't be read")[0]


def test_what_the_database_says_is_told_without_the_password() -> None:
    """As it is written in the address, and as it is."""
    place = place_of("postgresql://ann:hu%40sh@h/loom?sslpassword=secret2")
    assert hidden("for hu%40sh, hu@sh and secret2", place) == "for ***, *** and ***"


@pytest.mark.parametrize("name", ["a b.db", "rüns.db", "r%20#x.db", "q.db?mode=ro"])
def test_a_file_has_the_name_that_is_written(tmp_path: Path, name: str) -> None:
    """Also when an address would mean something else by it: the lock and the database stand side by side, and the next command finds both."""
    place = place_of(f"sqlite:///{tmp_path / name}")
    Archive(place, migrate=True).close()
    assert [each.name for each in tmp_path.iterdir()] == [name]
    with Archive(place) as archive:
        assert archive.ids() == []


def test_a_connection_that_comes_back_too_late_is_closed(new_postgres: Callable[[], str]) -> None:
    """A thread still has it when the pool is given up; nobody has it afterwards. (Warnings are errors here.)"""
    place = place_of(new_postgres())
    engine = engine_of(place, 1)
    assert engine is not None
    late = engine.connect()
    session = late.connection.driver_connection
    assert session is not None
    number = session.info.backend_pid
    engine.dispose()
    late.close()
    del session, late, engine
    gc.collect()
    with psycopg.connect(place.url, autocommit=True) as other:
        while other.execute("SELECT 1 FROM pg_stat_activity WHERE pid = %s", (number,)).fetchone():
            PAUSE.wait(0.05)
