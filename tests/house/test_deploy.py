"""The files of `deploy/`: compose, Dockerfile and systemd unit are well-formed, call what there is, and their times fit together.

Nothing is built or started here: compose is checked against the JSON Schema of the compose specification, the unit by `systemd-analyze verify`.
What `roles.sql` grants is tried on a real server by `tests/scale/test_trust.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import click
import jsonschema
import pytest
from ruamel.yaml import YAML

from agentloom.cli.app import app
from agentloom.cli.callback_server import command as callback_server
from agentloom.cli.runs import command as runs
from agentloom.cli.worker import command as worker

DEPLOY = Path(__file__).parents[2] / "deploy"
COMMANDS = {"worker": worker, "callback-server": callback_server, "runs": runs}
SECRETS = re.compile(r"PASSWORD|TOKEN|KEY")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The compose file, with merges carried out."""
    found: dict[str, Any] = YAML(typ="safe").load((DEPLOY / "docker-compose.yml").read_text())
    return found


def parsed(words: list[str]) -> dict[str, Any]:
    """Return what a command line of ours means. Raises ``click.UsageError`` for one that it would refuse."""
    name, *rest = words
    # As the program does it: click keeps in the command how its help is asked for, for everybody after us in this process.
    program = click.Context(app, info_name="agentloom", **app.context_settings)
    return COMMANDS[name].make_context(name, list(rest), parent=program).params


def seconds(text: str) -> float:
    """Return a span of time as compose writes it."""
    number, unit = re.fullmatch(r"(\d+)(s|m)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"s": 1, "m": 60}[unit]


def test_compose_is_what_the_specification_allows(compose: dict[str, Any]) -> None:
    """By the specification's own schema; and every service that is waited for is there, with a health check if that is waited for."""
    schema = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    jsonschema.Draft7Validator(json.loads(schema.read_text())).validate(compose)
    for service in compose["services"].values():
        for name, how in service.get("depends_on", {}).items():
            awaited = compose["services"][name]
            assert how["condition"] != "service_healthy" or "healthcheck" in awaited
            assert how["condition"] != "service_completed_successfully" or awaited["restart"] == "on-failure"


def test_compose_calls_commands_that_there_are(compose: dict[str, Any]) -> None:
    """Three workers, whose time to stop is longer than what they give their runs; one makes the tables before."""
    services = compose["services"]
    told = parsed(services["worker"]["command"])
    assert services["worker"]["deploy"]["replicas"] == 3
    assert told["drain"] < seconds(services["worker"]["stop_grace_period"])
    assert parsed(services["prepare"]["command"])["prepare"] is True
    assert parsed(services["decisions"]["command"])["host"] == "0.0.0.0"
    for service in services.values():
        test = service.get("healthcheck", {}).get("test", [])
        if "agentloom" in test:
            assert parsed(test[2:])["limit"] == 1


def test_compose_has_no_secrets_and_no_rights_to_spare(compose: dict[str, Any]) -> None:
    """They come from the environment; those without which nothing is safe have to be set. Ports are those of this machine only."""
    for name, service in compose["services"].items():
        for variable, value in service.get("environment", {}).items():
            if SECRETS.search(variable):
                assert re.fullmatch(r"\$\{\w+:[?-].*\}", value), variable
            assert ":" not in value.partition("@")[0].partition("://")[2], "an address without a password"
        if name != "database":
            assert service["cap_drop"] == ["ALL"]
            assert service["read_only"] is True
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", []))


def test_the_image_is_of_this_project_and_not_roots() -> None:
    """It installs what `pyproject.toml` offers, ends as a user without rights, and its command is one of ours."""
    lines = [line for line in (DEPLOY / "Dockerfile").read_text().splitlines() if line and not line.startswith("#")]
    words = dict(line.partition(" ")[::2] for line in lines)
    assert set(words) <= {"FROM", "COPY", "RUN", "WORKDIR", "USER", "ENTRYPOINT", "CMD"}
    assert any("'/src[dbos]'" in line for line in lines)
    assert json.loads(words["ENTRYPOINT"]) == ["agentloom"]
    assert parsed(json.loads(words["CMD"]))["concurrency"] == 10
    assert words["USER"] == "loom"
    assert lines.index("USER loom") > max(at for at, line in enumerate(lines) if line.startswith(("RUN", "COPY")))


def test_the_unit_is_what_systemd_understands(tmp_path: Path) -> None:
    """`systemd-analyze verify` finds nothing, the program and the user aside, which aren't on this machine."""
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("systemd isn't installed; `apt-get install systemd` brings systemd-analyze")
    text = (DEPLOY / "agentloom-worker.service").read_text()
    unit = tmp_path / "agentloom-worker.service"
    unit.write_text(text.replace("/opt/agentloom/bin/agentloom", "/bin/true"))
    done = subprocess.run(
        [verify, "verify", "--man=no", str(unit)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if str(unit) in line or unit.name in line]
    assert said == [], said
    wrong = tmp_path / "agentloom-wrong.service"
    wrong.write_text(text.replace("/opt/agentloom/bin/agentloom", "/bin/true").replace("KillMode=", "KilMode="))
    done = subprocess.run([verify, "verify", "--man=no", str(wrong)], capture_output=True, text=True, check=False)
    assert "KilMode" in done.stdout + done.stderr, "it does look at the unit"


def test_the_unit_calls_a_worker_and_gives_it_time() -> None:
    """It stops later than the worker itself, waits until that is ready, and holds no secrets."""
    text = (DEPLOY / "agentloom-worker.service").read_text()
    found = dict(line.split("=", 1) for line in text.splitlines() if re.match(r"[A-Z]\w+=", line))
    told = parsed(found["ExecStart"].split()[1:])
    assert told["drain"] + 10 < float(found["TimeoutStopSec"])
    assert (found["Type"], found["KillSignal"], found["User"]) == ("notify", "SIGTERM", "loom")
    assert "Environment" not in found


def test_a_command_that_there_is_not() -> None:
    """What these tests would say of an option that was renamed."""
    with pytest.raises(click.UsageError):
        parsed(["worker", "--drains", "60"])
