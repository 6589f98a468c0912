// The form of a tool: its JSON stays in step, and a call that waited goes on by itself.
"use strict";

const box = document.querySelector("[data-try]");
const form = box?.querySelector("[data-form]");
const raw = box?.querySelector("[data-raw]");

// Names of fields are `in:` and a JSON Pointer, in which `~@` and a number follow what has several forms, and `~#`
// and a number are a row of a list.
const tokensOf = (name) => {
  const tokens = name.slice(name.indexOf(":") + 1).split("/").slice(1);
  return tokens.map((token) => token.split("~@")[0].replaceAll("~1", "/").replaceAll("~0", "~"));
};
const fields = () => [...form.querySelectorAll("[data-kind]")];
const isChosen = (field) => [...field.name.matchAll(/~@(\d+)/g)].every((form_of) => {
  const group = `of:${field.name.slice(3, form_of.index)}`;
  return form.elements[group]?.value === form_of[1];
});
const lines = (value) => value.split("\n").map((line) => line.trim()).filter(Boolean);
const number = (text) => (JSON.rawJSON ? JSON.rawJSON(text) : Number(text));

function valueOf({ dataset, value }) {
  switch (dataset.kind) {
    case "number": return number(value.trim());
    case "boolean": return value === "true";
    case "lines": return value.split("\n").filter(Boolean);
    case "numbers": return lines(value).map(number);
    case "json": return JSON.parse(value);
    default: return value;
  }
}

function inputOfForm() {
  let input = {};
  // Rows by the place that they have in their list: those without a value have none.
  const places = new Map();
  for (const field of fields()) {
    const inRow = field.name.includes("~#");
    const required = field.closest("label").querySelector("b") && field.dataset.kind === "text" && !inRow;
    if ((!field.value && !required) || !isChosen(field)) continue;
    const tokens = tokensOf(field.name);
    if (!tokens.length) {
      input = valueOf(field);
      continue;
    }
    let at = input;
    let walked = "";
    for (const [depth, token] of tokens.entries()) {
      walked += `/${token}`;
      let name = token;
      if (Array.isArray(at)) {
        if (!places.has(walked)) places.set(walked, at.length);
        name = places.get(walked);
      }
      const next = tokens[depth + 1];
      if (next === undefined) own(at, name, valueOf(field));
      else if (Object.hasOwn(at, name)) at = at[name];
      else at = own(at, name, next.startsWith("~#") ? [] : {});
    }
  }
  return input;
}

// Adds a row to a list of the form, a copy of its last one without values, while there is room.
function addRow(counter) {
  const number = Number(counter.value);
  const rows = counter.parentElement.querySelectorAll(":scope > .item");
  if (number >= Number(counter.dataset.rows) || form.elements.length > 60) return false;
  const row = rows[rows.length - 1].cloneNode(true);
  const list = counter.name.slice(counter.name.indexOf(":") + 1);
  for (const part of row.querySelectorAll("[name]")) {
    part.name = part.name.replace(`${list}/~#${number - 1}`, () => `${list}/~#${number}`);
    if (part.dataset.kind) part.value = "";
  }
  for (const label of row.querySelectorAll("label > span, legend")) {
    const shown = tokensOf(`:${list}`).map((token) => token.replace("~#", "")).join("/");
    label.firstChild.textContent = label.firstChild.textContent.replace(`${shown}/${number - 1}`, () => `${shown}/${number}`);
  }
  rows[rows.length - 1].after(row);
  counter.value = number + 1;
  return true;
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
  const valueAt = (name) => tokensOf(name).reduce((at, token) => {
    const own = token.replace("~#", "");
    return at && Object.hasOwn(at, own) ? at[own] : undefined;
  }, input);
  // Rows of a new row are looked at behind it.
  for (const counter of form.getElementsByTagName("input")) {
    if (!counter.dataset.rows) continue;
    const list = valueAt(counter.name);
    while (Array.isArray(list) && list.length > Number(counter.value)) {
      if (!addRow(counter)) {
        output.textContent = "The form has no room for all of this; Call below sends it as it stands here.";
        break;
      }
    }
  }
  for (const field of fields()) field.value = textOf(field.dataset.kind, valueAt(field.name));
}

function textOf(kind, value) {
  if (value === undefined) return "";
  if (kind === "json") return JSON.stringify(value);
  if (kind === "lines" || kind === "numbers") return Array.isArray(value) ? value.join("\n") : "";
  return typeof value === "object" ? "" : String(value);
}

if (form && raw) {
  form.addEventListener("input", formToJson);
  for (const counter of form.querySelectorAll("input[data-rows]")) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Add one" });
    button.dataset.add = "";
    counter.parentElement.append(button);
  }
  form.addEventListener("click", ({ target }) => {
    if (target.dataset.add === undefined) return;
    target.disabled = !addRow(target.parentElement.querySelector(":scope > [data-rows]"));
  });
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
const provider = kept?.tool.replace(/^(prompt|resource|skill):/, "").split(":")[0];
if (kept && provider === going.dataset.goOn) {
  going.elements.tool.value = kept.tool;
  going.elements.raw.value = kept.raw;
  going.addEventListener("submit", () => sessionStorage.removeItem(KEPT));
  going.querySelector("output").textContent = `The call of ${kept.tool} goes on then.`;
}
