// Compiles schemas with ajv in strict mode, as SchemaStore does, and judges documents.
// Standard input: {"schemas": {kind: schema}, "documents": [[kind, document], ...]}
// Standard output: {"verdicts": [bool, ...], "errors": [{instancePath, keyword, ...}, ...] of the last document}
const Ajv = require("ajv");

// The keywords that SchemaStore's cli.js allows besides the standard's.
const EDITORS = [
  "allowTrailingCommas",
  "defaultSnippets",
  "markdownDescription",
  "enumDescriptions",
  "markdownEnumDescriptions",
];

const input = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const validate = {};
for (const [kind, schema] of Object.entries(input.schemas)) {
  const ajv = new Ajv({ strict: true, strictRequired: true, allErrors: true });
  for (const keyword of EDITORS) ajv.addKeyword(keyword);
  validate[kind] = ajv.compile(schema);
}
let errors = [];
const verdicts = input.documents.map(([kind, document]) => {
  const good = validate[kind](document);
  errors = validate[kind].errors || [];
  return good;
});
process.stdout.write(JSON.stringify({ verdicts, errors }));
