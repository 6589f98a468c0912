//! URIs of resources. A URI is never rewritten, so that policies judge what is sent.

use std::{
    fmt,
    net::{Ipv4Addr, Ipv6Addr},
};

use percent_encoding::percent_decode_str;

use crate::hidden::is_hidden;

mod renamed;
mod template;

pub use self::{
    renamed::{inner, outer, renamed},
    template::Template,
};

/// Most bytes of a URI or of a template.
const MAX_BYTES: usize = 2_048;
/// Schemes with a server. Many readers take one from such a URI even if `//` does not announce it.
const WITH_SERVER: [&str; 5] = ["http", "https", "ws", "wss", "ftp"];

/// Reason that a URI or a template is refused; never holds its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub enum UriError {
    Length,
    Character,
    Scheme,
    Encoding,
    Authority,
    DotSegment,
    Expressions,
    Adjacent,
    Expression,
}

impl UriError {
    /// The rule that the text breaks.
    #[must_use]
    pub const fn sentence(self) -> &'static str {
        match self {
            Self::Length => "the URI is longer than 2,048 bytes",
            Self::Character => {
                "the URI has a space, a backslash or another character that RFC 3986 does not allow"
            }
            Self::Scheme => "the URI does not begin with a scheme, a colon and something behind it",
            Self::Encoding => {
                "a `%` of the URI does not begin two hexadecimal digits, or they encode no UTF-8"
            }
            Self::Authority => {
                "the URI has a user, no host, or a host or port that readers understand differently"
            }
            Self::DotSegment => "the URI has a segment `.` or `..`",
            Self::Expressions => "the template has more than 16 expressions or 64 variables",
            Self::Adjacent => "two expressions of the template have no text between them",
            Self::Expression => {
                "an expression breaks RFC 6570, or its values cannot be read back from a URI"
            }
        }
    }
}

/// The URI of a resource, as it came.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceUri(String);

impl ResourceUri {
    /// Accepts a URI of RFC 3986 that every reader takes apart in the same way.
    pub fn parse(text: &str) -> Result<Self, UriError> {
        if text.len() > MAX_BYTES {
            return Err(UriError::Length);
        }
        if !text.bytes().all(is_legal) {
            return Err(UriError::Character);
        }
        let (scheme, authority, path) = parts(text);
        if !is_scheme(scheme) || text.len() == scheme.len() + 1 {
            return Err(UriError::Scheme);
        }
        let decoded = percent_decode_str(text).decode_utf8();
        let is_text = decoded.is_ok_and(|decoded| !decoded.contains('\0'));
        if !is_text || encoded(text).any(|byte| byte.is_none()) {
            return Err(UriError::Encoding);
        }
        let host = host_of(authority);
        let has_server = WITH_SERVER.iter().any(|it| it.eq_ignore_ascii_case(scheme));
        // Readers of `file` pass over a host, or take some for this machine.
        let is_file = scheme.eq_ignore_ascii_case("file");
        let no_host = host.is_empty() && (has_server || !authority.is_empty());
        if !is_host(host) || no_host || is_file && !authority.is_empty() {
            return Err(UriError::Authority);
        }
        if has_dot_segment(path) || has_dot_segment(host) {
            return Err(UriError::DotSegment);
        }
        Ok(Self(text.to_owned()))
    }

    /// The whole URI.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text in front of the first colon.
    #[must_use]
    pub fn scheme(&self) -> &str {
        parts(&self.0).0
    }

    /// The authority without its port; empty if the URI has none.
    #[must_use]
    pub fn host(&self) -> &str {
        host_of(parts(&self.0).1)
    }

    /// The path, percent-encoded as in the URI.
    #[must_use]
    pub fn path(&self) -> &str {
        parts(&self.0).2
    }

