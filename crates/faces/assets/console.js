// Live parts of the console. Every page can be read without it.
"use strict";

// Moments in the reader's own time, with UTC on hover.
function localTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(time.dateTime);
    if (Number.isNaN(moment.getTime()) || time.title) continue;
    time.title = time.textContent + " UTC";
    const today = moment.toDateString() === new Date().toDateString();
    const date = today ? {} : { year: "numeric", month: "short", day: "numeric" };
    time.textContent = moment.toLocaleString(undefined, {
      ...date, hour: "2-digit", minute: "2-digit", second: "2-digit",
    });
  }
}

// Parts with `data-refresh` are loaded anew, together, while the page is looked at and nothing in
// them is used.
function keepFresh(parts) {
  const seconds = Math.min(...parts.map((part) => Number(part.dataset.refresh)));
  setInterval(async () => {
    const free = parts.filter((part) => !part.contains(document.activeElement));
    if (document.hidden || free.length === 0) return;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const part of free) refresh(part, page.getElementById(part.id));
    } catch {
      // The next turn tries again.
    }
  }, seconds * 1000);
}

function refresh(part, fresh) {
  // A table behind a plot that is being read stays as it is.
  if (!fresh || part.querySelector("details[open]")) return;
  localTimes(fresh);
  scrollByKeyboard();
  const known = knownRows(part);
  for (const row of fresh.querySelectorAll("tbody tr")) {
    const link = row.querySelector("a[href]");
    if (known.size > 0 && link && !known.has(link.getAttribute("href"))) row.classList.add("new");
  }
  part.replaceChildren(...fresh.childNodes);
  if (fresh.dataset.count !== undefined) count(fresh.dataset.count);
}

function knownRows(part) {
  const links = part.querySelectorAll("tr a[href]");
  return new Set([...links].map((link) => link.getAttribute("href")));
}

// Rows of a list with `data-live` come by themselves while the page is looked at.
const MOST_ROWS = 200;
function goLive(part) {
  const controls = part.querySelector(".live");
  const button = controls.querySelector("button");
  let source = null;
  const follow = () => {
    const wanted = !document.hidden && button.getAttribute("aria-pressed") === "false";
    if (!wanted && source) {
      source.close();
      source = null;
    } else if (wanted && !source) {
      source = new EventSource(part.dataset.live);
      source.onmessage = (event) => addRows(part, event.data);
    }
  };
  button.addEventListener("click", () => {
    const paused = button.getAttribute("aria-pressed") === "false";
    button.setAttribute("aria-pressed", String(paused));
    button.textContent = paused ? "Go on" : "Pause";
    follow();
  });
  document.addEventListener("visibilitychange", follow);
  controls.hidden = false;
  follow();
}

function addRows(part, html) {
  const body = part.querySelector("tbody");
  // The page of an empty list has no table.
  if (!body) return location.reload();
  const text = `<table><tbody>${html}</tbody></table>`;
  const fresh = new DOMParser().parseFromString(text, "text/html");
  localTimes(fresh);
  scrollByKeyboard();
  const known = knownRows(part);
  const rows = [...fresh.querySelectorAll("tr")].filter((row) => {
    const link = row.querySelector("a[href]");
    return link && !known.has(link.getAttribute("href"));
  });
  for (const row of rows) row.classList.add("new");
  body.prepend(...rows);
  for (const row of [...body.rows].slice(MOST_ROWS)) row.remove();
}

// The number of approvals that wait stands in the title of the tab.
const title = document.title;
function count(number) {
  document.title = Number(number) > 0 ? `(${number}) ${title}` : title;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  event.preventDefault();
  await navigator.clipboard.writeText(button.dataset.copy);
  button.textContent = "Copied";
});

document.addEventListener("submit", (event) => {
  const question = event.target.dataset.ask;
  if (question && !window.confirm(question)) event.preventDefault();
});

// Rows that the last visit of this browser did not see are marked.
const MOST_KEPT = 400;
function markNew() {
  const rows = [...document.querySelectorAll("table.lines tbody tr")];
  const keyOf = (row) => row.querySelector("a[href]")?.getAttribute("href") ?? row.querySelector("code[title]")?.title;
  const place = `looked at ${location.pathname}`;
  try {
    const kept = localStorage.getItem(place);
    const known = new Set(JSON.parse(kept ?? "[]"));
    for (const row of rows) {
      const key = keyOf(row);
      if (!key || known.has(key)) continue;
      if (kept !== null) {
        row.classList.add("new");
        row.title = "new since the last visit of this browser";
      }
      known.add(key);
    }
    localStorage.setItem(place, JSON.stringify([...known].slice(-MOST_KEPT)));
  } catch {
    // A browser that keeps nothing marks nothing.
  }
}

// Boxes that scroll are reached by the keyboard.
function scrollByKeyboard() {
  for (const box of document.querySelectorAll(".scroll, pre, .prose")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  }
}

// Of a navigation that scrolls, the link of this page is seen.
document.querySelector("nav [aria-current]")?.scrollIntoView({ inline: "center", block: "nearest" });

localTimes(document);
scrollByKeyboard();
if (!location.search) markNew();
window.addEventListener("resize", scrollByKeyboard);
const parts = [...document.querySelectorAll("[data-refresh]")];
if (parts.length > 0) keepFresh(parts);
for (const part of document.querySelectorAll("[data-live]")) goLive(part);
const counted = document.querySelector("[data-count]");
if (counted && new URLSearchParams(location.search).get("status") === "pending") {
  count(counted.dataset.count);
}
