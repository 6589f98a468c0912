//! The one-time values that go through a browser, and where it may go afterwards.

use std::fmt;

use aws_lc_rs::digest as sha;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use url::{Host, Url};

use crate::{
    random::{self, Random},
    secret::Secret,
};

/// SHA-256: one-time values are kept as this only.
#[must_use]
pub fn digest(text: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(sha::digest(&sha::SHA256, text.as_bytes()).as_ref());
    bytes
}

/// The `state` of an authorization request: 256 unguessable bits, good for one callback.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State(Secret);

impl State {
    /// A new one.
    #[must_use]
    pub fn generate(random: &dyn Random) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(random::bytes::<32>(random))))
    }

    /// As it stands in the request.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// As it is kept; `None` for a text that is no state, which is never looked up.
    #[must_use]
    pub fn hash_of(text: &str) -> Option<[u8; 32]> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (text.len() == 43 && text.bytes().all(letter)).then(|| digest(text))
    }
}

/// The secret behind a PKCE challenge (RFC 7636), always S256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PkceVerifier(Secret);

impl PkceVerifier {
    /// A new one of 256 bits.
    #[must_use]
    pub fn generate(random: &dyn Random) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(random::bytes::<32>(random))))
    }

    /// One that was kept.
    #[must_use]
    pub const fn from_stored(secret: Secret) -> Self {
        Self(secret)
    }

    /// As it goes to the token endpoint.
    #[must_use]
    pub const fn secret(&self) -> &Secret {
        &self.0
    }

    /// As it goes through the browser.
    #[must_use]
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest(self.0.expose()))
    }
}

/// The code that only the browser sees that consented: `K7QX-2M9P-4TBR-HW3N`, 80 bits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confirmation(Secret);

const LETTERS: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

impl Confirmation {
    /// A new one.
    #[must_use]
    pub fn generate(random: &dyn Random) -> Self {
        let mut text = String::with_capacity(19);
        for (at, byte) in random::bytes::<16>(random).into_iter().enumerate() {
            if at > 0 && at % 4 == 0 {
                text.push('-');
            }
            // 32 letters: each is as likely as any other.
            text.extend(LETTERS.get(usize::from(byte & 31)).map(|letter| char::from(*letter)));
        }
        Self(Secret::new(text))
    }

    /// As it is shown.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// As it is kept. People may leave out the hyphens, write in lower case, and take O for 0.
    #[must_use]
    pub fn hash_of(text: &str) -> Option<[u8; 32]> {
        let mut letters = String::with_capacity(16);
        for letter in text.chars().filter(|letter| !matches!(letter, '-' | ' ')) {
            letters.push(match letter.to_ascii_uppercase() {
                'O' => '0',
                'I' | 'L' => '1',
                other => other,
            });
        }
        let fits = letters.len() == 16 && letters.bytes().all(|byte| LETTERS.contains(&byte));
        fits.then(|| digest(&letters))
    }

    /// As it is kept.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        digest(&self.expose().replace('-', ""))
    }
}

/// The origin of a page: scheme, host and port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin(url::Origin);

impl Origin {
    /// Parses `https://host[:port]`; `http` for loopback addresses only. Nothing may follow.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let url = Url::parse(text).ok()?;
        let bare = matches!(url.path(), "" | "/") && url.query().is_none();
        let secure = url.scheme() == "https" || is_loopback(&url);
        (bare && secure && plain(&url)).then(|| Self(url.origin()))
    }

    /// The origin that a browser names in the header `Origin`. None for `null` and for what is more
    /// than scheme, host and port.
    #[must_use]
    pub fn from_header(header: &str) -> Option<Self> {
        let (scheme, authority) = header.split_once("://")?;
        let scheme = ["https", "http"].into_iter().find(|it| it.eq_ignore_ascii_case(scheme))?;
        Self::at(scheme, authority)
    }

    /// The origin of pages at `host[:port]`, which is how a request names it.
    #[must_use]
    pub fn at(scheme: &str, authority: &str) -> Option<Self> {
        // Parsers of URLs forgive backslashes, blanks and more, which no browser sends here.
        let sent = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
        let exact = !authority.ends_with(':') && authority.bytes().all(sent);
        let url = exact.then(|| Url::parse(&format!("{scheme}://{authority}")))?;
        url.ok().filter(plain).map(|url| Self(url.origin()))
    }

    /// Scheme, host and port as they are written in ASCII, without a port that the scheme stands for.
    #[must_use]
    pub fn ascii(&self) -> String {
        self.0.ascii_serialization()
    }

    /// The name or address of its host, in lower case; an address of IPv6 in brackets.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        match &self.0 {
            url::Origin::Tuple(_, host, _) => Some(host.to_string()),
            url::Origin::Opaque(_) => None,
        }
    }
}

fn plain(url: &Url) -> bool {
    url.username().is_empty()
        && url.password().is_none()
        && url.fragment().is_none()
        && url.host().is_some()
}

