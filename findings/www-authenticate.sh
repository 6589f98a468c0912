#!/usr/bin/env bash
# Packages: @modelcontextprotocol/client 2.4.0 (npm), mcp 2.3.0 and httpx2 2.16.2 (PyPI).
# Expected: a client reads a challenge by RFC 9110: names of parameters have no case and may have spaces around `=`
#   (section 11.2), a field may list several challenges (section 11.6.1), and text in quotes is a value (section 5.6.4).
#   MCP clients take the resource metadata (RFC 9728, section 5.1) and the scopes to request from it.
# Happens: both clients search the field for `scope=`. They miss names in upper case and spaces, and take the scope
#   from an error description that names one. The npm client also ignores a Bearer challenge after another scheme, so
#   it does not learn where to authorize.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/client@2.4.0
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0 httpx2==2.16.2

cat >challenges.txt <<'TXT'
Bearer resource_metadata="https://api.example/m", scope="read"
Bearer Resource_Metadata="https://api.example/m", Scope="read"
Bearer resource_metadata = "https://api.example/m", scope = "read"
Basic realm="api", Bearer resource_metadata="https://api.example/m", scope="read"
Bearer error_description="lacks scope=write", scope="read write"
TXT
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { extractWWWAuthenticateParams } from '@modelcontextprotocol/client';

for (const challenge of readFileSync('challenges.txt', 'utf8').trim().split('\n')) {
  const answer = new Response(null, { status: 401, headers: { 'www-authenticate': challenge } });
  const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(answer);
  console.log(`npm    ${challenge}\n    -> ${resourceMetadataUrl ?? 'none'}, ${scope ?? 'none'}`);
}
JS
cat >run.py <<'PY'
import httpx2
from mcp.client.auth import utils

for challenge in open("challenges.txt").read().splitlines():
    answer = httpx2.Response(401, headers={"www-authenticate": challenge})
    metadata = utils.extract_resource_metadata_from_www_auth(answer)
    scope = utils.extract_scope_from_www_auth(answer)
    print(f"Python {challenge}\n    -> {metadata or 'none'}, {scope or 'none'}")
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm    Bearer resource_metadata="https://api.example/m", scope="read"
    -> https://api.example/m, read
npm    Bearer Resource_Metadata="https://api.example/m", Scope="read"
    -> none, none
npm    Bearer resource_metadata = "https://api.example/m", scope = "read"
    -> none, none
npm    Basic realm="api", Bearer resource_metadata="https://api.example/m", scope="read"
    -> none, none
npm    Bearer error_description="lacks scope=write", scope="read write"
    -> none, write"
Python Bearer resource_metadata="https://api.example/m", scope="read"
    -> https://api.example/m, read
Python Bearer Resource_Metadata="https://api.example/m", Scope="read"
    -> none, none
Python Bearer resource_metadata = "https://api.example/m", scope = "read"
    -> none, none
Python Basic realm="api", Bearer resource_metadata="https://api.example/m", scope="read"
    -> https://api.example/m, read
Python Bearer error_description="lacks scope=write", scope="read write"
    -> none, write"
SEEN
