#!/usr/bin/env bash
# Packages: zod 4.6.7 and ajv 8.20.0 (npm).
# Expected: z.fromJSONSchema gives a type that accepts what the JSON Schema accepts, or throws where it cannot, as it
#   does for `not` and `if`. By JSON Schema 2020-12, keywords apply without `type` (core, section 7.6.1), also beside
#   `$ref` (core, section 8.2.3.1), and `required` to any name (validation, section 6.5.3).
# Happens: it drops these keywords without a word. It also uses `default` to fill in a required member, which JSON
#   Schema does not do, and refuses integers beyond 2^53. Ajv follows the specification in each case. The function is
#   marked as semi-experimental.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund zod@4.6.7 ajv@8.20.0

cat >run.mjs <<'JS'
import Ajv from 'ajv/dist/2020.js';
import * as z from 'zod';

const says = (accepts) => (accepts ? 'accepts' : 'refuses');
const ajv = new Ajv({ strict: false });
const name = { $ref: '#/$defs/name', minLength: 3 };
const cases = {
  'type and keyword': [{ type: 'string', minLength: 3 }, 'a'],
  'keyword without type': [{ minLength: 3 }, 'a'],
  'minimum without type': [{ minimum: 5 }, 1],
  'properties without type': [{ properties: { n: { type: 'string' } } }, { n: 1 }],
  'keyword beside $ref': [{ $defs: { name: { type: 'string' } }, type: 'object', properties: { name } }, { name: 'a' }],
  'required, no property': [{ type: 'object', required: ['name'] }, {}],
  'required with default': [
    { type: 'object', properties: { n: { type: 'string', default: 'x' } }, required: ['n'] }, {}],
  'large integer': [{ type: 'integer' }, 2 ** 60],
};
for (const [what, [schema, value]] of Object.entries(cases)) {
  const zod = z.fromJSONSchema(schema).safeParse(value).success;
  console.log(`${what}: ajv ${says(ajv.validate(schema, value))}, zod ${says(zod)}`);
}
for (const schema of [{ type: 'string', not: { const: 'a' } }, { if: { type: 'string' }, then: { minLength: 3 } }])
  try {
    console.log('zod accepts:', z.fromJSONSchema(schema).type);
  } catch ({ message }) {
    console.log('zod throws:', message);
  }
JS
echo 'Output seen:'
node run.mjs | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
type and keyword: ajv refuses, zod refuses
keyword without type: ajv refuses, zod accepts
minimum without type: ajv refuses, zod accepts
properties without type: ajv refuses, zod accepts
keyword beside $ref: ajv refuses, zod accepts
required, no property: ajv refuses, zod accepts
required with default: ajv refuses, zod accepts
large integer: ajv accepts, zod refuses
zod throws: not is not supported in Zod (except { not: {} } for never)
zod throws: Conditional schemas (if/then/else) are not supported
SEEN
