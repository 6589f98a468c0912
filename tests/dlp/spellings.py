"""Spellings of a text that a reader, a shell or a program turns back into it."""

import base64
import gzip
import html
import json
import urllib.parse
import zlib

CONFUSABLE = str.maketrans({
    "a": "а", "c": "с", "e": "е", "i": "і", "j": "ј", "o": "о", "p": "р", "s": "ѕ", "x": "х", "y": "у", "h": "һ",
    "A": "Α", "B": "Β", "E": "Ε", "H": "Η", "I": "Ι", "K": "Κ", "M": "Μ", "N": "Ν", "O": "Ο", "P": "Ρ", "T": "Τ",
    "X": "Χ", "Y": "Υ", "Z": "Ζ",
})
FULL_WIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})
PADDING = "log entry 4711 of the night shift: "


def b64(data):
    return base64.b64encode(data).decode()


def at_alignment(text, skip):
    """Base64 of a longer text in which the text begins `skip` bytes after a multiple of three."""
    lead = PADDING[-30 - skip :]
    return b64((lead + text + " end of entry").encode())


def mixed_entities(text):
    forms = [lambda c: f"&#{ord(c)};", lambda c: f"&#x{ord(c):x};", lambda c: f"&#x{ord(c):X};", lambda c: c]
    return "".join(forms[index % 4](char) for index, char in enumerate(text))


def percent_all(text, depth):
    out = "".join(f"%{byte:02x}" for byte in text.encode())
    for _ in range(depth - 1):
        out = out.replace("%", "%25")
    return out


def hex_with(text, sign, lead=""):
    return sign.join(lead + f"{byte:02x}" for byte in text.encode())


def escape_u(text):
    return "".join(f"\\u{ord(char):04x}" for char in text)


def mixed_percent(text):
    """Some characters in percent-encoding, some as entities, some plain."""
    forms = [lambda c: f"%{ord(c):02x}", lambda c: f"&#{ord(c)};", lambda c: c]
    return "".join(forms[index % 3](char) for index, char in enumerate(text))


def raw_deflate(data):
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


# Each by the name of the decoder that it needs. A text goes in whole, with the words around its value.
WHOLE = {
    "base64, alignment 0": lambda t: at_alignment(t, 0),
    "base64, alignment 1": lambda t: at_alignment(t, 1),
    "base64, alignment 2": lambda t: at_alignment(t, 2),
    "base64, alone": lambda t: b64(t.encode()),
    "base64url": lambda t: base64.urlsafe_b64encode(t.encode()).decode().rstrip("="),
    "base64, in lines": lambda t: base64.encodebytes((PADDING * 3 + t).encode()).decode(),
    "base64 twice": lambda t: b64(b64(t.encode()).encode()),
    "base64 of UTF-16": lambda t: b64(t.encode("utf-16-le")),
    "base64 of UTF-16 with mark": lambda t: b64(t.encode("utf-16")),
    "base32": lambda t: base64.b32encode(t.encode()).decode(),
    "base32, lower case": lambda t: base64.b32encode(t.encode()).decode().lower().rstrip("="),
    "hex": lambda t: t.encode().hex(),
    "hex, upper case": lambda t: t.encode().hex().upper(),
    "hex, 0x once": lambda t: "0x" + t.encode().hex(),
    "hex, spaces": lambda t: hex_with(t, " "),
    "hex, colons": lambda t: hex_with(t, ":"),
    "hex, 0x each": lambda t: hex_with(t, ", ", "0x"),
    "hex, \\x": lambda t: hex_with(t, "", "\\x"),
    "hex of UTF-16": lambda t: t.encode("utf-16-le").hex(),
    "gzip in base64": lambda t: b64(gzip.compress(t.encode(), mtime=0)),
    "zlib in base64": lambda t: b64(zlib.compress(t.encode())),
    "deflate in base64": lambda t: b64(raw_deflate(t.encode())),
    "gzip in hex": lambda t: gzip.compress(t.encode(), mtime=0).hex(),
    "percent, reserved": lambda t: urllib.parse.quote(t, safe=""),
    "percent, all": lambda t: percent_all(t, 1),
    "percent, twice": lambda t: percent_all(t, 2),
    "percent, three times": lambda t: percent_all(t, 3),
    "percent and entities": mixed_percent,
    "percent of base64": lambda t: percent_all(b64(t.encode()), 1),
    "base64 of percent": lambda t: b64(percent_all(t, 1).encode()),
    "entities, decimal": lambda t: "".join(f"&#{ord(c)};" for c in t),
    "entities, hexadecimal": lambda t: "".join(f"&#x{ord(c):x};" for c in t),
    "entities, mixed": mixed_entities,
    "entities, named": lambda t: html.escape(t).replace("_", "&lowbar;").replace(":", "&colon;").replace("-", "&hyphen;"),
    "escapes \\u": escape_u,
    "JSON in a string": lambda t: json.dumps(json.dumps({"note": escape_u(t)})),
    "zero-width characters": lambda t: "\u200b".join(t),
    "soft hyphens": lambda t: "\u00ad".join(t),
    "full-width": lambda t: t.translate(FULL_WIDTH),
    "terminal colours": lambda t: "".join(f"\x1b[1m{char}\x1b[0m" if index % 5 == 2 else char for index, char in enumerate(t)),
}

# For tokens with a mark: another spelling of the mark.
MARK = {
    "confusable mark": lambda token, mark: mark.translate(CONFUSABLE) + token[len(mark):],
    "upper-case mark": lambda token, mark: mark.upper() + token[len(mark):],
}


def shell(text):
    """Spellings that a shell joins."""
    middle = len(text) // 2
    a, b, c = text[:middle - 3], text[middle - 3:middle + 4], text[middle + 4:]
    return {
        "shell, two quotes": f'"{a}{b}""{c}"',
        "shell, mixed quotes": f"'{a}'\"{b}\"'{c}'",
        "shell, empty quotes": f"{a}''{b}{c}",
        "shell, continued line": f"{a}{b}\\\n{c}",
        "shell, backslashes": f"{a}\\{b[0]}{b[1:]}{c}",
    }


def split(text):
    """Parts of one value among members and items, with the pointer that covers them."""
    third = len(text) // 3
    a, b, c = text[:third], text[third:2 * third], text[2 * third:]
    return {
        "items of an array": ({"parts": [a, b, c]}, "/parts"),
        "members of an object": ({"parts": {"a": a, "b": b, "c": c}}, "/parts"),
        "members of an object, numbered": ({"parts": {"0": a, "1": b, "2": c}}, "/parts"),
        "lines of one text": ({"note": f"{a}\n{b}\n{c}"}, "/note"),
    }
