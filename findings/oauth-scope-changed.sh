#!/usr/bin/env bash
# Packages: oauthlib 4.0.1, Authlib 1.9.10, requests 2.34.2 and mcp 2.3.0 (PyPI), oauth4webapi 3.8.8 (npm).
# Expected: a server may grant other scopes than those requested, and then says so in `scope` (RFC 6749, sections 3.3
#   and 5.1). The client gets the token, and the scopes that it has.
# Happens: oauthlib raises instead of returning the token, and what it raises is the class `Warning` itself: `except
#   OAuth2Error` does not catch it, and filters of warnings do not silence it. The token is lost. The others return it.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund oauth4webapi@3.8.8
python3 -m venv venv
venv/bin/pip install --quiet oauthlib==4.0.1 Authlib==1.9.10 requests==2.34.2 mcp==2.3.0

cat >run.py <<'PY'
import json, warnings
from authlib.integrations.requests_client import OAuth2Session
from mcp.shared.auth import OAuthToken
from oauthlib.oauth2 import OAuth2Error, WebApplicationClient
from requests import Response

warnings.simplefilter("ignore")
for granted in ["read write", "write read", "read"]:
    text = json.dumps({"access_token": "token", "token_type": "Bearer", "scope": granted})
    try:
        token = WebApplicationClient("client").parse_request_body_response(text, scope=["read", "write"])
        print("oauthlib, granted", granted, "->", token["access_token"], token["scope"])
    except OAuth2Error:
        print("oauthlib, granted", granted, "-> an error of its own")
    except Exception as error:
        print("oauthlib, granted", granted, "-> raises", type(error))
    answer = Response()
    answer.status_code, answer._content = 200, text.encode()
    token = OAuth2Session("client", scope="read write").parse_response_token(answer)
    print("Authlib, granted", granted, "->", token["access_token"], token["scope"])
    token = OAuthToken.model_validate_json(text)
    print("mcp, granted", granted, "->", token.access_token, token.scope)
PY
cat >run.mjs <<'JS'
import * as oauth from 'oauth4webapi';

const server = { issuer: 'https://as.example', token_endpoint: 'https://as.example/token' };
const answer = Response.json({ access_token: 'token', token_type: 'Bearer', scope: 'read' });
const token = await oauth.processClientCredentialsResponse(server, { client_id: 'client' }, answer);
console.log('oauth4webapi, granted read ->', token.access_token, token.scope);
JS
echo 'Output seen:'
{ venv/bin/python run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
oauthlib, granted read write -> token ['read', 'write']
Authlib, granted read write -> token read write
mcp, granted read write -> token read write
oauthlib, granted write read -> token ['write', 'read']
Authlib, granted write read -> token write read
mcp, granted write read -> token write read
oauthlib, granted read -> raises <class 'Warning'>
Authlib, granted read -> token read
mcp, granted read -> token read
oauth4webapi, granted read -> token read
SEEN
