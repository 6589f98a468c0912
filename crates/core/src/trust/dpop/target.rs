//! Addresses as proofs name them.

use std::fmt::Write as _;

use url::Url;

/// Longest address in bytes.
const MAX_URI: usize = 2_048;

/// The address of a request without query and fragment, in the one way in which RFC 3986 §6.2.2
/// and §6.2.3 write all that are equal. A `:` in a path is the same as `%3A`, as some clients write it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetUri(String);

impl TargetUri {
    /// Reads an address; `None` if it is not one of HTTP, or names a user.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() > MAX_URI || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        let mut url = Url::parse(text).ok()?;
        let is_http = matches!(url.scheme(), "http" | "https");
        if !is_http || !url.username().is_empty() || url.password().is_some() {
            return None;
        }
        url.set_query(None);
        url.set_fragment(None);
        Some(Self(normal(url.as_str())))
    }

    /// The address as it is compared.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Writes each percent-encoded byte in upper case, and as itself if it needs no encoding.
fn normal(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        normal.push_str(before);
        let digits = after.get(..2).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
            normal.push('%');
            rest = after;
            continue;
        };
        if byte.is_ascii_alphanumeric() || b"-._~:".contains(&byte) {
            normal.push(char::from(byte));
        } else {
            let _ = write!(normal, "%{byte:02X}");
        }
        rest = after.get(2..).unwrap_or_default();
    }
    normal.push_str(rest);
    normal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_equal_are_written_in_one_way() {
        let uri = |text: &str| TargetUri::parse(text);
        let own = uri("https://gw.example/v1/mcps/sample%3Alist~items/invoke");
        assert!(own.is_some());
        for same in [
            "HTTPS://GW.Example/v1/mcps/sample%3Alist~items/invoke",
            "https://gw.example:443/v1/mcps/sample%3alist%7Eitems/invoke",
            "https://gw.example/v1/./x/../mcps/sample%3Alist~items/invoke?a=b#c",
            "https://gw.example/v1/mcps/sample:list~items/invoke",
        ] {
            assert_eq!(uri(same), own, "{same}");
        }
        for other in [
            "http://gw.example/v1/mcps/sample%3Alist~items/invoke",
            "https://gw.example:8443/v1/mcps/sample%3Alist~items/invoke",
            "https://gw.example/v1/mcps/sample%3Alist~items/invoke/",
            "https://gw.example/V1/mcps/sample%3Alist~items/invoke",
            "https://evil.example/v1/mcps/sample%3Alist~items/invoke",
            "https://gw.example/v1/mcps%2Fsample:list~items/invoke",
            "https://gw.example/v1/mcps/sample%253Alist~items/invoke",
            "https://gw.example/v1/mcps/sample%3Flist~items/invoke",
        ] {
            assert_ne!(uri(other), own, "{other}");
        }
        for none in ["", "mcp", "/mcp", "ftp://gw.example/", "https://u@gw.example/", "x y"] {
            assert_eq!(uri(none), None, "{none}");
        }
        assert_eq!(uri("https://gw.example"), uri("https://gw.example/"));
        assert_eq!(uri(&format!("https://gw.example/{}", "x".repeat(3_000))), None);
    }
}
