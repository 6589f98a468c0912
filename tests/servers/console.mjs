// The pages of the console in Chromium, as people use them.
//
//   node console.mjs check    '{"login": "http://127.0.0.1:1/login/link?code=…", "paths": ["/console"], "approval": "/console/approvals/apr_…"}'
//   node console.mjs try      '{"login": …, "approver": "http://127.0.0.1:1/login/link?code=…", "paths": ["/console/tools/up%3Apay"]}'
//   node console.mjs pictures '{…, "folder": "target/screenshots"}'
//
// `check` takes pictures, too, if it is given a folder.
//
// Signs in by the link, which goes on to the console, and prints a JSON object: the pages that were visited, and
// `faults`, a list of texts. `/console/events > /console/events/evt_` stands for the first such link of that page.

import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const { chromium } = packages("playwright-core");

const PATIENCE = 50_000;
const LARGEST_PAGE = 2 * 1024 * 1024;
// Bidi controls, zero width and tag characters, which a page has to spell out.
const HIDDEN = /[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff]|[\u{e0000}-\u{e007f}]/u;

// 200 % of a window of 1280 pixels leaves room for 640, each of two pixels.
const LOOKS = [
  { name: "light", colorScheme: "light", viewport: { width: 1280, height: 900 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1280, height: 900 } },
  { name: "phone", colorScheme: "light", viewport: { width: 360, height: 740 }, reducedMotion: "reduce" },
  { name: "narrow", colorScheme: "dark", viewport: { width: 320, height: 640 } },
  { name: "zoom", colorScheme: "light", viewport: { width: 640, height: 450 }, deviceScaleFactor: 2 },
];

const [mode, described] = process.argv.slice(2);
const { login, approver, paths, approval, folder, broken } = JSON.parse(described);
const { origin } = new URL(login);
const faults = [];
const fault = (where, what) => faults.push(`${where}: ${what}`);

const browser = await chromium.launch({
  executablePath: execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim(),
  // Root has no sandbox, and a container has little shared memory.
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});

// A window whose page tells of everything that it should not do.
async function open(options, where) {
  const context = await browser.newContext(options);
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  page.on("request", (request) => {
    const url = new URL(request.url());
    const isOwn = url.origin === origin || url.protocol === "data:";
    if (!isOwn) fault(`${where} ${page.url()}`, `asks ${url.origin}`);
  });
  page.on("console", (message) => {
    // A refusal of the CSP is an error of the console, too.
    if (message.type() === "error") fault(`${where} ${page.url()}`, message.text());
  });
  page.on("pageerror", ({ message }) => fault(`${where} ${page.url()}`, message));
  page.on("dialog", (dialog) => {
    fault(`${where} ${page.url()}`, `asks "${dialog.message()}"`);
    return dialog.dismiss();
  });
  return { context, page };
}

async function signIn(link) {
  const { context, page } = await open({ viewport: LOOKS[0].viewport }, "login");
  await page.goto(link);
  await page.getByRole("button", { name: "Log in", exact: true }).click();
  await page.waitForURL((url) => url.pathname.startsWith("/console"));
  const storageState = await context.storageState();
  await context.close();
  return storageState;
}

// `LIST > START` stands for the first link of the page LIST whose address begins with START.
async function resolve(page, path) {
  const [list, start] = path.split(" > ");
  if (!start) return path;
  await page.goto(origin + list);
  const link = page.locator(`main a[href^="${start}"]`).first();
  const found = await link.getAttribute("href", { timeout: 5_000 }).catch(() => null);
  if (!found) fault(list, `no link to ${start}`);
  return found ?? list;
}

async function sideways(page) {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return null;
    const wide = [...document.querySelectorAll("body *")].filter((it) => {
      return it.getBoundingClientRect().right > clientWidth + 1 && !it.closest(".scroll, pre, .prose");
    });
    const names = wide.slice(0, 3).map((it) => it.outerHTML.slice(0, 80));
    return `${scrollWidth} > ${clientWidth} by ${names.join(" and ")}`;
  });
}

