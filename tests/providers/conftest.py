"""What the tests of providers share."""

from __future__ import annotations

import pytest


@pytest.fixture
def anyio_backend() -> str:
    """Run async tests on asyncio, as the engine does."""
    return "asyncio"
