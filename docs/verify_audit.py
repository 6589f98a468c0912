#!/usr/bin/env python3
"""Verifies an audit export of Portcullis (format jsonl), so that nobody has to trust our binary.

    python3 verify_audit.py EXPORT.jsonl[.gz] VKEY [OLD-CHECKPOINT]
    python3 verify_audit.py approval APPROVAL.json EVENT.json
    python3 verify_audit.py self-test

Needs Python 3.9 and its standard library. VKEY is the verifier key of the log, from somebody you
trust; OLD-CHECKPOINT is a checkpoint you kept, which has to be the beginning of this log, or an
anchor file, of which one is taken: a larger one that was published a minute or more before the export
was made (then the log was set back), otherwise the largest that is not larger.

`approval` computes the digest of the call that an approval is bound to, and compares it with the one
that the approval names. APPROVAL.json is the answer of GET /v1/approvals/{id}, EVENT.json that of
GET /v1/audit/events/{id} for the call (or for the approval.requested): org and acting service stand
there alone. It works if the approval shows the input that was sent. Where values are masked for
approvers only, they cannot be checked: then the digest differs, and the input of the event
(detached.input, if payloads are captured in full) is taken instead if there is one.

Exit codes: 0 verified, 1 not readable, 2 wrong usage, 10 the events are not those of the signed
tree, or the approval is not that of the call, 11 not signed by VKEY, 12 not the continuation of
OLD-CHECKPOINT, 13 something is missing.
"""
import base64, datetime, gzip, hashlib, json, re, sys