async function axe(page, where) {
  // The protocol of the browser runs it, which no CSP forbids.
  if (!(await page.evaluate(() => "axe" in window))) {
    await page.evaluate(readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8"));
  }
  const violations = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
    return violations.map(({ id, impact, nodes }) => ({ id, impact, html: nodes[0].html.slice(0, 160) }));
  });
  for (const { id, impact, html } of violations) {
    if (["serious", "critical"].includes(impact)) fault(where, `${impact} ${id}: ${html}`);
  }
}

async function checkPage(page, path) {
  const answer = await page.goto(origin + path);
  if (answer.status() !== 200) fault(path, `status ${answer.status()}`);
  const html = await answer.body();
  if (html.length > LARGEST_PAGE) fault(path, `${html.length} bytes`);
  if (!(await page.locator("main h1").first().isVisible())) fault(path, "no title");
  const hidden = HIDDEN.exec(await page.evaluate(() => document.documentElement.outerHTML));
  if (hidden) fault(path, `hidden U+${hidden[0].codePointAt(0).toString(16)}`);
  const foreign = "main script:not([src^='/console/assets/']), main img, main iframe, main [onerror], main [style]";
  if ((await page.locator(foreign).count()) > 0) fault(path, "markup of a stranger");
  for (const { name, colorScheme, viewport, reducedMotion = "no-preference" } of LOOKS) {
    await page.emulateMedia({ colorScheme, reducedMotion });
    await page.setViewportSize(viewport);
    const over = await sideways(page);
    if (over) fault(`${name} ${path}`, `scrolls sideways: ${over}`);
    if (["light", "dark", "phone"].includes(name)) await axe(page, `${name} ${path}`);
  }
}

async function checkPages(storageState, visited) {
  const { context, page } = await open({ storageState }, "page");
  for (const path of visited) {
    await checkPage(page, path).catch(({ message }) => fault(path, message));
  }
  await context.close();
}

// Reading needs no script: the same title, and as many rows.
async function checkWithoutScript(storageState, visited) {
  const { context, page } = await open({ storageState, javaScriptEnabled: false }, "no script");
  for (const path of visited) {
    await page.goto(origin + path);
    const text = await page.locator("main").innerText();
    if (text.trim().length < 20) fault(`no script ${path}`, "no content");
    if (!(await page.locator("nav a[href='/console/events']").isVisible())) {
      fault(`no script ${path}`, "no navigation");
    }
  }
  await context.close();
}

// Tab until the focus is at what `selector` finds; each stop has to be seen.
async function tabTo(page, selector) {
  for (let stops = 0; stops < 80; stops += 1) {
    await page.keyboard.press("Tab");
    const stop = await page.evaluate((wanted) => {
      const it = document.activeElement;
      const { outlineStyle, outlineWidth } = getComputedStyle(it);
      const box = it.getBoundingClientRect();
      return {
        isThere: it.matches(wanted),
        isBody: it === document.body,
        isSeen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 2 && box.width > 0,
        html: it.outerHTML.slice(0, 100),
      };
    }, selector);
    if (!stop.isBody && !stop.isSeen) fault("keyboard", `the focus is not seen at ${stop.html}`);
    if (stop.isThere) return true;
  }
  fault("keyboard", `no way to ${selector}`);
  return false;
}

// From the queue to the decision without a mouse.
async function checkKeyboard(storageState) {
  const { context, page } = await open({ storageState, viewport: LOOKS[0].viewport }, "keyboard");
  await page.goto(`${origin}/console/approvals?status=pending`);
  if (!(await tabTo(page, `main a[href="${approval}"]`))) return;
  await page.keyboard.press("Enter");
  await page.waitForURL((url) => url.pathname === approval);
  if (!(await tabTo(page, "textarea[name=comment]"))) return;
  await page.keyboard.type("seen");
  if (!(await tabTo(page, "button[value=approve]"))) return;
  await page.keyboard.press("Enter");
  await page.locator(".badge[data-state=approved]").first().waitFor()
    .catch(() => fault("keyboard", "the approval does not show as approved"));
  await context.close();
}

