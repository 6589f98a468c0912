#!/usr/bin/env python3
"""Builds the labelled set that DLP's accuracy is measured with; docs/dlp-reference.md says how.

The values come from public packages at fixed versions and from generators; none of them is in this
repository. Every case names its source. A hash splits values and files in two halves.
"""

import argparse
import base64
import gzip
import hashlib
import json
import pathlib
import random
import re
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import contexts
import documented
import entities
import negatives
import spellings
import values
import webhooks
from cases import Cases, half, mark
from sources import NPM, PYPI, Packages, account_numbers, standard_numbers, telephone_numbers

# Numbers that payment services publish for tests.
TEST_CARDS = """
4242424242424242 4000056655665556 5555555555554444 2223003122003222 5200828282828210 5105105105105100 378282246310005
371449635398431 6011111111111117 6011000990139424 3056930009020004 36227206271667 6555900000604105 3566002020360505
6200000000000005 4111111111111111 4012888888881881 4166676667666746 5136333333333335 5585558555855583 5454545454545454
370000000000002 30569309025904 38520000023237 4000020000000000 4988438843884305 2222400070000005 6243030000000001
4917610000000000 6731012345678906 4263970000005262 5425230000004415 374245455400126 4000002500003155 5019717010103742
""".split()
NUMBERS_PER_KIND = 4


def seeded(*parts):
    return random.Random("portcullis " + " ".join(map(str, parts)))


def pick(options, *parts):
    return seeded(*parts).choice(options)


def surround(cases, source, ref, entity, words, keys, value, sentences=contexts.SENTENCES, named=contexts.NAMED,
             bare=True, bare_kind=None):
    """The value alone, behind a word, below a key, in a structure and in a sentence."""
    choose = lambda options, what: pick(options, what, entity, value)
    word, key = choose(words, "word"), choose(keys, "key")
    if bare:
        cases.positive(bare_kind or ("bare" if entity in entities.TELLING else "bare_number"), source, ref, entity, value, value)
    text = choose(named, "named").format(word=word, key=key, value=value)
    cases.positive("named", source, ref, entity, text, value)
    document, pointer = choose(contexts.named_json(key, value), "json")
    cases.positive_json("named", source, ref, entity, document, pointer, value)
    if seeded("structure", value).random() < 0.5:
        cases.positive("structure", source, ref, entity, choose(contexts.structures(key, value), "structure"), value)
    else:
        document, pointer = choose(contexts.pairs_json(choose([word, key], "name"), value), "pair")
        cases.positive_json("structure", source, ref, entity, document, pointer, value)
    sentence = choose(sentences, "sentence")
    # Nothing tells "the password is summergarden" from "the password is incorrect".
    tier = "weak" if entity == "secret/password" and " is " in sentence and values.is_plain(value) else "strong"
    cases.positive("sentence", source, ref, entity, sentence.format(word=word, value=value), value, tier)


def numbers(cases, packages):
    taken = {}
    ref = f"python-stdnum {PYPI['python-stdnum']}, doctests of stdnum."
    found = list(standard_numbers(packages, entities.NUMBERS))
    # What is no number of one country may well be one of another.
    valid = {value for _, value, is_valid in found if is_valid}
    for module, value, is_valid in found:
        entity, words, keys = entities.NUMBERS[module]
        count = taken[module, is_valid] = taken.get((module, is_valid), 0) + 1
        if is_valid and count <= NUMBERS_PER_KIND:
            surround(cases, "python-stdnum", ref + module, entity, words, keys, value)
        elif not is_valid and value not in valid and count <= 3 and not any(char.isspace() for char in value):
            cases.negative("python-stdnum", ref + module, "none", value)
            cases.negative("python-stdnum", ref + module, "none", {"id": value}, is_json=True)


def telephones(cases, packages):
    ref = f"phonenumbers {PYPI['phonenumbers']}, example number of "
    for region, forms in telephone_numbers(packages):
        if seeded("region", region).random() > 0.4 or sum(char.isdigit() for char in forms["national"]) < 7:
            continue
        value = forms[pick(["international", "national", "e164"], "form", *forms.values())]
        international = value.startswith("+")
        surround(cases, "phonenumbers", ref + region, *entities.PHONE, value, contexts.PHONE_SENTENCES, bare=international)
        digits = forms["digits"]
        cases.positive_json("named", "phonenumbers", ref + region, "PHONE_NUMBER", {"phone": digits}, "/phone", digits)


def cards_and_accounts(cases, packages):
    for number in TEST_CARDS:
        for form in values.card_forms(number)[: 1 + seeded(number).randrange(3)]:
            surround(cases, "test cards", "numbers for tests of payment services", *entities.CARD, form, contexts.CARD_SENTENCES)
    ref = f"schwifty {PYPI['schwifty']}, tests"
    for value, is_valid in account_numbers(packages):
        if is_valid:
            digits = value.replace(" ", "")
            form = pick([value, digits, values.spaced(digits, [4] * 8, ".")], "form", value)
            surround(cases, "schwifty", ref, *entities.IBAN, form)
        else:
            cases.negative("schwifty", ref, "IBAN_CODE", f"IBAN {value}")


