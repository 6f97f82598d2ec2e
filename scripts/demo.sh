#!/usr/bin/env bash
# What `make demo` shows, offline. Argument: the bin folder of an environment with agentloom.
set -euo pipefail
bin=$(cd "$1" && pwd)
cd "$(dirname "$0")/.."
export PATH="$bin:$PATH"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp -r examples docs "$work"
cd "$work"

bold() { if [ -t 1 ]; then printf '\033[1m%s\033[0m\n' "$*"; else printf '%s\n' "$*"; fi; }
show() { printf '\n'; bold "\$ $*"; "$@"; }

bold "1. Workflows are checked before anything runs."
show agentloom validate examples

printf '\n'
bold "2. A file with mistakes: each is underlined where it stands, with the cure."
show agentloom validate docs/mistakes/spelling.loom.yaml || true

printf '\n'
bold "3. A run, offline, from a recording: three branches, four languages at once."
cd examples
show agentloom run app-localisation.loom.yaml
show agentloom run incident-response.loom.yaml --stream

printf '\n'
bold "That was offline. With a key in OPENAI_API_KEY: agentloom run examples/support-triage.loom.yaml -p openai"