/// Returns true for `http` at a loopback address.
pub(crate) fn is_loopback(url: &Url) -> bool {
    let loopback = match url.host() {
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        Some(Host::Domain(_)) | None => false,
    };
    url.scheme() == "http" && loopback
}

/// The address of a gateway for its clients: an origin and, where a proxy gives it one, a path below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicUrl {
    origin: Origin,
    path: String,
}

impl PublicUrl {
    /// Parses `https://host[:port][/path]`; `http` for loopback addresses only. The segments of the path are of
    /// letters, digits and `-._~`, so that it stands the same in requests, headers and pages.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        // The path is taken as it is written: a parser would resolve dots in it.
        let (scheme, rest) = text.split_once("://")?;
        let end = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at_checked(end)?;
        let path = path.strip_suffix('/').unwrap_or(path);
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_plain =
            |segment: &str| !matches!(segment, "" | "." | "..") && segment.bytes().all(letter);
        if !path.split('/').skip(1).all(is_plain) {
            return None;
        }
        let origin = Origin::parse(&format!("{scheme}://{authority}"))?;
        Some(Self { origin, path: path.to_owned() })
    }

    /// Its origin.
    #[must_use]
    pub const fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Its path without a last slash: empty, or `/portcullis`.
    #[must_use]
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The address without a last slash.
    #[must_use]
    pub fn ascii(&self) -> String {
        format!("{}{}", self.origin.ascii(), self.path)
    }
}

/// Address that a browser goes to after a connect.
#[derive(Clone, PartialEq, Eq)]
pub struct ReturnTo(Url);

impl fmt::Debug for ReturnTo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReturnTo({})", self.0.origin().ascii_serialization())
    }
}

impl ReturnTo {
    /// The most bytes of an address.
    pub const MAX_BYTES: usize = 2_000;

    /// An https address on one of the `allowed` origins, or any port of `http://127.0.0.1`.
    #[must_use]
    pub fn parse(text: &str, allowed: &[Origin]) -> Option<Self> {
        // Not everybody who reads an address takes a backslash for the same.
        let odd = |byte: u8| byte.is_ascii_control() || byte == b'\\';
        if text.len() > Self::MAX_BYTES || text.bytes().any(odd) {
            return None;
        }
        let url = Url::parse(text).ok().filter(plain)?;
        let own_machine = url.scheme() == "http" && url.host_str() == Some("127.0.0.1");
        let known = || allowed.iter().any(|origin| origin.0 == url.origin());
        (own_machine || known()).then_some(Self(url))
    }

    /// One that was kept after it was checked.
    #[must_use]
    pub fn from_stored(text: &str) -> Option<Self> {
        Url::parse(text).ok().map(Self)
    }

