"""Who may do what with a database, over which wire, and what is told of passwords: a PostgreSQL with roles, passwords and certificates."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agentloom.durable.dbos.archive import Archive
from agentloom.durable.dbos.place import place_of
from agentloom.errors import WorkflowError
from tests.cli.conftest import ROOT, environment
from tests.durable.postgres import Server

PASSWORD = "hush-hush"
HELLO = """\
name: hello
steps:
  - {id: greet, type: llm_call, prompt: Hello, output: said}
  - {id: ask, type: approval_gate, depends_on: [greet]}
config: {provider: mock}
"""


def certificate(folder: Path, name: str) -> Path:
    """Write a self-signed certificate for 127.0.0.1 and its key, and return its path."""
    crt, key = folder / f"{name}.crt", folder / f"{name}.key"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=loom",
         "-addext", "subjectAltName=IP:127.0.0.1", "-out", str(crt), "-keyout", str(key)],
        check=True, capture_output=True,
    )  # fmt: skip
    return crt


class Guarded:
    """A server that takes connections over TLS only, and asks everybody but the superuser for a password."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server = server
        self.ours, self.others = certificate(folder, "ours"), certificate(folder, "others")
        data = server.folder / "data"
        for suffix, name in ((".crt", "server.crt"), (".key", "server.key")):
            target = data / name
            shutil.copy(self.ours.with_suffix(suffix), target)
            target.chmod(0o600)
            owner = data.stat()
            os.chown(target, owner.st_uid, owner.st_gid)
        with (data / "postgresql.conf").open("a") as settings:
            settings.write("ssl = on\npassword_encryption = 'scram-sha-256'\nlog_connections = on\n")
        (data / "pg_hba.conf").write_text(
            "hostssl all postgres 127.0.0.1/32 trust\nhostssl all all 127.0.0.1/32 scram-sha-256\n"
        )
        server.stop()
        server.start()
        self.safe = f"sslmode=verify-full&sslrootcert={self.ours}"

    def database(self) -> str:
        """Make a database with tables and roles, and return its name."""
        url = self.server.database()
        done = agentloom("worker", "--prepare", "--on", url)
        assert (done.returncode, done.stdout) == (0, f"{url} is prepared\n"), done.stderr
        with psycopg.connect(url) as session:
            session.execute((ROOT / "deploy" / "roles.sql").read_bytes())
            for role in ("loom_worker", "loom_client", "loom_reader"):
                session.execute(f"ALTER ROLE {role} LOGIN PASSWORD '{PASSWORD}'".encode())
        return url.rpartition("/")[2]

    def url(self, role: str, name: str, more: str = "", password: str = f":{PASSWORD}") -> str:
        """Return an address of a database for a role."""
        return f"postgresql://{role}{password}@127.0.0.1:{self.server.port}/{name}?{more or self.safe}"