    /// True if no reader finds other segments or another host in it. Policies about hosts and paths mean such URIs.
    ///
    /// There is no fragment and no empty query. The path has no empty segment, no parameters, no segment that ends in a dot
    /// or a blank, and no letter that is a delimiter for some readers or is not seen. The host is a name of plain
    /// letters, or an address in its one canonical form, and so is the port.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let (_, authority, path) = parts(&self.0);
        let host = host_of(authority);
        let port = authority.strip_prefix(host).unwrap_or_default().strip_prefix(':');
        is_plain_path(path)
            && (host.is_empty() || is_plain_host(host))
            && port.is_none_or(|port| port.parse::<u16>().is_ok_and(|it| it.to_string() == port))
            && !self.0.contains('#')
            && !self.0.ends_with('?')
    }

    /// The beginning of the URI that tells no more than these parts of it: all of it, its path with its host, its host,
    /// or its scheme, as text that is a URI again.
    #[must_use]
    pub fn up_to(&self, path: bool, host: bool) -> String {
        let (scheme, authority, _) = parts(&self.0);
        let end = self.0.find(['?', '#']).unwrap_or(self.0.len());
        let told = match (path, host && !authority.is_empty()) {
            (true, _) if end == scheme.len() + 1 => format!("{scheme}://"),
            (true, _) => self.0.get(..end).unwrap_or_default().to_owned(),
            (false, true) => format!("{scheme}://{authority}"),
            (false, false) => format!("{scheme}://-"),
        };
        Self::parse(&told).map_or_else(|_| self.0.clone(), |it| it.0)
    }

    /// The place that the URI names for readers who pass over port, query, fragment and a last slash, and decode the path: scheme, host
    /// and path.
    #[must_use]
    pub fn place(&self) -> (String, String, String) {
        let path = percent_decode_str(self.path()).decode_utf8_lossy();
        let lower = str::to_ascii_lowercase;
        (lower(self.scheme()), lower(self.host()), path.trim_end_matches('/').to_owned())
    }

    /// True if RFC 3986 §6.2.2 would leave the URI as it is: scheme and host in lower case, and no
    /// other percent-encoding than has to be, in upper case.
    #[must_use]
    pub fn is_normal(&self) -> bool {
        let (scheme, authority, _) = parts(&self.0);
        let mut letters = scheme.bytes().chain(percent_decode_str(authority));
        !letters.any(|byte| byte.is_ascii_uppercase()) && has_normal_encoding(&self.0)
    }
}

/// The size alone: what a caller asked for is not logged.
impl fmt::Debug for ResourceUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "URI of {} bytes", self.0.len())
    }
}

/// Scheme, authority and path.
fn parts(text: &str) -> (&str, &str, &str) {
    let (scheme, rest) = text.split_once(':').unwrap_or_default();
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let Some(rest) = rest.strip_prefix("//") else { return (scheme, "", rest) };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    (scheme, authority, path)
}

fn host_of(authority: &str) -> &str {
    let port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    authority.rsplit_once(':').filter(|it| port(it.1)).map_or(authority, |it| it.0)
}

fn is_plain_path(path: &str) -> bool {
    let decoded = percent_decode_str(path).decode_utf8_lossy();
    let is_slash = |letter| matches!(letter, '/' | '\\');
    let slashes = path.matches(is_slash).count();
    let ends_oddly = |segment: &str| segment.ends_with(['.', ' ']);
    let is_odd = |letter: char| {
        // Forms of full stop, slash and backslash that some readers make those.
        let is_form = "\u{2024}\u{2044}\u{2215}\u{29f8}\u{fe52}\u{fe68}\u{ff0e}\u{ff0f}\u{ff3c}"
            .contains(letter);
        matches!(letter, '%' | ';') || letter.is_control() || is_hidden(letter) || is_form
    };
    !path.contains("//")
        && decoded.matches(is_slash).count() == slashes
        && !decoded.contains(is_odd)
        && !decoded.split('/').any(ends_oddly)
}