async function takePictures(storageState, visited) {
  mkdirSync(folder, { recursive: true });
  for (const { name, ...options } of LOOKS) {
    const { context, page } = await open({ ...options, storageState }, name);
    for (const path of visited) {
      await page.goto(origin + path);
      const file = path.replace(/^\//, "").replace(/[^\w.-]+/g, "-").slice(0, 80);
      await page.screenshot({ path: join(folder, `${file}.${name}.png`), fullPage: true });
    }
    await context.close();
  }
}

// A person fills in the form of a tool, another one approves the call, and the page goes on.
async function tryTool(storageState, path) {
  const { context, page } = await open({ storageState, viewport: LOOKS[0].viewport }, "try");
  const deciding = await open({ storageState: await signIn(approver) }, "approver");
  await page.goto(origin + path);
  const raw = page.locator("textarea[name=raw]");
  const inStep = async (expected) => {
    const shown = JSON.parse(await raw.inputValue());
    if (JSON.stringify(shown) !== JSON.stringify(expected)) fault("try", `the JSON is ${JSON.stringify(shown)}`);
  };
  await page.locator("[name='in:/text']").fill("two\nlines");
  await page.locator("[name='in:/count']").fill("12");
  await page.getByLabel("name", { exact: true }).check();
  await page.locator("[name='in:/to~@0']").fill("not this");
  await page.getByLabel("id", { exact: true }).check();
  await page.locator("[name='in:/to~@1']").fill("8");
  // The first row stays empty, and is left out.
  await page.getByRole("button", { name: "Add one" }).click();
  await page.locator("[name='in:/parts/~#1/name']").fill("a");
  await page.locator("[name='in:/parts/~#1/sizes']").fill("1\n2.5");
  await inStep({ text: "two\nlines", count: 12, to: 8, parts: [{ name: "a", sizes: [1, 2.5] }] });
  await page.getByText("Input as JSON").click();
  await raw.fill('{"text": "two\\nlines", "count": 12, "to": 7, "parts": [{"name": "b", "sizes": [1, 2.5]}, {}, {"name": "c"}]}');
  const filled = async (name, text) => {
    if ((await page.locator(`[name='in:/${name}']`).inputValue()) !== text) fault("try", `${name} is not in step`);
  };
  await filled("to~@1", "7");
  await filled("parts/~#0/sizes", "1\n2.5");
  await filled("parts/~#2/name", "c");
  await page.locator("[data-form] button.main").click();
  const waiting = await page.locator("[data-await]").getAttribute("data-await");
  await deciding.page.goto(origin + waiting);
  await deciding.page.locator("button[value=approve]").click();
  await page.locator("#answer .badge[data-state=allow]").waitFor()
    .catch(() => fault("try", "the approved call does not go on"));
  await deciding.context.close();
  await context.close();
}

const storageState = await signIn(login);
const { context, page } = await open({ storageState }, "links");
const visited = [];
for (const path of paths) visited.push(await resolve(page, path));
await context.close();
if (mode === "pictures") {
  await takePictures(storageState, visited);
} else if (mode === "try") {
  await tryTool(storageState, visited[0]).catch(({ message }) => fault("try", message));
} else {
  await checkPages(storageState, visited);
  await checkWithoutScript(storageState, visited);
  if (approval) await checkKeyboard(storageState);
  if (folder) {
    const found = faults.length;
    await takePictures(storageState, [...visited, ...broken]);
    // That a page was not found is an error of the console.
    faults.length = found;
  }
}
await browser.close();
console.log(JSON.stringify({ visited, faults }));
