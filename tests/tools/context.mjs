// Measures how much of a model's context a list of tools takes, in tokens: all tools against the
// three tools to find them with. A gateway is set up with ten providers in front of this program.
//
//   npm install --prefix /tmp/tokens gpt-tokenizer@3.4.0
//   GATEWAY_BINARY=target/release/portcullis TOKENIZER=/tmp/tokens node tests/tools/context.mjs
//
// It also prints how long the answers take, which means something for a release build only.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const { countTokens } = createRequire(join(process.env.TOKENIZER, "package.json"))("gpt-tokenizer");
const binary = process.env.GATEWAY_BINARY;

const PROVIDERS = {
  github: "repository", jira: "issue", slack: "channel", drive: "document", crm: "customer",
  billing: "invoice", calendar: "event", deploy: "release", wiki: "page", warehouse: "order",
};
const VERBS = ["list", "get", "create", "update", "delete", "search", "archive", "restore", "share", "export"];
const ASPECTS = ["", "comments", "members", "labels", "history", "permissions", "attachments", "settings", "reports", "webhooks"];

const text = (description, more = {}) => ({ type: "string", description, ...more });

/** The tool of a provider with this number: what it does, to which aspect of which thing. */
function tool(provider, number) {
  const thing = PROVIDERS[provider];
  const verb = VERBS[number % 10];
  const aspect = ASPECTS[Math.floor(number / 10) % 10];
  const subject = aspect ? `${aspect} of a ${thing}` : `${thing}s`;
  const properties = { [`${thing}_id`]: text(`Identifier of the ${thing}, as the ${provider} API gives it`) };
  if (["list", "search", "export"].includes(verb)) {
    properties.query = text(`Words or a filter expression that the ${subject} have to match`);
    properties.limit = { type: "integer", minimum: 1, maximum: 100, default: 20, description: "Number of results on a page" };
    properties.cursor = text("Position in the results, from a previous answer");
    properties.sort = text("Order of the results", { enum: ["created", "updated", "name"] });
  }
  if (["create", "update", "share"].includes(verb)) {
    properties.title = text(`New title of the ${thing}`);
    properties.body = text("Content in Markdown");
    properties.assignees = { type: "array", items: { type: "string" }, description: "Login names of the people responsible" };
    properties.notify = { type: "boolean", default: true, description: "Send a notification to those who watch it" };
  }
  return {
    name: `${verb}_${thing}${aspect ? `_${aspect}` : ""}`,
    title: `${verb[0].toUpperCase()}${verb.slice(1)} ${subject}`,
    description:
      `${verb[0].toUpperCase()}${verb.slice(1)} ${subject} in ${provider}. Returns the affected entries with their ` +
      `identifiers, states and times of change. Needs access to the ${thing}; use search_${thing} first if its identifier is not known.`,
    inputSchema: { type: "object", properties, required: [`${thing}_id`], additionalProperties: false },
    annotations: { readOnlyHint: ["list", "get", "search"].includes(verb) },
  };
}

/** An MCP server at each path, with `each` tools. */
function serve(each) {
  const server = http.createServer(async (request, response) => {
    let body = "";
    for await (const part of request) body += part;
    const message = body ? JSON.parse(body) : {};
    if (message.id === undefined) return response.writeHead(request.method === "POST" ? 202 : 405).end();
    const provider = request.url.slice(1);
    const results = {
      initialize: {
        protocolVersion: "2025-11-25", capabilities: { tools: {} },
        serverInfo: { name: provider, version: "1.0.0" },
      },
      ping: {},
      "tools/list": { tools: Array.from({ length: each }, (_, number) => tool(provider, number)) },
      "tools/call": { content: [{ type: "text", text: "ok" }] },
    };
    const result = results[message.method];
    const error = { code: -32601, message: "unknown method" };
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ jsonrpc: "2.0", id: message.id, ...(result ? { result } : { error }) }));
  });
  return new Promise((done) => server.listen(0, "127.0.0.1", () => done(server)));
}

