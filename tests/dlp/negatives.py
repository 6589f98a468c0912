"""Values that look like what DLP looks for, and are none of it."""

import base64
import json

from values import (
    BASE58, HEX, LOWER, UPPER, URL, WORD, card, iban, luhn_digit, mixed, of, password, spaced, uuid4,
)

DIGITS = "0123456789"


def integer(random, length):
    return int(random.choice(DIGITS[1:]) + of(random, DIGITS, length - 1))


def luhn_valid(random, length):
    body = str(integer(random, length - 1))
    return body + luhn_digit(body)


def wrong_digit(digits):
    return digits[:-1] + str((int(digits[-1]) + 1) % 10)


def verdicts(random):
    """Objects as the APIs of programs answer them, without anything to be found."""
    day = f"2026-{random.randrange(1, 13):02}-{random.randrange(1, 29):02}"
    seconds = random.randrange(1_600_000_000, 1_900_000_000)
    snowflake = integer(random, 18)
    yield {"id": snowflake, "id_str": str(snowflake), "created_at": seconds}
    yield {"message_id": str(integer(random, 19)), "channel_id": str(integer(random, 18)), "guild": str(integer(random, 17))}
    yield {"order_id": luhn_valid(random, 16), "state": "open"}
    yield {"orderNumber": integer(random, 12), "invoice": f"INV-{integer(random, 10)}"}
    yield {"tracking": {"number": f"1Z{of(random, UPPER, 16)}", "carrier": "ups"}}
    yield {"score": random.random(), "weights": [random.random() * 10 ** random.randrange(-9, 9) for _ in range(6)]}
    yield {"lat": random.uniform(-90, 90), "lon": random.uniform(-180, 180), "accuracy": 4.123456789012345}
    yield {"geometry": {"type": "Point", "coordinates": [random.uniform(-180, 180), random.uniform(-90, 90)]}}
    yield {"ts": f"{seconds}.{integer(random, 6)}", "thread_ts": f"{seconds}.{integer(random, 6)}"}
    yield {"time_ns": seconds * 10**9 + random.randrange(10**9), "duration_us": random.randrange(10**7)}
    yield {"updated": seconds * 1000 + 123, "etag": f'W/"{of(random, HEX, 40)}"', "date": day}
    yield {"version": f"{random.randrange(20)}.{random.randrange(99)}.{random.randrange(999)}.{random.randrange(9999)}"}
    yield {"sha": of(random, HEX, 40), "tree": of(random, HEX, 40), "parents": [of(random, HEX, 40)]}
    yield {"digest": f"sha256:{of(random, HEX, 64)}", "size": random.randrange(10**9)}
    yield {"integrity": f"sha512-{base64.b64encode(random.randbytes(64)).decode()}"}
    yield {"id": uuid4(random), "parent_id": uuid4(random), "token_id": uuid4(random)}
    yield {"request_id": f"req_{of(random, WORD, 24)}", "trace_id": of(random, HEX, 32), "span_id": of(random, HEX, 16)}
    yield {"traceparent": f"00-{of(random, HEX, 32)}-{of(random, HEX, 16)}-01"}
    yield {"customer": f"cus_{of(random, WORD, 14)}", "payment_intent": f"pi_{of(random, WORD, 24)}", "object": "charge"}
    yield {"node_id": base64.b64encode(f"04:User{integer(random, 8)}".encode()).decode(), "pr": f"PR_kwDO{of(random, URL, 12)}"}
    yield {"team": f"T{of(random, UPPER, 10)}", "channel": f"C{of(random, UPPER, 10)}", "user": f"U{of(random, UPPER, 10)}"}
    yield {"sid": f"SM{of(random, HEX, 32)}", "account_sid": f"AC{of(random, HEX, 32)}", "status": "queued"}
    yield {"arn": f"arn:aws:iam::{integer(random, 12)}:role/deploy", "instance": f"i-0{of(random, HEX, 16)}"}
    yield {"cursor": base64.b64encode(json.dumps({"after": integer(random, 9), "dir": "asc"}).encode()).decode()}
    yield {"next_page_token": base64.urlsafe_b64encode(random.randbytes(18)).decode(), "total": 4711}
    yield {"pageToken": of(random, WORD, 16), "nextPageToken": of(random, WORD, 24)}
    yield {"mac": ":".join(of(random, HEX, 2) for _ in range(6)), "bssid": ":".join(of(random, HEX, 2) for _ in range(6))}
    yield {"public_key": f"ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{of(random, WORD, 43)} ci@build"}
    yield {"fingerprint": f"SHA256:{of(random, WORD, 43)}", "md5": ":".join(of(random, HEX, 2) for _ in range(16))}
    yield {"ean": luhn_valid(random, 13), "isbn": f"978{integer(random, 10)}", "upc": str(integer(random, 12)), "sku": of(random, UPPER, 12)}
    yield {"usage": {"prompt_tokens": 1824, "completion_tokens": 512, "total_tokens": 2336}, "max_tokens": 4096}
    yield {"token_type": "Bearer", "expires_in": 3600, "scope": "read write", "grant_type": "authorization_code"}
    yield {"password_policy": {"min_length": 12, "max_age_days": 90}, "password_last_changed": day, "passwordResetRequired": False}
    yield {"hasPassword": True, "password_set": "yes", "secret_name": "prod/db", "secretArn": f"arn:aws:secretsmanager:eu-west-1:{integer(random, 12)}:secret:prod/db-{of(random, WORD, 6)}"}
    yield {"passenger": random.choice(["Kim Lee", "Ana Sousa"]), "passport_required": True, "pass_rate": 0.97, "compass": "NNE"}
    yield {"author": "dev", "authority": "example.org", "authenticated": True, "authorization_endpoint": "https://id.example.org/authorize"}
    yield {"key": f"reports/{day}/part-{integer(random, 5)}.csv", "bucket": "exports-eu"}
    yield {"keyboard": "qwertz", "monkey": of(random, LOWER, 12), "primary_key": "order_id", "sort_key": "created_at"}
    yield {"color": f"#{of(random, HEX, 6)}", "bytes": integer(random, 14), "phone_verified": True, "card_count": integer(random, 3)}
    yield {"account": integer(random, 6), "cardinality": integer(random, 16), "discard": luhn_valid(random, 16)}
    yield {"block": integer(random, 8), "tx": f"0x{of(random, HEX, 64)}", "gas": integer(random, 11)}
    yield {"resourceVersion": str(integer(random, 9)), "uid": uuid4(random), "generation": 4}
    yield {"image": f"registry.example.com/app@sha256:{of(random, HEX, 64)}", "pulled": seconds}
    yield {"X-Amz-Request-Id": of(random, UPPER, 16), "x-amz-id-2": base64.b64encode(random.randbytes(56)).decode()}
    yield {"csp": f"script-src 'nonce-{of(random, WORD, 22)}=='", "ip": f"10.{random.randrange(256)}.0.{random.randrange(256)}"}
    yield {"build": f"{day.replace('-', '')}.{integer(random, 4)}", "rev": of(random, HEX, 12), "serial": of(random, UPPER, 17)}
    yield {"ipfs": f"Qm{of(random, BASE58, 44)}", "did": f"did:key:z6Mk{of(random, BASE58, 44)}"}
    yield {"thumbnail": f"data:image/png;base64,{base64.b64encode(random.randbytes(300)).decode()}"}


