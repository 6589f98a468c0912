// Shows the errors of a draft while it is typed, as its form tells them.
"use strict";

const form = document.querySelector("form[data-draft]");
const source = form.elements.source;
let timer;
let turn = 0;

async function check() {
  const mine = ++turn;
  const body = new URLSearchParams(new FormData(form));
  body.set("ask", "check");
  try {
    const answer = await fetch(form.action, { method: "POST", body });
    if (!answer.ok || answer.redirected || mine !== turn) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("draft-errors");
    if (fresh) document.getElementById("draft-errors").replaceChildren(...fresh.childNodes);
  } catch {
    // The next change tries again.
  }
}

source.addEventListener("input", () => {
  clearTimeout(timer);
  timer = setTimeout(check, 700);
});

// A line that an error names is selected in the draft.
document.addEventListener("click", (event) => {
  const link = event.target.closest("a[data-line]");
  if (!link) return;
  event.preventDefault();
  const lines = source.value.split("\n");
  const before = lines.slice(0, Number(link.dataset.line) - 1);
  const start = before.reduce((sum, line) => sum + line.length + 1, 0);
  source.focus();
  source.setSelectionRange(start, start + (lines[before.length] ?? "").length);
});
