"""Holds public MCP servers of npm and PyPI against themselves behind the gateway: clients have to be told the same.

    python3 tests/servers/more_servers.py path/to/portcullis [SLUG…]

Installs pinned servers and clients into a temporary folder (needs npm, Python 3.11 and both registries), starts each
server directly and once behind one gateway, and lists, gets, reads and calls what it offers with the official clients
for Python and TypeScript. Ends with 1 if anything differs that no rule of `plain` and `differences` explains.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

HERE = Path(__file__).resolve().parent
INVISIBLE = [c for c in range(sys.maxunicode) if unicodedata.category(chr(c)) in ("Cc", "Cf")]
HIDDEN = {c: None for c in INVISIBLE if chr(c) not in "\n\r\t"}
RESERVED = ("dev.portcullis/", "io.modelcontextprotocol/")
TIME = r'\d{1,2}:\d\d:\d\d|(?<=uptime_seconds\\": )[\d.]+'  # No two runs are at one time.
SCOPES = "mcps:read mcps:invoke"
CLIENTS = {"npm": ["@modelcontextprotocol/client@2.3.1"], "pip": ["mcp==2.3.0", "fastmcp==4.2.3"]}


def npm(server: str, version: str, *calls: str, argument: str = "--stdio", **wanted) -> tuple:
    """One of npm, with tools that are called without arguments."""
    package, wanted = f"@modelcontextprotocol/server-{server}", {"calls": [[call, {}] for call in calls], **wanted}
    return server, package, version, ["node", f"node_modules/{package}/dist/index.js", argument], wanted


# Slug, package, version, command in the temporary folder, and what is asked besides what is listed.
SERVERS = [
    npm("everything", "2026.8.31", argument="stdio", prompts={
        "args-prompt": {"city": "Oslo"}, "completable-prompt": {"department": "Engineering", "name": "Alice"},
        "resource-prompt": {"resourceType": "Text", "resourceId": "1"}},
        uris=["demo://resource/dynamic/text/3", "demo://resource/dynamic/blob/3"],
        calls=[["echo", {"message": "hällo"}], ["get-structured-content", {"location": "Chicago"}],
        ["get-resource-links", {"count": 3}], ["get-annotated-message", {"messageType": "error"}]]),
    ("library", "fastmcp", "4.2.3", ["python/bin/python", str(HERE / "library.py")], {
        "prompts": {"review": {"title": "Emma"}}, "calls": [["lend", {"title": "Emma"}]], "skills": True,
        "uris": ["library://books/Emma/one", "skill://lending/SKILL.md", "skill://lending/forms/card.bin"]}),
    # Its resources tell what was called before, so nothing is called.
    ("sample", "fastmcp-sample-server", "0.4.1", ["python/bin/sample-mcp-server", "--transport=stdio"], {"prompts": {
        "code_review": {"code": "1"}, "explain_error": {"error_message": "1"}, "summarize_text": {"text": "1"}}}),
    ("fetch", "mcp-server-fetch", "2026.10.24", ["python/bin/mcp-server-fetch"], {"prompts": {"fetch": {"url": "1"}}}),
    npm("memory", "2026.8.31", "read_graph"), npm("pdf", "2.0.4", "list_pdfs"), npm("wiki-explorer", "2.0.3"),
    npm("basic-vanillajs", "2.0.3", "get-time"), npm("basic-react", "2.0.3", "get-time"),
    npm("budget-allocator", "2.0.3", "get-budget-data"), npm("cohort-heatmap", "2.0.3", "get-cohort-data"),
    npm("customer-segmentation", "2.0.3", "get-customer-data"), npm("map", "2.0.3", "show-map"),
    npm("scenario-modeler", "2.0.3", "get-scenario-data"), npm("shadertoy", "2.0.3", "render-shadertoy"),
    npm("sheet-music", "2.0.3", "play-sheet-music"), npm("transcript", "2.0.3", "transcribe"),
    npm("system-monitor", "2.0.3", "get-system-info"), npm("threejs", "2.0.3", "show_threejs_scene"),
]


def run(folder: Path, command: list, seconds: int = 120, **env: str) -> str:
    """What a command prints. It and all that it started end with this."""
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, text=True, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        end(process)
    if process.returncode:
        raise RuntimeError(f"{command[:3]}: {err.strip()[-600:]}")
    return out


def end(process: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def install(folder: Path, chosen: list) -> None:
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    node = [f"{package}@{version}" for _, package, version, *_ in chosen if package.startswith("@")]
    python = [f"{package}=={version}" for _, package, version, *_ in chosen if not package.startswith("@")]
    run(folder, ["npm", "install", "--no-audit", "--no-fund", *CLIENTS["npm"], *node], 300)
    run(folder, [sys.executable, "-m", "venv", "python"])
    run(folder, ["python/bin/pip", "install", "--quiet", "--disable-pip-version-check", *CLIENTS["pip"], *python], 300)


def configure(folder: Path, binary: Path, chosen: list) -> str:
    """Writes the files of a gateway that permits everything, and gives a token."""
    lines = ['data_dir = "data"', 'policies.path = "policies"', 'server.listen = "127.0.0.1:0"',
             "server.provider_patience_seconds = 60"]
    for server in chosen:
        lines += ["[[providers]]", f'slug = "{server[0]}"', f"command = {json.dumps(server[3])}",  # JSON is TOML here.
                  'expose = ["apps", "prompts", "resources", "skills", "tools"]', "apps_domain = true",
                  'apps_csp = { connect = ["*"], resource = ["*"], frame = ["*"], base = ["*"] }',
                  'apps_permissions = ["camera", "clipboardWrite", "geolocation", "microphone"]']
    (folder / "portcullis.toml").write_text("\n".join(lines))
    [(folder / name).mkdir() for name in ["data", "policies"]]
    (folder / "policies/all.cedar").write_text('@id("all") permit (principal, action, resource);')
    run(folder, [binary, "key", "new", "data/key"])

    def made(member: str, *command: str) -> str:
        return json.loads(run(folder, [binary, *command, "--config", "portcullis.toml", "--json"]))[member]

    limits, scopes = ["--requests-per-minute", "99999", "--invocations-per-minute", "99999"], ["--scopes", SCOPES]
    org = made("id", "org", "create", "servers", "--plan", "enterprise", *limits)
    principal = made("id", "principal", "create", "client", "--org", org, "--type", "service", *scopes)
    return made("token", "token", "create", "--principal", principal, *scopes)


def plain(offer: dict, used: set) -> dict:
    """What more_client.mjs tells, without what mcp.md says that the gateway leaves out, adds or tells by the era."""
    for kind, key in {"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}.items():
        for entry in offer[kind]:
            entry["page"] = (entry.pop("_meta", None) or {}).get("ui")
            entry["arguments"] = entry.get("arguments") or []
            used.update([name for name in ["icons", "execution"] if entry.pop(name, None)])
        # Files of skills are not among the resources.
        offer[kind] = {it[key]: it for it in offer[kind] if not it[key].startswith("skill://")}
    for answer in [answer for part in ["got", "read", "called"] for answer in offer[part].values()]:
        answer["isError"] = answer.get("isError", False)
        answer["_meta"] = {name: it for name, it in answer.get("_meta", {}).items() if not name.startswith(RESERVED)}
        for name in ["ttlMs", "cacheScope", "resultType"]:
            answer.pop(name, None)
    return offer


def differences(direct: object, again: object, through: object, used: set, at: str = ""):
    """Where an offer through the gateway differs, but for what two direct ones tell differently."""
    if direct == through:
        return
    if isinstance(through, dict) and through.get("error") == 502 and len(json.dumps(direct)) > 4 << 20:
        used.add("page over 4 MiB refused")
    elif isinstance(direct, dict) and isinstance(through, dict) and isinstance(again, dict):
        for name in direct | through:
            if name in direct and name in through:
                yield from differences(direct[name], again.get(name), through[name], used, f"{at}/{name}")
            else:
                yield f"{at}/{name} is only {'direct' if name in direct else 'behind the gateway'}"
    elif direct != again and not isinstance(through, dict):
        used.add("varies")
    elif isinstance(direct, list) and isinstance(through, list) and len(direct) == len(through) and direct == again:
        for one, other in zip(direct, through):
            yield from differences(one, one, other, used, f"{at}/[]")
    elif isinstance(direct, str) and direct.translate(HIDDEN) == through and "ui:" in at and "modern Type" not in at:
        used.add("hidden characters")  # They stay only for who says in each request that it shows pages.
    else:
        yield f"{at}: {json.dumps(direct)[:200]} became {json.dumps(through)[:200]}"


def held(server: tuple, folder: Path, base: str, token: str) -> list[str]:
    """Prints the line of a server and gives its differences."""
    slug, package, version, command, wanted = server
    used, alone, found, skills, counts, url = set(), set(), [], 0, [], f"{base}/mcp/{slug}"

    def printed(*client: object) -> dict:
        text = run(folder, client, TOKEN=token, PACKAGES=str(folder)).splitlines()[-1]
        return json.loads(re.sub(TIME, "0:00:00", text))

    def python(mode: str, *to: str) -> dict:
        # This client does not declare that it shows pages, and so is shown no tools for pages alone.
        offer = printed("python/bin/python", HERE / "offer.py", mode, json.dumps(wanted), "", *to)
        return offer | {"tools": [tool for tool in offer["tools"] if tool["name"] not in alone]}

    def typescript(mode: str, *to: str) -> dict:
        offer = plain(printed("node", HERE / "more_client.mjs", mode, json.dumps(wanted), *to), used)
        alone.update(name for name, it in offer["tools"].items() if (it["page"] or {}).get("visibility") == ["app"])
        return offer

    try:
        for name, client in {"TypeScript": typescript, "Python": python}.items():
            direct, again = client("auto", *command), client("auto", *command)
            for era, mode in {"modern": "2026-07-28", "older": "legacy"}.items():
                found += differences(direct, again, client(mode, url), used, f"{slug}, {era} {name}: ")
            counts = counts or list(map(len, direct.values()))
        if "skills" in wanted:
            own, ours = [printed("python/bin/python", HERE / "skills.py", *to) for to in [command, [url]]]
            found, skills = found + list(differences(own, own, ours, used, f"{slug}, skills: ")), len(own)
    except Exception as error:
        found.append(f"{slug}: {error}")
    numbers = " ".join(f"{count:>3}" for count in [*counts[:4], skills, *counts[4:]])
    state = "; ".join([f"{len(found)} differences" if found else "equal", *sorted(used)])
    print(f"{package + ' ' + version:<56} {numbers}  {state}", flush=True)
    return found


def main() -> None:
    chosen = [server for server in SERVERS if server[0] in sys.argv[2:] or not sys.argv[2:]]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    folder, gateway = Path(tempfile.mkdtemp(prefix="more-servers-")), None
    try:
        install(folder, chosen)
        token = configure(folder, binary := Path(sys.argv[1]).resolve(), chosen)
        with open(folder / "log", "w") as log:
            gateway = subprocess.Popen([binary, "serve", "--config", "portcullis.toml"], cwd=folder, stderr=log,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
        while not (base := re.search(r"listening on (http://[\d.:]+)", (folder / "log").read_text())):
            if gateway.poll() is not None:
                raise RuntimeError((folder / "log").read_text()[-2000:])
            time.sleep(0.2)
        print(f"{'':<56} tools, prompts, resources, templates, skills; got, read, called")
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda server: held(server, folder, base[1], token), chosen))
        print("\n".join(it for differs in found for it in differs))
    finally:
        if gateway:
            gateway.terminate()
            with suppress(subprocess.TimeoutExpired):
                gateway.wait(30)
            end(gateway)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if any(found) else 0)


if __name__ == "__main__":
    main()