REFERENCES = [
    "${DB_PASSWORD}", "$DB_PASSWORD", "$(DB_PASSWORD)", "%DB_PASSWORD%", "{{ .Values.db.password }}", "{{password}}",
    "<password>", "<your-password>", "vault:secret/data/app#password", "op://prod/db/password",
    "arn:aws:secretsmanager:eu-west-1:123456789012:secret:app-AbCdEf", "projects/p/secrets/db/versions/latest",
    "ref+vault://secret/db#/password", "!Ref DbPassword", "env:DB_PASSWORD", "file:/run/secrets/db_password",
    "@Microsoft.KeyVault(SecretUri=https://v.vault.azure.net/secrets/db)", "********", "••••••••", "[REDACTED]", "xxxxxxxx",
    "", "null", "true", "string", "changeme", "password", "<secret>", "required", "********1234", "#{DbPassword}", "__DB_PASSWORD__",
]
CODE = [
    "password: string;", "password: Option<String>,", "def login(user: str, password: str) -> bool:",
    "private String password;", "password = os.environ['DB_PASSWORD']", "const password = process.env.DB_PASSWORD;",
    "password = getpass.getpass()", "if (password.length < 12) {", "password := r.FormValue(\"password\")",
    "setPassword(user.getPassword())", "token = request.headers['Authorization']", "api_key = config.get('api_key')",
    "password = models.CharField(max_length=128)", "<input type=\"password\" name=\"password\" autocomplete=\"new-password\">",
    "secret = Secret::from_env(\"SIGNING_KEY\")?;", "password: { type: String, required: true, minlength: 8 },",
    "SELECT id, password_hash FROM users WHERE email = $1", "ALTER TABLE users ADD COLUMN password text NOT NULL",
    "token, err := jwt.Parse(raw, keyFunc)", "password=\"$(cat /run/secrets/db)\"", "PGPASSWORD=$PASS psql -h db",
    "- secretKeyRef: {name: db, key: password}", "passwordSecretRef: db-credentials", "existingSecret: app-postgresql",
    "return passwordEncoder.matches(password, user.password)", "let token = parser.next_token();", "pass # nothing to do",
]
PROSE = [
    "Enter your password to continue.", "The password is case-sensitive and must have twelve characters.",
    "Your password is expired, please choose another one.", "A token is a piece of text.", "Secrets are kept in a vault.",
    "The password is required for this operation.", "Passwords are hashed with argon2.", "My password is wrong again!",
    "Reset the password: open the settings and follow the link.", "The secret: start early.", "Token: see the section below.",
    "The pin is bent.", "Le mot de passe est obligatoire.", "Das Passwort ist abgelaufen.", "La contraseña es incorrecta.",
    "Call us any time, day or night.", "The card is accepted everywhere.", "Die Karte ist gesperrt.",
    "Version 10.0.19045.3803 was released in 2023.", "Section 12.3.4.5 lists the ports 8080-8090.",
    "On 2024-03-11 at 14:05:33 the job 202403111405 ran for 1234.567 s.", "RFC 8259 and ISO 8601-1:2019 are cited.",
    "It measures 120 x 340 x 560 mm and weighs 12 345 678 g.", "pi is 3.14159265358979323846 and e is 2.71828182845904523536",
    "The build 20240311.4711 passed 1,234,567 checks.", "See issue 4111 and pull request 1111 for 1111 reasons.",
    "The figures of 2019, 2020, 2021 and 2022 were 4539 1488 0343 6468.",
]
ID_KEYS = ["id", "order_id", "orderNumber", "timestamp", "sequence", "offset", "transaction_id", "reference", "ticket", "batch"]