class Fault(Exception):
    """Why the file proves nothing, with the exit code that says it."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def sha256(*parts):
    return hashlib.sha256(b"".join(parts)).digest()


# --- The core idea: leaves, and the root over them -----------------------------------------------

def leaf(event):
    """The leaf hash: of the canonical event without what is detached from it."""
    core = {name: value for name, value in event.items() if name not in ("detached", "integrity")}
    return sha256(b"\0", canonical(core).encode())


class Tree:
    """The subtrees of a run of leaves, from left to right: (level, hash). Grows with the logarithm."""

    def __init__(self, first=0):
        self.first, self.end, self.subtrees = first, first, []

    def add(self, level, subtree):
        self.end += 1 << level
        while self.subtrees and self.subtrees[-1][0] == level and (self.end >> level) % 2 == 0:
            subtree = sha256(b"\1", self.subtrees.pop()[1], subtree)
            level += 1
        self.subtrees.append((level, subtree))

    def add_span(self, end, hashes):
        """Subtrees up to `end`, each as large as can begin where the one before ended."""
        for subtree in hashes:
            if self.end >= end:
                raise Fault(10, "there are more hashes than the tree has room for")
            fits = (end - self.end).bit_length() - 1
            begins = (self.end & -self.end).bit_length() - 1 if self.end else fits
            self.add(min(fits, begins), subtree)
        if self.end != end:
            raise Fault(10, "hashes beside the range are missing")

    def root(self):
        root = None
        for _, subtree in reversed(self.subtrees):
            root = subtree if root is None else sha256(b"\1", subtree, root)
        return sha256() if root is None else root


def joined(prefix, run, suffix=(), size=None):
    """The root over the hashes left of a run, the run itself, and the hashes right of it."""
    tree = Tree()
    tree.add_span(run.first, prefix)
    for level, subtree in run.subtrees:
        tree.add(level, subtree)
    tree.add_span(run.end if size is None else size, suffix)
    return tree.root()


# --- Canonical JSON (RFC 8785; numbers keep their text), commitments -------------------------------

class Number(str):
    """A number as it was written."""


def canonical(value):
    if isinstance(value, Number):
        return str(value)
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name]) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def once(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member stands twice in an object")
    return members


def constant(name):
    raise ValueError(name + " is no JSON")


def parse(line):
    return json.loads(line, object_pairs_hook=once, parse_int=Number, parse_float=Number,
                      parse_constant=constant)


def check_values(event):
    """What is detached, and came with its salt, is what the log committed to."""
    integrity = event.get("integrity") or {}
    if "mismatch" in integrity:
        raise Fault(10, f"event {event['sequence']}: whoever wrote it down found that it does not fit")
    salts = integrity.get("salts") or {}
    for name, value in (event.get("detached") or {}).items():
        if value is not None and name in salts:
            digest = sha256(base64.b64decode(salts[name]), canonical(value).encode())
            if event["commitments"].get(name) != "sha256:" + digest.hex():
                raise Fault(10, f"event {event['sequence']}: `{name}` is not what was committed to")


# --- Signed notes (c2sp.org/signed-note), Ed25519 (RFC 8032 section 5.1.7) -----------------------

P, L = 2**255 - 19, 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def add_points(a, b):
    """In extended coordinates."""
    m, n = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    c, d = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = n - m, d - c, d + c, n + m
    return e * f % P, g * h % P, f * g % P, e * h % P


def times(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add_points(result, point)
        point, scalar = add_points(point, point), scalar >> 1
    return result


def point_of(encoded):
    y = int.from_bytes(encoded, "little")
    sign, y = y >> 255, y & (1 << 255) - 1
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    x = P - x if x % 2 != sign else x
    return x, y, 1, x * y % P


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def signed_by(public, message, signature):
    key, r = point_of(public), point_of(signature[:32])
    s = int.from_bytes(signature[32:], "little")
    if key is None or r is None or s >= L or len(signature) != 64:
        return False
    h = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % L
    a, b = times(s, BASE), add_points(r, times(h, key))
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def open_checkpoint(note, vkey):
    """Origin, size and root of a checkpoint that the key has signed."""
    name, key_id, encoded = vkey.split("+", 2)
    key = base64.b64decode(encoded)
    if key[:1] != b"\1" or sha256(name.encode(), b"\n", key)[:4].hex() != key_id:
        raise Fault(11, "VKEY is no verifier key of a log")
    text, _, lines = note.rpartition("\n\n")
    text += "\n"
    for line in lines.splitlines():
        dash, signer, encoded = line.split(" ", 2)
        signature = base64.b64decode(encoded)
        if (dash, signer, signature[:4].hex()) == ("\u2014", name, key_id):
            origin, size, root = text.split("\n")[:3]
            if origin == name and signed_by(key[1:], text.encode(), signature[4:]):
                return origin, int(size), base64.b64decode(root)
            raise Fault(11, "the signature does not hold")
    raise Fault(11, "no signature is by VKEY")


# --- The file ------------------------------------------------------------------------------------

def root_of_path(index, size, node, path):
    """Where the inclusion path of one event leads (RFC 9162 section 2.1.3.2)."""
    last = size - 1
    for sibling in path:
        if last == 0:
            raise Fault(10, "a proof is too long")
        if index % 2 or index == last:
            while index % 2 == 0 and index:
                index, last = index >> 1, last >> 1
            node = sha256(b"\1", sibling, node)
        else:
            node = sha256(b"\1", node, sibling)
        index, last = index >> 1, last >> 1
    if last:
        raise Fault(10, "a proof is too short")
    return node


def consistent(old, old_root, new, new_root, proof):
    """Whether the older tree is the beginning of the newer one (RFC 9162 section 2.1.4.2)."""
    proof = ([old_root] if old & (old - 1) == 0 else []) + proof
    index, last = old - 1, new - 1
    while index % 2:
        index, last = index >> 1, last >> 1
    if not proof:
        return False
    first = second = proof[0]
    for node in proof[1:]:
        if last == 0:
            return False
        if index % 2 or index == last:
            first, second = sha256(b"\1", node, first), sha256(b"\1", node, second)
            while index % 2 == 0 and index:
                index, last = index >> 1, last >> 1
        else:
            second = sha256(b"\1", second, node)
        index, last = index >> 1, last >> 1
    return last == 0 and (first, second) == (old_root, new_root)


def hashes(texts):
    return [base64.b64decode(text, validate=True) for text in texts]


def lines_of(path):
    """Manifest, events, checkpoint line; the last one has to be there."""
    with open(path, "rb") as probe:
        opener = gzip.open if probe.read(2) == b"\x1f\x8b" else open
    with opener(path, "rb") as file:
        try:
            for line in file:
                try:
                    yield parse(line)
                except ValueError as error:
                    if line.endswith(b"\n"):
                        raise
                    raise Fault(13, "the file is cut off") from error
        except EOFError as error:
            raise Fault(13, "the compressed file is cut off") from error


def time_of(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))


def kept(text, vkey, manifest):
    """The checkpoint that was kept, or the one in an anchor file that tells most about the export."""
    if not text.startswith("{"):
        return open_checkpoint(text, vkey)
    size = int((manifest["range"] or {"checkpoint_size": 0})["checkpoint_size"])
    made = time_of(manifest["created_at"]) - datetime.timedelta(minutes=1)
    best = None
    for line in map(json.loads, filter(None, text.splitlines())):
        origin, found = line["note"].split("\n")[:2]
        found = int(found)
        if origin != vkey.split("+")[0]:
            continue
        if found <= size:
            worth = (1, found)
        else:
            worth = (2, found) if time_of(line["anchored_at"]) < made else (0, -found)
        if best is None or worth > best[0]:
            best = worth, line["note"]
    if best is None:
        raise Fault(1, "no checkpoint of this log was kept in that file")
    return open_checkpoint(best[1], vkey)


def verify(path, vkey, old=None):
    lines = lines_of(path)
    manifest = next(lines, None)
    if not manifest or manifest.get("kind") != "manifest" or \
            manifest.get("format") != "portcullis-audit-export@v1":
        raise Fault(1, "this is no audit export")
    old = kept(old, vkey, manifest) if old else None
    complete, span = manifest["complete"], manifest["range"]
    first, last, size = (int(span[n]) for n in ("first", "last", "checkpoint_size")) if span \
        else (0, -1, 0)
    run, then, proofs, missing, seen, before = Tree(first), None, set(), None, 0, first - 1
    trailer, times = None, []
    for line in lines:
        if trailer is not None:
            raise Fault(10, "there are lines behind the checkpoint")
        if line["kind"] == "checkpoint":
            trailer = line
            continue
        event = line["event"]
        at = int(event["sequence"])
        if event["org_id"] != manifest["org_id"] or not before < at <= last:
            raise Fault(10, f"event {at} does not belong where it stands")
        if complete and at != before + 1:
            missing = missing or f"event {before + 1} is missing"
        before, seen = at, seen + 1
        times = times[:1] + [time_of(event["recorded_at"])]
        check_values(event)
        if complete:
            if old and run.end == old[1]:
                then = list(run.subtrees)
            run.add(0, leaf(event))
        elif "proof" in line:
            proofs.add(root_of_path(at, size, leaf(event), hashes(line["proof"])))
        else:
            missing = missing or f"event {at} has no proof"
    if trailer is None:
        raise Fault(13, "the file ends before its checkpoint line")
    origin, signed_size, root = open_checkpoint(trailer["note"], vkey)
    if origin != manifest["log"] or origin.split("/")[-1] != manifest["org_id"] \
            or (span and signed_size != size):
        raise Fault(10, "the checkpoint is not the one of the manifest")
    if missing or int(trailer["events"]) != seen or (complete and span and before != last):
        raise Fault(13, missing or "events are missing")
    prefix = hashes(trailer.get("prefix", []))
    if complete and span:
        if joined(prefix, run, hashes(trailer.get("suffix", [])), size) != root:
            raise Fault(10, "the events are not those of the signed tree")
    elif proofs - {root}:
        raise Fault(10, "a proof does not lead to the signed root")
    proven = complete and whole_period(manifest, trailer, (first, last), times, (signed_size, root))
    if old:
        if complete and run.end == old[1]:
            then = run.subtrees
        check_continuation(old, (origin, signed_size, root), trailer, prefix, run, then)
    return seen, origin, complete, proven


def whole_period(manifest, trailer, span, times, signed):
    """Whether the events beside the range show that the log has no other one between `from` and `to`;
    without them that is only said."""
    start, end = time_of(manifest["from"]), time_of(manifest["to"])
    if times and (times[0] < start or times[-1] >= end):
        raise Fault(10, "an event lies outside of `from` and `to`")
    begins, ends = 0, signed[0]
    for name in ("before", "after"):
        if name not in trailer:
            continue
        event, path = trailer[name]["event"], hashes(trailer[name]["proof"])
        at, time = int(event["sequence"]), time_of(event["recorded_at"])
        if root_of_path(at, signed[0], leaf(event), path) != signed[1]:
            raise Fault(10, "an event beside the range is not the one that the log holds there")
        if time >= start if name == "before" else time < end:
            raise Fault(13, "an event beside the range lies between `from` and `to`")
        begins, ends = (at + 1, ends) if name == "before" else (begins, at)
    if manifest["range"] is None:
        return begins == ends
    return (begins, ends) == (span[0], span[1] + 1)


def check_continuation(old, new, trailer, prefix, run, then):
    if old[0] != new[0] or old[1] > new[1] or (old[1] == new[1] and old[2] != new[2]):
        raise Fault(12, "the log is not the one that was kept")
    if old[1] == new[1]:
        return
    if then is not None:
        beginning = Tree(run.first)
        beginning.end, beginning.subtrees = old[1], then
        holds = joined(prefix, beginning) == old[2]
    elif int(trailer.get("consistency", {}).get("since", -1)) == old[1]:
        holds = consistent(old[1], old[2], new[1], new[2], hashes(trailer["consistency"]["hashes"]))
    else:
        raise Fault(1, f"the file cannot tell: export from event {old[1]} or earlier")
    if not holds:
        raise Fault(12, "the log was rewritten")


# --- Approvals -----------------------------------------------------------------------------------

def digest_of_call(approval, org, caller, payload):
    """`sha256:…` over the canonical call: another in one of these members is another call."""
    call = {"connection": approval["connection"], "org_id": org,
            "policy": approval["policy"]["id"], "policy_version": approval["policy"]["version"],
            "principal_id": approval["requester"]["principal_id"],
            "tool": approval["tool"]["id"], "tool_version": approval["tool"]["version"], **caller}
    call.update(payload)
    return "sha256:" + sha256(canonical(call).encode()).hex()


def as_sent(shown):
    """The value with the characters that approvers see written out, as [U+202E], as they were sent."""
    if type(shown) is str:
        return re.sub(r"\[U\+([0-9A-F]{4,6})\]", lambda form: chr(int(form[1], 16)), shown)
    if isinstance(shown, list):
        return [as_sent(item) for item in shown]
    if isinstance(shown, dict):
        return {as_sent(name): as_sent(member) for name, member in shown.items()}
    return shown


def payloads(approval, event):
    """What may have been sent: with answers to questions of the tool, both stand side by side."""
    captured = (event.get("detached") or {}).get("input")
    for shown in (as_sent(approval["input"]), captured):
        if shown is not None:
            yield {"input": shown}
        if isinstance(shown, dict) and set(shown) == {"input", "responses"}:
            yield shown


def callers(actor):
    """As whom it may have been made: the client of an event is part of the call unless it is the caller's own."""
    via = {"via": actor.get("via")}
    client = (actor.get("client") or {}).get("id")
    return [via] if client is None else [via, {**via, "client": client}]


