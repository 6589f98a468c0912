//! Passwords in statements, options of commands and settings of programs that have a form of their own.

use crate::catalogue::{
    detector::{Candidate, Detector, Edges},
    secrets::{keys::password, vendor::vendor},
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: given,
        ..vendor(
            "sql_password",
            "Password in a statement of SQL",
            &["identified", "password '", "password='", "password = '", "password for", "sp_addlogin", "secret='", "secret_key='"],
            r"(?i)(?:\bidentified (?:with [^\s']{1,40} )?by|(?:\b(?:encrypted|with|login)|\b(?:user|role) [^\s']{1,64}|[,(]) ?password|\bset password(?: for [^=\r\n]{1,80})?|\bsp_addlogin N?'[^'\r\n]{1,64}',|[ ,(](?:aws_)?secret(?:_key)?) ?=? ?N?'([^'\r\n]{4,128})'",
        )
    }
    .reaching(100, 320)
    .fires(&[
        "CREATE USER ada IDENTIFIED BY 'n0t-A-real-0ne'",
        "ALTER ROLE web WITH LOGIN PASSWORD 'n0t-A-real-0ne'",
        "SET PASSWORD FOR 'u'@'%' = 'n0t-A-real-0ne'",
        "exec sp_addlogin 'u', 'n0t-A-real-0ne'",
    ])
    .passes(&[
        "CREATE USER ada IDENTIFIED BY ?",
        "SELECT password FROM users WHERE hash = 'n0t-A-real-0ne'",
        "ALTER ROLE web PASSWORD 'changeme'",
        "CREATE USER ada IDENTIFIED BY '${PASSWORD}'",
    ]),
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: given,
        ..vendor(
            "option_password",
            "Password in an option of a command",
            &["docker login", "podman login", "helm registry login", "redis-cli", "mongosh", "mongodump", "mongorestore", "sqlcmd", "ldapsearch", "ldapmodify", "ldapadd", "smbclient", "az login", "net use", "http -a", "https -a", "-passin pass:", "-passout pass:"],
            r#"(?:(?:docker|podman|helm registry) login[^\r\n|;&]{0,120}? -p|redis-cli[^\r\n|;]{0,120}? -a|mongo(?:sh|dump|restore)[^\r\n|;]{0,120}? -p|sqlcmd[^\r\n|;]{0,120}? -P|ldap(?:search|modify|add)[^\r\n|;]{0,120}? -w|smbclient[^\r\n|;]{0,120}? -U ?[^\s%]{1,64}%|az login[^\r\n|;]{0,160}? -p|net use (?:[A-Za-z]:|\*) \\\\[^\s]{2,80}|https? -a ?[^\s:]{1,64}:|-pass(?:in|out) pass:) ?["']?([^\s"'$<>/:-][^\s"'<>]{3,79})"#,
        )
    }
    .reaching(0, 320)
    .fires(&[
        "docker login -u bot -p n0t-A-real-0ne registry.internal",
        "openssl rsa -in k.pem -passin pass:n0t-A-real-0ne",
        "smbclient //h/s -U bob%n0t-A-real-0ne",
    ])
    .passes(&[
        "docker run -p 8080:80 nginx",
        "docker login -u bot -p $TOKEN registry.internal",
        "redis-cli -h cache ping",
        "redis-cli -a …`, `-passin pass:…`",
        "mongosh -p",
    ]),
    Detector {
        edges: Edges::Any,
        bits: 32,
        check: |_| Some(0),
        ..vendor(
            "wordpress_salt",
            "Key or salt of WordPress",
            &["auth_key", "logged_in_key", "nonce_key", "auth_salt", "logged_in_salt", "nonce_salt"],
            r#"(?:AUTH|LOGGED_IN|NONCE)_(?:KEY|SALT)["'] ?, ?'([^'\r\n]{40,80})'"#,
        )
    }
    .fires(&["define('AUTH_KEY', 'a?7 Zq!x0(V]m2{T#w9 Lk~4@r8)Yb5;N c1^H%e6*Uj3&Gd+Ps=');"])
    .passes(&["define('AUTH_KEY', 'put your unique phrase here');"]),
    Detector {
        edges: Edges::Any,
        bits: 32,
        check: without_lines,
        ..vendor(
            "private_key_body",
            "Private key in base64 without the lines around it (PKCS #1, PKCS #8)",
            &["MIIEv", "MIIEw", "MIICd", "MIIJQ", "MIIEo", "MIIEp", "MIICX", "MIIJK"],
            r"MII[A-Z][0-9A-Za-z+/]{2}IBA(?:DANBgkqhkiG9w0BAQEFAASC|AK[BC])[0-9A-Za-z+/\s]{200,400}",
        )
    }
    .fires(&[BODY])
    .passes(&["MIIEvgIBADANBgkqhkiG9w0BAQEFAASC", "MIIEpQIBAAKC"]),
];

/// The beginning of such a key, and nothing of one.
const BODY: &str = concat!(
    "MIIEvgIBADANBgkqhkiG9w0BAQEFAASC",
    "BKgwggSkAgEAAoIBAQ0aN4kQ7xZt2mVb8yWc5rJd1sHf6pGuE3oLzKqXnTiYvMwRb9AhCeDjSgFl",
    "Q2xUoZy7pNkV4mBt8rWcEaJd1sHf6GuI3oLzKqXnTiYvMwRb9AhCeDjSgFl0Q2xUoZy7pNkV4mBt",
    "8rWcEaJd1sHf6GuI3oLzKqXnTiYvMwRb9AhCeDjSgFl0Q2xUoZy7pNkV4mBt8rWcEaJd1sHf6GuI",
);

/// No dummy, no reference and no parameter.
fn given(candidate: &Candidate<'_>) -> Option<i32> {
    let is_parameter = matches!(candidate.matched().first(), Some(b':' | b'?' | b'@' | b'&'));
    let letters = candidate.matched().iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    (!is_parameter && letters > 3).then(|| password(candidate))?
}

/// A key between lines that say so is known by these.
fn without_lines(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start)?.trim_ascii_end();
    let is_between = before.ends_with(b"-----") || before.ends_with(br"-----\n");
    (!is_between).then_some(0)
}
