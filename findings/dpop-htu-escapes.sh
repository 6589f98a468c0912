#!/usr/bin/env bash
# Packages: requests-oauth2client 1.8.0, requests 2.34.2 and furl 2.1.4 (PyPI), oauth4webapi 3.8.8 (npm).
# Expected: `htu` of a DPoP proof is the URI of the request without query and fragment (RFC 9449, section 4.2). `:` is a
#   reserved character, so `%3A` and `:` are different URIs (RFC 3986, section 2.2): no normalisation makes them equal.
# Happens: requests-oauth2client passes the URI through furl, which writes `%3A`, `%40`, `%2B`, `%2C` and `%3D` of the
#   path as the plain character, while the request keeps them. A server that compares as section 4.3 says refuses each
#   request for such a path. oauth4webapi writes `htu` as it sends the request.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund oauth4webapi@3.8.8
python3 -m venv venv
venv/bin/pip install --quiet requests-oauth2client==1.8.0 requests==2.34.2 furl==2.1.4

cat >run.py <<'PY'
import base64, json, requests
from requests_oauth2client import DPoPKey, DPoPToken

token = DPoPToken(access_token="token", _dpop_key=DPoPKey.generate())
for path in ["plain", "a%2Fb", "a%20b", "urn%3Aa", "user%40host", "a%2Bb", "a%2Cb", "a%3Db"]:
    request = requests.Request("GET", f"https://api.example/{path}", auth=token).prepare()
    payload = request.headers["DPoP"].split(".")[1]
    htu = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))["htu"]
    print("requests-oauth2client", "same   " if htu == request.url else "differs", request.url, htu)
PY
cat >run.mjs <<'JS'
import * as oauth from 'oauth4webapi';

const dpop = oauth.DPoP({ client_id: 'client' }, await oauth.generateKeyPair('ES256'));
await oauth.protectedResourceRequest('token', 'GET', new URL('https://api.example/urn%3Aa'), undefined, null, {
  DPoP: dpop,
  [oauth.customFetch]: async (url, { headers }) => {
    const payload = new Headers(headers).get('dpop').split('.')[1];
    const { htu } = JSON.parse(Buffer.from(payload, 'base64url'));
    console.log('oauth4webapi         ', htu === url ? 'same   ' : 'differs', url, htu);
    return new Response();
  },
});
JS
echo 'Output seen:'
{ venv/bin/python run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
requests-oauth2client same    https://api.example/plain https://api.example/plain
requests-oauth2client same    https://api.example/a%2Fb https://api.example/a%2Fb
requests-oauth2client same    https://api.example/a%20b https://api.example/a%20b
requests-oauth2client differs https://api.example/urn%3Aa https://api.example/urn:a
requests-oauth2client differs https://api.example/user%40host https://api.example/user@host
requests-oauth2client differs https://api.example/a%2Bb https://api.example/a+b
requests-oauth2client differs https://api.example/a%2Cb https://api.example/a,b
requests-oauth2client differs https://api.example/a%3Db https://api.example/a=b
oauth4webapi          same    https://api.example/urn%3Aa https://api.example/urn%3Aa
SEEN
