// A real browser: Chromium, told by lines of JSON on stdin what a person does in it. Each line is answered by one
// with the address and the text of the page that is there then, or with the error.
//
//   {"do": "go", "url": "http://127.0.0.1:8080/login", "until": "Log in"}
//   {"do": "click", "name": "Allow", "until": "/callback?code="}      a button or a link
//   {"do": "choose", "name": "Tools", "until": "list_items"}          another text
//   {"do": "toggle", "name": "Connect", "until": "Connected"}         a switch whose name has this
//   {"do": "fill", "name": "Password", "text": "any"}                 a field, by its label or what stands in it
//   {"do": "forget"}                                                  all cookies
//   {"do": "ask", "url": "http://…", "init": {"method": "POST"}}      what `fetch` of the page is answered
//
// `until` is a part of the address or a text of the page. With PORTCULLIS_SCREENSHOTS, that folder gets a picture
// of each page.

import { execFileSync } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const packages = createRequire(join(process.env.PORTCULLIS_TEST_SERVERS, "package.json"));
const { chromium } = packages("playwright-core");

// The longest that a page may take on a busy machine.
const PATIENCE = 50_000;
const pictures = process.env.PORTCULLIS_SCREENSHOTS;

const browser = await chromium.launch({
  executablePath: execFileSync("sh", ["-c", "command -v chromium"], { encoding: "utf8" }).trim(),
  // Root has no sandbox, and a container has little shared memory.
  args: ["--no-sandbox", "--disable-dev-shm-usage"],
});
const context = await browser.newContext({ viewport: { width: 1280, height: 900 } });
context.setDefaultTimeout(PATIENCE);
// No page waits for what the machine of the test cannot reach.
const isForeign = ({ protocol, hostname }) => protocol.startsWith("http") && !/^(127\.|localhost$|\[::1\]$)/.test(hostname);
await context.route(isForeign, (route) => route.abort());
const page = await context.newPage();

const named = (name) => page.getByRole("button", { name, exact: true })
  .or(page.getByRole("link", { name, exact: true }))
  .first();

const actions = {
  go: ({ url }) => page.goto(url),
  click: ({ name }) => named(name).click(),
  choose: ({ name }) => page.getByText(name, { exact: true }).first().click(),
  // By the keyboard, for what one sees of a switch lies over it.
  toggle: ({ name }) => page.getByRole("switch", { name }).press("Space"),
  fill: ({ name, text }) => page.getByPlaceholder(name).or(page.getByLabel(name)).first().fill(text),
  forget: () => context.clearCookies(),
  ask: ({ url, init }) => page.evaluate(async ([url, init]) => {
    try {
      const answer = await fetch(url, init);
      const headers = Object.fromEntries(answer.headers);
      return { status: answer.status, headers, text: await answer.text() };
    } catch ({ message }) {
      return { failed: message };
    }
  }, [url, init]),
};

async function shows(until) {
  await Promise.any([
    page.waitForURL((at) => at.href.includes(until)),
    page.getByText(until).first().waitFor(),
  ]).catch(({ errors }) => { throw errors.at(-1); });
}

let number = 0;
for await (const line of createInterface({ input: process.stdin })) {
  const action = JSON.parse(line);
  const said = {};
  try {
    const answer = await actions[action.do](action);
    if (action.do === "ask") said.answer = answer;
    if (action.until) await shows(action.until);
  } catch (error) {
    said.error = error.message;
  }
  number += 1;
  if (pictures) await page.screenshot({ path: join(pictures, `${process.pid}-${number}.png`) });
  const text = await page.locator("body").innerText().catch(() => "");
  console.log(JSON.stringify({ url: page.url(), text, ...said }));
}
await browser.close();