def tokens(cases, rounds):
    ref = "tests/dlp/values.py, by the form its vendor documents"
    for name, make in values.TOKENS.items():
        for index in range(rounds):
            value = make(seeded("token", name, index))
            words = [name.split("_")[0] + " token", "token", "API key", "secret"]
            keys = ["token", "api_key", "apiKey", f"{name.upper()}", "credentials"]
            surround(cases, "generated", ref, f"secret/{name}", words, keys, value, contexts.PASSWORD_SENTENCES, bare_kind="bare")


def passwords(cases, rounds):
    ref = "tests/dlp/values.py, passwords as people and programs choose them"
    for index in range(rounds):
        value = values.password(seeded("password", index))
        keys = entities.PASSWORD_KEYS + (entities.SECRET_KEYS if values.is_made(value) else [])
        surround(cases, "generated", ref, "secret/password", entities.PASSWORD_WORDS, keys, value,
                 contexts.PASSWORD_SENTENCES, contexts.PASSWORD_NAMED, bare=False)
    for key in entities.PASSWORD_KEYS + entities.SECRET_KEYS:
        value = values.password(seeded("password of", key))
        if key in entities.SECRET_KEYS:
            value = values.mixed(seeded("secret of", key), values.WORD, 20)
        document, pointer = pick(contexts.pairs_json(key, value), "pair", key)
        cases.positive_json("structure", "generated", ref, "secret/password", document, pointer, value)
        text = pick(contexts.structures(key, value), "structure", key)
        cases.positive("structure", "generated", ref, "secret/password", text, value)
    containers(cases, rounds)


