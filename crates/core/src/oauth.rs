//! OAuth 2.1 towards providers, as far as it can be judged without waiting: what servers say about
//! themselves, what they grant, and the one-time values of a connect.
//!
//! Everything a server sends is hostile: texts are bounded before they are kept, and none of them
//! reaches an error message.

mod browser;
mod challenge;
mod grant;
mod metadata;

pub(crate) use self::browser::is_loopback;
pub use self::{
    browser::{Confirmation, Origin, PkceVerifier, PublicUrl, ReturnTo, State, digest},
    challenge::Challenge,
    grant::{GrantError, TokenGrant, TokenRefusal, authorization_url, who},
    metadata::{
        MetadataError, Registration, ResourceMetadata, ServerMetadata, TokenMethod, is_same_issuer,
        issuer_urls, resource_urls,
    },
};

/// The longest scope, and the most of them, that are kept.
const MAX_SCOPE_BYTES: usize = 256;
const MAX_SCOPES: usize = 200;
/// The longest token that is kept.
pub const MAX_TOKEN_BYTES: usize = 16 << 10;
/// The longest token of a login of a person, none of which is kept: ID tokens name groups.
pub const MAX_LOGIN_TOKEN_BYTES: usize = 64 << 10;

/// The scopes in a text; those that cannot be one are left out.
#[must_use]
pub fn scopes(text: &str, separators: &[char]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for scope in text.split(separators).map(str::trim).filter(|scope| is_scope(scope)) {
        if found.len() < MAX_SCOPES && !found.iter().any(|known| known == scope) {
            found.push(scope.to_owned());
        }
    }
    found
}

/// RFC 6749 §3.3: visible ASCII but for `"` and `\`.
#[must_use]
pub fn is_scope(text: &str) -> bool {
    (1..=MAX_SCOPE_BYTES).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_are_bounded_and_told_once() {
        assert_eq!(scopes("repo read:org repo", &[' ']), ["repo", "read:org"]);
        assert_eq!(scopes("a,b, c", &[' ', ',']), ["a", "b", "c"]);
        assert!(scopes("a\"b \u{e4} \\", &[' ']).is_empty());
        assert!(scopes(&"x".repeat(300), &[' ']).is_empty());
        let many = (0..500).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
        assert_eq!(scopes(&many, &[' ']).len(), MAX_SCOPES);
    }
}
