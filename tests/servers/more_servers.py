"""Holds public MCP servers of npm and PyPI against themselves behind the gateway: clients have to be told the same.

    python3 tests/servers/more_servers.py path/to/portcullis [SLUG…]

Installs pinned servers and clients into a temporary folder (needs npm, Python 3.11 and both registries), and starts
each server directly and once behind one gateway. The official clients for Python and TypeScript list tools, prompts,
resources and templates, get the prompts, read the first 20 resources, and call tools that only read. Prints one line
for each server and ends with 1 if anything differs that no rule of `plain` and `differences` explains.
"""

import asyncio
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
from pathlib import Path

HERE = Path(__file__).resolve().parent
NPM_CLIENT, PYTHON_CLIENT, FASTMCP = "2.3.1", "2.3.0", "4.2.3"
KINDS = {"tools": "name", "prompts": "name", "resources": "uri", "templates": "uriTemplate"}


def npm(server: str, version: str, *calls: str, argument: str = "--stdio", **wanted) -> tuple:
    """One of npm, with tools that are called without arguments."""
    package = f"@modelcontextprotocol/server-{server}"
    wanted = {"calls": [[call, {}] for call in calls], **wanted}
    return server, package, version, ["node", f"node_modules/{package}/dist/index.js", argument], [], wanted


# Slug, package, version, its command, other packages that it needs, and what is asked besides what is listed.
SERVERS = [
    npm("everything", "2026.8.31", argument="stdio", prompts={
        "args-prompt": {"city": "Oslo"}, "completable-prompt": {"department": "Engineering", "name": "Alice"},
        "resource-prompt": {"resourceType": "Text", "resourceId": "1"},
    }, uris=["demo://resource/dynamic/text/3", "demo://resource/dynamic/blob/3"], calls=[
        ["echo", {"message": "hällo"}], ["get-structured-content", {"location": "Chicago"}],
        ["get-resource-links", {"count": 3}], ["get-annotated-message", {"messageType": "error", "includeImage": True}],
    ]),
    ("library", "fastmcp", FASTMCP, ["fastmcp/bin/python", str(HERE / "library.py")], [], {
        "prompts": {"review": {"title": "Emma"}}, "calls": [["lend", {"title": "Emma"}]], "skills": True,
        "uris": ["library://books/Emma/one", "skill://lending/SKILL.md", "skill://lending/forms/card.bin"]}),
    # Its resources tell what was called before, so nothing is called.
    ("sample", "fastmcp-sample-server", "0.4.1",
        ["fastmcp-sample-server/bin/sample-mcp-server", "--transport=stdio"], [f"fastmcp=={FASTMCP}"], {}),
    ("sqlite", "mcp-server-sqlite", "2025.4.25", ["mcp-server-sqlite/bin/mcp-server-sqlite", "--db-path=sqlite.db"],
        ["mcp==1.30.0"], {"calls": [["list_tables", {}]]}),
    ("fetch", "mcp-server-fetch", "2026.10.24", ["mcp-server-fetch/bin/mcp-server-fetch"],
        [f"mcp=={PYTHON_CLIENT}"], {}),
    npm("memory", "2026.8.31"), npm("pdf", "2.0.4", "list_pdfs"), npm("wiki-explorer", "2.0.3"),
    npm("basic-vanillajs", "2.0.3", "get-time"), npm("basic-react", "2.0.3", "get-time"),
    npm("budget-allocator", "2.0.3", "get-budget-data"), npm("cohort-heatmap", "2.0.3", "get-cohort-data"),
    npm("customer-segmentation", "2.0.3", "get-customer-data"), npm("map", "2.0.3", "show-map"),
    npm("scenario-modeler", "2.0.3", "get-scenario-data"), npm("shadertoy", "2.0.3", "render-shadertoy"),
    npm("sheet-music", "2.0.3", "play-sheet-music"), npm("transcript", "2.0.3", "transcribe"),
    npm("system-monitor", "2.0.3", "get-system-info", "poll-system-stats"),
    npm("threejs", "2.0.3", "show_threejs_scene", "learn_threejs"),
]


