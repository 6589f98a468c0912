#!/usr/bin/env bash
# Packages: standardwebhooks 1.1.0 and svix 1.99.1 (npm), standardwebhooks 1.1.0 and svix 2.9.1 (PyPI).
# Expected: libraries for one format (Standard Webhooks) accept what they signed themselves, and do it alike. The
#   signature covers the bytes of the body, whatever they are.
# Happens: `verify` also reads the body as JSON in three of the four: a signed text fails with a parse error, which is
#   not the error of a wrong signature. An empty body gives undefined, an error or None. svix for Python gives None
#   always, so a check such as `if not verify(...)` refuses every event. Both npm packages take plain objects only and
#   report the headers of a fetch `Request` as missing.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund standardwebhooks@1.1.0 svix@1.99.1
python3 -m venv venv
venv/bin/pip install --quiet standardwebhooks==1.1.0 svix==2.9.1

cat >run.mjs <<'JS'
import * as standard from 'standardwebhooks';
import * as svix from 'svix';
const now = new Date();
const headers = (signature) => ({
  'webhook-id': 'id', 'webhook-timestamp': String(Math.floor(now / 1000)), 'webhook-signature': signature,
});
for (const [name, { Webhook }] of Object.entries({ standardwebhooks: standard, svix })) {
  const webhook = new Webhook(Buffer.alloc(24).toString('base64'));
  const verify = (body, wrap) => {
    try {
      return JSON.stringify(webhook.verify(body, wrap(headers(webhook.sign('id', now, body)))));
    } catch (error) {
      return error instanceof SyntaxError ? 'SyntaxError' : `${error.name}: ${error.message}`;
    }
  };
  for (const body of ['{"a":1}', 'some text', ''])
    console.log(`npm ${name}, body ${body || 'empty'}:`, verify(body, (plain) => plain));
  console.log(`npm ${name}, headers of a Request:`, verify('{}', (plain) => new Headers(plain)));
}
JS
cat >run.py <<'PY'
import base64, standardwebhooks, svix.webhooks
from datetime import datetime, timezone
now = datetime.now(timezone.utc)
for name, module in {"standardwebhooks": standardwebhooks, "svix": svix.webhooks}.items():
    webhook = module.Webhook(base64.b64encode(bytes(24)).decode())
    for body in ['{"a":1}', "some text", ""]:
        headers = {"webhook-id": "id", "webhook-timestamp": str(int(now.timestamp())),
                   "webhook-signature": webhook.sign("id", now, body)}
        try:
            print(f"PyPI {name}, body {body or 'empty'}:", webhook.verify(body, headers))
        except ValueError as error:
            print(f"PyPI {name}, body {body or 'empty'}:", type(error).__name__)
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
npm standardwebhooks, body {"a":1}: {"a":1}
npm standardwebhooks, body some text: SyntaxError
npm standardwebhooks, body empty: undefined
npm standardwebhooks, headers of a Request: WebhookVerificationError: Missing required headers
npm svix, body {"a":1}: {"a":1}
npm svix, body some text: SyntaxError
npm svix, body empty: SyntaxError
npm svix, headers of a Request: WebhookVerificationError: Missing required headers
PyPI standardwebhooks, body {"a":1}: {'a': 1}
PyPI standardwebhooks, body some text: JSONDecodeError
PyPI standardwebhooks, body empty: JSONDecodeError
PyPI svix, body {"a":1}: None
PyPI svix, body some text: None
PyPI svix, body empty: None
SEEN
