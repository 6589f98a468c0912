//! Authorization codes, and the PKCE challenge that each is bound to (RFC 7636).

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use super::OAuthError;
use crate::{
    oauth,
    random::{self, Random},
    secret::Secret,
};

/// An authorization code: 256 unguessable bits, good for one token request within 60 seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code(Secret);

impl Code {
    /// Seconds for which it is good.
    pub const LIFE_SECONDS: i64 = 60;

    /// A new one.
    #[must_use]
    pub fn generate(random: &dyn Random) -> Self {
        Self(Secret::new(URL_SAFE_NO_PAD.encode(random::bytes::<32>(random))))
    }

    /// As it goes through the browser.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// As it is kept.
    #[must_use]
    pub fn hash(&self) -> [u8; 32] {
        oauth::digest(self.expose())
    }

    /// As it is kept; `None` for a text that is no code, which is never looked up.
    #[must_use]
    pub fn hash_of(text: &str) -> Option<[u8; 32]> {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (text.len() == 43 && text.bytes().all(letter)).then(|| oauth::digest(text))
    }
}

/// A PKCE challenge; its method is always S256.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeChallenge([u8; 32]);

impl CodeChallenge {
    /// Reads `code_challenge` and `code_challenge_method`.
    ///
    /// # Errors
    /// `invalid_request` without a challenge, and for any method but `S256`.
    pub fn parse(challenge: Option<&str>, method: Option<&str>) -> Result<Self, OAuthError> {
        let told = "PKCE is required: code_challenge with code_challenge_method=S256";
        let wrong = || OAuthError::request(told);
        if method != Some("S256") {
            return Err(wrong());
        }
        let bytes = URL_SAFE_NO_PAD.decode(challenge.ok_or_else(wrong)?).map_err(|_| wrong())?;
        bytes.try_into().map(Self).map_err(|_| wrong())
    }

    /// One that was kept.
    #[must_use]
    pub const fn from_stored(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// As it is kept.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Returns true if `verifier` is the secret behind it. Digests are compared, so that the time tells
    /// nothing.
    #[must_use]
    pub fn is_met_by(&self, verifier: &str) -> bool {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
        let is_verifier = (43..=128).contains(&verifier.len()) && verifier.bytes().all(letter);
        is_verifier && oauth::digest(verifier) == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Sevens;

    const CHALLENGE: &str = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";

    #[test]
    fn the_example_of_rfc_7636_is_met_by_its_verifier_only() {
        let challenge = CodeChallenge::parse(Some(CHALLENGE), Some("S256")).unwrap();

        assert!(challenge.is_met_by("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"));
        for other in ["", CHALLENGE, "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXl", "short"] {
            assert!(!challenge.is_met_by(other), "{other}");
        }
    }

    #[test]
    fn nothing_but_s256_is_a_challenge() {
        for (challenge, method) in [
            (Some(CHALLENGE), None),
            (Some(CHALLENGE), Some("plain")),
            (Some(CHALLENGE), Some("s256")),
            (None, Some("S256")),
            (Some("short"), Some("S256")),
            (Some("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM="), Some("S256")),
            (None, None),
        ] {
            assert!(CodeChallenge::parse(challenge, method).is_err(), "{challenge:?} {method:?}");
        }
    }

    #[test]
    fn only_a_code_is_looked_up() {
        let code = Code::generate(&Sevens);

        assert_eq!(Code::hash_of(code.expose()), Some(code.hash()));
        assert_eq!(Code::hash_of("x"), None);
        assert_eq!(Code::hash_of(&"'".repeat(43)), None);
    }
}
