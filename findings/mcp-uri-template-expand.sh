#!/usr/bin/env bash
# Package: @modelcontextprotocol/client 2.4.0 (npm); the class is also that of @modelcontextprotocol/server.
# Expected: UriTemplate.expand gives what RFC 6570, section 3.2 gives for its own examples. MCP defines the
#   templates of resources as RFC 6570 templates (2026-07-28, server/resources, "Resource Templates").
# Happens: a template with an operator and two variables loses the operator, `{;x}` and `{x:3}` give nothing,
#   `*` on a query variable is ignored, and `!` is not encoded. Nothing is raised.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund @modelcontextprotocol/client@2.4.0

cat >run.mjs <<'JS'
import { UriTemplate } from '@modelcontextprotocol/client';

const values = {
  hello: 'Hello World!', half: '50%', var: 'value', who: 'fred', path: '/foo/bar', empty: '',
  list: ['red', 'green', 'blue'], v: '6', x: '1024', y: '768',
};
// Templates with their expansions in sections 3.2.2 to 3.2.9 of the RFC.
const examples = [
  ['{half}', '50%25'], ['{x,y}', '1024,768'], ['{+path}/here', '/foo/bar/here'], ['{#var}', '#value'],
  ['{.who}', '.fred'], ['{/who}', '/fred'], ['{?x,y,empty}', '?x=1024&y=768&empty='],
  ['{hello}', 'Hello%20World%21'], ['{x,hello,y}', '1024,Hello%20World%21,768'], ['{var:3}', 'val'],
  ['{#path,x}/here', '#/foo/bar,1024/here'], ['{.who,who}', '.fred.fred'], ['X{.list}', 'X.red,green,blue'],
  ['{/var,x}/here', '/value/1024/here'], ['{;who}', ';who=fred'], ['{;v,empty,who}', ';v=6;empty;who=fred'],
  ['{?list*}', '?list=red&list=green&list=blue'], ['{&list*}', '&list=red&list=green&list=blue'],
];
for (const [template, expected] of examples) {
  const got = new UriTemplate(template).expand(values);
  console.log(got === expected ? 'as the RFC ' : 'differs    ', template.padEnd(16), JSON.stringify(got));
}
JS
echo 'Output seen:'
node run.mjs | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
as the RFC  {half}           "50%25"
as the RFC  {x,y}            "1024,768"
as the RFC  {+path}/here     "/foo/bar/here"
as the RFC  {#var}           "#value"
as the RFC  {.who}           ".fred"
as the RFC  {/who}           "/fred"
as the RFC  {?x,y,empty}     "?x=1024&y=768&empty="
differs     {hello}          "Hello%20World!"
differs     {x,hello,y}      "1024,Hello World!,768"
differs     {var:3}          ""
differs     {#path,x}/here   "/foo/bar,1024/here"
differs     {.who,who}       "fred,fred"
differs     X{.list}         "X.red.green.blue"
differs     {/var,x}/here    "value,1024/here"
differs     {;who}           ""
differs     {;v,empty,who}   ",fred"
differs     {?list*}         "?list=red,green,blue"
differs     {&list*}         "&list=red,green,blue"
SEEN
