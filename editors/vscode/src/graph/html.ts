// The page of the graph view: nothing from outside, one script of ours.

/** Return the page's HTML. `source` is what VS Code calls its own files in policies; `nonce` is new each time. */
export function html(source: string, nonce: string, script: string, style: string): string {
  const policy = `default-src 'none'; style-src ${source}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="stylesheet" href="${style}">
  <title>Graph</title>
</head>
<body>
  <header>
    <nav id="way" aria-label="Workflows"></nav>
    <span id="run" role="status"></span>
    <div id="tools" role="toolbar" aria-label="View">
      <button id="direction" title="Layers from the left or from the top">⇅</button>
      <button id="critical" aria-pressed="true" title="Mark the critical path">critical path</button>
      <button id="out" title="Zoom out (-)">−</button>
      <button id="fit" title="Show all (0)">fit</button>
      <button id="in" title="Zoom in (+)">+</button>
      <button id="export" title="Save as SVG">SVG</button>
    </div>
  </header>
  <main id="stage"></main>
  <p id="nothing" hidden></p>
  <script nonce="${nonce}" src="${script}"></script>
</body>
</html>
`;
}
