#!/usr/bin/env bash
# Packages: validator 13.15.35 and stdnum 1.12.0 (npm), python-stdnum 2.2 (PyPI). No number belongs to a person.
# Expected: validators of one kind of number agree on its official forms. Brazil prints CNPJ as 00.000.000/0000-00.
#   Irish VAT numbers end in one or two letters. Since 2023 Finnish personal identity codes have more signs for the
#   century: U to Y beside `-`, B to F beside `A`. (900 and up is for temporary codes, as used here.)
# Happens: validator takes a printed CPF but no printed CNPJ; its isVAT refuses Irish numbers with two letters (unless
#   the second is W), while its isTaxID takes them; it refuses the new Finnish signs. python-stdnum refuses temporary
#   Finnish codes unless asked. So a value passes one check and fails the next.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund validator@13.15.35 stdnum@1.12.0
python3 -m venv venv
venv/bin/pip install --quiet python-stdnum==2.2

cat >run.mjs <<'JS'
import { stdnum } from 'stdnum';
import validator from 'validator';

const word = (valid) => (valid ? 'valid' : 'invalid');
const show = (what, number, first, second) =>
  console.log(what, number, `validator ${word(first)}, stdnum ${word(second)}`);
for (const number of ['111.444.777-35', '11144477735'])
  show('CPF', number, validator.isTaxID(number, 'pt-BR'), stdnum.BR.cpf.validate(number).isValid);
for (const number of ['11.222.333/0001-81', '11222333000181', '12.ABC.345/01DE-35', '12ABC34501DE35'])
  show('CNPJ', number, validator.isTaxID(number, 'pt-BR'), stdnum.BR.cnpj.validate(number).isValid);
for (const number of ['6433435F', '6433435OA'])
  for (const [check, locale] of [['isVAT', 'IE'], ['isTaxID', 'en-IE']])
    show(`Irish VAT, ${check},`, number, validator[check](number, locale), stdnum.IE.vat.validate(number).isValid);
for (const number of ['010194-900R', '010194X900R', '010106A9001', '010106B9001'])
  show('Finnish code', number, validator.isIdentityCard(number, 'FI'), stdnum.FI.hetu.validate(number).isValid);
JS
cat >run.py <<'PY'
from stdnum.br import cnpj
from stdnum.fi import hetu
from stdnum.ie import vat

print("python-stdnum:", cnpj.is_valid("12.ABC.345/01DE-35"), vat.is_valid("6433435OA"), hetu.is_valid("010194X900R"))
print("python-stdnum, allow_temporary:", hetu.is_valid("010194X900R", allow_temporary=True))
PY
echo 'Output seen:'
{ node run.mjs && venv/bin/python run.py; } | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
CPF 111.444.777-35 validator valid, stdnum valid
CPF 11144477735 validator valid, stdnum valid
CNPJ 11.222.333/0001-81 validator invalid, stdnum valid
CNPJ 11222333000181 validator valid, stdnum valid
CNPJ 12.ABC.345/01DE-35 validator invalid, stdnum valid
CNPJ 12ABC34501DE35 validator valid, stdnum valid
Irish VAT, isVAT, 6433435F validator valid, stdnum valid
Irish VAT, isTaxID, 6433435F validator valid, stdnum valid
Irish VAT, isVAT, 6433435OA validator invalid, stdnum valid
Irish VAT, isTaxID, 6433435OA validator valid, stdnum valid
Finnish code 010194-900R validator valid, stdnum valid
Finnish code 010194X900R validator invalid, stdnum valid
Finnish code 010106A9001 validator valid, stdnum valid
Finnish code 010106B9001 validator invalid, stdnum valid
python-stdnum: True True False
python-stdnum, allow_temporary: True
SEEN
