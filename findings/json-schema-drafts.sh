#!/usr/bin/env bash
# Packages: @cfworker/json-schema 4.1.6, ajv 8.20.0 and @modelcontextprotocol/client 2.4.0 (npm), jsonschema 4.26.0
#   (PyPI). The MCP client has a validator on Ajv for Node and one on cfworker for edge runtimes.
# Expected: a schema means what the draft in its `$schema` says, in every validator. In draft-07, keywords beside `$ref`
#   are ignored (core, section 8.3) and `dependentRequired` is not a keyword. In draft-04, `exclusiveMinimum` is a
#   boolean that sharpens `minimum` (validation, section 5.1.3).
# Happens: cfworker does not read `$schema` and applies 2019-09 unless told, so it applies what draft-07 ignores and
#   ignores a bound of draft-04. Told the draft, it still applies keywords that came later. Ajv applies what is beside
#   `$ref`. So the two validators of one MCP client disagree in both directions on one schema.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @cfworker/json-schema@4.1.6 ajv@8.20.0 \
  @modelcontextprotocol/client@2.4.0
python3 -m venv venv
venv/bin/pip install --quiet jsonschema==4.26.0

cat >cases.json <<'JSON'
[["7", {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"name": {"type": "string"}},
   "properties": {"a": {"$ref": "#/definitions/name", "minLength": 3}}}, {"a": "x"}],
 ["7", {"$schema": "http://json-schema.org/draft-07/schema#", "dependentRequired": {"a": ["b"]}}, {"a": "x"}],
 ["4", {"$schema": "http://json-schema.org/draft-04/schema#",
   "properties": {"a": {"minimum": 5, "exclusiveMinimum": true}}}, {"a": 5}]]
JSON
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { Validator } from '@cfworker/json-schema';
import Ajv from 'ajv';
import { AjvJsonSchemaValidator } from '@modelcontextprotocol/client/validators/ajv';
import { CfWorkerJsonSchemaValidator } from '@modelcontextprotocol/client/validators/cf-worker';

for (const [draft, schema, value] of JSON.parse(readFileSync('cases.json'))) {
  const checks = {
    cfworker: () => new Validator(schema).validate(value).valid,
    'cfworker, told the draft': () => new Validator(schema, draft).validate(value).valid,
    ajv: () => new Ajv({ strict: false }).validate(schema, value),
    'MCP client, Ajv': () => new AjvJsonSchemaValidator().getValidator(schema)(value).valid,
    'MCP client, cfworker': () => new CfWorkerJsonSchemaValidator().getValidator(schema)(value).valid,
  };
  const { $schema, ...rest } = schema;
  console.log(`draft-0${draft}: ${JSON.stringify(rest)}\n  for ${JSON.stringify(value)}`);
  for (const [name, check] of Object.entries(checks))
    try {
      console.log(`  ${name}: ${check() ? 'valid' : 'invalid'}`);
    } catch ({ message }) {
      console.log(`  ${name}: throws${/draft-04/.test(message) ? ', and names draft-04' : ''}`);
    }
}
JS
cat >run.py <<'PY'
import json
from jsonschema.validators import validator_for

for draft, schema, value in json.load(open("cases.json")):
    print(f"jsonschema, draft-0{draft}:", "valid" if validator_for(schema)(schema).is_valid(value) else "invalid")
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
draft-07: {"definitions":{"name":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/name","minLength":3}}}
  for {"a":"x"}
  cfworker: invalid
  cfworker, told the draft: valid
  ajv: invalid
  MCP client, Ajv: invalid
  MCP client, cfworker: valid
draft-07: {"dependentRequired":{"a":["b"]}}
  for {"a":"x"}
  cfworker: invalid
  cfworker, told the draft: invalid
  ajv: valid
  MCP client, Ajv: valid
  MCP client, cfworker: invalid
draft-04: {"properties":{"a":{"minimum":5,"exclusiveMinimum":true}}}
  for {"a":5}
  cfworker: valid
  cfworker, told the draft: invalid
  ajv: throws, and names draft-04
  MCP client, Ajv: throws, and names draft-04
  MCP client, cfworker: throws, and names draft-04
jsonschema, draft-07: valid
jsonschema, draft-07: valid
jsonschema, draft-04: invalid
SEEN
