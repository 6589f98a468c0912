// Calls a tool that people have to approve, with the official TypeScript SDK. When the gateway asks to open
// an address, a person opens it, reads the approval over the API, approves it, and says so to the client.
//
//   TOKEN=… APPROVER=… GATEWAY=… node approving.mjs TOOL '{"argument":1}'

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const sdk = await import(pathToFileURL(packages.resolve("@modelcontextprotocol/client")));

const { TOKEN, APPROVER, GATEWAY } = process.env;
const [tool, input] = process.argv.slice(2);
const client = new sdk.Client(
  { name: "portcullis-test", version: "1.0.0" },
  { capabilities: { elicitation: { url: {} } }, versionNegotiation: { mode: { pin: "2026-07-28" } } },
);

const opened = [];
client.setRequestHandler("elicitation/create", async ({ params }) => {
  const page = await fetch(params.url);
  opened.push({ mode: params.mode, url: params.url, status: page.status, text: await page.text() });
  const headers = { Authorization: `Bearer ${APPROVER}`, "Content-Type": "application/json" };
  const address = `${GATEWAY}/v1/approvals/${params.url.split("/").pop()}`;
  const { data } = await (await fetch(address, { headers })).json();
  const body = JSON.stringify({ decision: "approve", digest: data.digest });
  const decided = await fetch(`${address}/decision`, { method: "POST", headers, body });
  return { action: decided.ok ? "accept" : "cancel" };
});

const options = { requestInit: { headers: { Authorization: `Bearer ${TOKEN}` } } };
await client.connect(new sdk.StreamableHTTPClientTransport(new URL(`${GATEWAY}/mcp`), options));
const result = await client.callTool({ name: tool, arguments: JSON.parse(input) });
console.log(JSON.stringify({ opened, result }));
await client.close();