async def python_client(mode: str, wanted: dict, server: list[str]) -> None:
    """Prints what more_client.mjs does, as the official Python SDK is told it; runs in the environment of that."""
    from mcp import Client, MCPError, StdioServerParameters
    from mcp.client import advertise
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    async def told(asked) -> dict:
        try:
            return (await asked).model_dump(mode="json", by_alias=True, exclude_none=True)
        except MCPError as error:
            return {"error": error.code, "message": str(error)}

    async def listed(ask, member: str) -> list | dict:
        entries, page = [], {"nextCursor": None}
        while "nextCursor" in page:
            page = await told(ask(cursor=page["nextCursor"]))
            if "error" in page:
                return [] if page["error"] == -32601 else page
            entries += page[member]
        return entries

    async def offer(to) -> None:
        pages = advertise("io.modelcontextprotocol/ui", {"mimeTypes": ["text/html;profile=mcp-app"]})
        async with Client(to, mode=mode, extensions=[pages]) as it:
            tools, prompts = await listed(it.list_tools, "tools"), await listed(it.list_prompts, "prompts")
            resources = await listed(it.list_resources, "resources")
            templates = await listed(it.list_resource_templates, "resourceTemplates")
            needs = {p["name"]: {a["name"]: "1" for a in p.get("arguments", []) if a.get("required")} for p in prompts}
            needs |= {name: given for name, given in wanted.get("prompts", {}).items() if name in needs}
            reading = [t for t in tools if t.get("annotations", {}).get("readOnlyHint")]
            calls = [[t["name"], {}] for t in reading if not t["inputSchema"].get("required") and t["name"] != "get-env"]
            calls += wanted.get("calls", [])
            uris = [resource["uri"] for resource in resources[:20]] + wanted.get("uris", [])
            got = {name: await told(it.get_prompt(name, given)) for name, given in needs.items()}
            read = {uri: await told(it.read_resource(uri)) for uri in uris}
            called = {json.dumps(call): await told(it.call_tool(*call)) for call in calls}
        lists = {"tools": tools, "prompts": prompts, "resources": resources, "templates": templates}
        print(json.dumps({**lists, "got": got, "read": read, "called": called}))

    if not server[0].startswith("http"):
        return await offer(StdioServerParameters(command=server[0], args=server[1:], env=dict(os.environ)))
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}) as http:
        await offer(streamable_http_client(server[0], http_client=http))


def run(folder: Path, command: list, seconds: int = 90, **env: str) -> str:
    """What a command prints. It and all that it started end with this."""
    command = list(map(str, command))
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, text=True, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        end(process)  # On any way out, also when time is up.
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)[:150]}: {err.strip()[-600:]}")
    return out


