// Packages an extension that stands where another vendor's would: theirs can't be had from npm. It offers the part of that extension's API
// that ours uses, in the form that its documentation tells.
// Usage: node package.cjs PUBLISHER NAME CODE TARGET.vsix; vsce is where the extension's own development packages are.

const { execFileSync } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');

const [publisher, name, code, target] = process.argv.slice(2);
const home = fs.mkdtempSync(path.join(os.tmpdir(), 'neighbour-'));
const manifest = { publisher, name, version: '1.0.0', engines: { vscode: '^1.91.0' }, main: './extension.js', activationEvents: [], repository: 'https://example.com/none', license: 'MIT' };
fs.writeFileSync(path.join(home, 'package.json'), JSON.stringify(manifest));
fs.writeFileSync(path.join(home, 'LICENSE'), 'MIT');
fs.copyFileSync(code, path.join(home, 'extension.js'));
const vsce = path.resolve(__dirname, '../../../../editors/vscode/node_modules/@vscode/vsce/vsce');
execFileSync(process.execPath, [vsce, 'package', '--no-dependencies', '--allow-missing-repository', '--out', path.resolve(target)], { cwd: home, stdio: ['ignore', 'ignore', 'inherit'] });
fs.rmSync(home, { recursive: true });
