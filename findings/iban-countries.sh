#!/usr/bin/env bash
# Packages: validator 13.15.35, ibantools 4.5.4 and iban 0.0.14 (npm), python-stdnum 2.2 and schwifty 2026.10.1 (PyPI).
# Expected: validators of IBANs know the countries that have joined since 2021, such as Libya and Oman. The numbers are
#   examples of account numbers in the format of the registry; their check digits are right.
# Happens: two npm packages know none of them and call their numbers invalid, like a number with a wrong digit. The
#   others know all of them. So a detector of account numbers finds one or not by the package behind it.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund validator@13.15.35 ibantools@4.5.4 \
  iban@0.0.14
python3 -m venv venv
venv/bin/pip install --quiet python-stdnum==2.2 schwifty==2026.10.1

cat >numbers.json <<'JSON'
["DE89370400440532013000", "LY83002048000020100120361", "SD2129010501234001", "BI4210000100010000332045181",
 "DJ2100010000000154000100186", "SO211000001001000100141", "OM810180000001299123456", "YE15CBYE0001018861234567891234"]
JSON
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import iban from 'iban';
import * as ibantools from 'ibantools';
import validator from 'validator';

const checks = { validator: validator.isIBAN, iban: iban.isValid, ibantools: ibantools.isValidIBAN };
for (const [name, check] of Object.entries(checks))
  console.log(`${name}:`, JSON.parse(readFileSync('numbers.json')).map(
    (number) => `${number.slice(0, 2)} ${check(number) ? 'valid' : 'invalid'}`).join(', '));
JS
cat >run.py <<'PY'
import json
import schwifty, stdnum.iban

for name, check in {
    "python-stdnum": stdnum.iban.is_valid,
    "schwifty": lambda number: schwifty.IBAN(number, allow_invalid=True).is_valid,
}.items():
    numbers = json.load(open("numbers.json"))
    print(f"{name}:", ", ".join(f"{number[:2]} {'valid' if check(number) else 'invalid'}" for number in numbers))
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
validator: DE valid, LY invalid, SD invalid, BI invalid, DJ invalid, SO invalid, OM invalid, YE invalid
iban: DE valid, LY invalid, SD invalid, BI invalid, DJ invalid, SO invalid, OM invalid, YE invalid
ibantools: DE valid, LY valid, SD valid, BI valid, DJ valid, SO valid, OM valid, YE valid
python-stdnum: DE valid, LY valid, SD valid, BI valid, DJ valid, SO valid, OM valid, YE valid
schwifty: DE valid, LY valid, SD valid, BI valid, DJ valid, SO valid, OM valid, YE valid
SEEN
