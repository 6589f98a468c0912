// Plays one client scenario of the MCP conformance suite through Portcullis: the suite starts a
// server and runs this program with its address; a gateway is set up in front of it, and what the
// scenario wants is asked of the gateway's REST API.
//
//   GATEWAY_BINARY=… MCP_CONFORMANCE_SCENARIO=tools_call node conformance.mjs http://localhost:…

import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

const url = process.argv.at(-1);
const binary = process.env.GATEWAY_BINARY;
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? "";
const context = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? "{}");
const authorizes = scenario.startsWith("auth/");
const modern = process.env.MCP_CONFORMANCE_PROTOCOL_VERSION === "2026-07-28";

const folder = mkdtempSync(join(tmpdir(), "portcullis-conformance-"));
const config = join(folder, "portcullis.toml");
let serving;

function admin(...words) {
  const text = execFileSync(binary, [...words, "--config", config, "--json"], { encoding: "utf8" });
  return JSON.parse(text);
}

// Where browsers find the gateway, as far as the suite knows; this program is the only browser.
const PUBLIC = "https://conformance-test.local";

// The issuer that the MCP server names, as `portcullis check` tells an operator who has to say where
// a client was registered.
function issuer() {
  write(`auth = "oauth2"\nowners = ["org"]\n`);
  let told;
  try {
    told = execFileSync(binary, ["check", "--config", config, "--json"], { encoding: "utf8" });
  } catch (error) {
    // It also says no to what does not matter here, and tells what it found nevertheless.
    told = error.stdout;
  }
  return JSON.parse(told).providers[0].issuer;
}

// What the operator says of a provider that users connect.
function authorization() {
  if (!authorizes) return "";
  // The suite wants to see one document's address, which is not that of the gateway's own.
  const document = scenario === "auth/basic-cimd" ? `${PUBLIC}/client-metadata.json` : undefined;
  const { client_id: id = document, client_secret: secret } = context;
  const client = id
    ? `[providers.oauth]\nissuer = ${JSON.stringify(issuer())}\nclient_id = ${JSON.stringify(id)}\n`
    : "";
  return `auth = "oauth2"\nowners = ["org"]\n${client}${secret ? 'client_secret = { env = "CLIENT_SECRET" }\n' : ""}`;
}

function prepare() {
  mkdirSync(join(folder, "policies"));
  const permit = '@id("permit-all") permit (principal, action, resource);\n';
  writeFileSync(join(folder, "policies", "all.cedar"), permit);
  execFileSync(binary, ["key", "new", join(folder, "key")]);
  write(authorization());
  const org = admin("org", "create", "suite", "--plan", "pro").id;
  const scopes = "mcps:read mcps:invoke providers:read providers:write admin";
  const kind = ["--type", "service", "--scopes", scopes];
  const who = admin("principal", "create", "suite", "--org", org, ...kind).id;
  return admin("token", "create", "--principal", who, "--scopes", scopes).token;
}

function write(authorization) {
  writeFileSync(
    config,
    `data_dir = "."
${authorizes ? `[server]\npublic_url = "${PUBLIC}"\n[connect]\nconfirmation = "off"\n` : ""}
[[providers]]
slug = "suite"
url = ${JSON.stringify(url)}
allow_private = true
protocol = "${modern ? "modern" : "auto"}"
timeout_seconds = 20
${scenario.startsWith("elicitation-") ? 'forms = "defaults"\n' : ""}${authorization}`,
  );
}

function serve() {
  return new Promise((resolve, reject) => {
    serving = spawn(binary, ["serve", "--port", "0", "--config", config], {
      stdio: ["ignore", "ignore", "pipe"],
      env: { ...process.env, CLIENT_SECRET: context.client_secret ?? "" },
    });
    serving.on("exit", () => reject(new Error("the gateway ended")));
    createInterface({ input: serving.stderr }).on("line", (line) => {
      console.error(line);
      const found = /listening on (\S+)/.exec(line);
      if (found) resolve(found[1]);
    });
  });
}

