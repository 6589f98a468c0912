// Tells what an MCP server offers beside tools, as the official TypeScript SDK sees it: its prompts and what they say,
// its resources and templates and what they hold, pages of its tools, and values of arguments. Digits are told as 0, for
// some are times.
//
//   [TOKEN=…] node offer.mjs legacy|modern '{"prompts":{"NAME":{…}},"uris":["…"],"completions":[…]}' URL
//   node offer.mjs legacy '{…}' COMMAND ARGUMENT…

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));

const [era, wanted, ...server] = process.argv.slice(2);
const { prompts = {}, uris = [], completions = [] } = JSON.parse(wanted);
const headers = { Authorization: `Bearer ${process.env.TOKEN}` };

async function connected() {
  const info = { name: "portcullis-test", version: "1.0.0" };
  const sdk = era === "modern" ? "client" : "sdk/client/index.js";
  const { Client, StreamableHTTPClientTransport } = await load(`@modelcontextprotocol/${sdk}`);
  const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
  const pinned = { versionNegotiation: { mode: { pin: "2026-07-28" } } };
  const capabilities = { extensions };
  const client = new Client(info, { capabilities, ...(era === "modern" ? pinned : {}) });
  await client.connect(await transport(StreamableHTTPClientTransport));
  return client;
}

async function transport(modern) {
  if (!/^https?:/.test(server[0])) {
    const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
    return new StdioClientTransport({ command: server[0], args: server.slice(1), stderr: "ignore" });
  }
  const path = "@modelcontextprotocol/sdk/client/streamableHttp.js";
  const Transport = modern ?? (await load(path)).StreamableHTTPClientTransport;
  return new Transport(new URL(server[0]), { requestInit: { headers } });
}

/** An answer without what gateways and eras add to it, or the code of an error. */
async function told(asked) {
  try {
    const { _meta, resultType, ttlMs, cacheScope, ...result } = await asked;
    return JSON.parse(JSON.stringify(result).replace(/\d/g, "0"));
  } catch (error) {
    return { error: error.code };
  }
}

/** Members that are there; no arguments are as good as an empty list of them. */
const picked = (entry, members) =>
  Object.fromEntries(members.filter((name) => entry[name]?.length).map((name) => [name, entry[name]]));
const sorted = (list, by, members) =>
  list.map((entry) => picked(entry, members)).sort((a, b) => (a[by] < b[by] ? -1 : 1));

/** A list, or nothing where the server has none. */
const listed = async (asked) => {
  try {
    return await asked;
  } catch {
    return {};
  }
};

const client = await connected();
const offer = {};
const { tools = [] } = await listed(client.listTools());
offer.pages = tools.map(({ name, _meta }) => [name, _meta?.ui?.resourceUri ?? null]).sort();
const { prompts: prompted = [] } = await listed(client.listPrompts());
offer.prompts = sorted(prompted, "name", ["name", "title", "description", "arguments"]);
const { resources = [] } = await listed(client.listResources());
offer.resources = sorted(resources, "uri", ["uri", "name", "title", "description", "mimeType"]);
const { resourceTemplates = [] } = await listed(client.listResourceTemplates());
offer.templates = sorted(resourceTemplates, "uriTemplate", ["uriTemplate", "name", "title", "description", "mimeType"]);
offer.got = {};
for (const { name } of offer.prompts) {
  offer.got[name] = await told(client.getPrompt({ name, arguments: prompts[name] ?? {} }));
}
offer.read = {};
for (const uri of [...offer.resources.map(({ uri }) => uri).slice(0, 20), ...uris]) {
  offer.read[uri] = await told(client.readResource({ uri }));
}
offer.completed = [];
for (const params of completions) {
  // Of templates the gateway tells no number of all values.
  const { completion: { total, ...completion } = {}, ...more } = await told(client.complete(params));
  offer.completed.push({ completion, ...more });
}
console.log(JSON.stringify(offer));
await client.close();
