#!/usr/bin/env bash
# Packages: psycopg 3.3.9 with libpq and asyncpg 0.32.0 (PyPI), pg 8.23.1 and postgres 3.4.9 (npm).
# Expected: one connection URI leads every driver to the same place. The format is libpq's (documentation of PostgreSQL
#   18, section 32.1.1.2): several hosts, IPv6 in brackets, the folder of a socket as an escaped host or in the query,
#   escapes in every part. A query's `host`, `port` or `dbname` wins over the part before it, and `+` is a plus.
# Happens: postgres takes IPv6 for a host `[2001` with port NaN, does not use `host`, `port` and `user` of the query (it
#   asks localhost, as another user) and looks up `%2Frun%2Fpg` as a name. pg takes several hosts for one name, or
#   raises TypeError. Neither decodes `%2F` in the name of a database. In asyncpg the part before the query wins, and
#   `/?dbname=` gives an empty name. All three read `+` as a space. asyncpg documents that what it does not know, such
#   as `hostaddr`, goes to the server as a setting, as in postgres. The server refuses unknown settings.
set -euo pipefail
sed -n 's/^# //p' "$0"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
npm install --prefix "$work" --silent --ignore-scripts --no-audit --no-fund pg@8.23.1 postgres@3.4.9
python3 -m venv venv
venv/bin/pip install --quiet 'psycopg[binary]==3.3.9' asyncpg==0.32.0
for name in $(compgen -e PG || true); do unset "$name"; done
export PGUSER=other

cat >uris <<'URIS'
postgresql://ada@[2001:db8::5]:5433/db
postgresql://ada@%2Frun%2Fpg:5433/db
postgresql:///db?host=/run/pg&port=5433&user=ada
postgresql://ada@one.example:5433,two.example:5434/db
postgresql://ada@one.example,two.example:5434/db
postgresql:///db?host=one.example,two.example&port=5433,5434&user=ada
postgresql://ada@one.example/db?host=two.example&port=5433
postgresql://ada@one.example/my%2Fdb
postgresql://ada@one.example/?dbname=db
postgresql://ada@one.example/db?application_name=a+b
postgresql://ada@one.example/db?hostaddr=192.0.2.7
URIS
cat >run.py <<'PY'
import inspect
from asyncpg.connect_utils import _parse_connect_dsn_and_args
from psycopg.conninfo import conninfo_to_dict

unset = dict.fromkeys(inspect.signature(_parse_connect_dsn_and_args).parameters)
for number, uri in enumerate(open("uris").read().split()):
    libpq = conninfo_to_dict(uri)
    print(f"{number} a", uri)
    print(f"{number} b   libpq:", *(f"{name}={value}" for name, value in libpq.items()))
    places, rest = _parse_connect_dsn_and_args(**{**unset, "dsn": uri, "direct_tls": False})
    print(f"{number} c   asyncpg:", *places, repr(rest.database), rest.user, rest.server_settings or "")
PY
cat >run.mjs <<'JS'
import { readFileSync } from 'node:fs';
import pg from 'pg';
import postgres from 'postgres';
const drivers = {
  'd   pg': (uri) => {
    const { host, port, database, user, connectionParameters: { application_name: name } } = new pg.Client(uri);
    return [host, port, database, user, name ?? ''];
  },
  'e   postgres': (uri) => {
    const { host, port, database, user, connection: { application_name: name, ...settings } } = postgres(uri).options;
    return [host, port, database, user, name === 'postgres.js' ? '' : name, settings];
  },
};
for (const [number, uri] of readFileSync('uris', 'utf8').trim().split('\n').entries())
  for (const [driver, parse] of Object.entries(drivers))
    try {
      console.log(number, `${driver}:`, ...parse(uri));
    } catch ({ name, message }) {
      console.log(number, `${driver}:`, name, message);
    }
