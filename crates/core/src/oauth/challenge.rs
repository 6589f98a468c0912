//! Challenges in answers with status 401 or 403 (RFC 6750 §3, RFC 9728 §5.1).

use super::scopes;

const MAX_HEADER_BYTES: usize = 8 << 10;

/// A `WWW-Authenticate` of the scheme `Bearer`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Challenge {
    /// True if the token is good and its scopes are not enough.
    pub insufficient_scope: bool,
    pub scopes: Vec<String>,
    /// Address of the resource's metadata, which names its authorization servers.
    pub resource_metadata: Option<String>,
}

impl Challenge {
    /// Reads the value of one header; `None` if there is no Bearer challenge in it.
    #[must_use]
    pub fn parse(header: &str) -> Option<Self> {
        if header.len() > MAX_HEADER_BYTES {
            return None;
        }
        let parameters = bearer(header)?;
        let mut found = Self::default();
        for (name, value) in parameters {
            match name.as_str() {
                "error" => found.insufficient_scope = value == "insufficient_scope",
                "scope" => found.scopes = scopes(&value, &[' ']),
                "resource_metadata" => found.resource_metadata = Some(value),
                _ => {}
            }
        }
        Some(found)
    }

    /// The scopes to ask for: what was granted already, then what is needed besides.
    #[must_use]
    pub fn beside(&self, granted: &[String]) -> Vec<String> {
        let new = self.scopes.iter().filter(|scope| !granted.contains(scope));
        granted.iter().chain(new).cloned().collect()
    }
}

/// The parameters of the Bearer challenge among those of other schemes.
fn bearer(header: &str) -> Option<Vec<(String, String)>> {
    let mut inside = false;
    let mut seen = false;
    let mut parameters = Vec::new();
    for part in parts(header) {
        let part = part.trim();
        let (head, value) = part.split_once('=').map_or((part, None), |(h, v)| (h, Some(v)));
        // A new scheme stands before its first parameter, separated by a space.
        let name = match head.trim().split_once(char::is_whitespace) {
            Some((scheme, name)) => {
                inside = scheme.eq_ignore_ascii_case("bearer");
                name.trim()
            }
            None if value.is_none() => {
                inside = head.trim().eq_ignore_ascii_case("bearer");
                ""
            }
            None => head.trim(),
        };
        seen |= inside;
        if let Some(value) = value.filter(|_| inside && !name.is_empty()) {
            parameters.push((name.to_ascii_lowercase(), unquoted(value.trim())));
        }
    }
    seen.then_some(parameters)
}

/// Splits at commas that are not inside quotes.
fn parts(header: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    let mut quoted = false;
    let mut escaped = false;
    for (at, byte) in header.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b',' if !quoted => {
                parts.extend(header.get(from..at));
                from = at + 1;
            }
            _ => {}
        }
    }
    parts.extend(header.get(from..));
    parts
}

fn unquoted(value: &str) -> String {
    let Some(inner) = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) else {
        return value.to_owned();
    };
    let mut text = String::with_capacity(inner.len());
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        text.extend(if letter == '\\' { letters.next() } else { Some(letter) });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bearer_challenge_is_found_among_others() {
        let header = r#"Basic realm="a, b", Bearer error="insufficient_scope", scope="files:read files:write", resource_metadata="https://mcp.example/.well-known/oauth-protected-resource", DPoP algs="ES256", scope="no""#;

        let challenge = Challenge::parse(header).unwrap();

        assert!(challenge.insufficient_scope);
        assert_eq!(challenge.scopes, ["files:read", "files:write"]);
        let metadata = "https://mcp.example/.well-known/oauth-protected-resource";
        assert_eq!(challenge.resource_metadata.as_deref(), Some(metadata));
    }

    #[test]
    fn a_challenge_is_read_in_every_legal_form() {
        for header in [
            r#"Bearer resource_metadata="https://a.example/m", scope="read""#,
            r#"bearer Resource_Metadata="https://a.example/m", SCOPE="read""#,
            r#"Bearer resource_metadata = "https://a.example/m" ,scope = "read""#,
            r#"Bearer error_description="lacks scope=write, resource_metadata=x", scope=read, resource_metadata="https://a.example/m""#,
        ] {
            let challenge = Challenge::parse(header).unwrap();

            assert_eq!(challenge.scopes, ["read"], "{header}");
            assert_eq!(challenge.resource_metadata.as_deref(), Some("https://a.example/m"));
        }
    }

    #[test]
    fn a_bare_scheme_is_a_challenge_and_garbage_is_none() {
        assert_eq!(Challenge::parse("Bearer"), Some(Challenge::default()));
        assert_eq!(Challenge::parse("bearer realm=x"), Some(Challenge::default()));
        for garbage in ["", "Basic realm=\"Bearer\"", "\"", ",,,=", &"Bearer ".repeat(5_000)] {
            assert_eq!(Challenge::parse(garbage), None, "{garbage:.20}");
        }
    }
}
