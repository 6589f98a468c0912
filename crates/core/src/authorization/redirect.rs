//! Addresses that a client's browser may be sent back to (RFC 8252, RFC 9700 §4.1).

use std::fmt;

use serde::{Deserialize, Serialize};
use url::Url;

/// Longest address in bytes.
const LONGEST: usize = 1_024;
/// Schemes that browsers and systems interpret themselves, whatever programs there are, and the name before a port
/// that only looks like a scheme.
const INTERPRETED: &str = "about afp android-app app-prefs applescript appstream apt blob brave callto chrome cid \
    content data dav davs dict dns edge facetime facetime-audio feed file filesystem finger ftp \
    ftps geo ghelp git gopher hcp help imap imaps info intent irc ircs its jar jnlp jnlps ldap \
    ldapi ldaps livescript localhost magnet mailto man maps market mhtml mid mk mocha news nfs \
    nntp opera pop prefs rdp res resource rlogin rtsp search sftp shell shortcuts sip sips smb \
    sms smsto snap ssh steam tag tel telnet tftp tn3270 urn vbs vbscript view-source vivaldi vnc \
    webcal workflow ws wss";
/// Beginnings of others: parts of browsers, of Windows and of Apple's systems, and schemes that sites take over.
const INTERPRETED_FAMILIES: &str = "chrome- edge- ext+ firefox googlechrome http itms javascript jscript microsoft- \
    moz- ms- onenote opera- search- touch-http web+ x-apple x-help- x-man- x-safari";

/// Address that a client returns to, as its client wrote it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RedirectUri {
    text: String,
    place: RedirectPlace,
}

/// The part of an address that decides how it is compared and shown.
#[derive(Debug, Clone, PartialEq, Eq)]
enum RedirectPlace {
    /// `https` at this host.
    Web(String),
    /// `http` on the machine of the browser; the address without its port.
    Loopback(String),
    /// A program of the machine that has this scheme, in small letters.
    Scheme(String),
}

impl fmt::Debug for RedirectUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RedirectUri({:?})", self.place)
    }
}

impl RedirectUri {
    /// Parses an `https` address, `http` at a loopback address or `localhost`, or the address of a program
    /// with a scheme of its own, `scheme:/…` or `scheme://…`. `None` for user names, fragments, backslashes, anything
    /// but ASCII, and for schemes that browsers or systems interpret themselves.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let odd = |byte: u8| !byte.is_ascii_graphic() || b"\\#\"<>^`{|}".contains(&byte);
        if text.len() > LONGEST || text.bytes().any(odd) {
            return None;
        }
        let (scheme, rest) = text.split_once(':')?;
        let url = Url::parse(text).ok()?;
        let place = match scheme {
            "https" | "http" => {
                let authority = rest.strip_prefix("//")?;
                let end = authority.find(['/', '?']).unwrap_or(authority.len());
                let (authority, path) = authority.split_at_checked(end)?;
                // The host has to be the same for every reader: no user name, nothing that a parser mends.
                if authority.contains(['@', '%']) || path.starts_with("//") {
                    return None;
                }
                let host = url.host_str()?;
                let (name, port) = split_port(authority);
                let is_port = port.is_none_or(|port| port.parse::<u16>().is_ok_and(|it| it > 0));
                if !name.eq_ignore_ascii_case(host) || !is_port {
                    return None;
                }
                let is_loopback = matches!(host, "127.0.0.1" | "[::1]" | "localhost");
                match (scheme, is_loopback) {
                    ("http", true) => RedirectPlace::Loopback(format!("http://{host}{path}")),
                    ("http", false) => return None,
                    _ => RedirectPlace::Web(host.to_owned()),
                }
            }
            own if Self::is_own_scheme(own) && rest.starts_with('/') && !leads_on(rest) => {
                RedirectPlace::Scheme(own.to_ascii_lowercase())
            }
            _ => return None,
        };
        Some(Self { text: text.to_owned(), place })
    }

    /// Returns true for a scheme (RFC 3986 §3.1) that belongs to a program, so not to browsers or systems. Its case
    /// does not matter.
    #[must_use]
    pub fn is_own_scheme(scheme: &str) -> bool {
        let letter = |it: u8| it.is_ascii_alphanumeric() || b"+.-".contains(&it);
        let small = scheme.to_ascii_lowercase();
        // A single letter is a drive of Windows.
        scheme.len() > 1
            && scheme.bytes().all(letter)
            && scheme.starts_with(|it: char| it.is_ascii_alphabetic())
            && !INTERPRETED.split(' ').any(|it| it == small)
            && !INTERPRETED_FAMILIES.split(' ').any(|family| small.starts_with(family))
    }

    /// Scheme of the program that it opens, in small letters; `None` for a site or a loopback address.
    #[must_use]
    pub fn scheme(&self) -> Option<&str> {
        match &self.place {
            RedirectPlace::Scheme(scheme) => Some(scheme),
            RedirectPlace::Web(_) | RedirectPlace::Loopback(_) => None,
        }
    }

    /// As it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns true if the client that has this address may be sent to `presented`: the same to the letter,
    /// or with any port on the machine of the browser (RFC 8252 §7.3).
    #[must_use]
    pub fn admits(&self, presented: &Self) -> bool {
        match (&self.place, &presented.place) {
            (RedirectPlace::Loopback(own), RedirectPlace::Loopback(other)) => own == other,
            _ => self.text == presented.text,
        }
    }

    /// Returns true if the address belongs to a site, which no other party can take: programs of a machine share
    /// its loopback addresses and schemes.
    #[must_use]
    pub const fn is_web(&self) -> bool {
        matches!(self.place, RedirectPlace::Web(_))
    }

    /// The place in words.
    #[must_use]
    pub fn describe(&self) -> String {
        match &self.place {
            RedirectPlace::Web(host) => host.clone(),
            RedirectPlace::Loopback(_) => "a program on this computer".to_owned(),
            RedirectPlace::Scheme(scheme) => {
                format!("the program on this computer that opens {scheme}: links")
            }
        }
    }

    /// The address with these parameters besides its own.
    #[must_use]
    pub fn with(&self, parameters: &[(&str, &str)]) -> String {
        let mut text = self.text.clone();
        let mut query = url::form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        text.push(if text.contains('?') { '&' } else { '?' });
        text.push_str(&query.finish());
        text
    }
}

