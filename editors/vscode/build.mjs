// Makes dist/extension.js (what VS Code loads) and dist/graph.js and graph.css (the page of the graph view); with --tests the
// pure parts' tests in dist-tests, with --watch again on every change.
import { copyFileSync, readdirSync, rmSync } from 'node:fs';
import { build, context } from 'esbuild';

const common = { bundle: true, minify: true, legalComments: 'none', logLevel: 'warning', target: 'es2022' };
const extension = {
  ...common,
  entryPoints: ['src/extension.ts'],
  outfile: 'dist/extension.js',
  platform: 'node',
  target: 'node20',
  format: 'cjs',
  external: ['vscode'],
};
const graph = { ...common, entryPoints: ['src/webview/graph.ts', 'src/webview/graph.css'], outdir: 'dist', format: 'iife' };

if (process.argv.includes('--tests')) {
  rmSync('dist-tests', { recursive: true, force: true });
  const entryPoints = readdirSync('tests').filter((name) => name.endsWith('.test.ts')).map((name) => `tests/${name}`);
  await build({ ...common, minify: false, entryPoints, outdir: 'dist-tests', platform: 'node', format: 'cjs', sourcemap: 'inline' });
} else if (process.argv.includes('--watch')) {
  for (const one of [extension, graph]) await (await context(one)).watch();
} else {
  rmSync('dist', { recursive: true, force: true });
  await Promise.all([extension, graph].map((one) => build(one)));
  for (const name of ['workflow', 'agent']) copyFileSync(`../../schema/${name}.schema.json`, `dist/${name}.schema.json`);
}
