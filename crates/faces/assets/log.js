// Compares the signed checkpoint with the one that this browser saw last: RFC 9162, section 2.1.4.2.
// Hashes, notes and signatures are those of proof.js.
"use strict";

// Returns true if the tree of `old` is the beginning of that of `fresh`.
async function continues(old, fresh, proof) {
  if (old.size === fresh.size) return proof.length === 0 && same(old.root, fresh.root);
  const path = (old.size & (old.size - 1n)) === 0n ? [old.root, ...proof] : proof;
  if (path.length === 0) return false;
  let [first, last] = [old.size - 1n, fresh.size - 1n];
  while (first % 2n === 1n) { first >>= 1n; last >>= 1n; }
  let [before, after] = [path[0], path[0]];
  for (const hash of path.slice(1)) {
    if (last === 0n || hash.length !== 32) return false;
    if (first % 2n === 1n || first === last) {
      before = await sha256([1], hash, before);
      after = await sha256([1], hash, after);
      while (first % 2n === 0n && first !== 0n) { first >>= 1n; last >>= 1n; }
    } else {
      after = await sha256([1], after, hash);
    }
    first >>= 1n;
    last >>= 1n;
  }
  return last === 0n && same(before, old.root) && same(after, fresh.root);
}

async function compare(part) {
  const shown = parseNote(part.dataset.note);
  const place = `checkpoint ${shown.origin}`;
  const kept = localStorage.getItem(place);
  let keys = [];
  for (const key of part.dataset.keys.split(" ").filter(Boolean)) {
    if (await isSigned(shown, key)) keys.push(key);
  }
  if (keys.length === 0) return ["failed", "none of the keys of the log signed this checkpoint"];
  if (shown.size === 0n) return ["pending", "the log is empty: there is nothing to remember"];
  if (kept === null) {
    localStorage.setItem(place, part.dataset.note);
    return ["kept", `remembered ${shown.size} events: the next visit of this browser compares`];
  }
  const old = parseNote(kept);
  const answer = await fetch(`${part.dataset.log}?since=${old.size}`);
  if (answer.status === 400) return ["failed", `the log is shorter than the ${old.size} events that this browser saw: it was cut`];
  if (!answer.ok) return ["pending", `not compared: the gateway answered ${answer.status}`];
  const { data } = await answer.json();
  const fresh = parseNote(data.checkpoint);
  const signed = await Promise.all(keys.map((key) => isSigned(fresh, key)));
  if (fresh.origin !== old.origin || !signed.includes(true)) return ["failed", "the checkpoint is not signed by the keys of the log"];
  if (!(await continues(old, fresh, data.consistency.map(fromBase64)))) {
    return ["failed", `does not continue the ${old.size} events that this browser saw: the log was rewritten`];
  }
  localStorage.setItem(place, data.checkpoint);
  return ["success", `compared here: ${fresh.size} events, which begin with the ${old.size} that this browser saw before`];
}

for (const part of document.querySelectorAll("[data-log]")) {
  const says = part.querySelector("output");
  if (!window.isSecureContext) {
    says.textContent = "not compared: the browser has no WebCrypto without https";
    continue;
  }
  const failed = (error) => ["pending", `not compared: ${error.name === "NotSupportedError" ? "this browser cannot check Ed25519" : error.message}`];
  compare(part).catch(failed).then(([state, text]) => {
    says.dataset.state = state;
    says.textContent = text;
  });
}
