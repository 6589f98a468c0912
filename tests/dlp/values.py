"""Random values that are valid by their rule."""

import base64
import json
import string
import uuid
import zlib

HEX = "0123456789abcdef"
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
WORD = string.ascii_letters + string.digits
URL = WORD + "-_"
BASE32 = string.ascii_uppercase + "234567"
BASE58 = "".join(c for c in WORD if c not in "0OIl")


def of(random, alphabet, length):
    return "".join(random.choice(alphabet) for _ in range(length))


def mixed(random, alphabet, length):
    """Like `of`, never without a digit and a letter of each case that the alphabet has."""
    while True:
        text = of(random, alphabet, length)
        classes = [string.digits, string.ascii_lowercase, string.ascii_uppercase]
        if all(set(text) & set(kind) for kind in classes if set(alphabet) & set(kind)):
            return text


def crc_base62(text, digits="0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"):
    """CRC-32 in six digits of base 62, as GitHub and npm end their tokens."""
    number = zlib.crc32(text.encode())
    out = ""
    while number:
        number, rest = divmod(number, 62)
        out = digits[rest] + out
    return out.rjust(6, "0")


def grafana(random):
    """A token of a service account: CRC-32 of mark and body, lowest byte first, in hex."""
    token = f"glsa_{mixed(random, WORD, 32)}"
    return f"{token}_{zlib.crc32(token.encode()).to_bytes(4, 'little').hex()}"


def base36(number):
    digits = string.digits + string.ascii_lowercase
    out = ""
    while number:
        number, rest = divmod(number, 36)
        out = digits[rest] + out
    return out


def gitlab_routable(random):
    """Random bytes and where the token leads to, with the length of that text and a CRC-32 of all before it."""
    route = f"o:1\nu:{base36(random.randrange(1, 10**6))}".encode()
    payload = base64.urlsafe_b64encode(random.randbytes(16) + route + bytes([len(route)])).decode().rstrip("=")
    token = f"glpat-{payload}.01.{base36(len(payload)).rjust(2, '0')}"
    return token + base36(zlib.crc32(token.encode())).rjust(7, "0")


def github(prefix):
    def make(random):
        body = mixed(random, WORD, 30)
        return f"{prefix}_{body}{crc_base62(body)}"

    return make


def jwt(random):
    def part(value):
        return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).decode().rstrip("=")

    head = part({"alg": "RS256", "typ": "JWT", "kid": of(random, HEX, 8)})
    return f"{head}.{part({'sub': of(random, LOWER, 12), 'exp': random.randrange(10**9, 2 * 10**9)})}.{of(random, URL, 86)}"


def stripe(prefix):
    return lambda random: f"{prefix}_{mixed(random, WORD, 24)}"