def agentloom(*arguments: str, folder: Path | None = None, **more: str) -> subprocess.CompletedProcess[str]:
    """Call the command line in a process of its own."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-m", "agentloom", *arguments],
        env=environment(**more), cwd=folder, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip


@pytest.fixture(scope="module")
def guarded(new_server: Callable[[], Server], tmp_path_factory: pytest.TempPathFactory) -> Guarded:
    """A server of this module's own."""
    return Guarded(new_server(), tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def worker_of(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Return a function that starts a worker and waits until it takes runs."""
    started: list[subprocess.Popen[str]] = []

    def start(url: str, *options: str, **more: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "agentloom", "worker", *options],
            cwd=tmp_path, env=environment(AGENTLOOM_ON=url, **more), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        started.append(process)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line.startswith("takes runs from"), line + process.stdout.read()
        assert PASSWORD not in line
        return process

    try:
        yield start
    finally:
        for process in started:
            process.kill()
            process.communicate()


def test_each_role_can_do_its_part_and_no_more(
    guarded: Guarded, tmp_path: Path, worker_of: Callable[..., subprocess.Popen[str]]
) -> None:
    """A worker that can make no tables performs what a client asks for; the client can change nothing that happened, the reader nothing at all.

    Every connection that was made is encrypted.
    """
    name = guarded.database()
    (tmp_path / "hello.loom.yaml").write_text(HELLO)
    client, reader = guarded.url("loom_client", name), guarded.url("loom_reader", name)
    worker_of(guarded.url("loom_worker", name))
    done = agentloom("run", "hello.loom.yaml", "--json", "--run-id", "h", folder=tmp_path, AGENTLOOM_ON=client)
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "paused"), done.stderr
    with psycopg.connect(guarded.url("postgres", name, password="")) as session:
        rows = session.execute(
            "SELECT usename, ssl, count(*) FROM pg_stat_activity JOIN pg_stat_ssl USING (pid)"
            " WHERE usename LIKE 'loom%' GROUP BY 1, 2"
        ).fetchall()
        assert {(user, ssl) for user, ssl, _ in rows} == {("loom_worker", True)}
        # The pool, the client, the listener and the session that holds the lock.
        assert sum(count for *_, count in rows) >= 4
    went_on = agentloom("resume", "h", "--approve", "--json", folder=tmp_path, AGENTLOOM_ON=client)
    assert (went_on.returncode, json.loads(went_on.stdout)["status"]) == (0, "success"), went_on.stderr
    listed = agentloom("runs", folder=tmp_path, AGENTLOOM_ON=reader)
    assert (listed.returncode, "h" in listed.stdout) == (0, True), listed.stderr
    shown = agentloom("runs", "show", "h", folder=tmp_path, AGENTLOOM_ON=reader)
    assert (shown.returncode, "greet" in shown.stdout) == (0, True), shown.stderr
    refused = agentloom("run", "hello.loom.yaml", folder=tmp_path, AGENTLOOM_ON=reader)
    assert (refused.returncode, "permission denied" in refused.stderr, "Traceback" in refused.stderr) == (
        1,
        True,
        False,
    )
    for url, forbidden in (
        (client, "DELETE FROM agentloom.workflow_status"),
        (client, "UPDATE agentloom.streams SET value = ''"),
        (client, "INSERT INTO agentloom.operation_outputs (workflow_uuid, function_id) VALUES ('h~1', 99)"),
        (reader, "UPDATE agentloom.workflow_status SET status = 'CANCELLED'"),
        (guarded.url("loom_worker", name), "CREATE TABLE agentloom.mine (a int)"),
        (guarded.url("loom_worker", name), "CREATE SCHEMA mine"),
    ):
        with psycopg.connect(url) as session, pytest.raises(psycopg.errors.InsufficientPrivilege):
            session.execute(forbidden.encode())
    for process in [agentloom("cancel", "h", folder=tmp_path, AGENTLOOM_ON=client), done, listed, shown, refused]:
        assert PASSWORD not in process.stdout + process.stderr


def test_a_database_that_nobody_prepared(guarded: Guarded) -> None:
    """A worker that may not do it says who prepares it, and how; a client says that nobody has."""
    guarded.database()  # so that the roles are there
    name = guarded.server.database().rpartition("/")[2]
    worker = agentloom("worker", AGENTLOOM_ON=guarded.url("loom_worker", name))
    assert worker.returncode == 1
    assert "permission denied for database" in worker.stderr
    assert "prepares it with `agentloom worker --prepare`" in worker.stderr
    client = agentloom("runs", AGENTLOOM_ON=guarded.url("loom_client", name))
    assert client.returncode == 1
    assert "no worker has prepared it yet" in client.stderr
    for done in (worker, client):
        assert "Traceback" not in done.stderr
        assert PASSWORD not in done.stderr


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("sslmode=verify-full&sslrootcert={others}", "certificate verify failed"),
        ("sslmode=verify-full&sslrootcert=/nowhere.crt", 'root certificate file "/nowhere.crt" does not exist'),
        ("sslmode=disable", "no encryption"),
    ],
    ids=["another-certificate", "no-certificate", "no-tls"],
)
def test_a_wire_that_is_not_safe_is_refused(guarded: Guarded, more: str, words: str) -> None:
    """The worker and the client say in one line what is wrong with it, without the password."""
    name = guarded.database()
    url = guarded.url("loom_worker", name, more.format(others=guarded.others))
    for command in ("worker", "runs"):
        done = agentloom(command, AGENTLOOM_ON=url)
        assert done.returncode == 1, done.stdout
        assert words in done.stderr
        assert done.stderr.count("\n") == 1, done.stderr
        assert PASSWORD not in done.stderr


def test_a_host_that_is_another(guarded: Guarded) -> None:
    """The certificate is for 127.0.0.1, and not for `localhost`: `verify-full` tells them apart."""
    name = guarded.database()
    url = guarded.url("loom_worker", name).replace("@127.0.0.1", "@localhost") + "&hostaddr=127.0.0.1"
    done = agentloom("runs", AGENTLOOM_ON=url)
    assert (done.returncode, 'does not match host name "localhost"' in done.stderr) == (1, True), done.stderr


def test_a_password_is_told_nowhere(
    guarded: Guarded, tmp_path: Path, worker_of: Callable[..., subprocess.Popen[str]]
) -> None:
    """Not in errors, not in the list of processes, not in the environment of a worker's commands, and not in the database."""
    name = guarded.database()
    wrong = agentloom("runs", AGENTLOOM_ON=guarded.url("loom_client", name, password=":hush-wrong"))
    assert (wrong.returncode, "password authentication failed" in wrong.stderr) == (1, True), wrong.stderr
    assert "hush" not in wrong.stderr
    (tmp_path / "spy.loom.yaml").write_text(
        "name: spy\nsteps:\n  - {id: look, type: tool, tool_name: shell_command, output: seen,"
        " tool_args: {command: env}}\nconfig: {provider: mock}\n"
    )
    worker = worker_of(guarded.url("loom_worker", name))
    if Path("/proc").is_dir():
        assert PASSWORD not in Path(f"/proc/{worker.pid}/cmdline").read_text()
    done = agentloom("run", "spy.loom.yaml", "--json", folder=tmp_path, AGENTLOOM_ON=guarded.url("loom_client", name))
    seen: dict[str, Any] = json.loads(done.stdout)
    assert "PATH=" in str(seen["final_state"]["seen"])
    assert PASSWORD not in done.stdout + done.stderr
    dump = subprocess.run(
        [str(guarded.server.programs / "pg_dump"), guarded.url("postgres", name, password="")],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "agentloom.run" in dump.stdout
    assert PASSWORD not in dump.stdout


def test_the_environment_gives_the_password(
    guarded: Guarded, tmp_path: Path, worker_of: Callable[..., subprocess.Popen[str]]
) -> None:
    """PGPASSWORD and a password file serve as for every program of PostgreSQL, on every connection of a worker and of a client."""
    name = guarded.database()
    (tmp_path / "hello.loom.yaml").write_text(HELLO)
    passwords = tmp_path / "pgpass"
    passwords.write_text(f"127.0.0.1:*:*:*:{PASSWORD}\n")
    passwords.chmod(0o600)
    worker_of(guarded.url("loom_worker", name, password=""), PGPASSWORD=PASSWORD)
    done = agentloom(
        "run", "hello.loom.yaml", "--json", "--on", guarded.url("loom_client", name, password=""),
        folder=tmp_path, PGPASSFILE=str(passwords),
    )  # fmt: skip
    assert (done.returncode, json.loads(done.stdout)["status"]) == (0, "paused"), done.stderr


def test_workers_start_at_once_on_a_database_that_is_not_there(guarded: Guarded, tmp_path: Path) -> None:
    """One of them makes it and its tables; all of them take runs."""
    url = guarded.url("postgres", "brandnew", password="")
    with pytest.raises(WorkflowError, match="does not exist"):
        Archive(place_of(url))
    processes = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "agentloom", "worker"],
            cwd=tmp_path, env=environment(AGENTLOOM_ON=url), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for _ in range(4)
    ]  # fmt: skip
    try:
        for process in processes:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line.startswith("takes runs from"), line + process.stdout.read()
    finally:
        for process in processes:
            process.terminate()
        said = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, said
    with closing(Archive(place_of(url))) as archive:
        assert archive.ids() == []