def verify_approval(approval, event):
    """The digest, if the shown call has it."""
    approval, event = approval.get("data", approval), event.get("data", event)
    actor = event["actor"]
    if actor.get("id") not in (None, approval["requester"]["principal_id"]):
        raise Fault(10, "the event is of another principal")
    used = (event.get("governance") or {}).get("approvals") or []
    if used and approval["id"] not in [it["id"] for it in used]:
        raise Fault(10, "the event names other approvals")
    for payload in payloads(approval, event):
        for caller in callers(actor):
            if digest_of_call(approval, event["org_id"], caller, payload) == approval["digest"]:
                return approval["digest"]
    raise Fault(10, "the digest is not that of the shown call: it is another one, or values are masked")


def self_test():
    """The digest of a known call."""
    last = "01M754BKTKX1YB8Q05NMW9TP4G"
    digest = "sha256:7793fa2d927dc2fa20b9ab42d4fe76a793d56568e68acf3a6c3f8fb5ca991873"
    approval = {
        "id": "apr_" + last, "digest": digest, "connection": "prv_" + last,
        "policy": {"id": "payouts", "version": "sha256:01"},
        "requester": {"principal_id": "usr_" + last},
        "tool": {"id": "bank:pay", "version": "sha256:02"},
        "input": parse('{"to": "DE", "amount": 7}'),
    }
    event = {"type": "approval.requested", "org_id": "org_" + last, "actor": {"id": "usr_" + last}}
    verify_approval(approval, event)
    if as_sent({"a[U+200B]": ["[U+005B]U+202E]", "[U+E0041]", 7]}) != {"a\u200b": ["[U+202E]", "\U000e0041", 7]}:
        raise Fault(10, "written characters are read wrongly")
    try:
        verify_approval({**approval, "input": parse('{"to": "DE", "amount": 7.0}')}, event)
    except Fault:
        return
    raise Fault(10, "another call has the same digest")


def document(path):
    with open(path, encoding="utf-8") as file:
        return parse(file.read())


def checked(arguments):
    """Does what the arguments ask for; says what was verified. None if they ask for nothing."""
    if arguments == ["self-test"]:
        self_test()
        return "the digest of a known call is computed as published"
    if len(arguments) == 3 and arguments[0] == "approval":
        digest = verify_approval(document(arguments[1]), document(arguments[2]))
        return f"the approval is bound to the shown call, {digest}"
    if len(arguments) not in (2, 3):
        return None
    old = open(arguments[2], encoding="utf-8").read() if len(arguments) == 3 else None
    events, log, complete, proven = verify(arguments[0], arguments[1], old)
    if not complete:
        return f"{events} events of {log}, filtered"
    period = "all of the period" if proven else "that they are all of the period is only said"
    return f"{events} events of {log}, complete, {period}"


def main(arguments):
    try:
        told = checked(arguments)
    except Fault as fault:
        print(f"NOT VERIFIED: {fault}", file=sys.stderr)
        return fault.code
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        print(f"not readable: {error!r}", file=sys.stderr)
        return 1
    if told is None:
        print(__doc__, file=sys.stderr)
        return 2
    print(f"verified: {told}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
