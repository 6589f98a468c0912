//! Challenges in answers with status 401 or 403 (RFC 6750 §3, RFC 9728 §5.1).

use http_auth::parser::ChallengeParser;

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
        let mut challenges = ChallengeParser::new(header).map_while(Result::ok);
        let bearer = challenges.find(|it| it.scheme.eq_ignore_ascii_case("bearer"))?;
        let mut found = Self::default();
        for (name, value) in bearer.params {
            let value = value.to_unescaped();
            match name.to_ascii_lowercase().as_str() {
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
        let unquoted = "Bearer resource_metadata=https://a.example/m";
        let long = "Bearer ".repeat(5_000);
        for garbage in ["", "Basic realm=\"Bearer\"", "\"", ",,,=", unquoted, &long] {
            assert_eq!(Challenge::parse(garbage), None, "{garbage:.20}");
        }
    }
}
