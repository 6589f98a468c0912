#!/usr/bin/env bash
# Packages: requests-oauth2client 1.8.0, Authlib 1.9.10 and mcp 2.3.0 (PyPI), oauth4webapi 3.8.8 (npm).
# Expected: for an issuer with a path, the metadata is at /.well-known/oauth-authorization-server followed by the path,
#   without a final slash (RFC 8414, section 3.1). MCP clients look there first (2026-07-28, authorization server
#   discovery), and servers of several tenants have such issuers.
# Happens: requests-oauth2client puts the path between `.well-known` and the name, an address that no specification
#   defines, so it finds no such server. Authlib keeps the final slash. Both are right for issuers without a path.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund oauth4webapi@3.8.8
python3 -m venv venv
venv/bin/pip install --quiet requests-oauth2client==1.8.0 Authlib==1.9.10 mcp==2.3.0

cat >run.py <<'PY'
import sys
from authlib.oauth2.rfc8414 import get_well_known_url
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls
from requests_oauth2client import oauth2_discovery_document_url

for issuer in sys.argv[1:]:
    print("requests-oauth2client:", oauth2_discovery_document_url(issuer))
    print("Authlib:", get_well_known_url(issuer, external=True))
    print("mcp:", build_oauth_authorization_server_metadata_discovery_urls(issuer, None)[0])
PY
cat >run.mjs <<'JS'
import { customFetch, discoveryRequest } from 'oauth4webapi';

const fetch = async (url) => {
  console.log('oauth4webapi:', String(url));
  return new Response();
};
for (const issuer of process.argv.slice(2))
  await discoveryRequest(new URL(issuer), { algorithm: 'oauth2', [customFetch]: fetch });
JS
issuers=(https://as.example https://as.example/tenant https://as.example/tenant/)
echo 'Output seen:'
{ venv/bin/python run.py "${issuers[@]}" && node run.mjs "${issuers[@]}"; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
requests-oauth2client: https://as.example/.well-known/oauth-authorization-server
Authlib: https://as.example/.well-known/oauth-authorization-server
mcp: https://as.example/.well-known/oauth-authorization-server
requests-oauth2client: https://as.example/.well-known/tenant/oauth-authorization-server
Authlib: https://as.example/.well-known/oauth-authorization-server/tenant
mcp: https://as.example/.well-known/oauth-authorization-server/tenant
requests-oauth2client: https://as.example/.well-known/tenant/oauth-authorization-server
Authlib: https://as.example/.well-known/oauth-authorization-server/tenant/
mcp: https://as.example/.well-known/oauth-authorization-server/tenant
oauth4webapi: https://as.example/.well-known/oauth-authorization-server
oauth4webapi: https://as.example/.well-known/oauth-authorization-server/tenant
oauth4webapi: https://as.example/.well-known/oauth-authorization-server/tenant
SEEN
