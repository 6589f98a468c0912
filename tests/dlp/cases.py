"""Cases: labelled texts, and the halves they are split into."""

import hashlib
import json


def mark(value):
    """A short name of a value that does not show it."""
    return hashlib.sha256(str(value).encode()).hexdigest()[:10]


def half(case):
    """All cases of one value are in one half, whatever stands around it."""
    return "seen" if int(mark("half " + case["group"]), 16) % 2 == 0 else "unseen"


class Cases:
    """Collects cases. An id says the source and the value, and is the same in every run."""

    def __init__(self):
        self.all = []
        self.ids = set()

    def _add(self, case, value):
        case["group"] = mark(f"{case['entity']} {value}")
        name = f"{case['source']}-{case['group']}-{case['kind']}-{mark(case['text'])[:6]}"
        if name not in self.ids:
            self.ids.add(name)
            self.all.append({"id": name, **case})

    def positive(self, kind, source, ref, entity, text, value, tier="strong"):
        """A text that holds the value once, as it stands there."""
        start = text.index(value)
        span = {
            "start": start,
            "end": start + len(value),
            "type": entity,
            "bstart": len(text[:start].encode()),
            "bend": len(text[:start].encode()) + len(value.encode()),
        }
        self._add(
            {"kind": kind, "source": source, "ref": ref, "entity": entity, "tier": tier,
             "text": text, "expected": [span]},
            value,
        )

    def positive_json(self, kind, source, ref, entity, document, pointer, value, decoder=None):
        """A JSON document with the value at or below a pointer; with a decoder it is an evasion of the value."""
        case = {
            "kind": kind, "source": source, "ref": ref, "entity": entity, "tier": "strong",
            "text": json.dumps(document, ensure_ascii=False), "json": True,
            "expected": [{"pointer": pointer, "type": entity}],
        }
        if decoder:
            case["decoder"] = decoder
            case["plain"] = value
        self._add(case, value)

    def evasion(self, source, ref, entity, decoder, text, value, plain=None):
        """A text that holds the value in another spelling somewhere. `plain` is the text without it."""
        span = {"start": 0, "end": len(text), "type": entity,
                "bstart": 0, "bend": len(text.encode())}
        self._add(
            {"kind": "evasion", "source": source, "ref": ref, "entity": entity, "tier": "strong",
             "decoder": decoder, "text": text, "plain": value if plain is None else plain, "expected": [span]},
            value,
        )

    def negative(self, source, ref, entity, text, is_json=False, value=None):
        """A text in which nothing of this entity's sort is to be acted on; `none` for any sort."""
        if is_json:
            text = json.dumps(text, ensure_ascii=False)
        case = {"kind": "negative", "source": source, "ref": ref, "entity": entity,
                "tier": "negative", "text": text, "expected": []}
        if is_json:
            case["json"] = True
        self._add(case, text if value is None else value)
