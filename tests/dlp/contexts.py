"""Surroundings of a value: words, keys, sentences, tables, files in a text."""

import json

NAMED = [
    "{word}: {value}", "{word} {value}", "{word} = {value}", "{key}={value}", '{key}: "{value}"', "{word} - {value}",
    "{word} #{value}", "* {word}: {value}", "[{word}] {value}", "<{key}>{value}</{key}>", "{word}:\n{value}",
]
# For passwords, which may be words: a space alone does not say that the next word is one.
PASSWORD_NAMED = [
    "{word}: {value}", "{word} = {value}", "{key}={value}", '{key}: "{value}"', "{key} = '{value}'", "* {word}: {value}",
    "<{key}>{value}</{key}>", "--{key} {value}", "--{key}={value}", '"{key}" => "{value}"', "{key}:{value}",
]
SENTENCES = [
    "Please update the {word} to {value} in our records.",
    "The {word} of the new customer is {value}, as discussed.",
    "Can you check why {word} {value} was rejected yesterday?",
    "She gave me her {word} ({value}) on the phone.",
    "My {word} is {value}. Thanks!",
    "We received {value} as the {word} for this contract.",
]
PHONE_SENTENCES = [
    "Please call me back at {value} tomorrow.", "You can reach our office on {value} from 9 to 5.",
    "If anything breaks, ring {value} and ask for Sam.", "Text me on {value} when you arrive.",
    "Mein Telefon: {value}, am besten abends.", "Appelez-moi au {value} demain matin.",
    "Llámame al {value} cuando puedas.", "Her new mobile number is {value}.",
    "For bookings dial {value} or write to us.", "WhatsApp {value} for details.",
]
CARD_SENTENCES = [
    "Please charge {value} and send the receipt.", "My credit card {value} was declined.",
    "The customer paid with card {value} on Monday.", "Use my Visa {value}, it expires 12/29.",
    "Refund the amount to {value} as soon as possible, the card is still valid.",
    "Bitte buchen Sie von der Kreditkarte {value} ab.", "He read the card number {value} over the phone.",
    "La tarjeta {value} fue rechazada ayer.",
]
PASSWORD_SENTENCES = [
    "the {word} is {value}", "{word}: {value}", "Your new {word} is {value}, please change it.", "{word} = {value}",
    "user: deploy, {word}: {value}", "host db1, user app, {word}={value}",
]


def named_json(key, value):
    """Objects with the value below its key, each with the pointer."""
    return [
        ({key: value}, f"/{key}"),
        ({"id": 17, "customer": {key: value, "active": True}}, f"/customer/{key}"),
        ({"items": [{"n": 1, key: value}]}, f"/items/0/{key}"),
        ({key: [value]}, f"/{key}/0"),
        ({key: {"value": value}}, f"/{key}/value"),
    ]


def pairs_json(name, value):
    """A name beside its value, in the shapes that forms, settings and tables have."""
    return [
        ({"env": [{"name": name, "value": value}]}, "/env/0/value"),
        ({"field": {"label": name, "text": value}}, "/field/text"),
        ({"fields": [{"title": name, "value": value, "short": True}]}, "/fields/0/value"),
        ({"entry": {"key": name, "content": value}}, "/entry/content"),
        ({"rows": [[name, value]]}, "/rows/0/1"),
        ({"parameters": [{"ParameterKey": name, "ParameterValue": value}]}, "/parameters/0/ParameterValue"),
        ({"columns": ["id", name], "rows": [["1", value]]}, "/rows/0/1"),
        ({"answers": [{"question": name, "answer": value}]}, "/answers/0/answer"),
        ({name: {"type": "string", "value": value}}, f"/{name}/value"),
    ]


def structures(name, value):
    """Texts with a name far from its value: tables, lists, files."""
    compact = json.dumps({name: value}, ensure_ascii=False)
    return [
        f"id,{name},city\n1,{value},Lyon\n",
        f"id\t{name}\tcity\n1\t{value}\tLyon\n",
        f"id;city;{name}\n7;Graz;{value}\n",
        f"| id | {name} | city |\n|----|------|------|\n| 1 | {value} | Lyon |\n",
        f"{name} | city\n---|---\n{value} | Lyon\n",
        f"name: app\nsettings:\n  {name}: {value}\n  debug: false\n",
        f"Result: {compact}",
        f'Saved.\n\n```json\n{{\n  "id": 3,\n  "{name}": "{value}"\n}}\n```\n',
        f"# settings\n{name}={value}\nDEBUG=0\n",
        f"{name}:\n- {value}\n",
        f"<tr><th>{name}</th><td>{value}</td></tr>",
        f"[main]\n{name} = {value}\nport = 80\n",
        f"export {name.upper().replace(' ', '_').replace('-', '_')}='{value}'",
    ]
