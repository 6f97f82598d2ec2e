"""Typing latency in a real VS Code: from the press of a key to the squiggle on the page, in a workflow of 700 lines.

``make bench-vscode``. The clock is the page's own: it starts when the key event arrives in the page, and stops in the first frame after the
decoration has appeared in the document. Around each measured key the editor is idle.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.generate import many_steps  # noqa: E402
from benchmarks.machine import described  # noqa: E402
from tests.editors.checkout import with_vscode  # noqa: E402

LINES = 700
ROUNDS = int(os.environ.get("ROUNDS", "30"))


def main() -> int:
    """Measure, and print what came of it."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        workflow = folder / "measured.loom.yaml"
        workflow.write_text(many_steps(LINES), encoding="utf-8")
        command = ["node", str(ROOT / "benchmarks" / "vscode.cjs"), str(workflow), str(ROUNDS)]
        done = subprocess.run(command, env=with_vscode(folder), stdout=subprocess.PIPE, encoding="utf-8", check=True)
    found: dict[str, list[float]] = json.loads(done.stdout)
    print(described())
    for name, values in found.items():
        ordered = sorted(values)
        late = ordered[int(len(ordered) * 0.95)]
        print(
            f"{name}: median {statistics.median(ordered):.0f} ms, 95 % {late:.0f} ms, worst {ordered[-1]:.0f} ms ({len(ordered)} keys)"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
