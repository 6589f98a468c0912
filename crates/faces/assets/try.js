// The form of a tool: its JSON stays in step, and a call that waited goes on by itself.
"use strict";

const box = document.querySelector("[data-try]");
const form = box?.querySelector("[data-form]");
const raw = box?.querySelector("[data-raw]");

// Names of fields are `in:` and a JSON Pointer, in which `~@` and a number follow what has several forms.
const tokensOf = (name) => {
  const tokens = name.slice(3).split("/").slice(1);
  return tokens.map((token) => token.split("~@")[0].replaceAll("~1", "/").replaceAll("~0", "~"));
};
const fields = () => [...form.querySelectorAll("[data-kind]")];
const isChosen = (field) => [...field.name.matchAll(/~@(\d+)/g)].every((form_of) => {
  const group = `of:${field.name.slice(3, form_of.index)}`;
  return form.elements[group]?.value === form_of[1];
});

function valueOf({ dataset, value }) {
  switch (dataset.kind) {
    case "number": return JSON.rawJSON ? JSON.rawJSON(value.trim()) : Number(value);
    case "boolean": return value === "true";
    case "lines": return value.split("\n").filter(Boolean);
    case "json": return JSON.parse(value);
    default: return value;
  }
}

function inputOfForm() {
  let input = {};
  for (const field of fields()) {
    const required = field.closest("label").querySelector("b") && field.dataset.kind === "text";
    if ((!field.value && !required) || !isChosen(field)) continue;
    const tokens = tokensOf(field.name);
    const last = tokens.pop();
    if (last === undefined) {
      input = valueOf(field);
      continue;
    }
    let at = input;
    for (const token of tokens) at = Object.hasOwn(at, token) ? at[token] : own(at, token, {});
    own(at, last, valueOf(field));
  }
  return input;
}

// A member named `__proto__` is one like any other.
function own(object, name, value) {
  Object.defineProperty(object, name, { value, enumerable: true, configurable: true, writable: true });
  return value;
}

// Characters that cannot be seen are written as escapes.
const HIDDEN = /[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|[\u{e0000}-\u{e007f}]/gu;
const escaped = (text) => text.replace(HIDDEN, (letter) => {
  return [...Array(letter.length).keys()].map((at) => `\\u${letter.charCodeAt(at).toString(16).padStart(4, "0")}`).join("");
});

function formToJson() {
  const output = raw.querySelector("output");
  try {
    raw.elements.raw.value = escaped(JSON.stringify(inputOfForm(), null, 2));
    output.textContent = "";
  } catch {
    output.textContent = "A field of the form is no number or no JSON yet.";
  }
}

function jsonToForm() {
  const output = raw.querySelector("output");
  let input;
  try {
    input = JSON.parse(raw.elements.raw.value);
  } catch {
    output.textContent = "This is no JSON yet.";
    return;
  }
  output.textContent = "";
  for (const field of fields()) {
    const value = tokensOf(field.name).reduce((at, token) => (at && Object.hasOwn(at, token) ? at[token] : undefined), input);
    field.value = textOf(field.dataset.kind, value);
  }
}

function textOf(kind, value) {
  if (value === undefined) return "";
  if (kind === "json") return JSON.stringify(value);
  if (kind === "lines") return Array.isArray(value) ? value.join("\n") : "";
  return typeof value === "object" ? "" : String(value);
}

if (form && raw) {
  form.addEventListener("input", formToJson);
  raw.addEventListener("input", jsonToForm);
}

// A call that waits for people is sent again once they approved it.
const waiting = document.querySelector("[data-await]");
if (waiting && raw) {
  const said = waiting.querySelector("output");
  said.textContent = "The call goes on by itself once it is approved, while this page is open.";
  const turn = setInterval(async () => {
    let state;
    try {
      const answer = await fetch(waiting.dataset.await, { headers: { accept: "text/html" } });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      state = page.querySelector("main h1 .badge")?.dataset.state;
    } catch {
      return;
    }
    if (!state || state === "pending") return;
    clearInterval(turn);
    if (state === "approved") raw.requestSubmit();
    else said.textContent = `The approval is ${state}: nothing was called.`;
  }, 3000);
}

// A call that waits for a connection is kept by this tab until the browser is back from the provider.
const KEPT = "call that waits";
const keeping = document.querySelector("form[data-keep]");
if (keeping && raw) {
  keeping.addEventListener("submit", () => {
    const call = { tool: keeping.dataset.keep, raw: raw.elements.raw.value };
    sessionStorage.setItem(KEPT, JSON.stringify(call));
  });
}
const going = document.querySelector("form[data-go-on]");
const kept = going && JSON.parse(sessionStorage.getItem(KEPT) ?? "null");
if (kept && kept.tool.startsWith(`${going.dataset.goOn}:`)) {
  going.elements.tool.value = kept.tool;
  going.elements.raw.value = kept.raw;
  going.addEventListener("submit", () => sessionStorage.removeItem(KEPT));
  going.querySelector("output").textContent = `The call of ${kept.tool} goes on then.`;
}