def add(cases, random, rounds):
    """Adds the negatives of this file, in several random rounds."""
    source, ref = "generated", "tests/dlp/negatives.py"
    for _ in range(rounds):
        for document in verdicts(random):
            cases.negative(source, ref, "none", document, is_json=True)
        number = card(random)
        for key in random.sample(ID_KEYS, 3):
            cases.negative(source, ref, "none", {key: number}, is_json=True)
            cases.negative(source, ref, "none", f"{key}={integer(random, random.randrange(9, 19))}")
        wrong = wrong_digit(number)
        cases.negative(source, ref, "CREDIT_CARD", wrong)
        cases.negative(source, ref, "CREDIT_CARD", f"card number {spaced(wrong, [4, 4, 4, 4])}")
        code = iban(random)
        cases.negative(source, ref, "IBAN_CODE", f"IBAN {wrong_digit(code)}")
        words = [of(random, WORD, random.randrange(8, 40)) for _ in range(3)]
        cases.negative(source, ref, "none", " ".join(words))
        cases.negative(source, ref, "secret/mark", f"ghp_{of(random, WORD, 12)} AKIA{of(random, UPPER, 6)} sk_live_ xoxb-")
        cases.negative(source, ref, "none", f"{of(random, HEX, 64)}  app-{password(random)}.tar.gz")
    keys = ["password", "db_password", "POSTGRES_PASSWORD", "secret", "apiKey", "clientSecret", "token"]
    for index, text in enumerate(REFERENCES):
        for key in keys[index % 3::3]:
            cases.negative(source, ref, "secret/reference", {key: text}, is_json=True)
        cases.negative(source, ref, "secret/reference", f"{keys[index % len(keys)]}: {text}")
        cases.negative(source, ref, "secret/reference", {"env": [{"name": keys[2], "value": text}]}, is_json=True)
    for text in CODE:
        cases.negative(source, ref, "none", text)
    for text in PROSE:
        cases.negative(source, ref, "none", text)
