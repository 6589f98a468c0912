#!/usr/bin/env bash
# Packages: Authlib 1.9.10, joserfc 1.8.0, PyJWT 2.15.1 and cryptography 50.0.2 (PyPI), jose 6.2.18 (npm). Authlib's
#   module is deprecated in favour of joserfc.
# Expected: a reader of a JWK Set ignores the keys whose type it does not understand, or that it does not support, and
#   uses the others (RFC 7517, section 5). A provider can then add keys of a new kind, such as `AKP` for ML-DSA, before
#   its clients know them. (The curve below has a made-up name.)
# Happens: Authlib raises KeyError for the whole set if one key has an unknown type, joserfc if one has an unknown
#   curve. From the day on which a provider adds such a key, no token can be checked. PyJWT and jose ignore it.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund jose@6.2.18
python3 -m venv venv
venv/bin/pip install --quiet Authlib==1.9.10 joserfc==1.8.0 PyJWT==2.15.1 cryptography==50.0.2

cat >run.mjs <<'JS'
import { writeFileSync } from 'node:fs';
import * as jose from 'jose';

const { privateKey, publicKey } = await jose.generateKeyPair('ES256');
const token = await new jose.SignJWT({ sub: 'ada' }).setProtectedHeader({ alg: 'ES256', kid: 'ours' }).sign(privateKey);
const ours = { ...(await jose.exportJWK(publicKey)), kid: 'ours', alg: 'ES256', use: 'sig' };
const sets = {
  'one key': [ours],
  'and an ML-DSA key': [
    { kty: 'AKP', alg: 'ML-DSA-44', kid: 'next', pub: Buffer.alloc(1312).toString('base64url') }, ours],
  'and a key on an unknown curve': [{ kty: 'OKP', crv: 'Curve2030', kid: 'next', x: 'AA' }, ours],
};
for (const [name, keys] of Object.entries(sets)) {
  const { payload } = await jose.jwtVerify(token, jose.createLocalJWKSet({ keys }));
  console.log(`jose, ${name}: token of ${payload.sub}`);
}
writeFileSync('sets.json', JSON.stringify({ token, sets }));
JS
cat >run.py <<'PY'
import authlib.deprecate, json, warnings
warnings.simplefilter("ignore")
import authlib.jose, joserfc.jwk, joserfc.jwt, jwt

file = json.load(open("sets.json"))
token = file["token"]

def with_pyjwt(keys):
    return jwt.decode(token, jwt.PyJWKSet.from_dict(keys)["ours"], algorithms=["ES256"])

def with_joserfc(keys):
    return joserfc.jwt.decode(token, joserfc.jwk.KeySet.import_key_set(keys), algorithms=["ES256"]).claims

def with_authlib(keys):
    return authlib.jose.jwt.decode(token, authlib.jose.JsonWebKey.import_key_set(keys))

for library, check in {"PyJWT": with_pyjwt, "joserfc": with_joserfc, "Authlib": with_authlib}.items():
    for name, keys in file["sets"].items():
        try:
            print(f"{library}, {name}: token of {check({'keys': keys})['sub']}")
        except KeyError as error:
            print(f"{library}, {name}: KeyError: {error}")
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
jose, one key: token of ada
jose, and an ML-DSA key: token of ada
jose, and a key on an unknown curve: token of ada
PyJWT, one key: token of ada
PyJWT, and an ML-DSA key: token of ada
PyJWT, and a key on an unknown curve: token of ada
joserfc, one key: token of ada
joserfc, and an ML-DSA key: token of ada
joserfc, and a key on an unknown curve: KeyError: 'Curve2030'
Authlib, one key: token of ada
Authlib, and an ML-DSA key: KeyError: 'AKP'
Authlib, and a key on an unknown curve: token of ada
SEEN
