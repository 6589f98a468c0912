// Speaks to an MCP server with the official TypeScript SDK: lists its tools, calls one, and prints
// both. The first argument says with which of its packages, and so in which era.
//
//   TOKEN=… node client.mjs legacy|modern URL TOOL '{"argument":1}'

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const load = (name) => import(pathToFileURL(packages.resolve(name)));

const [era, url, tool, input] = process.argv.slice(2);
const options = { requestInit: { headers: { Authorization: `Bearer ${process.env.TOKEN}` } } };

async function client() {
  const info = { name: "portcullis-test", version: "1.0.0" };
  if (era === "legacy") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StreamableHTTPClientTransport } = await load(
      "@modelcontextprotocol/sdk/client/streamableHttp.js",
    );
    const client = new Client(info);
    await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await load("@modelcontextprotocol/client");
  const client = new Client(info, { versionNegotiation: { mode: { pin: "2026-07-28" } } });
  await client.connect(new StreamableHTTPClientTransport(new URL(url), options));
  return client;
}

const connected = await client();
const { tools } = await connected.listTools();
const result = await connected.callTool({ name: tool, arguments: JSON.parse(input) });
console.log(JSON.stringify({ tools: tools.map(({ name }) => name), result }));
await connected.close();
