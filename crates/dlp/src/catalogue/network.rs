//! Addresses of machines and numbers of devices.

use std::{net::Ipv6Addr, ops::Range, str::FromStr as _};

use crate::{
    catalogue::{
        builders::number,
        checks::{luhn, one_digit, part, varied},
        detector::{Before, Candidate, Detector, Edges, NormalForm, Shape},
    },
    text::{digits::DigitRun, window::Window, words},
    vocabulary::Category,
};

const WORDS: &[&str] = &[
    "ip",
    "ip address",
    "ipaddr",
    "ipv4",
    "ipv6",
    "subnet",
    "host",
    "hostname",
    "localhost",
    "gateway",
    "server",
    "client",
    "remote addr",
    "address",
    "dns",
    "nameserver",
    "cidr",
    "peer",
];

pub(super) const ALL: &[Detector] = &[
    Detector {
        edges: Edges::Word,
        bits: 8,
        normal_form: NormalForm::Verbatim,
        shape: Shape::Digits { least: 4, before: Before::Anything, find: dotted },
        ..machine(
            "ipv4_address",
            "IPv4 address; private and reserved ones only beside words that name them",
            ipv4,
        )
    }
    .beside(WORDS)
    .not_below(&[
        "version",
        "build",
        "release",
        "assembly version",
        "file version",
        "product version",
        "versions",
        "ver",
        "revision",
        "firmware",
        "fw",
        "package",
        "dependency",
        "dependencies",
    ])
    .fires(&[
        "from 133.133.133.133:8080",
        "Subnet: 192.168.1.0/24",
        r#"{"remote_addr": "8.8.44.104"}"#,
        "nameserver 8.8.8.8",
    ])
    .passes(&[
        "1.2.3",
        "v133.133.133.133",
        "10.15.7.1234",
        "10.15.7.12",
        "127.0.0.1",
        r#"{"version": "133.133.133.133"}"#,
        "1.133.133.133.133",
        "Bump pad from 133.4.18.9 to 134.0.0.1",
        "pad==133.133.133.133",
        "pad-133.133.133.133.tar.gz",
        "libpad 31.4.118.9",
    ]),
    Detector {
        edges: Edges::Word,
        bits: 8,
        normal_form: NormalForm::LowerCase,
        shape: Shape::Around { literals: &["::"], find: shortened },
        ..machine("ipv6_address", "IPv6 address with `::`", ipv6)
    }
    .beside(WORDS)
    .fires(&[
        "my ip is 2400:c401::5054:ff:fe1b:b031",
        "fe80::1%eth0/64",
        "::ffff:172.16.0.1",
        "::1/128",
    ])
    .passes(&[
        "std::fs::read",
        "a::b",
        "fe80::1text",
        "Abc::d1",
        "::1",
        "::core",
        "::ffff:192.168.1",
    ]),
    Detector {
        edges: Edges::Word,
        bits: 8,
        normal_form: NormalForm::LowerCase,
        shape: Shape::Colons,
        ..machine("ipv6_full_address", "IPv6 address with all its groups", ipv6_full)
    }
    .beside(WORDS)
    .fires(&["2001:0db8:85a3:0000:0000:8a2e:0370:7334"])
    .passes(&["12:34:56:78:90:12:34:56", "ab:cd:ef:01:23:45:67:89:ab:cd:ef:01:23:45:67:89"]),
    Detector {
        edges: Edges::Word,
        bits: 8,
        shape: Shape::Colons,
        ..machine("mac_address", "Hardware address of a network device", mac_with_colons)
    }
    .beside(&["mac", "hardware address", "hwaddr", "ether", "bssid", "ethernet"])
    .fires(&["lladdr 3c:22:fb:1a:9d:04", r#"{"mac": "00:1B:44:11:3A:B7"}"#])
    .passes(&[
        "FF:FF:FF:FF:FF:FF",
        "00:00:00:00:00:00",
        "12:34:56",
        "3c:22:fb:1a:9d:04:aa",
        "took 01:02:03:04:05:06",
        r#"{"at": "2020-01-01T00:00:00Z", "n": "602474262895", "to": "2020-01-01T00:00:00Z"}"#,
    ]),
    machine(
        "mac_address_dashed",
        "Hardware address with dashes or dots, beside words that name it",
        mac,
    )
    .named(&["hh-hh-hh-hh-hh-hh", "hhhh.hhhh.hhhh", "hhhhhhhhhhhh"])
    .beside(&["mac", "mac address", "hardware address", "hwaddr", "physical address", "bssid"])
    .fires(&["MAC: 01-23-45-67-89-AB", "physical address AA-BB-CC-DD-EE-FF"])
    .passes(&["01-23-45-67-89-AB", "MAC 00-00-00-00-00-00"]),
    machine("imei", "Number of a mobile device, beside words that name it", imei)
        .named(&[
            "999999999999999",
            "99-999999-999999-9",
            "99 999999 999999 9",
            "99999999999999",
            "99-999999-999999",
            "99999999-999999",
            "9999999999999999",
            "99999999-999999-99",
        ])
        .beside(&["imei", "imeisv", "device identity"])
        .fires(&["IMEI 35-209900-176148-1", "IMEI 35-209900-176148"])
        .passes(&["352099001761481", "IMEI 352099001761482"]),
    machine("iccid", "Number of a SIM card, beside words that name it", |candidate| {
        let digits = candidate.digits();
        one_digit(part(&digits, 0, 2) == 89 && luhn(&digits))
    })
    .named(&["9999999999999999999", "99999999999999999999"])
    .beside(&["iccid", "sim card", "sim number"])
    .fires(&["ICCID 8914800000000000006"])
    .passes(&["8914800000000000006", "ICCID 8914800000000000001"]),
];

const fn machine(
    name: &'static str,
    description: &'static str,
    check: fn(&Candidate<'_>) -> Option<i32>,
) -> Detector {
    number(name, Category::Network, description, check)
}

/// A number of 15 digits ends with a check digit, a shorter one without it, a longer one with the
/// version of the software.
fn imei(candidate: &Candidate<'_>) -> Option<i32> {
    let digits = candidate.digits();
    if !varied(&digits) {
        return None;
    }
    if digits.len() == 15 { one_digit(luhn(&digits)) } else { Some(0) }
}

/// Four groups joined by dots, and no fifth.
fn dotted(text: &Window<'_>, run: &DigitRun) -> Vec<Range<usize>> {
    if run.groups.len() < 4 {
        return Vec::new();
    }
    let is_dot = |at: usize| text.get(at) == Some(&b'.');
    let mut found = Vec::new();
    let mut rest = run.groups.as_slice();
    while let [first, ..] = rest {
        let joined = rest.windows(2).take_while(|pair| pair.first().is_some_and(|g| is_dot(g.end)));
        let count = joined.count() + 1;
        let goes_on = is_dot(first.start.wrapping_sub(1));
        if count == 4 && !goes_on && rest.iter().take(4).all(|group| group.len() <= 3) {
            found.extend(rest.get(3).map(|last| first.start..last.end));
        }
        rest = rest.get(count..).unwrap_or_default();
    }
    found
}

/// Public addresses speak for themselves unless they are called a version or look like one.
fn ipv4(candidate: &Candidate<'_>) -> Option<i32> {
    let before = candidate.text.get(..candidate.range.start).unwrap_or_default();
    let after = candidate.text.get(candidate.range.end..).unwrap_or_default();
    if is_called_version(before, after) {
        return None;
    }
    let octets: Vec<u8> = std::str::from_utf8(candidate.matched())
        .ok()?
        .split('.')
        .map(|octet| octet.parse().ok().filter(|_| octet == "0" || !octet.starts_with('0')))
        .collect::<Option<_>>()?;
    let [a, b, c, d] = octets.try_into().ok()?;
    let is_reserved = matches!(
        [a, b, c, d],
        [0 | 10 | 127 | 224..=255, ..]
            | [192, 168, ..]
            | [172, 16..=31, ..]
            | [169, 254, ..]
            | [192, 0, 2, _]
            | [198, 51, 100, _]
            | [203, 0, 113, _]
            | [100, 64..=127, ..]
    );
    let looks_like_version =
        a < 20 && b < 20 && c < 100 || is_packaged(before, after) && a < 100 && d < 100;
    Some(if is_reserved || looks_like_version { 2 } else { 10 })
}

/// Words that name a version in a text.
const VERSIONS: &[&str] = &[
    "version",
    "versions",
    "ver",
    "release",
    "releases",
    "released",
    "build",
    "revision",
    "rev",
    "firmware",
    "fw",
    "sdk",
    "bump",
    "bumps",
    "bumped",
    "upgrade",
    "upgraded",
    "downgrade",
    "downgraded",
    "chrome",
    "edg",
    "firefox",
    "safari",
    "opera",
    "section",
    "chapter",
];

/// Returns true if a word in the same clause says that what follows is a version, or a sign joins
/// it with a name as in `name-1.2.3.4.tar.gz`, `name==1.2.3.4` and `Name/1.2.3.4`.
fn is_called_version(before: &[u8], after: &[u8]) -> bool {
    const NEAR: usize = 40;
    let near = before.get(before.len().saturating_sub(NEAR)..).unwrap_or_default();
    let starts = |byte: &u8| matches!(byte, b'\n' | b'\r' | b';' | 0);
    let length = near.iter().rev().take_while(|byte| !starts(byte)).count();
    let clause = near.get(near.len() - length..).unwrap_or_default();
    let is_joined = match before {
        [.., b'=' | b'>' | b'<' | b'~' | b'!' | b'^', b'=']
        | [.., b'~', b'>']
        | [.., b'^' | b'~'] => true,
        [.., name, b'-' | b'/'] => name.is_ascii_alphabetic(),
        _ => false,
    };
    let is_file = matches!(after, [b'.' | b'-', letter, ..] if letter.is_ascii_alphabetic());
    is_joined || is_file || words::names(clause, VERSIONS)
}

/// Returns true if only a name stands before it on its line, as in a list of packages.
fn is_packaged(before: &[u8], after: &[u8]) -> bool {
    const LONGEST: usize = 64;
    let near = before.get(before.len().saturating_sub(LONGEST)..).unwrap_or_default();
    let length = near.iter().rev().take_while(|byte| !matches!(byte, b'\n' | b'\r')).count();
    let line = near.get(near.len() - length..).unwrap_or_default().trim_ascii();
    let is_name = |byte: &u8| {
        byte.is_ascii_alphanumeric()
            || matches!(byte, b'-' | b'_' | b'.' | b'@' | b'/' | b'+' | b':')
    };
    let is_whole = matches!(after, [] | [b'\n' | b'\r' | b' ' | 0, ..]);
    length < LONGEST && !line.is_empty() && line.iter().all(is_name) && is_whole
}

/// Hex digits, colons and dots around a `::`.
fn shortened(text: &Window<'_>, literal: Range<usize>) -> Option<Range<usize>> {
    let is_part = |byte: &&u8| byte.is_ascii_hexdigit() || **byte == b':';
    let is_tail = |byte: &&u8| byte.is_ascii_hexdigit() || matches!(**byte, b':' | b'.');
    let before = text.get(literal.start.saturating_sub(36)..literal.start)?;
    let lead = before.iter().rev().take_while(is_part).count();
    let tail = text.get(literal.end..)?.iter().take(40).take_while(is_tail).count();
    let end = literal.end + tail;
    let dots =
        text.get(literal.end..end)?.iter().rev().take_while(|b| matches!(**b, b'.' | b':')).count();
    let found = literal.start - lead..end - dots;
    let head = text.get(found.clone())?;
    // Most `::` stand in program text; an address begins with a telling group.
    let begins = match head {
        [b':', b':', rest @ ..] => rest.contains(&b'.') || is_network(text, found.end),
        [a, _, _, _, b':', ..] => matches!(a, b'2' | b'3' | b'f' | b'F'),
        _ => false,
    };
    begins.then_some(found)
}

fn ipv6(candidate: &Candidate<'_>) -> Option<i32> {
    let text = std::str::from_utf8(candidate.matched()).ok()?;
    let address = Ipv6Addr::from_str(text).ok()?;
    // Pairs alone are rather a clock, a fingerprint or a device.
    let is_eight = text.contains("::") || text.split(':').any(|group| group.len() > 2);
    let is_own = address.is_loopback() || address.is_unspecified();
    (is_eight && (!is_own || is_network(&candidate.text, candidate.range.end))).then_some(12)
}

/// Returns true if the length of a prefix follows: `/64`.
fn is_network(text: &[u8], at: usize) -> bool {
    let after = text.get(at..).unwrap_or_default();
    let digits = after.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
    after.first() == Some(&b'/') && (1..=3).contains(&digits)
}

fn ipv6_full(candidate: &Candidate<'_>) -> Option<i32> {
    let is_short = candidate.matched().windows(2).any(|pair| pair == b"::");
    (!is_short).then(|| ipv6(candidate))?
}

/// Pairs with colons; those of digits alone are rather a time.
fn mac_with_colons(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let has_colons = memchr::memchr_iter(b':', matched).count() == 5;
    let has_letters = matched.iter().any(u8::is_ascii_alphabetic);
    let bits = mac(candidate).filter(|_| has_colons)?;
    Some(if has_letters { bits } else { 2 })
}

/// Six pairs, neither empty nor the broadcast address.
fn mac(candidate: &Candidate<'_>) -> Option<i32> {
    let matched = candidate.matched();
    let digits: Vec<u8> = matched.iter().filter(|b| b.is_ascii_hexdigit()).copied().collect();
    let is_paired = matched.len() != 17
        || matched
            .chunks(3)
            .all(|pair| pair.get(..2).is_some_and(|p| p.iter().all(u8::is_ascii_hexdigit)));
    let fits = digits.len() == 12 && matches!(matched.len(), 12 | 14 | 17) && is_paired;
    (fits && varied(&digits)).then_some(10)
}
