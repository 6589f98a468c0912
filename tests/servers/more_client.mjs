// Tells all that an MCP server offers, as the official TypeScript SDK sees it; more_servers.py compares what it prints.
//
//   PACKAGES=FOLDER [TOKEN=…] node more_client.mjs auto|legacy|2026-07-28 WANTED URL
//   PACKAGES=FOLDER node more_client.mjs auto WANTED COMMAND ARGUMENT…
//
// WANTED is JSON: `prompts` with arguments by name, `uris` to read and `calls`, besides what is listed.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PACKAGES, "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));
const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");

const [era, asked, ...server] = process.argv.slice(2);
const wanted = JSON.parse(asked);
const mode = era === "auto" || era === "legacy" ? era : { pin: era };
const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };
const info = { name: "portcullis-test", version: "1.0.0" };
const client = new Client(info, { capabilities: { extensions }, versionNegotiation: { mode } });
const headers = { Authorization: `Bearer ${process.env.TOKEN}` };
const transport = /^https?:/.test(server[0])
  ? new StreamableHTTPClientTransport(new URL(server[0]), { requestInit: { headers } })
  : new StdioClientTransport({ command: server[0], args: server.slice(1), stderr: "ignore", env: process.env });
await client.connect(transport);

/** An answer, or the code of the error. A method that is not offered lists nothing. */
const told = (answer, absent) =>
  answer.catch(({ code, message }) => (absent && code === -32601 ? absent : { error: code, message }));
const listed = async (answer, kind) => {
  const { [kind]: entries, ...failed } = await told(answer, { [kind]: [] });
  return entries ?? failed;
};
const each = async (entries, ask) => {
  const answers = {};
  for (const [key, params] of entries) answers[key] = await told(ask(params));
  return answers;
};

const offer = {
  tools: await listed(client.listTools(), "tools"),
  prompts: await listed(client.listPrompts(), "prompts"),
  resources: await listed(client.listResources(), "resources"),
  templates: await listed(client.listResourceTemplates(), "resourceTemplates"),
};
const needs = ({ arguments: given = [] }) => given.filter(({ required }) => required).map(({ name }) => [name, "1"]);
const prompts = offer.prompts.map((it) => [it.name, wanted.prompts?.[it.name] ?? Object.fromEntries(needs(it))]);
const got = prompts.map((prompt) => [prompt[0], prompt]);
offer.got = await each(got, ([name, given]) => client.getPrompt({ name, arguments: given }));
const listedUris = offer.resources.map(({ uri }) => uri).filter((uri) => !uri.startsWith("skill:"));
const uris = [...listedUris.slice(0, 20), ...(wanted.uris ?? [])];
offer.read = await each(uris.map((uri) => [uri, uri]), (uri) => client.readResource({ uri }));
// What the program's environment holds is not the same behind the gateway.
const reads = ({ name, annotations }) => annotations?.readOnlyHint && name !== "get-env";
const reading = offer.tools.filter((it) => reads(it) && !it.inputSchema.required?.length);
const calls = [...reading.map(({ name }) => [name, {}]), ...(wanted.calls ?? [])];
const keyed = calls.map((call) => [JSON.stringify(call), call]);
offer.called = await each(keyed, ([name, given]) => client.callTool({ name, arguments: given }));
console.log(JSON.stringify(offer));
await client.close();