def end(process: subprocess.Popen) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def install(folder: Path, chosen: list) -> None:
    """Each Python server has an environment of its own, for their dependencies differ."""
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    packages = [f"{package}@{version}" for _, package, version, *_ in chosen if package.startswith("@")]
    pip = {package: [f"{package}=={version}", *more] for _, package, version, _, more, _ in chosen if package[0] != "@"}
    pip["client"] = [f"mcp=={PYTHON_CLIENT}", f"fastmcp=={FASTMCP}"]

    def environment(name: str) -> None:
        run(folder, [sys.executable, "-m", "venv", name])
        run(folder, [f"{name}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *pip[name]], 300)

    with ThreadPoolExecutor(8) as pool:
        command = ["npm", "install", "--no-audit", "--no-fund", f"@modelcontextprotocol/client@{NPM_CLIENT}", *packages]
        node = pool.submit(run, folder, command, 300)
        list(pool.map(environment, pip))
        node.result()


def configure(folder: Path, binary: Path, chosen: list) -> str:
    """Writes the files of a gateway that permits everything, and gives a token."""
    lines = ['data_dir = "data"', "server = { listen = '127.0.0.1:0', provider_patience_seconds = 60 }", "[policies]",
             'path = "policies"']
    for server in chosen:
        # A JSON string is a TOML string.
        lines += ["[[providers]]", f'slug = "{server[0]}"', f"command = {json.dumps(server[3])}",
                  'expose = ["apps", "prompts", "resources", "skills", "tools"]', "apps_domain = true",
                  'apps_csp = { connect = ["*"], resource = ["*"], frame = ["*"], base = ["*"] }',
                  'apps_permissions = ["camera", "clipboardWrite", "geolocation", "microphone"]']
    (folder / "portcullis.toml").write_text("\n".join(lines))
    for name in ["policies", "data"]:
        (folder / name).mkdir()
    (folder / "policies/all.cedar").write_text('@id("all") permit (principal, action, resource);')
    run(folder, [binary, "key", "new", "data/key"])

    def made(member: str, *command: str) -> str:
        return json.loads(run(folder, [binary, *command, "--config", "portcullis.toml", "--json"]))[member]

    limits = ["--requests-per-minute", "1000000", "--invocations-per-minute", "1000000"]
    org = made("id", "org", "create", "servers", "--plan", "enterprise", *limits)
    scopes = ["--scopes", "mcps:read mcps:invoke"]
    principal = made("id", "principal", "create", "client", "--org", org, "--type", "service", *scopes)
    return made("token", "token", "create", "--principal", principal, *scopes)


def plain(printed: str, era: str, used: set) -> dict:
    """An offer without that in which the documentation says that the gateway differs; `used` names what was left out."""
    # The second between two runs is no difference.
    offer = json.loads(re.sub(r"\d{1,2}:\d\d:\d\d", "0:00:00", printed.splitlines()[-1]))

    def without(entry: dict, *names: str) -> None:
        used.update(name for name in names if entry.pop(name, None) not in (None, False, [], {}))

    for kind, key in KINDS.items():
        for entry in offer[kind]:
            ui = entry.get("_meta", {}).get("ui")
            without(entry, "icons", "execution", "_meta", *(["arguments"] if entry.get("arguments") == [] else []))
            entry |= {"page": ui} if ui else {}
        # Files of skills are not among the resources.
        offer[kind] = {it[key]: it for it in offer[kind] if not it[key].startswith("skill://")}
    offer["read"] = {uri: it for uri, it in offer["read"].items() if "_manifest" not in uri and "terms.md" not in uri}
    for answer in [answer for part in ["got", "read", "called"] for answer in offer[part].values()]:
        without(answer, "ttlMs", "cacheScope", "resultType", *([] if answer.get("isError") else ["isError"]))
        meta = answer.pop("_meta", {})
        own = {k: v for k, v in meta.items() if not k.startswith(("dev.portcullis/", "io.modelcontextprotocol/"))}
        answer |= {"_meta": own} if own else {}
    if era == "legacy":
        # Of hosts of the older era it is not known that they show pages.
        for page in [content for read in offer["read"].values() for content in read.get("contents", [])]:
            kept = [c for c in page.get("text", "") if c in "\n\r\t" or unicodedata.category(c) not in ("Cc", "Cf")]
            if len(kept) < len(page.get("text", "")):
                used.add("hidden characters")
                page["text"] = "".join(kept)
    return offer


def shape(value: object) -> object:
    if isinstance(value, dict):
        return {name: shape(member) for name, member in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(member)) for member in value})
    return "number" if isinstance(value, int | float) else type(value).__name__


