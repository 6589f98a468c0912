// Checks in the browser that an event is in the signed log: RFC 6962 hashes, C2SP tlog-proof and signed note.
"use strict";

const bytesOf = (text) => new TextEncoder().encode(text);
const fromBase64 = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
const toBase64 = (bytes) => btoa(String.fromCharCode(...bytes));
const same = (a, b) => a.length === b.length && a.every((byte, at) => byte === b[at]);

async function sha256(...parts) {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) { all.set(part, at); at += part.length; }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", all));
}

// RFC 8785 for values whose numbers are integers: members in order of their UTF-16 units.
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = Object.keys(value).sort().map((name) => `${JSON.stringify(name)}:${canonical(value[name])}`);
  return `{${members.join(",")}}`;
}

function parseProof(text) {
  const end = text.indexOf("\n\n");
  const lines = text.slice(0, end).split("\n");
  if (end < 0 || lines.shift() !== "c2sp.org/tlog-proof@v1") throw new Error("the proof has another form");
  if (lines[0]?.startsWith("extra ")) lines.shift();
  const index = /^index (0|[1-9][0-9]*)$/.exec(lines.shift() ?? "");
  if (!index) throw new Error("the proof names no index");
  return { index: BigInt(index[1]), path: lines.map(fromBase64), note: text.slice(end + 2) };
}

function parseNote(note) {
  const end = note.indexOf("\n\n");
  if (end < 0) throw new Error("the checkpoint is not signed");
  const signed = note.slice(0, end + 1);
  const [origin, size, root] = signed.split("\n");
  const signatures = note.slice(end + 2).split("\n").filter((line) => line.startsWith("\u2014 ")).map((line) => {
    const [, name, text] = line.split(" ");
    return { name, bytes: fromBase64(text) };
  });
  return { signed, origin, size: BigInt(size), root: fromBase64(root), signatures };
}

// Root that a path leads to (RFC 9162, section 2.1.3.2); nothing if the path has another length.
async function rootOf(leaf, { index, path }, size) {
  if (index >= size) return null;
  let [place, last, hash] = [index, size - 1n, leaf];
  for (const sibling of path) {
    if (last === 0n || sibling.length !== 32) return null;
    if (place % 2n === 1n || place === last) {
      hash = await sha256([1], sibling, hash);
      while (place % 2n === 0n && place !== 0n) { place >>= 1n; last >>= 1n; }
    } else {
      hash = await sha256([1], hash, sibling);
    }
    place >>= 1n;
    last >>= 1n;
  }
  return last === 0n ? hash : null;
}

// Returns true if a key `<name>+<id>+<base64>` signed the note; fails where the browser has no Ed25519.
async function isSigned(note, text) {
  const [, name, id, key] = /^([^+]+)\+([0-9a-f]{8})\+(.+)$/.exec(text) ?? [];
  const bytes = key ? fromBase64(key) : [];
  if (bytes.length !== 33 || bytes[0] !== 1 || name !== note.origin) return false;
  const hash = (await sha256(bytesOf(`${name}\n`), bytes)).slice(0, 4);
  if ([...hash].map((byte) => byte.toString(16).padStart(2, "0")).join("") !== id) return false;
  const verifier = await crypto.subtle.importKey("raw", bytes.slice(1), "Ed25519", false, ["verify"]);
  for (const { name: signer, bytes: signature } of note.signatures) {
    if (signer !== name || !same(signature.slice(0, 4), hash)) continue;
    if (await crypto.subtle.verify("Ed25519", verifier, signature.slice(4), bytesOf(note.signed))) return true;
  }
  return false;
}

async function verify(part) {
  const answer = await fetch(part.dataset.proof);
  if (answer.status === 404) return ["pending", "not yet sealed: check again in a moment"];
  if (!answer.ok) return ["failed", `no proof: the gateway answered ${answer.status}`];
  const proof = parseProof(await answer.text());
  const note = parseNote(proof.note);
  const leaf = await sha256([0], bytesOf(canonical(JSON.parse(part.dataset.leaf))));
  const root = await rootOf(leaf, proof, note.size);
  if (!root || !same(root, note.root)) return ["failed", "does not match: this event is not in the tree of the checkpoint"];
  const keys = part.querySelector("textarea").value.split(/\s+/).filter(Boolean);
  try {
    for (const key of keys) {
      if (await isSigned(note, key)) {
        return ["success", `verified here: event ${proof.index} of ${note.size}, root ${toBase64(root)}, signed by this key`];
      }
    }
  } catch (error) {
    if (error.name === "NotSupportedError") {
      return ["pending", "the event is in the tree of the checkpoint; this browser cannot check the Ed25519 signature"];
    }
    throw error;
  }
  return ["failed", "does not match: none of these keys signed the checkpoint"];
}

for (const part of document.querySelectorAll("[data-proof]")) {
  const says = part.querySelector("output");
  const run = async () => {
    let result;
    try {
      result = await verify(part);
    } catch (error) {
      result = ["failed", `does not match: ${error.message}`];
    }
    [says.dataset.state, says.textContent] = result;
  };
  if (!window.isSecureContext) {
    says.textContent = "the browser has no WebCrypto without https";
  } else {
    part.querySelector("button").addEventListener("click", run);
    run();
  }
}