def containers(cases, rounds):
    """Files with credentials that are carried as text, as tools answer with them."""
    ref = "tests/dlp/build_set.py"
    for index in range(rounds // 3):
        draw = seeded("container", index)
        value = values.password(draw)
        auth = base64.b64encode(f"deploy:{value}".encode()).decode()
        texts = [
            (json.dumps({"auths": {"registry.example.com": {"auth": auth}}}), auth),
            (json.dumps({"auths": {"registry.example.com": {"username": "deploy", "password": value}}}), value),
            (f"apiVersion: v1\nkind: Config\nusers:\n- name: admin\n  user:\n    username: admin\n    password: {value}\n", value),
            (f"apiVersion: v1\nkind: Config\nusers:\n- name: ci\n  user:\n    token: {value}\n", value),
            (f"apiVersion: v1\nkind: Secret\nstringData:\n  password: {value}\n", value),
            (f"services:\n  db:\n    image: mysql:8\n    environment:\n      MYSQL_ROOT_PASSWORD: {value}\n", value),
            (f"services:\n  db:\n    image: postgres\n    environment:\n      - POSTGRES_PASSWORD={value}\n", value),
            (f"machine git.example.com login deploy password {value}\n", value),
            (f"[client]\nuser=root\npassword={value}\n", value),
            (f"<connectionStrings><add name=\"db\" connectionString=\"Server=db;User Id=app;Password={value};\"/></connectionStrings>", value),
            (f"mysql -u root -p{value} app", value),
            (f"sshpass -p {value} ssh deploy@host", value),
            (f"  user = \"app\"\n  password = \"{value}\"\n", value),
        ]
        text, hidden = draw.choice(texts)
        cases.positive("structure", "generated", ref, "secret/password", text, hidden)
        cases.positive_json("structure", "generated", ref, "secret/password", {"content": [{"type": "text", "text": text}]},
                            "/content/0/text", hidden)


def evasions(cases, rounds):
    ref = "tests/dlp/spellings.py"
    marks = {"github_pat": "ghp_", "gitlab_pat": "glpat-", "stripe_secret": "sk_live_", "slack_bot": "xoxb-", "npm": "npm_",
             "digitalocean": "dop_v1_", "shopify": "shpat_", "huggingface": "hf_"}
    for index in range(rounds):
        draw = seeded("evasion", index)
        token = draw.choice(list(marks))
        secret = values.TOKENS[token](draw)
        card = pick(TEST_CARDS, "evasion", index)
        lines = {
            f"secret/{token}": [f"token: {secret}", f"token {secret}"],
            "CREDIT_CARD": [f"card number: {card}", f"credit card {card}"],
            "secret/password": [f"password: {values.password(draw)}", f"password={values.password(draw)}"],
            "IBAN_CODE": [f"IBAN: {values.iban(draw)}", f"IBAN {values.iban(draw)}"],
        }
        for decoder, spell in spellings.WHOLE.items():
            entity = draw.choice(list(lines))
            text = draw.choice(lines[entity])
            if spell(text) != text:
                cases.evasion("generated", ref, entity, decoder, spell(text), text)
        for decoder, spell in spellings.MARK.items():
            cases.evasion("generated", ref, f"secret/{token}", decoder, "use " + spell(secret, marks[token]) + " today", secret)
        word = draw.choice(["password", "passcode", "secret key", "api key"])
        value = values.mixed(draw, values.WORD, 16)
        cases.evasion("generated", ref, "secret/password", "confusable word",
                      f"{word.translate(spellings.CONFUSABLE)}: {value}", value, f"{word}: {value}")
        for decoder, text in spellings.shell(secret).items():
            cases.evasion("generated", ref, f"secret/{token}", decoder, f"export TOKEN={text}", secret)
        for decoder, (document, pointer) in spellings.split(secret).items():
            cases.positive_json("evasion", "generated", ref, f"secret/{token}", document, pointer, secret, decoder)


# What such files do hold: keys, signed addresses, session tokens, passwords and numbers of accounts in examples.
HELD = [
    (r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\bgh[a-z]_[A-Za-z0-9]{36}\b|pbkdf2_sha256\$[\w$/+=]+|\bpst_test_\w+|Basic [A-Za-z0-9+/=]{16,}", "-"),
    (r"[?&]X-Amz-[A-Za-z-]+=[^&\"'\s]*", ""),
    (r"(\"(?:SessionToken|WebIdentityToken|SecretAccessKey|SecretString|PASSWORD|Password|client_secret|token|temp_clone_token)\":\s*\")[^\"]*",
     r"\1"),
    (r"(\"(?:routing_number|account_number|bic|iban|ssn_last_4|tax_id|cvc|swift_code|sort_code)\":\s*\")[^\"]*", r"\1"),
]


def scrubbed(text):
    for pattern, instead in HELD:
        text = re.sub(pattern, instead, text)
    return text


def store(out, corpus, name, text):
    """Stores a text in the half of its content."""
    group = hashlib.sha256(text.encode()).hexdigest()[:10]
    target = out / "corpora" / half({"group": group}) / corpus
    target.mkdir(parents=True, exist_ok=True)
    (target / f"{group}-{name}").write_text(scrubbed(text))


def corpora(out, packages, extra):
    """Files without anything to be found, below a folder of each half."""
    botocore = packages.pypi("botocore") / "botocore/data"
    django = packages.pypi("django")
    webpack = packages.npm("webpack")
    found = {
        "webhooks": [p for p in sorted(packages.npm("@octokit/webhooks-examples").rglob("*.json")) if p.name != "package.json"],
        "api": sorted(botocore.glob("*/*/examples-1.json*")),
        "code": sorted(django.glob("django/**/*.py")) + sorted(webpack.glob("lib/**/*.js")),
        "prose": sorted(django.glob("docs/**/*.txt")),
    }
    for name, folder in extra:
        found.setdefault(name, []).extend(sorted(p for p in pathlib.Path(folder).rglob("*") if p.is_file()))
    shutil.rmtree(out / "corpora", ignore_errors=True)
    for name, paths in found.items():
        for path in paths:
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
            store(out, name, path.name.removesuffix(".gz"), data.decode(errors="replace"))
    for path in sorted((packages.pypi("PyGithub") / "tests/ReplayData").glob("*.txt")):
        bodies = [line for line in path.read_text().splitlines() if line.startswith(("{", "["))]
        store(out, "api", f"{path.stem}.jsonl", "\n".join(bodies))
    for which in ("seen", "unseen"):
        lines = webhooks.events(seeded("webhooks", which), 1_500_000)
        target = out / "corpora" / which / "webhooks"
        target.mkdir(parents=True, exist_ok=True)
        (target / "generated.jsonl").write_text("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder for seen.jsonl, unseen.jsonl and corpora")
    parser.add_argument("--packages", type=pathlib.Path, help="folder that keeps what was fetched (default: OUT/packages)")
    parser.add_argument("--add", type=pathlib.Path, action="append", default=[], help="more cases, in the same form")
    parser.add_argument("--corpus", action="append", default=[], metavar="NAME=FOLDER", help="more files for a corpus")
    parser.add_argument("--rounds", type=int, default=4, help="random values of each kind")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    packages = Packages(args.packages or args.out / "packages")
    cases = Cases()
    documented.add(cases)
    numbers(cases, packages)
    telephones(cases, packages)
    cards_and_accounts(cases, packages)
    tokens(cases, args.rounds // 2)
    passwords(cases, args.rounds * 30)
    evasions(cases, args.rounds * 3)
    negatives.add(cases, seeded("negatives"), args.rounds * 2)
    everything = cases.all
    for path in args.add:
        everything += [json.loads(line) for line in path.read_text().splitlines() if line]
    halves = {"seen": [], "unseen": []}
    for case in everything:
        halves[half(case)].append(json.dumps(case, ensure_ascii=False))
    for name, lines in halves.items():
        (args.out / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
        print(name, len(lines))
    corpora(args.out, packages, [entry.split("=", 1) for entry in args.corpus])


if __name__ == "__main__":
    main()
