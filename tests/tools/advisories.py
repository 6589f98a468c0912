#!/usr/bin/env python3
"""Known advisories of the crates in Cargo.lock, stored in advisories.toml: no network is needed to check them.

advisories.py check FOLDER    lays them out in FOLDER as cargo-deny reads them, and runs it; also fails if a crate of
                              Cargo.lock is not among those that were looked up
advisories.py take DATABASE   looks all of them up anew in a git repository of the RustSec database
"""

import io
import json
import pathlib
import shutil
import subprocess
import sys
import tarfile
import tomllib

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
TABLE = HERE / "advisories.toml"
# As cargo-deny names the copy of its default database.
COPY = "advisory-db-3157b0e258782691"
HEAD = """\
# Advisories of the crates in Cargo.lock: facts from the RustSec database (github.com/rustsec/advisory-db, CC0). An empty
# list: looked up, nothing known. `tests/tools/advisories.py take DATABASE` writes this file anew.
"""


def git(folder, *arguments):
    identity = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
    return subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, stdout=subprocess.PIPE).stdout


def locked():
    packages = tomllib.loads((ROOT / "Cargo.lock").read_text())["package"]
    return sorted({package["name"] for package in packages if "source" in package})


def take(database):
    known = {name: [] for name in locked()}
    files = tarfile.open(fileobj=io.BytesIO(git(database, "archive", "HEAD", "crates")))
    for member in sorted(filter(tarfile.TarInfo.isfile, files), key=lambda member: member.name):
        crate = pathlib.Path(member.name).parent.name
        if crate not in known:
            continue
        facts = tomllib.loads(files.extractfile(member).read().decode().split("```toml\n")[1].split("\n```")[0])
        about = facts["advisory"]
        kind = about.get("informational", "vulnerability")
        if "withdrawn" not in about and kind != "notice":
            safe = [requirement for key in ("patched", "unaffected") for requirement in facts["versions"].get(key, [])]
            known[crate].append(f'    {{ id = "{about["id"]}", kind = "{kind}", safe = {json.dumps(safe)} }},\n')
    taken = git(database, "log", "-1", "--format=%cs").decode().strip()
    rows = [f"{crate} = [\n{''.join(found)}]\n" if found else f"{crate} = []\n" for crate, found in known.items()]
    TABLE.write_text(f'{HEAD}taken = "{taken}"\n\n[crates]\n{"".join(rows)}')
    print(f"{TABLE}: {sum(map(len, known.values()))} advisories of {taken}")


def check(folder):
    table = tomllib.loads(TABLE.read_text())
    new = [name for name in locked() if name not in table["crates"]]
    if new:
        sys.exit(f"not looked up in the advisories of {table['taken']}: {', '.join(new)}; see CONTRIBUTING.md")
    shutil.rmtree(folder, ignore_errors=True)
    database = folder / COPY
    for crate, advisories in table["crates"].items():
        for advisory in advisories:
            kind = advisory["kind"]
            lines = ["```toml", "[advisory]", f'id = "{advisory["id"]}"', f'package = "{crate}"']
            lines += [f'date = "{table["taken"]}"']
            lines += [f'informational = "{kind}"'] if kind != "vulnerability" else []
            lines += ["[versions]", f'patched = {json.dumps(advisory["safe"])}', "```", f"# {advisory['id']}", ""]
            path = database / "crates" / crate / f"{advisory['id']}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("\n".join(lines))
    git(database, "init", "--quiet")
    git(database, "add", ".")
    git(database, "commit", "--quiet", "--message", table["taken"])
    policy = folder / "deny.toml"
    text = (ROOT / "deny.toml").read_text()
    policy.write_text(text.replace("[advisories]\n", f"[advisories]\ndb-path = {json.dumps(str(folder))}\n"))
    deny = ["cargo", "deny", "--locked", "--offline", "--config", policy, "check", "advisories"]
    sys.exit(subprocess.run(deny, cwd=ROOT).returncode)


match sys.argv[1:]:
    case ["check", folder]:
        check(pathlib.Path(folder).absolute())
    case ["take", database]:
        take(database)
    case _:
        sys.exit(__doc__)
