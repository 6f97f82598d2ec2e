#!/usr/bin/env bash
# Build the wheel, install it in a fresh environment and use it from an empty folder. Argument: the development environment's bin.
set -euo pipefail
bin=$(cd "$1" && pwd)
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$work/dist" "$root"
${PYTHON:-python3} -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet "$work"/dist/agentloom-*.whl

cp -r "$root/examples" "$work/examples"
cd "$work/examples"
loom="$work/venv/bin/agentloom"
"$loom" --version
"$loom" validate --strict .
"$loom" run support-triage.loom.yaml --json > "$work/result.json"
"$work/venv/bin/python" - "$work" <<'PY'
import json, sys
from pathlib import Path

import agentloom, agentloom_lsp

work = Path(sys.argv[1])
result = json.loads((work / "result.json").read_text())
assert result["status"] == "success", result["status"]
package = Path(agentloom.__file__).parent
assert package.is_relative_to(work), f"imported from {package}"
for name in ("schema/workflow.schema.json", "schema/agent.schema.json", "docs/rules/AL204.md", "py.typed", "model/catalogue.json"):
    assert (package / name).is_file(), f"the wheel lacks agentloom/{name}"
PY
"$loom" schema workflow > /dev/null
"$loom" explain AL204 > /dev/null
echo "The wheel installs, checks and runs the examples."
