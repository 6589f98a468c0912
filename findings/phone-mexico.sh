#!/usr/bin/env bash
# Packages: phonenumbers 8.13.30 and 9.0.43 (PyPI), libphonenumber-js 1.13.16 and google-libphonenumber 3.2.47 (npm).
#   The number is the libraries' own example.
# Expected: Mexican mobile numbers are found in both forms that are in use. Until 2019 the plan had a 1 after +52, and
#   WhatsApp's interface gives numbers in that form (github.com/daviddrysdale/python-phonenumbers, issue 306).
# Happens: the libraries call a number with the 1 impossible, and do not find it in text. Version 8.13.30 took both
#   forms for one number. So an update makes stored numbers invalid, and a detector blind to them.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund libphonenumber-js@1.13.16 \
  google-libphonenumber@3.2.47
for version in 8.13.30 9.0.43; do
  python3 -m venv "venv-$version"
  "venv-$version/bin/pip" install --quiet "phonenumbers==$version"
done

cat >run.py <<'PY'
import phonenumbers

for text in ["+52 222 123 4567", "+52 1 222 123 4567"]:
    number = phonenumbers.parse(text)
    found = [match.raw_string for match in phonenumbers.PhoneNumberMatcher(f"call {text} now", None)]
    written = phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)
    possible, valid = phonenumbers.is_possible_number(number), phonenumbers.is_valid_number(number)
    print(f"phonenumbers {phonenumbers.__version__}, {text}: {written} possible {possible} valid {valid} found {found}")
PY
cat >run.mjs <<'JS'
import google from 'google-libphonenumber';
import { findPhoneNumbersInText, parsePhoneNumberFromString } from 'libphonenumber-js/max';

const util = google.PhoneNumberUtil.getInstance();
for (const text of ['+52 222 123 4567', '+52 1 222 123 4567']) {
  const [number, parsed] = [parsePhoneNumberFromString(text), util.parse(text)];
  const found = findPhoneNumbersInText(`call ${text} now`).length;
  console.log(`libphonenumber-js, ${text}: possible ${number.isPossible()} valid ${number.isValid()} found ${found}`);
  const [possible, valid] = [util.isPossibleNumber(parsed), util.isValidNumber(parsed)];
  console.log(`google-libphonenumber, ${text}: possible ${possible} valid ${valid}`);
}
JS
echo 'Output seen:'
{ venv-8.13.30/bin/python run.py && venv-9.0.43/bin/python run.py && node run.mjs; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
phonenumbers 8.13.30, +52 222 123 4567: +522221234567 possible True valid True found ['+52 222 123 4567']
phonenumbers 8.13.30, +52 1 222 123 4567: +522221234567 possible True valid True found ['+52 1 222 123 4567']
phonenumbers 9.0.43, +52 222 123 4567: +522221234567 possible True valid True found ['+52 222 123 4567']
phonenumbers 9.0.43, +52 1 222 123 4567: +5212221234567 possible False valid False found []
libphonenumber-js, +52 222 123 4567: possible true valid true found 1
google-libphonenumber, +52 222 123 4567: possible true valid true
libphonenumber-js, +52 1 222 123 4567: possible false valid false found 0
google-libphonenumber, +52 1 222 123 4567: possible false valid false
SEEN
