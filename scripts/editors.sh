#!/usr/bin/env bash
# Has the editors that tests/editors drives: Debian's Neovim (an old one) and its Emacs with eglot. A newer Neovim comes with the
# development packages. Installs them where that takes no questions, as root on Debian or Ubuntu; elsewhere it says what is missing,
# and the tests that need it are left out. In CI nothing is left out.
set -euo pipefail

packages=(neovim emacs-nox elpa-eglot elpa-yaml-mode)

there() { [ "$(dpkg-query -W -f '${Status}\n' "${packages[@]}" 2>/dev/null | grep -c '^install ok installed$')" -eq ${#packages[@]} ]; }

install() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q && apt-get install -y -q --no-install-recommends "${packages[@]}"
}

if ! command -v dpkg-query >/dev/null; then
	echo "Tests in Neovim before 0.11 and in Emacs with eglot are left out where these editors are missing."
elif ! there; then
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if [ "$(id -u)" -eq 0 ]; then
		echo "Installing ${packages[*]} …"
		install >"$log" 2>&1 || tail -20 "$log" >&2
	fi
	if ! there; then
		echo "Tests in Debian's editors are left out until this is done: apt-get install ${packages[*]}" >&2
		[ -z "${CI:-}" ]
	fi
fi
