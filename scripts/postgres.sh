#!/usr/bin/env bash
# Has PostgreSQL's programs, which tests of durable runs start servers with. Installs Debian's package where that takes no questions, as root
# on Debian or Ubuntu; elsewhere it says what is missing, and the tests that need it are left out. In CI nothing is left out.
set -euo pipefail

there() { command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null; }

if ! there && command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	echo "Installing postgresql …"
	export DEBIAN_FRONTEND=noninteractive
	{ apt-get update -q && apt-get install -y -q --no-install-recommends postgresql; } >"$log" 2>&1 || tail -20 "$log" >&2
fi
# What tests of hosts and clocks need (make test-scale).
if [ -n "${SCALE:-}" ] && command -v apt-get >/dev/null && [ "$(id -u)" -eq 0 ]; then
	hosts=()
	command -v ip >/dev/null || hosts+=(iproute2)
	compgen -G '/usr/lib/*/faketime/libfaketimeMT.so.1' >/dev/null || hosts+=(faketime)
	if [ "${#hosts[@]}" -gt 0 ]; then
		echo "Installing ${hosts[*]} …"
		export DEBIAN_FRONTEND=noninteractive
		{ apt-get update -q && apt-get install -y -q --no-install-recommends "${hosts[@]}"; } 2>&1 | tail -3 >&2 || true
	fi
fi
if ! there; then
	echo "Tests with PostgreSQL are left out until this is done: apt-get install postgresql" >&2
	[ -z "${CI:-}" ]
fi
