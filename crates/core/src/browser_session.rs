//! Browser sessions of people, as far as they can be judged without waiting: the secret of the
//! cookie, how long a session lasts, and where a browser may go after a login.

use std::fmt;

use aws_lc_rs::hmac;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    clock::Timestamp,
    oauth::digest,
    random::{self, Random},
    secret::Secret,
};

/// Seconds after which a session that is not used has ended.
pub const IDLE: i64 = 8 * 60 * 60;
/// Seconds from its login after which a session has ended, however often it is used.
pub const LONGEST: i64 = 24 * 60 * 60;
/// Seconds for which a link of the operator logs a person in.
pub const LINK_LIFE: i64 = 5 * 60;

/// The secret of a cookie or of a login link: 256 bits, stored as its SHA-256 only.
#[derive(Debug, Clone)]
pub struct BrowserSecret(Secret);

/// Purpose of the key that tells forms of a session from those of others.
const FORMS: &[u8] = b"portcullis forms of a browser session";

impl BrowserSecret {
    /// Makes a new one.
    #[must_use]
    pub fn generate(random: &dyn Random) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(random::bytes::<32>(random))))
    }

    /// Reads one that a browser sent. `None` for a text of another form, which is never looked up.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (text.len() == 43 && text.bytes().all(letter)).then(|| Self(Secret::new(text.to_owned())))
    }

    /// The text, for its browser alone.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// SHA-256 of the text: what is stored.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        digest(self.0.expose())
    }

    /// The token of forms that this session may send: HMAC-SHA-256 under the secret, so that a page
    /// that cannot read the cookie cannot know it.
    #[must_use]
    pub fn form_token(&self) -> FormToken {
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.0.expose().as_bytes());
        FormToken(URL_SAFE_NO_PAD.encode(hmac::sign(&key, FORMS)))
    }
}

/// Token in the forms of a session, against forms of other pages.
#[derive(Clone)]
pub struct FormToken(String);

impl fmt::Debug for FormToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FormToken(…)")
    }
}

impl FormToken {
    /// The text, for a hidden field of a page of the session.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Returns true if a form brought this token. Compares hashes, so that the time tells nothing.
    #[must_use]
    pub fn is(&self, sent: &str) -> bool {
        digest(&self.0) == digest(sent)
    }
}

/// Moment from which a session that began at `created_at` and was last used at `last_seen_at` has
/// ended.
#[must_use]
pub fn ends_at(created_at: Timestamp, last_seen_at: Timestamp) -> Timestamp {
    last_seen_at.plus_seconds(IDLE).min(created_at.plus_seconds(LONGEST))
}

/// A path of this gateway with its query: where a browser goes after a login.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPath(String);

impl LocalPath {
    /// The most bytes of a path with its query: authorization requests have long ones.
    pub const MAX_BYTES: usize = 4_000;

    /// The page of a person who is signed in.
    #[must_use]
    pub fn start() -> Self {
        Self("/login".to_owned())
    }

    /// Reads a path that begins with one slash. `None` for what any browser could take for another
    /// host or for more than one line: `//host`, backslashes, control characters and blanks, letters
    /// beyond ASCII (some of which become slashes), dot segments, whole addresses, fragments.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let plain = |byte: u8| byte.is_ascii_graphic() && !b"\\\"<>^`{|}#".contains(&byte);
        let path = text.split('?').next().unwrap_or_default();
        let decoded = path.to_ascii_lowercase();
        let fits = text.len() <= Self::MAX_BYTES
            && text.bytes().all(plain)
            && path.starts_with('/')
            && !path.contains("//")
            && !path.contains('@')
            && !["%2f", "%5c", "%2e", "%0", "%1"].iter().any(|odd| decoded.contains(odd))
            && !path.split('/').any(|segment| segment == "." || segment == "..");
        fits.then(|| Self(text.to_owned()))
    }

    /// The path with its query.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Fixed(u8);

    impl Random for Fixed {
        fn fill(&self, bytes: &mut [u8]) {
            bytes.fill(self.0);
        }
    }

    #[test]
    fn a_secret_is_read_back_and_nothing_else_is_one() {
        let secret = BrowserSecret::generate(&Fixed(7));

        let again = BrowserSecret::parse(secret.expose()).unwrap();

        assert_eq!(again.hash(), secret.hash());
        assert!(!format!("{secret:?}").contains(secret.expose()));
        for odd in ["", "a", &"a".repeat(44), &format!("{}=", "a".repeat(42)), &"é".repeat(21)] {
            assert!(BrowserSecret::parse(odd).is_none(), "{odd}");
        }
    }

    #[test]
    fn the_token_of_forms_is_that_of_the_session_and_not_the_secret() {
        let one = BrowserSecret::generate(&Fixed(1));
        let other = BrowserSecret::generate(&Fixed(2));
        let token = one.form_token();

        assert!(one.form_token().is(token.expose()));
        assert!(!other.form_token().is(token.expose()));
        assert!(!token.is("") && !token.is(one.expose()));
        assert!(!format!("{token:?}").contains(token.expose()));
    }

    #[test]
    fn a_session_ends_when_it_rests_and_a_day_after_its_login() {
        let begun = Timestamp::from_micros(0);
        let at = |hours: i64| begun.plus_seconds(hours * 3_600);

        assert_eq!(ends_at(begun, begun), at(8));
        assert_eq!(ends_at(begun, at(5)), at(13));
        assert_eq!(ends_at(begun, at(23)), at(24));
    }

    #[test]
    fn a_browser_returns_to_paths_of_this_gateway_only() {
        for good in [
            "/",
            "/login",
            "/oauth/authorize?client_id=https%3A%2F%2Fclaude.ai%2Fmeta&state=a.b~c&x=%00",
            "/approvals/apr_01M754BKTKX1YB8Q05NMW9TP4G",
            "/a?next=//x&at=@",
        ] {
            assert_eq!(LocalPath::parse(good).map(|path| path.0).as_deref(), Some(good));
        }
        for evil in [
            "", "login", "//evil.example", "///evil.example", "/a//evil.example",
            "/\\evil.example", "\\\\evil.example", "/%5cevil.example", "/%2Fevil.example",
            "/%2f/evil.example", "https://evil.example", "http:evil.example",
            "javascript:alert(1)", "/user@evil.example", "/a\r\nSet-Cookie: x", "/a\tb", "/a b",
            "/%0d%0aSet-Cookie:x", "/\u{ff0f}evil.example", "/\u{2215}evil.example",
            "/\u{200b}/evil.example", "/../x", "/./x", "/%2e%2e/x", "/x#https://evil.example",
            "/x?<script>", "/x?a=\u{0}",
        ] {
            assert_eq!(LocalPath::parse(evil), None, "{evil:?}");
        }
        let long = format!("/{}", "x".repeat(LocalPath::MAX_BYTES));
        assert_eq!(LocalPath::parse(&long), None);
        assert!(LocalPath::parse(LocalPath::start().as_str()).is_some());
    }
}