fn is_plain_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let address = address.parse::<Ipv6Addr>().map(|it| (it.to_string() == address, it));
        return address.is_ok_and(|(same, it)| same && it.to_ipv4_mapped().is_none());
    }
    let is_label = |label: &str| {
        let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        label.bytes().any(plain) && label.bytes().all(|byte| plain(byte) || b"-_".contains(&byte))
    };
    // Readers take a name for a number by its last label.
    let last = host.rsplit('.').next().unwrap_or_default();
    let hex = last.strip_prefix("0x").unwrap_or(last);
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit())
        || hex.len() < last.len() && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    host.split('.').all(is_label) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
}

/// True for a literal address, and for a name without delimiters, for one that is encoded delimits
/// for some readers.
fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.bytes().all(|byte| byte.is_ascii_hexdigit() || b":.".contains(&byte));
    }
    !percent_decode_str(host).any(|byte| b"@:/?#[]\\%".contains(&byte))
}

/// Encoded dots, slashes and backslashes count, and parameters of a segment do not.
fn has_dot_segment(path: &str) -> bool {
    let path = percent_decode_str(path).decode_utf8_lossy();
    let mut segments = path.split(['/', '\\']);
    segments.any(|segment| matches!(segment.split(';').next(), Some("." | "..")))
}

/// The digits after each `%` and the byte that they encode, if they are two.
fn encoded(text: &str) -> impl Iterator<Item = Option<(&str, u8)>> {
    text.split('%').skip(1).map(|rest| {
        let digits = rest.get(..2).filter(|it| it.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
        Some((digits, u8::from_str_radix(digits, 16).ok()?))
    })
}

fn has_normal_encoding(text: &str) -> bool {
    let lower = |digits: &str| digits.bytes().any(|digit| digit.is_ascii_lowercase());
    encoded(text).all(|it| it.is_some_and(|(digits, byte)| !lower(digits) && !is_unreserved(byte)))
}

/// True for `%` and the unreserved and reserved characters of RFC 3986.
fn is_legal(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&byte)
}

fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uris_are_taken_apart_and_stay_what_they_are() {
        for (text, scheme, host, path, is_normal) in [
            ("x:y", "x", "", "y", true),
            ("x://", "x", "", "", true),
            ("file:///a/b.md", "file", "", "/a/b.md", true),
            ("nfs://Share/a", "nfs", "Share", "/a", false),
            ("ui://get-time/mcp-app.html", "ui", "get-time", "/mcp-app.html", true),
            ("mailto:a@b.c", "mailto", "", "a@b.c", true),
            ("git+ssh://h.x/r.git", "git+ssh", "h.x", "/r.git", true),
            ("https://h:8443/a?q=1#f", "https", "h", "/a", true),
            ("http://[::1]:80", "http", "[::1]", "", true),
            ("x://h?q=/../a@b", "x", "h", "", true),
            ("x://h//a", "x", "h", "//a", true),
            ("x://h/.a/b..c/...", "x", "h", "/.a/b..c/...", true),
            ("x://h/[id].tsx", "x", "h", "/[id].tsx", true),
            ("x://caf%C3%A9/a%20b%2Fc", "x", "caf%C3%A9", "/a%20b%2Fc", true),
            ("x://h/%c3%a9", "x", "h", "/%c3%a9", false),
            ("x://h/%7Ea", "x", "h", "/%7Ea", false),
        ] {
            let uri = ResourceUri::parse(text).expect(text);

            assert_eq!(
                (uri.as_str(), uri.scheme(), uri.host(), uri.path()),
                (text, scheme, host, path)
            );
            assert_eq!(uri.is_normal(), is_normal, "{text}");
        }
    }

    #[test]
    fn a_plain_uri_has_one_host_and_one_path_for_every_reader() {
        for (text, is_plain) in [
            ("x:y", true),
            ("file:///a/b.md", true),
            ("https://open.example:8443/a%20b/c?q=//%2F", true),
            ("https://10.0.0.1/", true),
            ("https://[::1]/", true),
            ("https://a1.2b/", true),
            ("x://h//a", false),
            ("x://h/a%2Fb", false),
            ("x://h/a%2fb", false),
            ("x://h/a%5Cb", false),
            ("x://h/a%252e", false),
            ("https://caf%C3%A9/", false),
            ("https://open.example./", false),
            ("https://10.1/", false),
            ("https://2130706433/", false),
            ("https://0x7f.0x1/", false),
            ("https://010.0.0.1/", false),
            ("https://0x7f000001/", false),
            ("https://shut..example/", false),
            ("https://%EF%BD%93hut.example/", false),
            ("https://shut.example%0A/", false),
            ("https://-/", false),
            ("https://[0::1]/", false),
            ("https://[::ffff:127.0.0.1]/", false),
            ("https://[1]/", false),
            ("https://h:99999999/", false),
            ("https://h:/", false),
            ("http://h/board;a/b", false),
            ("http://h/a%3Bb", false),
            ("http://h/..%20/a", false),
            ("http://h/.%20/a", false),
            ("http://h/..%09/a", false),
            ("http://h/a%0Ab", false),
            ("http://h/.a/b..c/a%20b", true),
            ("http://h/%20/a", false),
            ("http://h/board./a", false),
            ("http://h/board%20", false),
            ("http://h/a%EF%BC%8Fb", false),
            ("http://h/%EF%BC%8E%EF%BC%8E/b", false),
            ("http://h/bo%E2%80%8Bard/b", false),
            ("http://h:080/a", false),
            ("http://h/a#", false),
            ("http://h/a?", false),
            ("http://h/caf%C3%A9?a=b", true),
        ] {
            assert_eq!(ResourceUri::parse(text).unwrap().is_plain(), is_plain, "{text}");
        }
    }

    #[test]
    fn a_uri_is_told_up_to_a_part_of_it() {
        for (text, path, host, expected) in [
            ("https://h:1/a/b?key=x#y", true, false, "https://h:1/a/b"),
            ("https://h:1/a/b?key=x#y", false, true, "https://h:1"),
            ("https://h:1/a/b?key=x#y", false, false, "https://-"),
            ("x:a/b?c", true, true, "x:a/b"),
            ("x:a/b?c", false, true, "x://-"),
            ("x:?c", true, true, "x://"),
            ("x:?c", false, false, "x://-"),
        ] {
            assert_eq!(ResourceUri::parse(text).unwrap().up_to(path, host), expected, "{text}");
        }
    }

    #[test]
    fn what_readers_understand_differently_is_refused() {
        use UriError::{Authority, Character, DotSegment, Encoding, Length, Scheme};
        let longest = format!("x:{}", "y".repeat(MAX_BYTES - 2));
        assert_eq!(format!("{:?}", ResourceUri::parse(&longest).unwrap()), "URI of 2048 bytes");
        for (text, expected) in [
            (format!("{longest}y").as_str(), Length),
            ("", Scheme),
            (":a", Scheme),
            ("1x:a", Scheme),
            ("x_y:a", Scheme),
            ("x:a b", Character),
            ("x:\u{7f}", Character),
            ("x:é", Character),
            ("x:a\u{202e}b", Character),
            ("x:a\\b", Character),
            ("x:{id}", Character),
            ("x:%", Encoding),
            ("x:%2g", Encoding),
            ("x:%00", Encoding),
            ("x:%FF", Encoding),
            ("x:%C0%AE", Encoding),
            ("https://user@h/", Authority),
            ("https://h%40i/", Authority),
            ("https://h%2Fi/", Authority),
            ("https://h:8x/", Authority),
            ("https://[::1/", Authority),
            ("https:h/x", Authority),
            ("HTTPS:///h/x", Authority),
            ("x://:80/", Authority),
            ("file://localhost/a", Authority),
            ("FILE://share/a", Authority),
            ("x://h/../a", DotSegment),
            ("x://h/a/.", DotSegment),
            ("x://h/%2e%2E/a", DotSegment),
            ("x://h/a%2f..%2Fb", DotSegment),
            ("x://h/..%5Ca", DotSegment),
            ("x://h/..;a/b", DotSegment),
            ("ui://../other/x", DotSegment),
        ] {
            assert_eq!(ResourceUri::parse(text).unwrap_err(), expected, "{text}");
        }
    }
}
