#!/usr/bin/env bash
# Packages: scimmy 1.3.5 and scim2-parse-filter 0.2.10 (npm; the latter is the filter of scim-patch).
# Expected, by RFC 7644, section 3.4.2.2: times compare as times; text of an attribute that is not caseExact, such as
#   userName (RFC 7643, section 8.7.1), compares without case; `pr` and comparisons do not match an absent attribute;
#   `emails co "x"`, as in an example of that section, compares the `value` of each e-mail address.
# Happens: both compare case. scim2-parse-filter compares times as text and is wrong for any offset but Z; scimmy is
#   wrong for `eq`. scimmy raises TypeError if the parent of a sub-attribute is absent and for `emails co`, which
#   scim2-parse-filter does not find.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund scimmy@1.3.5 scim2-parse-filter@0.2.10

cat >run.mjs <<'JS'
import SCIMMY from 'scimmy';
import { filter, parse } from 'scim2-parse-filter';

const user = {
  userName: 'ada', emails: [{ value: 'a@x.example' }], meta: { lastModified: '2026-05-01T10:00:00+02:00' },
};
const count = (search) => {
  try {
    return search().length;
  } catch (error) {
    return error.constructor.name;
  }
};
console.log('matches by the RFC, scimmy, scim2-parse-filter:');
for (const [expected, text] of [
  [1, 'userName eq "ada"'],
  [1, 'userName eq "Ada"'],
  [1, 'emails.value sw "A@"'],
  [1, 'meta.lastModified eq "2026-05-01T08:00:00Z"'],
  [0, 'meta.lastModified gt "2026-05-01T09:00:00Z"'],
  [1, 'meta.lastModified lt "2026-05-01T08:30:00Z"'],
  [0, 'title eq "Dr"'],
  [0, 'name.familyName eq "Lovelace"'],
  [1, 'not (name.familyName pr)'],
  [1, 'emails co "x.example"'],
]) {
  const scimmy = count(() => new SCIMMY.Types.Filter(text).match([user]));
  console.log(expected, scimmy, count(() => [user].filter(filter(parse(text)))), text);
}
JS
echo 'Output seen:'
node run.mjs | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
matches by the RFC, scimmy, scim2-parse-filter:
1 1 1 userName eq "ada"
1 0 0 userName eq "Ada"
1 0 0 emails.value sw "A@"
1 0 0 meta.lastModified eq "2026-05-01T08:00:00Z"
0 0 1 meta.lastModified gt "2026-05-01T09:00:00Z"
1 1 0 meta.lastModified lt "2026-05-01T08:30:00Z"
0 0 0 title eq "Dr"
0 TypeError 0 name.familyName eq "Lovelace"
1 TypeError 1 not (name.familyName pr)
1 TypeError 0 emails co "x.example"
SEEN
