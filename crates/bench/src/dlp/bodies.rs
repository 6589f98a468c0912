//! Bodies to scan: answers as tools give them, clean and dirty, and what an attacker would send.

use serde_json::{Value, json};

/// The sizes of clean and dirty bodies, in bytes of JSON.
pub(super) const SIZES: [usize; 4] = [1 << 10, 10 << 10, 64 << 10, 1 << 20];

/// Records of an issue tracker: prose, ids, times, addresses of pages, hashes.
pub(super) fn clean(bytes: usize) -> Value {
    filled(bytes, &clean_row)
}

/// The same, with a person's data in every tenth record.
pub(super) fn dirty(bytes: usize) -> Value {
    filled(bytes, &|number| {
        let mut row = clean_row(number);
        if number % 10 == 1
            && let Value::Object(members) = &mut row
        {
            members.insert("reporter".to_owned(), json!(format!("ada.{number}@example.org")));
            members.insert("card".to_owned(), json!("4111 1111 1111 1111"));
            members.insert("iban".to_owned(), json!("DE89 3704 0044 0532 0130 00"));
        }
        row
    })
}

fn filled(bytes: usize, row: &dyn Fn(usize) -> Value) -> Value {
    let mut rows = Vec::new();
    let mut length = 0;
    for number in 1.. {
        let row = row(number);
        let more = row.to_string().len() + 1;
        if length + more > bytes && number > 1 {
            break;
        }
        length += more;
        rows.push(row);
    }
    let prose = "Nobody has looked at this yet, and there is no hurry. ";
    let rest = bytes.saturating_sub(length + 24);
    let note: String = prose.chars().cycle().take(rest).collect();
    json!({ "rows": rows, "note": note })
}

fn clean_row(number: usize) -> Value {
    json!({
        "id": 2_400_000 + number,
        "node_id": format!("I_kwDOB{:08x}", number.wrapping_mul(0x9e37_79b1)),
        "url": format!("https://tracker.example.com/api/v3/repos/tools/gateway/issues/{number}"),
        "title": format!("Requests to region {number} time out after the upgrade"),
        "body": "Since the upgrade last week, one request in twenty waits for its full timeout. \
                 The trace shows that the connection is taken from the pool although its other \
                 end has been closed. Restarting the worker helps for about an hour.",
        "state": if number.is_multiple_of(3) { "closed" } else { "open" },
        "labels": ["bug", "networking"],
        "comments": number % 7,
        "created_at": "2026-03-14T09:26:53Z",
        "commit": format!("{:040x}", 0x1f2e_3d4c_5b6a_7988_u128.wrapping_mul(number as u128 + 1)),
        "milestone": null,
    })
}

/// Deliveries of webhooks: addresses of pages, hashes, node ids, times and numbers, hardly a word.
pub(super) fn webhooks(bytes: usize) -> Value {
    filled(bytes, &delivery)
}