# Tokens with a mark of their vendor: (entity, function). The forms are those of the vendors' documentation.
TOKENS = {
    "github_pat": github("ghp"), "github_oauth": github("gho"), "github_app": github("ghs"),
    "github_user": github("ghu"),
    "github_fine_grained": lambda r: f"github_pat_{mixed(r, WORD, 22)}_{mixed(r, WORD, 59)}",
    "npm": lambda r: (lambda body: f"npm_{body}{crc_base62(body)}")(mixed(r, WORD, 30)),
    "gitlab_pat": lambda r: f"glpat-{mixed(r, URL, 20)}",
    "gitlab_routable": gitlab_routable,
    "gitlab_trigger": lambda r: f"glptt-{of(r, HEX, 40)}",
    "aws_access_key": lambda r: f"AKIA{mixed(r, BASE32, 16)}",
    "aws_session_key": lambda r: f"ASIA{mixed(r, BASE32, 16)}",
    "google_api_key": lambda r: f"AIzaSy{mixed(r, URL, 33)}",
    "google_client_secret": lambda r: f"GOCSPX-{mixed(r, URL, 28)}",
    "slack_bot": lambda r: f"xoxb-{r.randrange(10**11, 10**12)}-{r.randrange(10**12, 10**13)}-{mixed(r, WORD, 24)}",
    "slack_app": lambda r: f"xapp-1-A{of(r, UPPER, 10)}-{r.randrange(10**12, 10**13)}-{of(r, HEX, 64)}",
    "slack_webhook": lambda r: f"https://hooks.slack.com/services/T{of(r, UPPER, 10)}/B{of(r, UPPER, 10)}/{mixed(r, WORD, 24)}",
    "stripe_secret": stripe("sk_live"), "stripe_restricted": stripe("rk_live"), "stripe_test": stripe("sk_test"),
    "stripe_webhook": lambda r: f"whsec_{mixed(r, WORD, 32)}",
    "sendgrid": lambda r: f"SG.{mixed(r, URL, 22)}.{mixed(r, URL, 43)}",
    "openai_project": lambda r: f"sk-proj-{mixed(r, URL, 74)}T3BlbkFJ{mixed(r, URL, 74)}",
    "anthropic": lambda r: f"sk-ant-api03-{mixed(r, URL, 93)}AA",
    "huggingface": lambda r: f"hf_{mixed(r, string.ascii_letters, 34)}",
    "digitalocean": lambda r: f"dop_v1_{of(r, HEX, 64)}",
    "pypi": lambda r: f"pypi-AgEIcHlwaS5vcmc{mixed(r, URL, 120)}",
    "shopify": lambda r: f"shpat_{of(r, HEX, 32)}",
    "square": lambda r: f"EAAA{mixed(r, URL, 60)}",
    "telegram_bot": lambda r: f"{r.randrange(10**9, 10**10)}:AA{mixed(r, URL, 33)}",
    "discord_webhook": lambda r: f"https://discord.com/api/webhooks/{r.randrange(10**17, 10**18)}/{mixed(r, URL, 68)}",
    "databricks": lambda r: f"dapi{of(r, HEX, 32)}",
    "vault_service": lambda r: f"hvs.{mixed(r, URL, 92)}",
    "linear": lambda r: f"lin_api_{mixed(r, WORD, 40)}",
    "notion": lambda r: f"ntn_{r.randrange(10**10, 10**11)}{mixed(r, WORD, 35)}",
    "postman": lambda r: f"PMAK-{of(r, HEX, 24)}-{of(r, HEX, 34)}",
    "docker_hub": lambda r: f"dckr_pat_{mixed(r, URL, 27)}",
    "grafana_service": grafana,
    "newrelic_user": lambda r: f"NRAK-{mixed(r, UPPER, 27)}",
    "dropbox": lambda r: f"sl.{mixed(r, URL, 135)}",
    "facebook": lambda r: f"EAA{mixed(r, WORD, 150)}",
    "mailgun": lambda r: f"key-{of(r, HEX, 32)}",
    "mailchimp": lambda r: f"{of(r, HEX, 32)}-us{r.randrange(1, 22)}",
    "figma": lambda r: f"figd_{mixed(r, URL, 40)}",
    "supabase": lambda r: f"sbp_{of(r, HEX, 40)}",
    "planetscale": lambda r: f"pscale_tkn_{mixed(r, URL, 43)}",
    "tailscale": lambda r: f"tskey-auth-k{mixed(r, WORD, 11)}CNTRL-{mixed(r, WORD, 32)}",
    "doppler": lambda r: f"dp.pt.{mixed(r, WORD, 43)}",
    "atlassian": lambda r: f"ATATT3xFfGF0{mixed(r, URL, 171)}={of(r, HEX.upper(), 8)}",
    "sentry_user": lambda r: f"sntryu_{of(r, HEX, 64)}",
    "jwt": jwt,
    "url_password": lambda r: f"https://deploy:{password(r)}@git.example.com/app.git",
    "postgres_url": lambda r: f"postgres://app:{password(r)}@db.example.com:5432/app",
    "redis_url": lambda r: f"redis://:{password(r)}@cache.example.com:6379/0",
    "mongodb_url": lambda r: f"mongodb+srv://app:{password(r)}@cluster0.example.mongodb.net/app",
    "bcrypt": lambda r: f"$2b$12${of(r, './' + WORD, 53)}",
    "azure_storage": lambda r: f"DefaultEndpointsProtocol=https;AccountName=store{r.randrange(99)};AccountKey={base64.b64encode(r.randbytes(64)).decode()};EndpointSuffix=core.windows.net",
    "age": lambda r: f"AGE-SECRET-KEY-1{of(r, 'QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L', 58)}",
}

