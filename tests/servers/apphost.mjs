// A host of apps in Chromium: the `AppBridge` of the official package over the official client. It shows the page of a
// tool in a frame, gives it what the tool answers, and clicks a button of the page, which calls the server.
//
//   TOKEN=… node apphost.mjs legacy|modern URL TOOL BUTTON
//
// Prints the page's address and size, what it may reach, and its text before and after the click. The server has to
// accept pages of `http://127.0.0.1:PORT`, PORT being the variable of that name.

import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const { chromium } = packages("playwright-core");
const { build } = await import(pathToFileURL(packages.resolve("rolldown")));
const [era, url, tool, button] = process.argv.slice(2);

const HOST = `
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport, getToolUiResourceUri } from "@modelcontextprotocol/ext-apps/app-bridge";

const info = { name: "portcullis-test", version: "1.0.0" };
const extensions = { "io.modelcontextprotocol/ui": { mimeTypes: ["text/html;profile=mcp-app"] } };

globalThis.show = async ({ era, url, token, tool }) => {
  const pinned = era === "modern" ? { versionNegotiation: { mode: { pin: "2026-07-28" } } } : {};
  const client = new Client(info, { capabilities: { extensions }, ...pinned });
  const requestInit = { headers: { Authorization: "Bearer " + token } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  const { tools } = await client.listTools();
  const uri = getToolUiResourceUri(tools.find(({ name }) => name === tool));
  const { contents: [{ text, _meta }] } = await client.readResource({ uri });
  const frame = document.querySelector("iframe");
  const bridge = new AppBridge(client, info, { serverTools: {}, serverResources: {}, logging: {} });
  const ready = new Promise((resolve) => { bridge.oninitialized = resolve; });
  await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
  frame.srcdoc = text;
  await ready;
  await bridge.sendToolInput({ arguments: {} });
  await bridge.sendToolResult(await client.callTool({ name: tool, arguments: {} }));
  return { uri, size: text.length, csp: _meta?.ui?.csp ?? null };
};
`;

/** The host as one script, for a page has no packages. */
async function bundled() {
  const folder = mkdtempSync(join(process.env.PORTCULLIS_TEST_SERVERS, "apphost-"));
  try {
    const input = join(folder, "host.mjs");
    writeFileSync(input, HOST);
    const { output } = await build({ input, platform: "browser", write: false, output: { format: "iife" }, logLevel: "silent" });
    return output[0].code;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const script = await bundled();
const page = '<!doctype html><iframe sandbox="allow-scripts"></iframe><script src="/host.js"></script>';
const site = createServer(({ url }, answer) => {
  const [kind, body] = url === "/host.js" ? ["text/javascript", script] : ["text/html", page];
  answer.writeHead(200, { "content-type": `${kind}; charset=utf-8` }).end(body);
});
await new Promise((resolve) => site.listen(Number(process.env.PORT), "127.0.0.1", resolve));

const browser = await chromium.launch({
  executablePath: execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim(),
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
const host = await browser.newPage();
host.setDefaultTimeout(50_000);
await host.goto(`http://127.0.0.1:${process.env.PORT}/`);
const shown = await host.evaluate((about) => globalThis.show(about), { era, url, token: process.env.TOKEN, tool });
const body = host.frameLocator("iframe").locator("body");
// The page shows what the tool answered once it was told.
const text = async (other) => {
  for (let tries = 0; tries < 500; tries += 1) {
    const seen = await body.innerText();
    if (seen !== other && !seen.includes("Loading")) return seen;
    await host.waitForTimeout(20);
  }
  throw new Error(`the page still says ${other}`);
};
const before = await text("");
await host.frameLocator("iframe").getByRole("button", { name: button, exact: true }).click();
console.log(JSON.stringify({ ...shown, before, after: await text(before) }));
await browser.close();
site.close();
