"""Holds public MCP servers of npm and PyPI against themselves behind the gateway: what clients are told has to be equal.

    python3 tests/servers/more_servers.py path/to/portcullis [SLUG…]

Installs the pinned servers and clients into a temporary folder (npm, Python 3.11, both registries), and starts each
server directly and once behind one gateway. The official clients for Python and TypeScript list tools, prompts, resources
and templates, get the prompts, read the first 20 resources, and call tools that only read. Prints one line for each
server, and exits with 1 if anything differs that no rule below explains.
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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
MODERN = "2026-07-28"
NPM_CLIENT, PYTHON_CLIENT, FASTMCP = "2.3.1", "2.3.0", "4.2.3"
APPS = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}
EVERYTHING = {
    "prompts": {
        "args-prompt": {"city": "Oslo"},
        "completable-prompt": {"department": "Engineering", "name": "Alice"},
        "resource-prompt": {"resourceType": "Text", "resourceId": "1"},
    },
    "uris": ["demo://resource/dynamic/text/3", "demo://resource/dynamic/blob/3"],
    "calls": [
        ["echo", {"message": "hällo"}],
        ["get-tiny-image", {}],
        ["get-structured-content", {"location": "Chicago"}],
        ["get-resource-links", {"count": 3}],
        ["get-annotated-message", {"messageType": "error", "includeImage": True}],
    ],
}
LIBRARY = {
    "prompts": {"review": {"title": "Emma"}},
    "uris": ["library://books/Emma/one", "skill://lending/SKILL.md", "skill://lending/terms.md"],
    "calls": [["lend", {"title": "Emma"}]],
}


def npm(server: str, version: str, *calls: str, **wanted) -> tuple:
    package = f"@modelcontextprotocol/server-{server}"
    argument = "stdio" if server == "everything" else "--stdio"
    command = ["node", f"node_modules/{package}/dist/index.js", argument]
    return server, package, version, command, {"calls": [[call, {}] for call in calls], **wanted}


# Slug, package, version, command in the temporary folder, and what is asked besides what is listed.
SERVERS = [
    npm("everything", "2026.8.31", **EVERYTHING),
    ("library", "fastmcp", FASTMCP, ["fastmcp/bin/python", str(HERE / "library.py")], LIBRARY),
    ("sample", "fastmcp-sample-server", "0.4.1", ["fastmcp-sample-server/bin/sample-mcp-server", "--transport=stdio"], {}),
    ("sqlite", "mcp-server-sqlite", "2025.4.25", ["mcp-server-sqlite/bin/mcp-server-sqlite", "--db-path=sqlite.db"],
        {"prompts": {"mcp-demo": {"topic": "books"}}, "calls": [["list_tables", {}]]}),
    ("fetch", "mcp-server-fetch", "2026.10.24", ["mcp-server-fetch/bin/mcp-server-fetch"], {}),
    npm("memory", "2026.8.31"),
    npm("basic-vanillajs", "2.0.3", "get-time"),
    npm("basic-react", "2.0.3", "get-time"),
    npm("budget-allocator", "2.0.3", "get-budget-data"),
    npm("cohort-heatmap", "2.0.3", "get-cohort-data"),
    npm("customer-segmentation", "2.0.3", "get-customer-data"),
    npm("scenario-modeler", "2.0.3", "get-scenario-data"),
    npm("map", "2.0.3", "show-map"),
    npm("shadertoy", "2.0.3", "render-shadertoy"),
    npm("sheet-music", "2.0.3", "play-sheet-music"),
    npm("system-monitor", "2.0.3", "get-system-info", "poll-system-stats"),
    npm("threejs", "2.0.3", "show_threejs_scene", "learn_threejs"),
    npm("transcript", "2.0.3", "transcribe"),
    npm("wiki-explorer", "2.0.3"),
    npm("pdf", "2.0.4", "list_pdfs"),
]


async def python_client(mode: str, wanted: dict, server: list[str]) -> None:
    """Prints all that a server offers, as the official Python SDK is told. Runs in the environment of the SDK."""
    from mcp import Client, MCPError
    from mcp.client import advertise
    from mcp.client.stdio import StdioServerParameters, stdio_client
    from mcp.client.streamable_http import create_mcp_http_client, streamable_http_client

    async def told(asked) -> dict:
        try:
            return (await asked).model_dump(mode="json", by_alias=True, exclude_none=True)
        except MCPError as error:
            return {"error": error.code, "message": str(error)}

    async def listed(client, kind: str, member: str) -> list | dict:
        entries, cursor = [], None
        while True:
            page = await told(getattr(client, f"list_{kind}")(cursor=cursor))
            if "error" in page:
                return [] if page["error"] == -32601 else page
            entries += page[member]
            if (cursor := page.get("nextCursor")) is None:
                return entries

    async def offer(transport) -> None:
        async with Client(transport, mode=mode, extensions=[advertise(*one) for one in APPS.items()]) as client:
            kinds = {"tools": "tools", "prompts": "prompts", "resources": "resources", "resource_templates": "resourceTemplates"}
            tools, prompts, resources, templates = [await listed(client, *kind) for kind in kinds.items()]
            needs = {it["name"]: {a["name"]: "1" for a in it.get("arguments", []) if a.get("required")} for it in prompts}
            needs.update({name: given for name, given in wanted.get("prompts", {}).items() if name in needs})
            uris = [it["uri"] for it in resources[:20]] + wanted.get("uris", [])
            reading = [it for it in tools if (it.get("annotations") or {}).get("readOnlyHint")]
            calls = [[it["name"], {}] for it in reading if not it["inputSchema"].get("required")] + wanted.get("calls", [])
            key = lambda call: json.dumps(call, separators=(",", ":"), ensure_ascii=False)
            print(json.dumps({
                "tools": tools, "prompts": prompts, "resources": resources, "templates": templates,
                "got": {name: await told(client.get_prompt(name, given)) for name, given in needs.items()},
                "read": {uri: await told(client.read_resource(uri)) for uri in uris},
                "called": {key(call): await told(client.call_tool(*call)) for call in calls},
            }))

    if not server[0].startswith("http"):
        started = StdioServerParameters(command=server[0], args=server[1:], env=dict(os.environ))
        with open(os.devnull, "w") as log:
            return await offer(stdio_client(started, errlog=log))
    async with create_mcp_http_client(headers={"Authorization": f"Bearer {os.environ['TOKEN']}"}) as http:
        await offer(streamable_http_client(server[0], http_client=http))


if sys.argv[1:2] == ["--client"]:
    asyncio.run(python_client(sys.argv[2], json.loads(sys.argv[3]), sys.argv[4:]))
    sys.exit()


def run(folder: Path, command: list, seconds: int = 60, **env: str) -> str:
    """What a command prints. It and all that it started end with this."""
    process = subprocess.Popen(
        list(map(str, command)), cwd=folder, env={**os.environ, **env}, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=seconds)
    finally:
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    if process.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))[:200]}: {err.strip()[-600:]}")
    return out


def install(folder: Path, chosen: list) -> None:
    """Each Python server has an environment of its own, for their dependencies differ."""
    packages = [f"{package}@{version}" for _, package, version, command, _ in chosen if command[0] == "node"]
    (folder / "package.json").write_text('{"private": true, "type": "module"}')
    pip = {package: [f"{package}=={version}"] for _, package, version, command, _ in chosen if command[0] != "node"}
    pip["client"] = [f"mcp=={PYTHON_CLIENT}", f"fastmcp=={FASTMCP}"]

    def environment(name: str) -> None:
        run(folder, [sys.executable, "-m", "venv", name])
        run(folder, [f"{name}/bin/pip", "install", "--quiet", "--disable-pip-version-check", *pip[name]], 300)

    with ThreadPoolExecutor(8) as pool:
        npm_install = ["npm", "install", "--no-audit", "--no-fund", f"@modelcontextprotocol/client@{NPM_CLIENT}", *packages]
        waiting = [pool.submit(run, folder, npm_install, 300), *[pool.submit(environment, name) for name in pip]]
        [it.result() for it in waiting]
    if (memory := folder / "node_modules/@modelcontextprotocol/server-memory/dist").exists():
        known = {"type": "entity", "name": "Emma", "entityType": "book", "observations": ["by Austen"]}
        (memory / "memory.jsonl").write_text(json.dumps(known) + "\n")


def configure(folder: Path, binary: Path, chosen: list) -> str:
    """Writes the gateway's files, and gives a token."""
    text = json.dumps  # A JSON string is a TOML string.
    lines = [f"data_dir = {text(str(folder / 'data'))}", "[server]", 'listen = "127.0.0.1:0"', "provider_patience_seconds = 60"]
    lines += ["[policies]", f"path = {text(str(folder / 'policies'))}"]
    for slug, _, _, command, _ in chosen:
        origins = ", ".join(f'{kind} = ["*"]' for kind in ["connect", "resource", "frame", "base"])
        lines += ["[[providers]]", f"slug = {text(slug)}", f"command = {text(command)}", f"cwd = {text(str(folder))}",
                  'expose = ["apps", "prompts", "resources", "skills", "tools"]', f"apps_csp = {{ {origins} }}",
                  'apps_permissions = ["camera", "clipboardWrite", "geolocation", "microphone"]', "apps_domain = true"]
    (folder / "portcullis.toml").write_text("\n".join(lines) + "\n")
    (folder / "policies").mkdir()
    (folder / "policies/all.cedar").write_text('@id("all") permit (principal, action, resource);\n')
    (folder / "data").mkdir()
    run(folder, [binary, "key", "new", folder / "data/key"])

    def made(member: str, *command: str) -> str:
        printed = run(folder, [binary, *command, "--config", folder / "portcullis.toml", "--json"])
        return json.loads(printed)[member]

    limits = ["--requests-per-minute", "1000000", "--invocations-per-minute", "1000000"]
    org = made("id", "org", "create", "servers", "--plan", "enterprise", *limits)
    scopes = ["--scopes", "mcps:read mcps:invoke"]
    principal = made("id", "principal", "create", "client", "--org", org, "--type", "service", *scopes)
    return made("token", "token", "create", "--principal", principal, *scopes)