/// Host and port of an authority.
fn split_port(authority: &str) -> (&str, Option<&str>) {
    if let Some(end) = authority.rfind(']') {
        let (host, rest) = authority.split_at(end + 1);
        return (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some("")));
    }
    authority.split_once(':').map_or((authority, None), |(host, port)| (host, Some(port)))
}

/// Returns true if what follows a scheme has an authority with a user name, or is itself the address of a site.
fn leads_on(rest: &str) -> bool {
    let authority = rest.strip_prefix("//").and_then(|rest| rest.split(['/', '?']).next());
    let inner = rest.trim_start_matches('/').split_once(':').map(|(scheme, _)| scheme);
    authority.is_some_and(|authority| authority.contains('@'))
        || inner.is_some_and(|it| ["http", "https"].iter().any(|web| it.eq_ignore_ascii_case(web)))
}

impl TryFrom<String> for RedirectUri {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        Self::parse(&text).ok_or("not an address that browsers are sent back to")
    }
}

impl From<RedirectUri> for String {
    fn from(uri: RedirectUri) -> Self {
        uri.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admits(own: &str, presented: &str) -> bool {
        let own = RedirectUri::parse(own).unwrap();
        RedirectUri::parse(presented).is_some_and(|presented| own.admits(&presented))
    }

    #[test]
    fn addresses_that_lead_elsewhere_are_none() {
        for bad in [
            "",
            "/callback",
            "//evil.example/cb",
            "http://app.example/cb",
            "http://127.0.0.2/cb",
            "http://127.0.0.1.evil.example/cb",
            "http://localhost.evil.example/cb",
            "http://0x7f.1/cb",
            "http://2130706433/cb",
            "http://127.1/cb",
            "http://[::ffff:127.0.0.1]/cb",
            "http://0.0.0.0/cb",
            "http://127.0.0.1@evil.example/cb",
            "http://localhost:80@evil.example/cb",
            "https://user@app.example/cb",
            "https://user:pw@app.example/cb",
            "https://app.example/cb#x",
            "https://app.example/cb#",
            "https:\\\\app.example/cb",
            "https://app.example\\@evil.example/cb",
            "https://app.example//evil.example",
            "https:/app.example/cb",
            "https:app.example/cb",
            "https:///app.example/cb",
            "https://app%2eexample/cb",
            "https://b\u{fc}cher.example/cb",
            "https://\u{ff41}pp.example/cb",
            "https://app.example\u{2044}cb",
            "https://app.example/\u{202e}",
            "https://app.example/a b",
            "https://app.example:99999/cb",
            "https://app.example:/cb",
            "http://localhost:/cb",
            "HTTPS://app.example/cb",
        ] {
            assert!(RedirectUri::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn schemes_that_others_interpret_are_none() {
        for bad in [
            "javascript:alert(1)",
            "data:text/html,x",
            "file:///etc/passwd",
            "blob:https://app.example/x",
            "about:blank",
            "ftp://app.example/",
            "ws://app.example/",
            "view-source:https://app.example",
            "urn:ietf:wg:oauth:2.0:oob",
            "mailto:a@b.example",
            "JavaScript:alert(1)",
            "vbscript:x",
            "filesystem:https://app.example/x",
            "intent://scan/#Intent;end",
            "ms-msdt:/id",
            "web+app://cb",
            "search-ms://query=x&crumb=location:evil.example",
            "applescript://com.apple.scripteditor?action=new&script=x",
            "x-man-page://ls",
            "x-help-action://x",
            "Microsoft-Edge:/x",
            "x-safari-https://evil.example",
            "googlechromes://evil.example",
            "firefox://open-url",
            "touch-https://evil.example",
            "jnlp://evil.example/x",
            "hcp://x",
            "help:/x",
            "shortcuts://run-shortcut",
            "mk:/MSITStore:x",
            "its:/x",
            "jscript:/x",
            "https+x://evil.example",
            "HTTPX://evil.example",
            "ldapi://x",
            "onenote-cmd://x",
            "steam://run",
            "apt:/x",
            "localhost:3334/cb",
            "c:/Windows/x",
            "1app://cb",
            "my_app://cb",
            "://cb",
            "warp://user@mcp/cb",
            "warp://mcp/cb#x",
            "warp://mcp\\@evil.example/cb",
            "warp://mcp/\u{202e}",
            "warp:mcp",
            "warp:",
            "warp:?x",
            "warp:https://evil.example",
            "warp:/https://evil.example",
            "warp://HTTPS://evil.example",
            "warp:///http:evil.example",
        ] {
            assert!(RedirectUri::parse(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn addresses_of_real_clients_are_taken() {
        for good in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://vscode.dev/redirect",
            "http://127.0.0.1:33418/",
            "http://127.0.0.1:33418",
            "http://localhost:3334/oauth/callback",
            "http://[::1]:8080/cb?x=1",
            "cursor://anysphere.cursor-mcp/oauth/callback",
            "com.example.app:/oauth2redirect",
            "warp://mcp/oauth2callback",
            "code-oss://vscode.github-authentication/did-authenticate",
            "goose://oauth",
            "vscodium://x/did-authenticate?nonce=1:2",
            "x-app+beta:/cb",
            "LMStudio://cb",
        ] {
            assert!(RedirectUri::parse(good).is_some(), "{good}");
        }
    }

    #[test]
    fn an_address_is_the_same_to_the_letter_and_on_the_own_machine_at_any_port() {
        for (own, presented, wanted) in [
            ("https://app.example/cb", "https://app.example/cb", true),
            ("https://app.example/cb", "https://app.example/cb/", false),
            ("https://app.example/cb", "https://app.example/cb?x=1", false),
            ("https://app.example/cb", "https://app.example/CB", false),
            ("https://app.example/cb", "https://app.example:443/cb", false),
            ("https://app.example/cb", "https://app.example/x/../cb", false),
            ("https://app.example/cb", "https://app.example.evil.example/cb", false),
            ("https://app.example/cb", "https://app.example:8443/cb", false),
            ("http://127.0.0.1/cb", "https://127.0.0.1/cb", false),
            ("http://127.0.0.1/cb", "http://127.0.0.1:5555/cb", true),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:5555/cb", true),
            ("http://localhost:1/cb", "http://localhost:2/cb", true),
            ("http://localhost:1/cb", "http://127.0.0.1:2/cb", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/other", false),
            ("http://127.0.0.1:1/cb", "http://127.0.0.1:2/cb?x=1", false),
            ("cursor://a/cb", "cursor://a/cb", true),
            ("cursor://a/cb", "cursor://b/cb", false),
            ("warp://a/cb", "warp://a/cb?x=1", false),
            ("warp://a/cb", "WARP://a/cb", false),
            ("warp://a:1/cb", "warp://a:2/cb", false),
        ] {
            assert_eq!(admits(own, presented), wanted, "{own} {presented}");
        }
    }

    #[test]
    fn parameters_are_added_to_those_there_are() {
        let with =
            |text: &str| RedirectUri::parse(text).unwrap().with(&[("code", "a&b"), ("iss", "x")]);

        assert_eq!(with("https://app.example/cb"), "https://app.example/cb?code=a%26b&iss=x");
        assert_eq!(
            with("https://app.example/cb?t=1"),
            "https://app.example/cb?t=1&code=a%26b&iss=x"
        );
    }
}
