#!/usr/bin/env bash
# Packages: @modelcontextprotocol/client 2.4.0 and oauth4webapi 3.8.8 (npm), mcp 2.3.0 (PyPI).
# Expected: MCP clients read one token response alike. Servers in languages that write absent members as null send
#   `"refresh_token": null`. A client that does not understand a token type must not use the token (RFC 6749, section
#   7.1).
# Happens: npm's client takes `expires_in: null` for 0, so a token of unknown lifetime counts as expired, and refuses
#   the whole response for a null in `refresh_token` or `scope`. Python's takes null as absent, and oauth4webapi refuses
#   all three. npm's also returns a token of any type; Python's refuses all but Bearer.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/client@2.4.0 \
  oauth4webapi@3.8.8
python3 -m venv venv
venv/bin/pip install --quiet mcp==2.3.0

cat >cases.json <<'JSON'
[{"token_type": "bearer", "expires_in": 3600}, {"token_type": "Bearer", "expires_in": null},
 {"token_type": "Bearer", "refresh_token": null}, {"token_type": "Bearer", "scope": null}, {"token_type": "N_A"},
 {"token_type": "DPoP"}]
JSON
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { exchangeAuthorization } from '@modelcontextprotocol/client';
import * as oauth from 'oauth4webapi';

const metadata = {
  issuer: 'https://as.example', authorization_endpoint: 'https://as.example/authorize',
  token_endpoint: 'https://as.example/token', response_types_supported: ['code'],
};
for (const members of JSON.parse(readFileSync('cases.json'))) {
  const answer = () => Response.json({ access_token: 'token', ...members });
  const show = (name, promise) => promise.then(
    ({ access_token, ...rest }) => console.log(name, JSON.stringify(members), '->', JSON.stringify(rest)),
    (error) => console.log(name, JSON.stringify(members), '->', error.name));
  await show('npm client  ', exchangeAuthorization(metadata.issuer, {
    metadata, clientInformation: { client_id: 'client' }, authorizationCode: 'code', codeVerifier: 'verifier',
    redirectUri: 'https://app.example/', fetchFn: async () => answer(),
  }));
  await show('oauth4webapi', oauth.processClientCredentialsResponse(metadata, { client_id: 'client' }, answer()));
}
JS
cat >run.py <<'PY'
import json
from mcp.shared.auth import OAuthToken
from pydantic import ValidationError

for members in json.load(open("cases.json")):
    text = json.dumps({"access_token": "token", **members})
    try:
        read = OAuthToken.model_validate_json(text).model_dump(exclude={"access_token"}, exclude_none=True)
        print("Python client", json.dumps(members), "->", json.dumps(read))
    except ValidationError as error:
        print("Python client", json.dumps(members), "->", type(error).__name__)
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm client   {"token_type":"bearer","expires_in":3600} -> {"token_type":"bearer","expires_in":3600}
oauth4webapi {"token_type":"bearer","expires_in":3600} -> {"token_type":"bearer","expires_in":3600}
npm client   {"token_type":"Bearer","expires_in":null} -> {"token_type":"Bearer","expires_in":0}
oauth4webapi {"token_type":"Bearer","expires_in":null} -> OperationProcessingError
npm client   {"token_type":"Bearer","refresh_token":null} -> ZodError
oauth4webapi {"token_type":"Bearer","refresh_token":null} -> OperationProcessingError
npm client   {"token_type":"Bearer","scope":null} -> ZodError
oauth4webapi {"token_type":"Bearer","scope":null} -> OperationProcessingError
npm client   {"token_type":"N_A"} -> {"token_type":"N_A"}
oauth4webapi {"token_type":"N_A"} -> UnsupportedOperationError
npm client   {"token_type":"DPoP"} -> {"token_type":"DPoP"}
oauth4webapi {"token_type":"DPoP"} -> {"token_type":"dpop"}
Python client {"token_type": "bearer", "expires_in": 3600} -> {"token_type": "Bearer", "expires_in": 3600}
Python client {"token_type": "Bearer", "expires_in": null} -> {"token_type": "Bearer"}
Python client {"token_type": "Bearer", "refresh_token": null} -> {"token_type": "Bearer"}
Python client {"token_type": "Bearer", "scope": null} -> {"token_type": "Bearer"}
Python client {"token_type": "N_A"} -> ValidationError
Python client {"token_type": "DPoP"} -> ValidationError
SEEN
