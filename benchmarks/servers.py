"""The servers that are measured, as an editor starts them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from editor import Program

ROOT = Path(__file__).resolve().parent.parent
NODE = ROOT / "tests" / "schema" / "node"


def agentloom() -> Program:
    """Return our server, from this checkout; its modules are compiled beforehand, as `pip install` does."""
    dropped = ("AGENTLOOM_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    subprocess.run(
        [sys.executable, "-m", "compileall", "-q", str(ROOT / "agentloom"), str(ROOT / "lsp")],
        env=environment,
        check=True,
    )
    path = f"{ROOT}{os.pathsep}{ROOT / 'lsp'}"
    return Program("agentloom", [sys.executable, "-m", "agentloom", "lsp"], {**environment, "PYTHONPATH": path}, {})


def yaml_language_server() -> Program:
    """Return yaml-language-server in the version that the schema tests drive, with our schema for workflows."""
    node, package = shutil.which("node"), NODE / "node_modules" / "yaml-language-server"
    if node is None or not package.is_dir():
        raise SystemExit("yaml-language-server is not installed; `make bench-lsp` does that, with Node.js 18 or newer")
    version = json.loads((package / "package.json").read_text(encoding="utf-8"))["version"]
    schema = (ROOT / "schema" / "workflow.schema.json").as_uri()
    settings = {
        "yaml": {
            "schemas": {schema: "*.loom.yaml"},
            "schemaStore": {"enable": False},
            "completion": True,
            "hover": True,
            "validate": True,
        }
    }
    command = [node, str(package / "bin" / "yaml-language-server"), "--stdio"]
    return Program(f"yaml-language-server {version}", command, dict(os.environ), settings)