    /// As it was given.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// The address with these parameters besides its own.
    #[must_use]
    pub fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut url = self.0.clone();
        url.query_pairs_mut().extend_pairs(parameters);
        url.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u8);

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            for (at, byte) in bytes.iter_mut().enumerate() {
                *byte = self.0.wrapping_add(u8::try_from(at).unwrap());
            }
        }
    }

    #[test]
    fn a_public_address_is_an_origin_with_a_plain_path() {
        let parts = |text: &str| {
            PublicUrl::parse(text).map(|url| (url.origin().ascii(), url.path().to_owned()))
        };
        let known = |origin: &str, path: &str| Some((origin.to_owned(), path.to_owned()));
        for (text, wanted) in [
            ("https://gw.example", known("https://gw.example", "")),
            ("https://gw.example:8443/", known("https://gw.example:8443", "")),
            ("https://gw.example/a", known("https://gw.example", "/a")),
            ("http://127.0.0.1:1/a/b-c.d_~/", known("http://127.0.0.1:1", "/a/b-c.d_~")),
            ("http://gw.example/a", None),
            ("https://gw.example/a//b", None),
            ("https://gw.example//", None),
            ("https://gw.example/a/../b", None),
            ("https://gw.example/./a", None),
            ("https://gw.example/%61", None),
            ("https://gw.example/a?b", None),
            ("https://gw.example?b", None),
            ("https://gw.example/a#b", None),
            ("https://gw.example/a\"b", None),
            ("https://gw.example/a\\b", None),
            ("https://u@gw.example/a", None),
            ("https:/a", None),
        ] {
            assert_eq!(parts(text), wanted, "{text}");
        }
    }

    #[test]
    fn the_challenge_is_that_of_rfc_7636() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let verifier = PkceVerifier::from_stored(Secret::new(verifier.to_owned()));

        assert_eq!(verifier.challenge(), "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
        assert_eq!(PkceVerifier::generate(&Fixed(1)).secret().expose().len(), 43);
    }

    #[test]
    fn a_code_is_recognised_as_people_type_it() {
        let code = Confirmation::generate(&Fixed(16));
        let typed = code.expose().replace('-', " ").to_lowercase().replace('0', "o");

        assert_eq!(code.expose().len(), 19);
        assert_eq!(Confirmation::hash_of(&typed), Some(code.hash()));
        assert_eq!(Confirmation::hash_of("K7QX"), None);
        assert_eq!(Confirmation::hash_of(&"ä".repeat(8)), None);
    }

    #[test]
    fn only_a_state_is_looked_up() {
        let state = State::generate(&Fixed(0));

        assert_eq!(State::hash_of(state.expose()), Some(digest(state.expose())));
        for other in ["", "x", &"x".repeat(44), &"'".repeat(43)] {
            assert_eq!(State::hash_of(other), None);
        }
        assert!(!format!("{state:?}").contains(state.expose()));
    }

    #[test]
    fn origins_are_the_same_if_scheme_host_and_port_are() {
        for (header, listed, same) in [
            ("https://app.acme.example", "https://app.acme.example", true),
            ("HTTPS://APP.Acme.example", "https://app.acme.example/", true),
            ("https://app.acme.example:443", "https://app.acme.example", true),
            ("https://app.acme.example", "https://app.acme.example:443", true),
            ("http://127.0.0.1:80", "http://127.0.0.1", true),
            ("http://[::1]:8080", "http://[0:0:0:0:0:0:0:1]:8080", true),
            ("https://b\u{fc}cher.example", "https://b\u{fc}cher.example", false),
            ("https://xn--bcher-kva.example", "https://b\u{fc}cher.example", true),
            ("http://app.acme.example", "https://app.acme.example", false),
            ("http://app.acme.example:443", "https://app.acme.example", false),
            ("https://app.acme.example:80", "https://app.acme.example", false),
            ("https://app.acme.example:8443", "https://app.acme.example", false),
            ("https://acme.example", "https://app.acme.example", false),
            ("https://app.acme.example.", "https://app.acme.example", false),
            ("https://app.acme.example.evil.example", "https://app.acme.example", false),
            ("http://[::1]", "http://127.0.0.1", false),
            ("https://app.acme.example/", "https://app.acme.example", false),
            ("https://app.acme.example:", "https://app.acme.example", false),
            ("https://app.acme.example/x", "https://app.acme.example", false),
            ("https://x@app.acme.example", "https://app.acme.example", false),
            ("https:\\\\app.acme.example", "https://app.acme.example", false),
            ("https:app.acme.example", "https://app.acme.example", false),
            (" https://app.acme.example", "https://app.acme.example", false),
            ("https://app.acme.example https://x", "https://app.acme.example", false),
            ("wss://app.acme.example", "https://app.acme.example", false),
            ("https://", "https://app.acme.example", false),
            ("app.acme.example", "https://app.acme.example", false),
            ("null", "https://app.acme.example", false),
            ("", "https://app.acme.example", false),
        ] {
            let listed = Origin::parse(listed).unwrap();

            assert_eq!(Origin::from_header(header) == Some(listed), same, "{header}");
        }
        let host = |text: &str| Origin::parse(text).and_then(|it| it.host());
        assert_eq!(host("https://Gate.acme.example:8443/").as_deref(), Some("gate.acme.example"));
        assert_eq!(host("http://[::1]:80").as_deref(), Some("[::1]"));
    }

    #[test]
    fn browsers_return_to_listed_origins_and_to_their_own_machine() {
        let allowed = [Origin::parse("https://app.acme.example").unwrap()];
        let ok = |text: &str| ReturnTo::parse(text, &allowed).is_some();

        assert!(ok("https://app.acme.example/oauth/done?x=1"));
        assert!(ok("https://app.acme.example:443/"));
        assert!(ok("http://127.0.0.1:53123/callback"));
        for bad in [
            "https://app.acme.example.evil.example/",
            "https://app.acme.example@evil.example/",
            "https://user@app.acme.example/",
            "http://app.acme.example/",
            "https://app.acme.example:8443/",
            "https://evil.example/?https://app.acme.example",
            "http://127.0.0.1@evil.example/",
            "http://localhost:1/",
            "http://[::ffff:127.0.0.1]/",
            "javascript:alert(1)",
            "//app.acme.example/",
            "https://app.acme.example/#x",
            "https://app.acme.example\\@evil.example/",
            "",
        ] {
            assert!(!ok(bad), "{bad}");
        }
        let back = ReturnTo::parse("https://app.acme.example/?a=1", &allowed).unwrap();
        assert_eq!(back.with(&[("b", "x&y")]), "https://app.acme.example/?a=1&b=x%26y");
    }

    #[test]
    fn an_origin_is_nothing_but_one() {
        for bad in
            ["https://a.example/x", "http://a.example", "https://a.example?x", "a", "ftp://a"]
        {
            assert_eq!(Origin::parse(bad), None, "{bad}");
        }
        assert!(Origin::parse("http://127.0.0.1:3000").is_some());
    }
}
