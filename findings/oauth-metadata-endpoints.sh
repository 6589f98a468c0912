#!/usr/bin/env bash
# Packages: @modelcontextprotocol/client 2.4.0 (npm), mcp 2.3.0, httpx2 2.16.2 and requests-oauth2client 1.8.0 (PyPI).
#   Both MCP packages have a provider for client credentials, which needs the token endpoint only.
# Expected: they read the metadata of a server that gives client credentials only. It has no authorization endpoint,
#   which is required only if a grant type uses it (RFC 8414, section 2).
# Happens: both refuse the whole document because `authorization_endpoint` is missing, so they know no token endpoint.
#   npm's fails with a ZodError. Python's drops it without a word, asks elsewhere, and says that there is no metadata.
#   requests-oauth2client reads it.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/client@2.4.0
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0 httpx2==2.16.2 requests-oauth2client==1.8.0

cat >metadata.json <<'JSON'
{"issuer": "https://as.example", "token_endpoint": "https://as.example/v2/token", "response_types_supported": ["none"],
 "grant_types_supported": ["client_credentials"], "token_endpoint_auth_methods_supported": ["client_secret_basic"]}
JSON
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { auth, ClientCredentialsProvider } from '@modelcontextprotocol/client';

const serverUrl = 'https://api.example/mcp';
const metadata = JSON.parse(readFileSync('metadata.json'));
for (const more of [{ authorization_endpoint: 'https://as.example/authorize' }, {}]) {
  const fetchFn = async (url, { method = 'GET' } = {}) => {
    console.log(`  npm ${method} ${url}`);
    const { pathname } = new URL(url);
    if (pathname.includes('oauth-protected-resource'))
      return Response.json({ resource: serverUrl, authorization_servers: [metadata.issuer] });
    if (pathname.includes('oauth-authorization-server')) return Response.json({ ...metadata, ...more });
    if (method === 'POST') return Response.json({ access_token: 'token', token_type: 'Bearer' });
    return new Response(null, { status: 404 });
  };
  const provider = new ClientCredentialsProvider(
    { clientId: 'client', clientSecret: 'secret', expectedIssuer: metadata.issuer });
  await auth(provider, { serverUrl, fetchFn }).then(
    (result) => console.log('npm:', result),
    (error) => console.log(`npm: ${error.name}:`, JSON.parse(error.message)[0].path[0], 'is missing'));
}
JS
cat >run.py <<'PY'
import asyncio, httpx2, json, logging
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from requests_oauth2client import OAuth2Client

logging.disable(logging.CRITICAL)
metadata = json.load(open("metadata.json"))
server = "https://api.example/mcp"

class Storage:
    async def get_tokens(self): pass
    async def get_client_info(self): pass
    async def set_tokens(self, tokens): pass
    async def set_client_info(self, info): pass

async def main(more):
    def answer(request):
        print("  Python", request.method, request.url)
        if "authorization" in request.headers and request.url == server:
            return httpx2.Response(200)
        if "oauth-protected-resource" in request.url.path:
            return httpx2.Response(200, json={"resource": server, "authorization_servers": [metadata["issuer"]]})
        if "oauth-authorization-server" in request.url.path:
            return httpx2.Response(200, json={**metadata, **more})
        if request.url == metadata["token_endpoint"]:
            return httpx2.Response(200, json={"access_token": "token", "token_type": "Bearer"})
        return httpx2.Response(401 if request.url == server else 404)
    provider = ClientCredentialsOAuthProvider(server, Storage(), "client", "secret", issuer=metadata["issuer"])
    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer), auth=provider) as client:
        try:
            print("Python:", (await client.post(server)).status_code)
        except Exception as error:
            print(f"Python: {type(error).__name__}: {error}")

for more in [{"authorization_endpoint": "https://as.example/authorize"}, {}]:
    asyncio.run(main(more))
client = OAuth2Client.from_discovery_document(metadata, issuer=metadata["issuer"], client_id="client")
print("requests-oauth2client:", client.token_endpoint)
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
  npm GET https://api.example/.well-known/oauth-protected-resource/mcp
  npm GET https://as.example/.well-known/oauth-authorization-server
  npm POST https://as.example/v2/token
npm: AUTHORIZED
  npm GET https://api.example/.well-known/oauth-protected-resource/mcp
  npm GET https://as.example/.well-known/oauth-authorization-server
npm: ZodError: authorization_endpoint is missing
  Python POST https://api.example/mcp
  Python GET https://api.example/.well-known/oauth-protected-resource/mcp
  Python GET https://as.example/.well-known/oauth-authorization-server
  Python POST https://as.example/v2/token
  Python POST https://api.example/mcp
Python: 200
  Python POST https://api.example/mcp
  Python GET https://api.example/.well-known/oauth-protected-resource/mcp
  Python GET https://as.example/.well-known/oauth-authorization-server
  Python GET https://as.example/.well-known/openid-configuration
Python: OAuthFlowError: No authorization server metadata discovered for configured issuer https://as.example
requests-oauth2client: https://as.example/v2/token
SEEN
