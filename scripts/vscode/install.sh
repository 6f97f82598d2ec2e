#!/usr/bin/env bash
# Installs a real VS Code that runs without a screen (the npm package code-server), and what drives it in Chromium, into a folder. Argument:
# the folder. A second call does nothing.
set -euo pipefail
mkdir -p "$1"
folder=$(cd "$1" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
done=$folder/.done
[ -e "$done" ] && cmp -s "$here/package.json" "$done" && exit 0
for program in rg node npm; do
	command -v "$program" >/dev/null || {
		echo "VS Code needs $program: apt-get install ripgrep nodejs npm" >&2
		exit 1
	}
done
cp "$here/package.json" "$folder"
cd "$folder"
export npm_config_loglevel=error
prefix=$(dirname "$(dirname "$(readlink -f "$(command -v node)")")")
[ -d "$prefix/include/node" ] && export npm_config_nodedir=$prefix # else the headers are downloaded
npm install --ignore-scripts --no-audit --no-fund
npm rebuild argon2
cd node_modules/code-server/lib/vscode
npm install --ignore-scripts --omit=dev --no-audit --no-fund
npm rebuild @vscode/spdlog @parcel/watcher native-watchdog
ln -sfn node_modules node_modules.asar
mkdir -p node_modules/@vscode/ripgrep/bin
ln -sf "$(command -v rg)" node_modules/@vscode/ripgrep/bin/rg
cp "$here/package.json" "$done"
