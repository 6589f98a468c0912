#!/usr/bin/env bash
# Packages: @modelcontextprotocol/client 2.4.0 (npm), mcp 2.3.0 (PyPI). Both have a UriTemplate with a method `match`,
#   by which their servers find the resource template that a URI belongs to.
# Expected: a URI that a template expands to (RFC 6570, sections 3.2.2 and 3.2.8) matches it again and gives the values
#   back. Expansion leaves out query variables without a value, and writes `a b` as `a%20b`.
# Happens: in npm's class a template with a query matches only if all its variables are there, in the template's order,
#   and values stay encoded. So a resource is found or not by the language of its server. Python's class takes
#   variables in any order, or none, and decodes.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/client@2.4.0
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0

cat >cases.json <<'JSON'
[["log://app{?level,day}", "log://app?level=warn&day=2026-01-31"],
 ["log://app{?level,day}", "log://app?day=2026-01-31&level=warn"],
 ["log://app{?level,day}", "log://app?level=warn"],
 ["log://app{?level,day}", "log://app"],
 ["note://{title}", "note://a%20b"],
 ["page://book{#part}", "page://book#two"]]
JSON
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { UriTemplate } from '@modelcontextprotocol/client';

for (const [template, uri] of JSON.parse(readFileSync('cases.json')))
  console.log('npm   ', uri, JSON.stringify(new UriTemplate(template).match(uri)));
JS
cat >run.py <<'PY'
import json
from mcp.shared.uri_template import UriTemplate

for template, uri in json.load(open("cases.json")):
    print("Python", uri, json.dumps(UriTemplate.parse(template).match(uri), separators=(",", ":")))
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm    log://app?level=warn&day=2026-01-31 {"level":"warn","day":"2026-01-31"}
npm    log://app?day=2026-01-31&level=warn null
npm    log://app?level=warn null
npm    log://app null
npm    note://a%20b {"title":"a%20b"}
npm    page://book#two {"part":"#two"}
Python log://app?level=warn&day=2026-01-31 {"level":"warn","day":"2026-01-31"}
Python log://app?day=2026-01-31&level=warn {"level":"warn","day":"2026-01-31"}
Python log://app?level=warn {"level":"warn"}
Python log://app {}
Python note://a%20b {"title":"a b"}
Python page://book#two {"part":"two"}
SEEN
