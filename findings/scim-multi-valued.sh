#!/usr/bin/env bash
# Packages: scim-patch 0.8.3 and scimmy 1.3.5 (npm), scim2-models 0.12.3 (PyPI).
# Expected, by RFC 7644: a new primary value sets the others' `primary` to false (section 3.5.2); adding a value that is
#   already there changes nothing (section 3.5.2.1); a replace without a path replaces the attributes that its value
#   names (section 3.5.2.3).
# Happens: scim-patch and scimmy leave two primary values. scimmy adds the same value a second time, and its replace
#   without a path appends instead of replacing. scim2-models does as the RFC says.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund scim-patch@0.8.3 scimmy@1.3.5
python3 -m venv venv
venv/bin/pip install --quiet scim2-models==0.12.3

cat >user.json <<'JSON'
{"schemas": ["urn:ietf:params:scim:schemas:core:2.0:User"], "id": "1", "userName": "ada",
 "emails": [{"value": "a@x.example", "type": "work", "primary": true}]}
JSON
cat >patches.json <<'JSON'
{"second primary": {"op": "add", "path": "emails", "value": [{"value": "b@x.example", "primary": true}]},
 "same value again": {"op": "add", "path": "emails",
   "value": [{"value": "a@x.example", "type": "work", "primary": true}]},
 "replace without path": {"op": "replace", "value": {"emails": [{"value": "c@x.example"}]}}}
JSON
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { scimPatch } from 'scim-patch';
import SCIMMY from 'scimmy';

const user = () => JSON.parse(readFileSync('user.json'));
const show = ({ emails }) => emails.map(({ value, primary }) => value + (primary ? ' (primary)' : '')).join(', ');
for (const [name, patch] of Object.entries(JSON.parse(readFileSync('patches.json')))) {
  const message = { schemas: ['urn:ietf:params:scim:api:messages:2.0:PatchOp'], Operations: [patch] };
  const patched = await new SCIMMY.Messages.PatchOp(message).apply(new SCIMMY.Schemas.User(user()));
  console.log(`${name}, scim-patch: ${show(scimPatch(user(), [patch]))}`);
  console.log(`${name}, scimmy: ${show(patched)}`);
}
JS
cat >run.py <<'PY'
import json
from scim2_models import PatchOp, User

for name, patch in json.load(open("patches.json")).items():
    user = User.model_validate(json.load(open("user.json")))
    PatchOp[User].model_validate({"operations": [patch]}).patch(user)
    emails = [email.value + (" (primary)" if email.primary else "") for email in user.emails]
    print(f"{name}, scim2-models: {', '.join(emails)}")
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
second primary, scim-patch: a@x.example (primary), b@x.example (primary)
second primary, scimmy: a@x.example (primary), b@x.example (primary)
same value again, scim-patch: a@x.example (primary)
same value again, scimmy: a@x.example (primary), a@x.example (primary)
replace without path, scim-patch: c@x.example
replace without path, scimmy: a@x.example (primary), c@x.example
second primary, scim2-models: a@x.example, b@x.example (primary)
same value again, scim2-models: a@x.example (primary)
replace without path, scim2-models: c@x.example
SEEN
