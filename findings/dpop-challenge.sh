#!/usr/bin/env bash
# Packages: requests-oauth2client 1.8.0 and requests 2.34.2 (PyPI).
# Expected: after a 401 with the challenge `DPoP error="use_dpop_nonce"` and a nonce, a client repeats the request with
#   the nonce (RFC 9449, section 9). Any other 401, such as `error="invalid_token"` for a token that has expired
#   (section 7.1), is an answer for the application. Names of schemes have no case, and a field may hold several
#   challenges (RFC 9110, section 11.6.1).
# Happens: the client takes each challenge that begins with `DPoP` for a wish for a nonce. The 401 of an expired token
#   becomes an exception that says that the nonce is missing, so code that refreshes at 401 never sees it. And a wish
#   for a nonce in lower case, or after another challenge, is not heard.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
venv/bin/pip install --quiet requests-oauth2client==1.8.0 requests==2.34.2

cat >run.py <<'PY'
import io, requests
from requests.adapters import BaseAdapter
from requests_oauth2client import DPoPKey, DPoPToken

class Server(BaseAdapter):
    """Answers the first request with the challenge, and the next with 200."""

    def __init__(self, challenge, nonce):
        super().__init__()
        self.headers = {"WWW-Authenticate": challenge, **({"DPoP-Nonce": nonce} if nonce else {})}
        self.requests = 0

    def send(self, request, **kwargs):
        self.requests += 1
        answer = requests.Response()
        answer.status_code = 401 if self.requests == 1 else 200
        answer.headers.update(self.headers)
        answer.request, answer.url, answer.connection, answer.raw = request, request.url, self, io.BytesIO()
        return answer

    def close(self):
        pass

for challenge, nonce in [
    ('DPoP error="use_dpop_nonce"', "nonce"),
    ('DPoP error="invalid_token"', None),
    ('DPoP algs="ES256"', None),
    ('dpop error="use_dpop_nonce"', "nonce"),
    ('Bearer realm="api", DPoP error="use_dpop_nonce"', "nonce"),
]:
    session, server = requests.Session(), Server(challenge, nonce)
    session.mount("https://", server)
    try:
        result = session.get("https://api.example/", auth=DPoPToken("token", _dpop_key=DPoPKey.generate())).status_code
    except Exception as error:
        result = type(error).__name__
    print(f"{challenge}: {result} after {server.requests} request(s)")
PY
echo 'Output seen:'
venv/bin/python run.py | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
DPoP error="use_dpop_nonce": 200 after 2 request(s)
DPoP error="invalid_token": MissingDPoPNonce after 1 request(s)
DPoP algs="ES256": MissingDPoPNonce after 1 request(s)
dpop error="use_dpop_nonce": 401 after 1 request(s)
Bearer realm="api", DPoP error="use_dpop_nonce": 401 after 1 request(s)
SEEN
