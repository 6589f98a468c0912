//! Ways to reach a person.

use std::ops::Range;

use crate::{
    catalogue::{
        builders::{any, number},
        detector::{Detector, Edges, NormalForm, Shape},
    },
    text::window::Window,
    vocabulary::Category,
};

mod phone_words;
mod phones;

pub(super) const ALL: &[Detector] = &[
    Detector {
        name: "email",
        category: Category::Contact,
        description: "E-mail address",
        shape: Shape::At(email),
        edges: Edges::Any,
        bits: 24,
        check: |_| Some(0),
        context: &["email", "e-mail", "mail", "contact"],
        context_bits: 8,
        // Ids of messages look like addresses.
        against: &["message id", "in reply to", "references"],
        normal_form: NormalForm::LowerCase,
        positives: &[
            "write to ada.lovelace+maths@example.co.uk, please",
            r#"{"ada@example.org": 1}"#,
            "<mailto:ada@example.org>",
        ],
        negatives: &[
            "@types/node",
            "left-pad@1.3.0",
            "git@github.com:org/repo.git",
            "org-68116@github.com:org/repo.git",
            "logo@2x.png",
            "user@localhost",
            "https://user:pw@host.example.com/",
            "a @ b.com",
            "image@sha256.x1",
            "noreply@example.com",
            r#"{"message-id": "20507025.8ae7895834a5@example.com"}"#,
        ],
    },
    phones::INTERNATIONAL,
    phones::GROUPED,
    phones::SPACED,
    phones::NAMED,
    number(
        "postal_code",
        Category::Contact,
        "Postal code of the US, UK, Canada, Germany, France or the Netherlands, beside words that name it",
        any,
    )
    .named(&[
        "99999", "99999-9999", "A9 9AA", "A99 9AA", "AA9 9AA", "AA99 9AA", "A9A 9AA", "AA9A 9AA",
        "A9A 9A9", "A9A9A9", "9999 AA", "9999AA", "9999",
    ])
    .beside(&["zip", "zip code", "zipcode", "postcode", "postal code", "plz", "postleitzahl", "code postal", "codice postale", "código postal", "postnummer"])
    .fires(&["ZIP 94103", r#"{"postalCode": "SW1A 1AA"}"#, r#"{"plz": "10117"}"#])
    .passes(&["94103", "SW1A 1AA", "zip file 12"]),
];

/// Around an `@`: RFC 5321 dot-atoms, a domain with a letters-only top level.
fn email(text: &Window<'_>, at: usize) -> Option<Range<usize>> {
    let before = text.get(at.saturating_sub(64)..at)?;
    let local = before.iter().rev().take_while(|byte| is_local(**byte)).count();
    let start = at - local;
    let after = text.get(at + 1..text.len().min(at + 255))?;
    let length = after.iter().take_while(|byte| is_domain(**byte)).count();
    let domain = trim_end(after.get(..length)?);
    let local = text.get(start..at)?;
    let dotted = local.first() == Some(&b'.') || local.last() == Some(&b'.') || local.is_empty();
    let end = at + 1 + domain.len();
    let is_remote = is_path(text.get(end..).unwrap_or_default())
        || local == b"git" && text.get(end) == Some(&b':');
    let is_nobody = NOBODY.iter().any(|nobody| local.eq_ignore_ascii_case(nobody));
    let is_person = !dotted && !is_remote && !is_nobody;
    (is_person && has_top_level(domain) && !is_user_info(text, start)).then_some(start..end)
}

/// Returns true if the path of a repository follows, as in `user@host:team/tool.git`.
fn is_path(after: &[u8]) -> bool {
    const LONGEST: usize = 64;
    let Some((b':', path)) = after.split_first() else { return false };
    let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let team = path.iter().take(LONGEST).take_while(is_part).count();
    path.first().is_some_and(u8::is_ascii_alphabetic) && path.get(team) == Some(&b'/')
}

fn is_local(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'\'')
        || byte >= 0x80
}

fn is_domain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-') || byte >= 0x80
}

fn trim_end(domain: &[u8]) -> &[u8] {
    let dots = domain.iter().rev().take_while(|byte| matches!(byte, b'.' | b'-')).count();
    domain.get(..domain.len() - dots).unwrap_or_default()
}

/// Addresses that reach no person.
const NOBODY: &[&[u8]] =
    &[b"noreply", b"no-reply", b"no_reply", b"donotreply", b"do-not-reply", b"mailer-daemon"];

/// File suffixes that follow an `@` in names such as `logo@2x.png`.
const FILES: &[&[u8]] = &[
    b"png", b"jpg", b"jpeg", b"gif", b"svg", b"webp", b"js", b"mjs", b"ts", b"tsx", b"jsx", b"css",
    b"json", b"html", b"tgz", b"gz", b"zip", b"service", b"lock", b"yaml", b"yml", b"toml",
];

fn has_top_level(domain: &[u8]) -> bool {
    let mut labels = domain.rsplit(|byte| *byte == b'.');
    let top = labels.next().unwrap_or_default();
    let is_word =
        top.len() >= 2 && top.iter().all(|byte| byte.is_ascii_alphabetic() || *byte >= 0x80);
    let is_coded =
        top.len() > 4 && top.get(..4).is_some_and(|head| head.eq_ignore_ascii_case(b"xn--"));
    let is_file = FILES.iter().any(|file| top.eq_ignore_ascii_case(file));
    let mut rest = labels.peekable();
    rest.peek().is_some()
        && rest.all(|label| !label.is_empty() && label.first() != Some(&b'-'))
        && (is_word || is_coded)
        && !is_file
}

/// Returns true if the text before is the user part of a URL: `https://user:`.
fn is_user_info(text: &[u8], start: usize) -> bool {
    let before = text.get(start.saturating_sub(80)..start).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b'/' | b'@') || byte.is_ascii_whitespace();
    let length = before.iter().rev().take_while(|byte| !ends(byte)).count();
    before.get(..before.len() - length).is_some_and(|head| head.ends_with(b"://"))
}
