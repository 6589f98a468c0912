//! Secrets of no single vendor: key blocks, JWTs, passwords in URLs, and Portcullis's own tokens.

use super::{Examples, random, vendor};
use crate::dlp::{
    checks,
    detector::{Candidate, Detector, Edges, Shape},
};

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
            &Examples {
                fires: &[
                    concat!(
                        "-----BEGIN RSA ", "PRIVATE KEY-----\nMIIBF4k3abcdefghijklmnop0123456789F4k3\n",
                        "-----END RSA ", "PRIVATE KEY-----"
                    ),
                    concat!("-----BEGIN ", "PRIVATE KEY-----\\nMIIBF4k3abcdefghijklmnop0123456789F4k3\\n"),
                ],
                passes: &[
                    "files that start with -----BEGIN PRIVATE KEY----- are keys",
                    "-----BEGIN PUBLIC KEY-----\nMIIBF4k3abcdefghijklmnop0123456789F4k3\n",
                ],
            },
        )
    }
    .reaching(64, 16 << 10),
    Detector {
        edges: Edges::Token,
        check: jwt,
        ..vendor(
            "jwt",
            "JSON Web Token, signed or encrypted",
            &["eyj"],
            r"eyJ[0-9A-Za-z_-]{10,}\.[0-9A-Za-z_-]{4,}(?:\.[0-9A-Za-z_-]*){1,3}",
            &Examples {
                fires: &[concat!(
                    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.",
                    "eyJzdWIiOiJmYWtlIn0.",
                    "F4k3abcdefghijklmnop0123456789F4k3abcdefghi"
                )],
                passes: &[
                    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9",
                    "eyJub3QiOiJhIGp3dCJ9.eyJzdWIiOiJmYWtlIn0.F4k3abcdefghijklmnop",
                ],
            },
        )
    }
    .reaching(0, 8 << 10),
    Detector {
        check: portcullis,
        ..vendor(
            "portcullis_token",
            "Token of this gateway",
            &["mcp_live_", "svc_live_", "mcp_refresh_"],
            "(?:mcp_live|svc_live|mcp_refresh)_[0-9A-Za-z]{38}",
            &Examples {
                fires: &["Bearer mcp_live_0EesofMSwCG8nv7cDAQcRILuT7BcZuvX1rxfbu"],
                passes: &[
                    "mcp_live_0EesofMSwCG8nv7cDAQcRILuT7BcZuvX1rxfbv",
                    "mcp_live_ marks a user token",
                ],
            },
        )
    },
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: password,
        ..vendor(
            "database_url",
            "Password in the URL of a database, queue or cache",
            &["postgres://", "postgresql://", "mysql://", "mariadb://", "mongodb://", "mongodb+srv://", "redis://", "rediss://", "amqp://", "amqps://", "mssql://", "sqlserver://", "clickhouse://"],
            r#"[A-Za-z+]{5,12}://[^\s:@/"'<>]{0,64}:([^\s@/"'<>]{3,128})@[^\s/"'<>]"#,
            &Examples {
                fires: &["postgres://app:n0t-a-real-0ne@db.internal:5432/app"],
                passes: &[
                    "postgres://db.internal:5432/app",
                    "postgres://user:password@localhost/app",
                    "postgres://app:${DB_PASSWORD}@db/app",
                ],
            },
        )
    }
    .reaching(0, 256),
    Detector {
        edges: Edges::Any,
        bits: 24,
        check: password,
        shape: Shape::At(url_password),
        ..vendor(
            "url_password",
            "Password in a web address",
            &[],
            "",
            &Examples {
                fires: &["git clone https://bot:n0t-a-real-0ne@git.internal/x.git"],
                passes: &["https://git.internal:8080/@scope/x", "https://user:password@host/", "a:b@c.de"],
            },
        )
    },
];

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

fn portcullis(candidate: &Candidate<'_>) -> Option<i32> {
    checks::crc_base62(candidate.matched(), 0).then_some(8)
}

/// A password, unless it is a placeholder for one.
fn password(candidate: &Candidate<'_>) -> Option<i32> {
    const USUAL: &[&[u8]] =
        &[b"password", b"passwd", b"pass", b"pwd", b"secret", b"changeme", b"example", b"token"];
    let matched = candidate.matched();
    let is_variable = matches!(matched.first(), Some(b'$' | b'{' | b'[' | b'<' | b'%' | b'*'));
    let is_usual = USUAL.iter().any(|usual| matched.eq_ignore_ascii_case(usual));
    let is_masked = matched.iter().all(|byte| matches!(byte, b'x' | b'X' | b'*' | b'.'));
    (!is_variable && !is_usual && !is_masked).then_some(if random(candidate).is_some() {
        6
    } else {
        0
    })
}

/// In `scheme://user:password@host`, the password.
fn url_password(text: &[u8], at: usize) -> Option<std::ops::Range<usize>> {
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
