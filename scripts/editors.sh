#!/usr/bin/env bash
# Has the editors that tests/editors drives: Debian's Neovim (an old one) and its Emacs with eglot. A newer Neovim comes with the
# development packages. Installs them where that takes no questions, as root on Debian or Ubuntu; elsewhere it says what is missing.
set -euo pipefail

packages=(neovim emacs-nox elpa-eglot elpa-yaml-mode)

there() { dpkg-query -W -f '${Status}\n' "${packages[@]}" 2>/dev/null | grep -c '^install ok installed$' || true; }

if command -v dpkg-query >/dev/null; then
	[ "$(there)" -eq ${#packages[@]} ] && exit 0
	if [ "$(id -u)" -eq 0 ]; then
		echo "Installing ${packages[*]} …"
		export DEBIAN_FRONTEND=noninteractive
		{ apt-get update -q && apt-get install -y -q --no-install-recommends "${packages[@]}"; } >/tmp/agentloom-editors.log 2>&1 ||
			{ tail -20 /tmp/agentloom-editors.log >&2; exit 1; }
		exit 0
	fi
	echo "The tests in Debian's editors are left out until this is done: sudo apt-get install ${packages[*]}"
	exit 0
fi
echo "The tests in Neovim before 0.11 and in Emacs with eglot are left out where these editors are missing."
