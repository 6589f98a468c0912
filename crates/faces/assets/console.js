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

// Parts with `data-refresh` are loaded anew while the page is looked at, and nothing in them is used.
function keepFresh(part) {
  const seconds = Number(part.dataset.refresh);
  setInterval(async () => {
    if (document.hidden || part.contains(document.activeElement)) return;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (!answer.ok || answer.redirected) return;
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(part.id);
      if (!fresh) return;
      localTimes(fresh);
      const known = new Set([...part.querySelectorAll("tr a[href]")].map((it) => it.href));
      for (const row of fresh.querySelectorAll("tbody tr")) {
        const link = row.querySelector("a[href]");
        if (known.size > 0 && link && !known.has(link.href)) row.classList.add("new");
      }
      part.replaceChildren(...fresh.childNodes);
      if (fresh.dataset.count !== undefined) count(fresh.dataset.count);
    } catch {
      // The next turn tries again.
    }
  }, seconds * 1000);
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

// Boxes that scroll are reached by the keyboard.
function scrollByKeyboard() {
  for (const box of document.querySelectorAll(".scroll, pre, .prose")) {
    if (box.scrollWidth > box.clientWidth || box.scrollHeight > box.clientHeight) box.tabIndex = 0;
  }
}

localTimes(document);
scrollByKeyboard();
const parts = document.querySelectorAll("[data-refresh]");
for (const part of parts) keepFresh(part);
const counted = document.querySelector("[data-count]");
if (counted && new URLSearchParams(location.search).get("status") === "pending") {
  count(counted.dataset.count);
}
