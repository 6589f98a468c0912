#!/usr/bin/env bash
# Packages: requests-oauth2client 1.8.0, requests 2.34.2, Authlib 1.9.10, mcp 2.3.0 (PyPI), oauth4webapi 3.8.8 and
#   @modelcontextprotocol/client 2.4.0 (npm).
# Expected: a client that authenticates with HTTP Basic form-encodes its identifier and its secret first (RFC 6749,
#   section 2.3.1). So a server can split at the first `:`, also if the identifier is a URL.
# Happens: requests-oauth2client, Authlib and npm's MCP client do not encode. A server that follows the RFC then reads
#   another secret for one with `%` or `+`, and splits a URL in the middle. Python's MCP client and oauth4webapi encode.
#   So a registered client works or not by the language of the agent.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund oauth4webapi@3.8.8 \
  @modelcontextprotocol/client@2.4.0
python3 -m venv venv
venv/bin/pip install --quiet requests-oauth2client==1.8.0 requests==2.34.2 Authlib==1.9.10 mcp==2.3.0

cat >cases.json <<'JSON'
[["app", "plain"], ["app", "50%25+1"], ["https://app.example", "plain"]]
JSON
cat >run.py <<'PY'
import base64, json, requests
from urllib.parse import unquote_plus
from authlib.oauth2.auth import ClientAuth
from mcp.client.auth.oauth2 import OAuthContext
from mcp.shared.auth import OAuthClientInformationFull
from requests_oauth2client import ClientSecretBasic

url = "https://as.example/token"
for client, secret in json.load(open("cases.json")):
    request = ClientSecretBasic(client, secret)(requests.Request("POST", url).prepare())
    context = OAuthContext("https://api.example/mcp", None, None, None, None)
    context.client_info = OAuthClientInformationFull(
        client_id=client, client_secret=secret, token_endpoint_auth_method="client_secret_basic")
    for name, header in {
        "requests-oauth2client": request.headers["Authorization"],
        "Authlib": ClientAuth(client, secret, "client_secret_basic").prepare("POST", url, {}, "")[1]["Authorization"],
        "Python MCP client": context.prepare_token_auth({})[1]["Authorization"],
    }.items():
        sent = base64.b64decode(header.split()[1]).decode()
        read = [unquote_plus(part) for part in sent.split(":", 1)]
        print(f"{name} sends {sent}, the server reads", "the same" if read == [client, secret] else " and ".join(read))
PY
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { exchangeAuthorization } from '@modelcontextprotocol/client';
import * as oauth from 'oauth4webapi';

const metadata = {
  issuer: 'https://as.example', authorization_endpoint: 'https://as.example/authorize',
  token_endpoint: 'https://as.example/token', response_types_supported: ['code'],
  token_endpoint_auth_methods_supported: ['client_secret_basic'],
};
const decode = (text) => decodeURIComponent(text.replaceAll('+', ' '));
for (const [client_id, client_secret] of JSON.parse(readFileSync('cases.json'))) {
  const answer = (name) => async (url, { headers }) => {
    const sent = Buffer.from(new Headers(headers).get('authorization').split(' ')[1], 'base64').toString();
    const read = [sent.slice(0, sent.indexOf(':')), sent.slice(sent.indexOf(':') + 1)].map(decode);
    const same = read[0] === client_id && read[1] === client_secret;
    console.log(`${name} sends ${sent}, the server reads`, same ? 'the same' : read.join(' and '));
    return Response.json({ access_token: 'token', token_type: 'Bearer' });
  };
  await exchangeAuthorization(metadata.issuer, {
    metadata, clientInformation: { client_id, client_secret }, authorizationCode: 'code', codeVerifier: 'verifier',
    redirectUri: 'https://app.example/', fetchFn: answer('npm MCP client'),
  });
  const basic = oauth.ClientSecretBasic(client_secret);
  await oauth.clientCredentialsGrantRequest(
    metadata, { client_id }, basic, {}, { [oauth.customFetch]: answer('oauth4webapi') });
}
JS
echo 'Output seen:'
{ venv/bin/python -W ignore run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
requests-oauth2client sends app:plain, the server reads the same
Authlib sends app:plain, the server reads the same
Python MCP client sends app:plain, the server reads the same
requests-oauth2client sends app:50%25+1, the server reads app and 50% 1
Authlib sends app:50%25+1, the server reads app and 50% 1
Python MCP client sends app:50%2525%2B1, the server reads the same
requests-oauth2client sends https://app.example:plain, the server reads https and //app.example:plain
Authlib sends https://app.example:plain, the server reads https and //app.example:plain
Python MCP client sends https%3A%2F%2Fapp.example:plain, the server reads the same
npm MCP client sends app:plain, the server reads the same
oauth4webapi sends app:plain, the server reads the same
npm MCP client sends app:50%25+1, the server reads app and 50% 1
oauth4webapi sends app:50%2525%2B1, the server reads the same
npm MCP client sends https://app.example:plain, the server reads https and //app.example:plain
oauth4webapi sends https%3A%2F%2Fapp%2Eexample:plain, the server reads the same
SEEN