def differences(direct: object, again: object, through: object, used: set, at: str = ""):
    """Where an offer through the gateway differs; of what differs directly too, each time, only the form counts."""
    if direct == through:
        return
    if isinstance(direct, dict) and isinstance(through, dict) and isinstance(again, dict):
        if "contents" in direct and through.get("error") == 502 and len(json.dumps(direct)) > 4 << 20:
            used.add("over 4 MiB")
            return
        for name in direct | through:
            if name in direct and name in through:
                yield from differences(direct[name], again.get(name), through[name], used, f"{at}/{name}")
            else:
                yield f"{at}/{name} is only {'direct' if name in direct else 'behind the gateway'}"
    elif direct != again and shape(direct) == shape(through):
        used.add("varies")
    elif isinstance(direct, list) and isinstance(through, list) and len(direct) == len(through) and direct == again:
        for index, pair in enumerate(zip(direct, through)):
            yield from differences(pair[0], pair[0], pair[1], used, f"{at}/{index}")
    else:
        yield f"{at}: {json.dumps(direct)[:200]} became {json.dumps(through)[:200]}"


def held(server: tuple, folder: Path, base: str, token: str) -> list[str]:
    """Prints the line of a server and gives its differences."""
    slug, package, version, command, _, wanted = server
    used, found, url = set(), [], f"{base}/mcp/{slug}"
    clients = {"Python": ["client/bin/python", __file__, "--client"], "TypeScript": ["node", HERE / "more_client.mjs"]}

    def told(client: list, era: str, *to: str) -> dict:
        printed = run(folder, [*client, era, json.dumps(wanted), *to], TOKEN=token, PACKAGES=str(folder))
        return plain(printed, era_of_rules, used)

    try:
        for name, client in clients.items():
            for era in ["2026-07-28", "legacy"]:
                era_of_rules = era
                direct, again = told(client, "auto", *command), told(client, "auto", *command)
                found += [f"{slug}, {name}, {era}{it}" for it in differences(direct, again, told(client, era, url), used)]
        counts = [len(it) for it in direct.values()]
        skills = 0
        if "skills" in wanted:
            own, ours = [json.loads(run(folder, ["client/bin/python", HERE / "skills.py", *to], TOKEN=token))
                         for to in [command, [url]]]
            skills, found = len(own), found + ([] if own == ours else [f"{slug}: skills differ"])
    except Exception as error:
        counts, skills, found = [], 0, [*found, f"{slug}: {error}"]
    told_counts = " ".join(f"{count:>3}" for count in [*counts[:4], skills, *counts[4:]])
    state = f"{len(found)} differences" if found else "equal"
    print(f"{package + ' ' + version:<52} {told_counts}  {state}; {', '.join(sorted(used))}", flush=True)
    return found


def main() -> None:
    binary = Path(sys.argv[1]).resolve()
    chosen = [server for server in SERVERS if server[0] in sys.argv[2:] or not sys.argv[2:]]
    folder, gateway = Path(tempfile.mkdtemp(prefix="more-servers-")), None
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        install(folder, chosen)
        token = configure(folder, binary, chosen)
        with open(folder / "log", "w") as log:
            gateway = subprocess.Popen([binary, "serve", "--config", "portcullis.toml"], cwd=folder, stderr=log,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)
        until = time.monotonic() + 120
        while not (base := re.search(r"listening on (http://[\d.:]+)", (folder / "log").read_text())):
            if time.monotonic() > until or gateway.poll() is not None:
                raise RuntimeError((folder / "log").read_text()[-2000:])
            time.sleep(0.2)
        print(f"{'':<52} tools, prompts, resources, templates, skills; got, read, called")
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda server: held(server, folder, base[1], token), chosen))
        print("\n".join(it for differs in found for it in differs))
    finally:
        if gateway:
            gateway.terminate()
            try:
                gateway.wait(30)
            finally:
                end(gateway)
        shutil.rmtree(folder, ignore_errors=True)
    sys.exit(1 if any(found) else 0)


if __name__ == "__main__":
    if sys.argv[1] == "--client":
        asyncio.run(python_client(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4:]))
    else:
        main()
