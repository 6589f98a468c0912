//! Key blocks, JWTs, and passwords where programs keep them.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::catalogue::secrets::{randomness::random, vendor::vendor};
use crate::catalogue::{
    checks,
    detector::{Candidate, Detector, Edges, Shape},
    naming::name,
};
use crate::text::window::Window;

pub(super) const ALL: &[Detector] = &[
    Detector {
        edges: Edges::Any,
        check: private_key,
        ..vendor(
            "private_key",
            "PEM, OpenSSH or PGP private key block",
            &["private key"],
            // The block's end is optional: half a key is worth hiding, too.
            r"-----BEGIN [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----(?:[^-]|-[^-]|--[^-]|---[^-]|----[^-])*(?:-----END [0-9A-Z ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
        )
    }
    .reaching(64, 16 << 10)
    .fires(&[
        concat!(
            "-----BEGIN RSA ",
            "PRIVATE KEY-----\nMIIBF4k3abcdefghijklmnop0123456789F4k3\n",
            "-----END RSA ",
            "PRIVATE KEY-----"
        ),
        concat!("-----BEGIN ", "PRIVATE KEY-----\\nMIIBF4k3abcdefghijklmnop0123456789F4k3\\n"),
    ])
    .passes(&[
        "files that start with -----BEGIN PRIVATE KEY----- are keys",
        "-----BEGIN PUBLIC KEY-----\nMIIBF4k3abcdefghijklmnop0123456789F4k3\n",
    ]),
    Detector {
        edges: Edges::Any,
        check: private_member,
        shape: Shape::Value { literals: &["kty"], find: |_, _| None },
        ..vendor("jwk_private_key", "Private member of a JSON Web Key, beside `kty`", &[], "")
    }
    .fires(&[concat!(
        r#"{"kty": "EC", "crv": "P-256", "d": "XN3EW64ZmV4uJBenuxXQ9w2q"#,
        r#"Em1slYm4Wam4_BNx3Kt"}"#
    ), concat!(
        r#"{"kty": "RSA", "e": "AQAB", "p": "F4k3pppp0123456789abcdef-_"#,
        r#"F4k3", "dp": "F4k3dpdp0123456789abcdef-_F4k3"}"#
    )])
    .passes(&[
        r#"{"kty": "EC", "x": "XN3EW64ZmV4uJBenuxXQ9w2qEm1slYm4Wam4_BNx3Kt"}"#,
        r#"{"kty": "RSA", "d": "none"}"#,
    ]),
    Detector {
        edges: Edges::Any,
        ..vendor(
            "putty_private_key",
            "PuTTY private key file",
            &["putty-user-key-file-"],
            r"PuTTY-User-Key-File-[23]:(?s:.){20,1500}Private-Lines:\s{1,4}[0-9]{1,3}\s{1,4}[0-9A-Za-z+/=\s]{40,4000}",
        )
    }
    .reaching(0, 6 << 10)
    .fires(&[concat!(
        "PuTTY-User-Key-File-3: ssh-ed25519\nEncryption: none\nComment: x\nPublic-Lines: 1\n",
        "AAAAC3NzaC1lZDI1NTE5\nPrivate-Lines: 1\n",
        "Zq8vT3nKf0LwRj5mXyB7cHdPs2GuEa9NiVkQ4tZq8vT3nKf0Lw\n"
    )])
    .passes(&["PuTTY-User-Key-File-3: ssh-ed25519"]),
    Detector {
        edges: Edges::Token,
        check: jwt,
        ..vendor(
            "jwt",
            "JSON Web Token, signed or encrypted",
            &["eyj"],
            r"eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{4,}(?:\.[0-9A-Za-z_-]*){1,3}",
        )
    }
    .reaching(0, 8 << 10)
    .fires(&[concat!(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.",
        "eyJzdWIiOiJmYWtlIn0.",
        "F4k3abcdefghijklmnop0123456789F4k3abcdefghi"
    )])
    .passes(&[
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
        "eyJub3QiOiJhIGp3dCJ9.eyJzdWIiOiJmYWtlIn0.F4k3abcdefghijklmnop",
    ]),
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: password,
        ..vendor(
            "database_url",
            "Password in the URL of a database, queue, cache or mail server",
            &[
                "postgres://", "postgresql://", "mysql://", "mariadb://", "mongodb://",
                "mongodb+srv://", "redis://", "rediss://", "amqp://", "amqps://", "mssql://",
                "sqlserver://", "clickhouse://", "smtp://", "smtps://", "ldap://", "ftp://",
                "sftp://", "postgresql+asyncpg://", "mysql+pymysql://", "cockroachdb://",
            ],
            r#"[A-Za-z+]{3,22}://[^\s:@/"'<>]{0,64}:([^\s@/"'<>]{3,128})@[^\s/"'<>]"#,
        )
    }
    .reaching(0, 256)
    .fires(&["postgres://app:n0t-a-real-0ne@db.internal:5432/app"])
    .passes(&[
        "postgres://db.internal:5432/app",
        "postgres://user:password@localhost/app",
        "postgres://app:${DB_PASSWORD}@db/app",
    ]),
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: password,
        ..vendor(
            "connection_string_password",
            "Password in a connection string of name and value pairs",
            &[";password=", ";pwd=", "; password=", "; pwd="],
            r#"; ?(?i:password|pwd) ?= ?([^;\s"'<>]{4,128})"#,
        )
    }
    .fires(&["Server=db;Database=app;User Id=sa;Password=n0t-a-real-0ne;"])
    .passes(&["Server=db;User Id=sa;Password=${DB_PASSWORD};", "Password=x"]),
    Detector {
        edges: Edges::Any,
        bits: 24,
        check: password,
        shape: Shape::At(url_password),
        ..vendor("url_password", "Password in a web address", &[], "")
    }
    .fires(&["git clone https://bot:n0t-a-real-0ne@git.internal/x.git"])
    .passes(&["https://git.internal:8080/@scope/x", "https://user:password@host/", "a:b@c.de"]),
    Detector {
        edges: Edges::Any,
        check: basic,
        ..vendor(
            "basic_auth_header",
            "User and password in an HTTP authorization header",
            &["basic "],
            "(?i:basic) {1,3}([0-9A-Za-z+/_-]{8,400}={0,2})",
        )
    }
    .fires(&[concat!("Authorization: Basic ", "Ym90Om4wdC1hLXJlYWwtMG5l")])
    .passes(&["Basic authentication", "basic understanding of English"]),
    Detector {
        edges: Edges::Any,
        bits: 24,
        check: bearer,
        ..vendor(
            "bearer_token",
            "Bearer token in an HTTP authorization header",
            &["bearer "],
            "(?i:bearer) {1,3}([0-9A-Za-z._~+/-]{20,2000}={0,2})",
        )
    }
    .reaching(0, 2100)
    .fires(&[concat!("Authorization: Bearer ", "Zq8vT3nKf0LwRj5mXyB7cHdPs2GuEa9N")])
    .passes(&["Bearer token authentication is required", "bearer your-access-token-goes-here"]),
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: user_password,
        ..vendor(
            "curl_credentials",
            "User and password on the command line of curl",
            &["curl "],
            r#"curl [^\r\n]{0,200}?(?:-u|--user|--proxy-user)[= ]{1,2}["']?([^\s"'$:]{1,64}:[^\s"'$]{3,80})"#,
        )
    }
    .fires(&["curl -sL --user bot:n0t-a-real-0ne https://git.internal/x"])
    .passes(&["curl -u \"$USER:$PASSWORD\" https://x", "curl -u user:password https://x"]),
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: password,
        ..vendor(
            "command_password",
            "Password on the command line of a client of MySQL or of sshpass",
            &["mysql", "mariadb", "sshpass -p"],
            r#"(?:sshpass -p ?|(?:mysql|mariadb)[a-z-]{0,12}(?: [^\r\n|;]{0,120}?)? -p)["']?([^\s"'$<>:][^\s"'<>:]{3,79})(?:["'\s]|$)"#,
        )
    }
    .reaching(0, 256)
    .fires(&["mysqldump -h db -u root -pn0t-a-real-0ne app", "sshpass -p 'n0t-a-real-0ne' ssh ada@host"])
    .passes(&[
        "mysql -u root -p app",
        "docker run --name mysql -p3306:3306 mysql:8",
        "mysql -u root -p$PASSWORD",
        "mysql -u root -ppassword",
    ]),
    Detector {
        edges: Edges::Any,
        check: |_| Some(0),
        ..vendor(
            "password_hash",
            "Hash of a password: bcrypt, Argon2, scrypt, SHA-crypt, MD5-crypt, PBKDF2",
            &["$2a$", "$2b$", "$2y$", "$argon2", "$scrypt$", "$5$", "$6$", "$1$", "$apr1$", "$y$", "pbkdf2_sha"],
            r"\$2[aby]\$[0-9]{2}\$[./0-9A-Za-z]{53}|\$argon2(?:id|i|d)\$v=[0-9]+\$m=[0-9]+,t=[0-9]+,p=[0-9]+\$[0-9A-Za-z+/]{10,80}\$[0-9A-Za-z+/]{20,120}|\$scrypt\$ln=[0-9]+,r=[0-9]+,p=[0-9]+\$[0-9A-Za-z+/]{10,80}\$[0-9A-Za-z+/]{20,120}|\$[56]\$(?:rounds=[0-9]+\$)?[./0-9A-Za-z]{1,16}\$[./0-9A-Za-z]{43,86}|\$(?:apr)?1\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{22}|\$y\$[./0-9A-Za-z]{1,8}\$[./0-9A-Za-z]{1,86}\$[./0-9A-Za-z]{43}|pbkdf2_sha(?:1|256|512)\$[0-9]{4,8}\$[0-9A-Za-z+/=]{6,60}\$[0-9A-Za-z+/=]{20,120}",
        )
    }
    .fires(&[concat!("$2b$12$", "LQv3c1yqBWVHxkd0LHAkCOYz6TtxMQJqhN8/LewdBPj4J/HS.iK8i")])
    .passes(&["$2b$12$", "costs $5$ each"]),
    Detector {
        edges: Edges::Any,
        ..vendor(
            "wireguard_private_key",
            "WireGuard private or preshared key",
            &["privatekey", "presharedkey"],
            r"(?i:PrivateKey|PresharedKey) ?= ?([0-9A-Za-z+/]{43}=)",
        )
    }
    .fires(&[concat!("PrivateKey = ", "yAnz5TF+lXXJte14tji3zlMNq+hd2rYUIgJBgB3fBmk=")])
    .passes(&["PrivateKey = <key>"]),
    Detector {
        edges: Edges::Any,
        check: docker_auth,
        shape: Shape::Beside {
            literals: &["auth"],
            pattern: "[0-9A-Za-z+/]{12,400}={0,2}",
            after: 420,
        },
        ..vendor("registry_auth", "User and password of a registry, as container tools store them", &[], "")
    }
    .fires(&[concat!(r#"{"auths": {"registry.internal": {"auth": ""#, r#"Ym90Om4wdC1hLXJlYWwtMG5l"}}}"#)])
    .passes(&[r#"{"auth": "required for this"}"#, "auth dXNlcjpwYXNzd29yZA=="]),
    vendor(
        "secret_token_uri",
        "Secret in the form of a URI, `secret-token:` (RFC 8959)",
        &["secret-token:"],
        r"secret-token:[0-9A-Za-z%._~!$&'()*+,;=:@/-]{12,400}",
    )
    .needing_digits()
    .fires(&[concat!("secret-token:", "E92FB7EB-D882-47A4-A265-A0B6135DC842")])
    .passes(&["secret-token: ${TOKEN}", "secret-token:read-from-environment"]),
];

/// All of the member that `kty` names, in base64url: 128 bits or more.
fn private_member(candidate: &Candidate<'_>) -> Option<i32> {
    const SHORTEST: usize = 22;
    let value = candidate.matched();
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    let is_mixed =
        value.iter().any(u8::is_ascii_digit) && value.iter().any(u8::is_ascii_alphabetic);
    (candidate.key == Some(b"kty")
        && value.len() >= SHORTEST
        && is_mixed
        && value.iter().all(is_part))
    .then_some(0)
}

/// A key block has key text after its first line, not prose.
fn private_key(candidate: &Candidate<'_>) -> Option<i32> {
    let is_key_text =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    candidate.matched().split(|byte| !is_key_text(byte)).any(|run| run.len() >= 24).then_some(0)
}

/// The first part is a JSON object that names an algorithm (RFC 7515, RFC 7516).
fn jwt(candidate: &Candidate<'_>) -> Option<i32> {
    let header = candidate.matched().split(|byte| *byte == b'.').next()?;
    checks::is_json_object(header, &["alg", "enc"]).then_some(8)
}

/// A password, unless it is a placeholder for one.
pub(super) fn password(candidate: &Candidate<'_>) -> Option<i32> {
    const USUAL: &[&[u8]] =
        &[b"password", b"passwd", b"pass", b"pwd", b"secret", b"changeme", b"example", b"token"];
    let matched = candidate.matched();
    let is_variable =
        matches!(matched.first(), Some(b'$' | b'{' | b'[' | b'<' | b'%' | b'*' | b'\\' | b'('));
    let is_usual = USUAL.iter().any(|usual| matched.eq_ignore_ascii_case(usual));
    let is_masked = matched.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.'));
    (!is_variable && !is_usual && !is_masked).then_some(if random(candidate).is_some() {
        6
    } else {
        0
    })
}

/// In `scheme://user:password@host`, the password.
fn url_password(text: &Window<'_>, at: usize) -> Option<std::ops::Range<usize>> {
    let before = text.get(at.saturating_sub(160)..at)?;
    let ends_user_info =
        |byte: &u8| matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'<') || byte.is_ascii_whitespace();
    let length = before.iter().rev().take_while(|byte| !ends_user_info(byte)).count();
    let user_info = at - length;
    let is_web = [b"http://".as_slice(), b"https://"]
        .iter()
        .any(|scheme| text.get(..user_info).is_some_and(|head| head.ends_with(scheme)));
    let colon = text.get(user_info..at)?.iter().position(|byte| *byte == b':')?;
    let password = user_info + colon + 1..at;
    let has_host = text.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
    (is_web && has_host && password.len() >= 3).then_some(password)
}

/// Decodes base64 of a user, a colon and a password.
fn pair(encoded: &[u8]) -> Option<Vec<u8>> {
    let decoded = STANDARD.decode(encoded).ok()?;
    let is_text = decoded.iter().all(|byte| (0x20..0x7F).contains(byte));
    let colon = decoded.iter().position(|byte| *byte == b':')?;
    (is_text && colon > 0 && decoded.len() > colon + 3).then_some(decoded)
}

fn basic(candidate: &Candidate<'_>) -> Option<i32> {
    pair(candidate.matched()).map(|_| 0)
}

/// Only below a key that is called so, also in a text.
fn docker_auth(candidate: &Candidate<'_>) -> Option<i32> {
    let is_whole = candidate.range == (0..candidate.text.len());
    let is_quoted = candidate.text.get(candidate.range.end) == Some(&b'"');
    let is_auth = name(candidate).is_some_and(|name| {
        name.eq_ignore_ascii_case(b"auth") || name.eq_ignore_ascii_case(b"_auth")
    });
    ((is_whole || is_quoted) && is_auth).then(|| pair(candidate.matched()))?.map(|_| 0)
}

/// Random enough, with digits, and no dashed phrase.
fn bearer(candidate: &Candidate<'_>) -> Option<i32> {
    (candidate.digits().len() >= 3).then(|| random(candidate))?.map(|_| 4)
}

fn user_password(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let colon = matched.iter().position(|byte| *byte == b':')?;
    let start = candidate.range.start + colon + 1;
    let range = start..candidate.range.end;
    password(&Candidate { range, key: None, head: None, ..*candidate })
}