fn delivery(number: usize) -> Value {
    let mixed = |salt: u64| {
        let seed = (number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ salt;
        (seed ^ seed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 3
    };
    let hash = |salt| format!("{:016x}{:016x}{:08x}", mixed(salt), mixed(salt + 1), number);
    let id = |salt| mixed(salt) % 100_000_000;
    let api = format!("https://api.tracker.example/repos/tools/gateway-{}", id(3) % 9);
    let person = |salt: u64| {
        let login = format!("dev-{}", id(salt) % 997);
        json!({
            "login": login,
            "id": id(salt),
            "node_id": base64(&format!("04:User{:08}", id(salt))),
            "avatar_url": format!("https://avatars.tracker.example/u/{}?v=4", id(salt)),
            "url": format!("https://api.tracker.example/users/{login}"),
            "site_admin": false,
        })
    };
    json!({
        "delivery": format!(
            "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
            id(5), id(6) % 65_536, id(7) % 4_096, id(8) % 4_096, mixed(9) % (1 << 48)
        ),
        "signature": format!("sha256={}{}", hash(10), hash(20).get(..24).unwrap_or_default()),
        "before": hash(30),
        "after": hash(40),
        "compare": format!("{api}/compare/{}...{}", hash(30), hash(40)),
        "commits": [{
            "id": hash(40),
            "tree_id": hash(50),
            "timestamp": "2026-03-14T09:26:53.589Z",
            "url": format!("{api}/commits/{}", hash(40)),
            "author": person(60),
            "modified": ["crates/core/src/lib.rs", format!("docs/{}.md", id(61))],
        }],
        "check": {
            "id": mixed(70) % 100_000_000_000,
            "node_id": format!("CR_kwDOB{}", base64(&format!("{:015}", mixed(70))).get(..18).unwrap_or_default()),
            "etag": format!("W/\"{}\"", hash(71).get(..32).unwrap_or_default()),
            "score": 0.5 + f64::from(u32::try_from(number).unwrap_or(0)) / 7919.0,
            "started_at": 1_770_000_000_000_u64 + id(72),
            "trace": format!("00-{}-{:016x}-01", hash(73).get(..32).unwrap_or_default(), mixed(74)),
        },
        "sender": person(80),
    })
}

/// Prose of many words in texts of a paragraph each.
pub(super) fn prose(bytes: usize) -> Value {
    const SENTENCES: [&str; 8] = [
        "The ferry to the island leaves twice a day, and nobody seems to mind when it is late.",
        "Most of the houses along the harbour were built by families who had never seen the sea.",
        "In autumn the fog stays until noon; then the hills come out, one after the other.",
        "She had kept the letters in a drawer for years (all of them), without reading one again.",
        "\"There is no hurry,\" he said, \"the bridge will still be there when we come back.\"",
        "A committee of nine was asked to count the trees, which took it the better part of a summer.",
        "What the engineers found below the mill in 1874 is told in Chapter 3, with a drawing.",
        "Bread is dearer than last year, wood is cheaper, and the price of wool hardly moved.",
    ];
    let paragraph = |number: usize| {
        let sentence = |at: usize| SENTENCES.get((number * 5 + at * 3) % SENTENCES.len());
        json!((0..6).filter_map(sentence).copied().collect::<Vec<&str>>().join(" "))
    };
    filled(bytes, &paragraph)
}

/// Nothing but e-mail addresses, each an element of its own.
pub(super) fn addresses(bytes: usize) -> Value {
    const NAMES: [&str; 5] = ["ada", "grace.hopper", "k.johnson", "mary-lou", "radia"];
    let address = |number: usize| {
        let name = NAMES.get(number % NAMES.len()).copied().unwrap_or_default();
        json!(format!("{name}.{number}@team-{}.example.org", number % 7))
    };
    filled(bytes, &address)
}

/// The most expensive bodies: one unit repeated, a megabyte of each.
pub(super) fn hostile() -> Vec<(String, Value)> {
    const SIZE: usize = 1 << 20;
    let units: [(&str, &str); 21] = [
        ("all digits", "4"),
        ("groups of digits", "4111 "),
        ("dashed digits", "536-22-"),
        ("all `@`", "@"),
        ("e-mail addresses", "a@b.co "),
        ("card numbers", "4111 1111 1111 1111, "),
        ("almost a token of GitHub", "ghp_"),
        ("almost a key of AWS", "AKIAQYLPMN5HHHFPZAM "),
        ("almost a JWT", "eyJhbGciOiJub25lIn0."),
        ("almost a private key", "-----BEGIN PRIVATE KEY-----"),
        ("almost a database URL", "postgres://a:b"),
        ("almost an IPv6 address", "deadbeef:"),
        ("context words", "password secret token account "),
        ("passwords in quotes, in one line", "password: \"sunshine\" "),
        ("passwords in JSON in a text", "\"password\", \"sunshine\": "),
        ("cut tokens", "ghp_abcd1234\nabcd1234\n"),
        ("percent-encoded", "%41"),
        ("HTML entities", "&#65;"),
        ("escaped", "\\u0041"),
        ("zero-width", "\u{200B}"),
        ("full-width digits", "\u{FF14}"),
    ];
    let fill = |unit: &str| json!({ "text": unit.repeat(SIZE / unit.len()) });
    let mut all: Vec<(String, Value)> =
        units.into_iter().map(|(name, unit)| (name.to_owned(), fill(unit))).collect();
    all.push(("nested base64".to_owned(), json!({ "text": nested(SIZE) })));
    all.push((
        "base64 of e-mail addresses".to_owned(),
        json!({ "text": base64(&"a@b.co ".repeat(SIZE / 10)) }),
    ));
    all.push(("one e-mail address an element".to_owned(), json!(vec!["a@b.co"; SIZE / 9])));
    all.push(("one digit an element".to_owned(), json!(vec![7; 190_000])));
    all
}

/// Base64 of base64 of base64 of text.
fn nested(bytes: usize) -> String {
    let text = "nothing to see here ".repeat(bytes * 27 / 64 / 20);
    base64(&base64(&base64(&text)))
}

pub(super) fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letter =
        |bits: u32| LETTERS.get((bits & 63) as usize).map_or('=', |byte| char::from(*byte));
    let mut encoded = String::with_capacity(text.len() * 4 / 3 + 4);
    for three in text.as_bytes().chunks_exact(3) {
        let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
        encoded.extend([18, 12, 6, 0].map(|shift| letter(bits >> shift)));
    }
    encoded
}