async function ask(base, token, path, body) {
  const answer = await fetch(base + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const json = await answer.json();
  console.error(path, answer.status, JSON.stringify(json));
  return { status: answer.status, json };
}

// The tools as soon as the gateway has asked the server for them.
async function tools(base, token) {
  for (let tries = 0; tries < 200; tries++) {
    const provider = await ask(base, token, "/v1/providers");
    if (provider.json.data.items[0]?.status === "connected") {
      const list = await ask(base, token, "/v1/mcps?view=full&limit=200");
      return list.json.data.items;
    }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the gateway never connected");
}

// Something that fits each property of the tool's schema.
function example(schema) {
  const samples = { string: "us-west1", number: 2, integer: 2, boolean: true, object: {}, array: [] };
  const properties = Object.entries(schema.properties ?? {});
  return Object.fromEntries(properties.map(([name, of]) => [name, of.default ?? samples[of.type] ?? null]));
}

// Of the arguments that the suite names, those that the schema lets be sent: the gateway refuses a
// null where the schema has none, so a caller leaves the member out.
function fitting(schema, args) {
  const nullable = (name) => [schema.properties?.[name]?.type].flat().includes("null");
  return Object.fromEntries(Object.entries(args).filter(([name, it]) => it !== null || nullable(name)));
}

// Plays the browser: follows the authorization server back to the gateway.
async function connect(base, token, scopes) {
  const wish = scopes?.length ? { owner: "org", scopes } : { owner: "org" };
  const begun = await ask(base, token, "/v1/providers/suite/connect", wish);
  if (begun.status !== 202) return begun;
  const consented = await fetch(begun.json.data.authorization_url, { redirect: "manual" });
  const back = consented.headers.get("location");
  console.error("back to", back);
  const ended = await fetch(back.replace(PUBLIC, base), { redirect: "manual" });
  const page = await ended.text();
  console.error("callback", ended.status, page);
  return { ...begun, connected: page.includes("<h1>Connected") };
}

async function authorized(base, token) {
  // The first attempt may end because the server changed its mind about who authorizes.
  let attempt;
  for (let tries = 0; tries < 3; tries++) {
    attempt = await connect(base, token);
    if (attempt.status !== 202 || attempt.connected) break;
  }
  if (attempt.status >= 400 || (attempt.status === 202 && !attempt.connected)) {
    throw new Error("the gateway never connected");
  }
  for (const tool of await tools(base, token)) {
    for (let tries = 0; tries < 4; tries++) {
      const path = `/v1/mcps/suite:${tool.name}/invoke`;
      const { json } = await ask(base, token, path, { input: example(tool.input_schema) });
      if (json.error?.code !== "provider_auth_required") break;
      await connect(base, token, json.error.details.scopes);
    }
  }
}

async function play(base, token) {
  if (authorizes) return authorized(base, token);
  const listed = await tools(base, token);
  const capabilities = modern ? { elicitation: {} } : undefined;
  const invoke = async (name, input) => {
    const path = `/v1/mcps/suite:${name}/invoke`;
    let answer = await ask(base, token, path, { input, ...(capabilities && { interaction: { capabilities } }) });
    for (let legs = 0; answer.json.meta?.outcome === "input_required" && legs < 3; legs++) {
      const { requests, state } = answer.json.result.interaction;
      // The person behind the client says yes.
      const yes = { action: "accept", content: { confirmed: true } };
      const responses = Object.fromEntries(Object.keys(requests).map((name) => [name, yes]));
      answer = await ask(base, token, path, { input, interaction: { state, responses } });
    }
    return answer;
  };
  const named = (name) => listed.find((tool) => tool.name === name);
  if (context.toolCalls) {
    for (const call of context.toolCalls) {
      await invoke(call.name, fitting(named(call.name)?.input_schema ?? {}, call.arguments));
    }
  } else if (named("json_schema_echo")) {
    await invoke("json_schema_echo", { schema: named("json_schema_2020_12_tool").input_schema });
  } else {
    for (const tool of listed) await invoke(tool.name, example(tool.input_schema));
  }
}

let failed;
try {
  const token = prepare();
  await play(await serve(), token);
} catch (error) {
  failed = error;
}
serving?.removeAllListeners("exit");
serving?.kill("SIGTERM");
rmSync(folder, { recursive: true, force: true });
if (failed) {
  console.error(`${scenario}: ${failed.stack}`);
  process.exit(1);
}
process.exit(0);