JS
echo 'Output seen:'
{ venv/bin/python run.py && node run.mjs; } | sort -V | sed 's/^[0-9]* [a-e] //' | tee output
diff output - >&2 <<'SEEN' || { echo 'The behaviour has changed: see the difference above.' >&2; exit 1; }
postgresql://ada@[2001:db8::5]:5433/db
  libpq: user=ada dbname=db host=2001:db8::5 port=5433
  asyncpg: ('2001:db8::5', 5433) 'db' ada 
  pg: 2001:db8::5 5433 db ada 
  postgres: [ '[2001' ] [ NaN ] db ada  {}
postgresql://ada@%2Frun%2Fpg:5433/db
  libpq: user=ada dbname=db host=/run/pg port=5433
  asyncpg: /run/pg/.s.PGSQL.5433 'db' ada 
  pg: /run/pg 5433 db ada 
  postgres: [ '%2Frun%2Fpg' ] [ 5433 ] db ada  {}
postgresql:///db?host=/run/pg&port=5433&user=ada
  libpq: user=ada dbname=db host=/run/pg port=5433
  asyncpg: /run/pg/.s.PGSQL.5433 'db' ada 
  pg: /run/pg 5433 db ada 
  postgres: [ 'localhost' ] [ 5432 ] db other  { host: '/run/pg', port: '5433', user: 'ada' }
postgresql://ada@one.example:5433,two.example:5434/db
  libpq: user=ada dbname=db host=one.example,two.example port=5433,5434
  asyncpg: ('one.example', 5433) ('two.example', 5434) 'db' ada 
  pg: TypeError Invalid URL
  postgres: [ 'one.example', 'two.example' ] [ 5433, 5434 ] db ada  {}
postgresql://ada@one.example,two.example:5434/db
  libpq: user=ada dbname=db host=one.example,two.example port=,5434
  asyncpg: ('one.example', 5432) ('two.example', 5434) 'db' ada 
  pg: one.example,two.example 5434 db ada 
  postgres: [ 'one.example', 'two.example' ] [ 5432, 5434 ] db ada  {}
postgresql:///db?host=one.example,two.example&port=5433,5434&user=ada
  libpq: user=ada dbname=db host=one.example,two.example port=5433,5434
  asyncpg: ('one.example', 5433) ('two.example', 5434) 'db' ada 
  pg: one.example,two.example 5433 db ada 
  postgres: [ 'localhost' ] [ 5432 ] db other  { host: 'one.example,two.example', port: '5433,5434', user: 'ada' }
postgresql://ada@one.example/db?host=two.example&port=5433
  libpq: user=ada dbname=db host=two.example port=5433
  asyncpg: ('one.example', 5432) 'db' ada 
  pg: two.example 5433 db ada 
  postgres: [ 'one.example' ] [ 5432 ] db ada  { host: 'two.example', port: '5433' }
postgresql://ada@one.example/my%2Fdb
  libpq: user=ada dbname=my/db host=one.example
  asyncpg: ('one.example', 5432) 'my/db' ada 
  pg: one.example 5432 my%2Fdb ada 
  postgres: [ 'one.example' ] [ 5432 ] my%2Fdb ada  {}
postgresql://ada@one.example/?dbname=db
  libpq: user=ada dbname=db host=one.example
  asyncpg: ('one.example', 5432) '' ada 
  pg: one.example 5432 ada ada 
  postgres: [ 'one.example' ] [ 5432 ] ada ada  { dbname: 'db' }
postgresql://ada@one.example/db?application_name=a+b
  libpq: user=ada dbname=db host=one.example application_name=a+b
  asyncpg: ('one.example', 5432) 'db' ada {'application_name': 'a b'}
  pg: one.example 5432 db ada a b
  postgres: [ 'one.example' ] [ 5432 ] db ada a b {}
postgresql://ada@one.example/db?hostaddr=192.0.2.7
  libpq: user=ada dbname=db host=one.example hostaddr=192.0.2.7
  asyncpg: ('one.example', 5432) 'db' ada {'hostaddr': '192.0.2.7'}
  pg: one.example 5432 db ada 
  postgres: [ 'one.example' ] [ 5432 ] db ada  { hostaddr: '192.0.2.7' }
SEEN