PLAIN_WORDS = (
    "sunshine dragon monkey football winter summer london pepper coffee garden orange river silver shadow tiger "
    "mountain lisboa praga kaiser blume fenetre soleil"
).split()


def password(random):
    """A password as people and programs choose them; without characters that end a word."""
    kind = random.randrange(8)
    word = random.choice(PLAIN_WORDS)
    other = random.choice(PLAIN_WORDS)
    return [
        lambda: word + str(random.randrange(10, 9999)),
        lambda: word.capitalize() + random.choice("!.-_") + str(random.randrange(100)),
        lambda: word + other,
        lambda: f"{word}-{other}-{random.choice(PLAIN_WORDS)}",
        lambda: mixed(random, WORD, 12),
        lambda: mixed(random, WORD, 7) + random.choice("!$*+^~") + of(random, WORD, 8),
        lambda: of(random, string.ascii_lowercase, 10),
        lambda: mixed(random, LOWER, 24),
    ][kind]()


def is_made(value):
    """Says whether a program may have made it: long, of digits and letters."""
    return len(value) >= 12 and any(c.isdigit() for c in value) and not any(word in value.lower() for word in PLAIN_WORDS)


def is_plain(value):
    """Says whether it is nothing but words without a joint."""
    return value.isalpha() and any(value.startswith(word) for word in PLAIN_WORDS)


def luhn_digit(digits):
    total = 0
    for index, digit in enumerate(reversed(digits)):
        number = int(digit) * (2 if index % 2 == 0 else 1)
        total += number - 9 if number > 9 else number
    return str(-total % 10)


# Ranges and lengths of issuers, from their public tables.
ISSUERS = [("4", 16), ("51", 16), ("55", 16), ("2223", 16), ("2720", 16), ("34", 15), ("37", 15), ("6011", 16),
           ("65", 16), ("3528", 16), ("36", 14), ("3056", 14), ("62", 16), ("6759", 16), ("508", 16), ("81", 16)]


def card(random):
    prefix, length = random.choice(ISSUERS)
    body = prefix + of(random, string.digits, length - len(prefix) - 1)
    return body + luhn_digit(body)


def spaced(digits, groups, sign=" "):
    out, at = [], 0
    for size in groups:
        out.append(digits[at:at + size])
        at += size
    return sign.join(part for part in out + [digits[at:]] if part)


def card_forms(number):
    groups = [4, 6, 5] if len(number) == 15 else [4, 6, 4] if len(number) == 14 else [4, 4, 4, 4]
    return [number, spaced(number, groups), spaced(number, groups, "-")]


def iban(random):
    """A German, British or Dutch number with right check digits; what the countries add is random."""
    country, bban = random.choice([
        ("DE", lambda: of(random, string.digits, 18)),
        ("GB", lambda: "NWBK" + of(random, string.digits, 14)),
        ("NL", lambda: "INGB" + of(random, string.digits, 10)),
    ])
    bban = bban()
    number = int("".join(str(int(c, 36)) for c in bban + country + "00"))
    return f"{country}{98 - number % 97:02}{bban}"


def iban_forms(number):
    return [number, spaced(number, [4] * 8), spaced(number, [4] * 8, "."), spaced(number, [4] * 8, "-")]


def uuid4(random):
    return str(uuid.UUID(int=random.getrandbits(128), version=4))