async function gateway(port, count) {
  const folder = mkdtempSync(join(tmpdir(), "portcullis-context-"));
  const config = join(folder, "portcullis.toml");
  const admin = (...words) =>
    JSON.parse(execFileSync(binary, [...words, "--config", config, "--json"], { encoding: "utf8" }));
  mkdirSync(join(folder, "policies"));
  writeFileSync(join(folder, "policies", "all.cedar"), '@id("all") permit (principal, action, resource);\n');
  execFileSync(binary, ["key", "new", join(folder, "key")]);
  const providers = Object.keys(PROVIDERS).map(
    (slug) => `[[providers]]\nslug = "${slug}"\nurl = "http://127.0.0.1:${port}/${slug}"\nallow_private = true\nprotocol = "legacy"\n`,
  );
  writeFileSync(config, `data_dir = "."\n${providers.join("")}`);
  const plan = ["--plan", "enterprise", "--requests-per-minute", "1000000", "--invocations-per-minute", "1000000"];
  const org = admin("org", "create", "context", ...plan).id;
  const scopes = "mcps:read mcps:invoke";
  const who = admin("principal", "create", "model", "--org", org, "--type", "service", "--scopes", scopes).id;
  const token = admin("token", "create", "--principal", who, "--scopes", scopes).token;
  const serving = spawn(binary, ["serve", "--port", "0", "--config", config], { stdio: ["ignore", "ignore", "pipe"] });
  const base = await new Promise((found) => {
    createInterface({ input: serving.stderr }).on("line", (line) => {
      const listening = /listening on (\S+)/.exec(line);
      if (listening) found(listening[1]);
    });
  });
  const stop = () => {
    serving.kill("SIGTERM");
    serving.on("exit", () => rmSync(folder, { recursive: true, force: true }));
  };
  return { base, token, count, stop };
}

async function ask({ base, token }, path, method, params = {}) {
  const answer = await fetch(base + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`, "content-type": "application/json",
      accept: "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25",
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  });
  const { result, error } = await answer.json();
  if (!result || result.isError) throw new Error(JSON.stringify(error ?? result));
  return result;
}

/** What a model is shown of tools: name, description and schema of the arguments. */
const shown = (tools) =>
  JSON.stringify(tools.map(({ name, description, inputSchema }) => ({ name, description, input_schema: inputSchema })));

async function listed(gate) {
  const tools = [];
  let cursor;
  do {
    const page = await ask(gate, "/mcp?tools=list", "tools/list", cursor ? { cursor } : {});
    tools.push(...page.tools);
    cursor = page.nextCursor;
  } while (cursor);
  return tools;
}

async function median(run, times = 101) {
  const took = [];
  for (let time = 0; time < times; time++) {
    const begun = performance.now();
    await run();
    took.push(performance.now() - begun);
  }
  return took.sort((a, b) => a - b)[times >> 1].toFixed(2);
}

async function measure(count) {
  const server = await serve(count / 10);
  const gate = await gateway(server.address().port, count);
  let all = [];
  for (let tries = 0; tries < 200 && all.length < count; tries++) {
    all = await listed(gate);
    if (all.length < count) await new Promise((resolve) => setTimeout(resolve, 100));
  }
  if (all.length !== count) throw new Error(`${all.length} of ${count} tools`);
  const three = (await ask(gate, "/mcp?tools=search", "tools/list")).tools;
  const call = (name, input) => ask(gate, "/mcp?tools=search", "tools/call", { name, arguments: input });
  const said = (result) => result.content.map(({ text }) => text).join("\n");
  const question = { query: "create an invoice with comments", limit: 5 };
  const found = await call("find_tools", question);
  const id = /billing:[a-z_]+/.exec(said(found))?.[0] ?? all[0]._meta["dev.portcullis/tool"];
  const described = await call("describe_tool", { id });
  const exchange =
    countTokens(said(found)) + countTokens(said(described)) +
    countTokens(JSON.stringify(question)) + countTokens(JSON.stringify({ id }));
  const tokens = { list: countTokens(shown(all)), search: countTokens(shown(three)), exchange };
  const times = {
    ping: await median(() => ask(gate, "/mcp", "ping")),
    list: await median(() => ask(gate, "/mcp?tools=list", "tools/list")),
    find: await median(() => call("find_tools", question)),
  };
  gate.stop();
  server.closeAllConnections();
  server.close();
  return { tools: count, tokens, times_ms: times };
}

for (const count of [10, 100, 1000]) console.log(JSON.stringify(await measure(count)));
