//! Passwords in statements, options of commands and settings of programs that have a form of their own.

use crate::catalogue::{
    checks::looks_random,
    detector::{Candidate, Detector, Edges},
    secrets::{general::classes, keys::password, vendor::vendor},
};

pub(super) const ALL: &[Detector] = &[
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: given,
        ..vendor(
            "sql_password",
            "Password in a statement of SQL",
            &["identified", "password '", "password='", "password = '", "password = n'", "password=n'", "password for", "sp_addlogin", "secret='", "secret_key='"],
            r#"(?i)(?:\bidentified (?:with [^\s']{1,40} )?by ?["']|(?:(?:\b(?:encrypted|with|login)|\b(?:user|role) [^\s']{1,64}|[,(]) ?password|\bset password(?: for [^=\r\n]{1,80})?|\bsp_addlogin N?'[^'\r\n]{1,64}',|[ ,(](?:aws_)?secret(?:_key)?) ?=? ?N?')([^'"\r\n]{4,128})["']"#,
        )
    }
    .reaching(100, 320)
    .fires(&[
        "CREATE USER ada IDENTIFIED BY 'n0t-A-real-0ne'",
        "ALTER ROLE web WITH LOGIN PASSWORD 'n0t-A-real-0ne'",
        "SET PASSWORD FOR 'u'@'%' = 'n0t-A-real-0ne'",
        "exec sp_addlogin 'u', 'n0t-A-real-0ne'",
        "ALTER LOGIN ada WITH PASSWORD = N'n0t-A-real-0ne'",
        r#"CONNECT TO ada IDENTIFIED BY "n0t-A-real-0ne" USING 'db'"#,
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
        check: option,
        ..vendor(
            "option_password",
            "Password in an option of a command",
            &[
                "docker login", "podman login", "helm registry login", "redis-cli", "mongo -", "mongosh",
                "mongodump", "mongorestore", "sqlcmd", "bcp ", "isql -", "sqlplus", "impdp", "expdp", "sqlldr",
                "ldapsearch", "ldapmodify", "ldapadd", "smbclient", "az login", "net use", "http -a", "https -a",
                "-passin pass:", "-passout pass:", "openssl enc", "keytool", "unzip -p", "zip -p", "xfreerdp", "wfreerdp",
                "rdesktop", "snmpwalk", "snmpget", "snmpset", "ipmitool", "rabbitmqctl", "winrm", "htpasswd -", "acl setuser",
                "db.auth(", "convertto-securestring", "wifi:t:", "wifi:s:",
                "snmp-server community",
            ],
            concat!(
                r#"(?:(?:docker|podman|helm registry) login[^\r\n|;&]{0,120}? -p|redis-cli[^\r\n|;]{0,120}? -a"#,
                r#"|mongo(?:sh|dump|restore)?[^\r\n|;]{0,120}? -p|(?:sqlcmd|bcp|isql|ipmitool)[^\r\n|;]{0,120}? -P"#,
                r#"|(?:sqlplus|impdp|expdp|sqlldr) (?:-[A-Z] )?[^\s/"']{1,64}/"#,
                r#"|ldap(?:search|modify|add)[^\r\n|;]{0,120}? -w|smbclient[^\r\n|;]{0,120}? -U ?[^\s%]{1,64}%"#,
                r#"|az login[^\r\n|;]{0,160}? -p|net use (?:[A-Za-z]:|\*) \\\\[^\s]{2,80}|https? -a ?[^\s:]{1,64}:"#,
                r#"|-pass(?:in|out) pass:|openssl enc[^\r\n|;]{0,120}? -(?:k|pass pass:)|\bkeytool[^\r\n|;]{0,160}? -[a-z]{0,8}(?:store|key)pass"#,
                r#"|\b(?:un)?zip -P|(?:freerdp|rdesktop)[^\r\n|;]{0,160}? (?:/p:|-p)|snmp(?:walk|get|set)[^\r\n|;]{0,120}? -[AX]"#,
                r#"|rabbitmqctl (?:add_user|change_password) [^\s]{1,64}|winrm[^\r\n|;]{0,120}? -p:"#,
                r#"|htpasswd -[A-Za-z]*b[A-Za-z]*(?: [^\s]{1,100})? [^\s]{1,64} |(?i:acl setuser) [^\s]{1,64}(?: [^\s>]{1,40}){0,6} >"#,
                r#"|db\.auth\( ?["'][^"'\r\n]{1,64}["'],"#,
                r#"|(?i:convertto-securestring)(?: -String)? ["']|\bWIFI:(?:[^\s;]{0,40};){1,4}P:"#,
                r#"|\bsnmp-server community) ?["']?([^\s"'$<>/:-][^\s"'<>]{3,79})"#,
            ),
        )
    }
    .reaching(0, 320)
    .fires(&[
        "docker login -u bot -p n0t-A-real-0ne registry.internal",
        "openssl rsa -in k.pem -passin pass:n0t-A-real-0ne",
        "smbclient //h/s -U bob%n0t-A-real-0ne",
        "docker login -u ada -pn0t-A-real-0ne",
        "unzip -P n0t-A-real-0ne a.zip",
        "sqlplus ada/n0t-A-real-0ne@orcl",
        "htpasswd -b users ada n0t-A-real-0ne",
        r#"ConvertTo-SecureString "n0t-A-real-0ne" -AsPlainText -Force"#,
        "WIFI:T:WPA;S:guests;P:n0t-A-real-0ne;;",
    ])
    .passes(&[
        "docker run -p 8080:80 nginx",
        "docker login -u bot -p $TOKEN registry.internal",
        "redis-cli -h cache ping",
        "redis-cli -a …`, `-passin pass:…`",
        "mongosh -p",
        "unzip -p a.zip",
        "sqlplus / as sysdba",
        "ConvertTo-SecureString converts text",
        "keytool -list -keystore k.jks",
    ]),
    Detector {
        edges: Edges::Any,
        bits: 26,
        check: given,
        ..vendor(
            "piped_password",
            "Password that a command reads from a pipe",
            &["| sudo -s", "| chpasswd", "--password-stdin"],
            r#"(?:echo|printf)(?: -[ne]+)? ["']?(?:[^\s:"'|]{1,64}:)?([^\s"'$|:<>{}()-][^\s"'|<>]{3,79})["']? ?\| ?(?:sudo -S|(?:sudo )?chpasswd|[a-z]+ (?:registry )?login [^\r\n|;]{0,120}--password-stdin)"#,
        )
    }
    .reaching(240, 24)
    .fires(&["echo 'n0t-A-real-0ne' | sudo -S apt update", "echo ada:n0t-A-real-0ne | chpasswd", "echo n0t-A-real-0ne | docker login -u ada --password-stdin"])
    .passes(&["echo $PASSWORD | sudo -S apt update", "cat pw | docker login -u ada --password-stdin"]),
    Detector {
        edges: Edges::Word,
        bits: 26,
        check: mixed,
        ..vendor(
            "credential_pair",
            "Name and password that a sign parts, behind a word that says so",
            &["credential", "creds", "u/p"],
            r#"(?i)\b(?:credentials?|creds|u/p)(?: (?:are|is))? ?[:=]?\s{1,3}["'`]?[^\s:/"'|,;()={}\[\]]{1,64}(?: ?[:/|] ?|\n)([^\s"'`<>/,:=(){}\[\]][^\s"'`<>,()]{5,79})"#,
        )
    }
    .fires(&["credentials ada:n0t-A-real-0ne", "u/p: ada/n0t4Real!", "creds: ada / n0t4Real!"])
    .passes(&["credentials: tokens/v2alpha1", "credentials user:password", "credentials https://x.example/Ab1!cdef", "u/p: ada/secret", "creds: path/to/File1.json"]),
    Detector {
        edges: Edges::Word,
        bits: 26,
        check: session,
        ..vendor(
            "session_cookie",
            "Cookie of a session",
            &["cookie:"],
            r"(?i)\bcookie: ?(?:[^\r\n]{0,160}?[; ])?(?:[a-z_.-]{0,24}sess(?:ion)?(?:[_-]?id)?|(?:[a-z]{0,8}[._-])?s?sid|auth[_-]?token)=([0-9A-Za-z%._~+/=-]{16,300})",
        )
    }
    .reaching(0, 520)
    .fires(&["Cookie: theme=dark; session=kPa0rHWMTSoAVePRkuWwKJj8IPb1wAQW", "Set-Cookie: JSESSIONID=7F3A9C0E5B2D4816A1C3E5F709B2D4C6; HttpOnly"])
    .passes(&["Cookie: theme=dark", "Cookie: session=deleted-by-the-server", "cookie: a sweet thing"]),
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

/// Two words that a slash joins are none.
fn option(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start)?;
    let is_word = candidate.matched().iter().all(u8::is_ascii_alphabetic);
    (!is_word || !before.ends_with(b"/")).then(|| given(candidate))?
}

/// Letters of both cases, digits and perhaps signs, and no name of a file.
fn mixed(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let has = |is: fn(&u8) -> bool| matched.iter().any(is);
    let is_file = matched.split(|byte| *byte == b'.').next_back().is_some_and(|end| {
        matched.contains(&b'.')
            && matches!(end.len(), 2..=4)
            && end.iter().all(u8::is_ascii_alphabetic)
    });
    (has(u8::is_ascii_digit) && classes(matched) > 2 && !is_file && !matched.contains(&b'/'))
        .then(|| given(candidate))?
}

/// Randomness, with a digit, as ids of sessions have.
fn session(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    (matched.iter().any(u8::is_ascii_digit) && looks_random(matched, 3.0)).then_some(0)
}

/// A key between lines that say so is known by these.
fn without_lines(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start)?.trim_ascii_end();
    let is_between = before.ends_with(b"-----") || before.ends_with(br"-----\n");
    (!is_between).then_some(0)
}
