//! The face of the gateway that a token is good for (RFC 8707).

use serde::{Deserialize, Serialize};
use url::Url;

use super::{OAuthError, OwnHosts};
use crate::principal::{Scope, ScopeSet};

/// Longest `resource`.
const MAX_RESOURCE: usize = 2_048;

/// A face of this gateway: an MCP endpoint, or REST.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Face {
    /// `/mcp`: the tools of all providers.
    All,
    /// `/mcp/{slug}`: those of one provider.
    One(String),
    /// `/v1`: REST with administration, and no MCP endpoint.
    Rest,
}

impl Face {
    /// The face that `resource` names, at `public_url` or at another of the gateway's hosts; `/mcp` when it is
    /// absent. Scheme and host count in any case, and a last slash means nothing; the address of the gateway itself
    /// stands for `/mcp`.
    ///
    /// # Errors
    /// `invalid_target` for everything else.
    pub fn of_resource(
        resource: Option<&str>,
        public_url: &str,
        hosts: &OwnHosts,
    ) -> Result<Self, OAuthError> {
        let Some(resource) = resource else { return Ok(Self::All) };
        Self::parse_resource(resource, public_url, hosts).ok_or_else(OAuthError::target)
    }

    fn parse_resource(resource: &str, public_url: &str, hosts: &OwnHosts) -> Option<Self> {
        let odd = |byte: u8| !byte.is_ascii_graphic() || matches!(byte, b'\\' | b'?' | b'#' | b'@');
        if resource.len() > MAX_RESOURCE || resource.bytes().any(odd) {
            return None;
        }
        let (scheme, rest) = resource.split_once("://")?;
        let path = rest.find('/').map_or("", |at| rest.get(at..).unwrap_or_default());
        let own = Url::parse(public_url).ok()?;
        if !scheme.eq_ignore_ascii_case(own.scheme()) {
            return None;
        }
        // The path is taken as it is written: a parser would resolve dots in it.
        if !hosts.admit(&Url::parse(resource).ok()?, &own) {
            return None;
        }
        let path = path.strip_prefix(own.path().trim_end_matches('/'))?;
        if !path.is_empty() && !path.starts_with('/') {
            return None;
        }
        match path.strip_suffix('/').unwrap_or(path) {
            "" => Some(Self::All),
            path => Self::at(path),
        }
    }

    /// The face at exactly this path.
    #[must_use]
    pub fn at(path: &str) -> Option<Self> {
        match path {
            "/mcp" => Some(Self::All),
            "/v1" => Some(Self::Rest),
            path => Self::one(path.strip_prefix("/mcp/")?),
        }
    }

    /// The face of a provider; `None` for what is no slug of one.
    #[must_use]
    pub fn one(slug: &str) -> Option<Self> {
        let letter =
            |it: u8| it.is_ascii_lowercase() || it.is_ascii_digit() || it == b'-' || it == b'_';
        let is_slug = (1..=64).contains(&slug.len()) && slug.bytes().all(letter);
        is_slug.then(|| Self::One(slug.to_owned()))
    }

    /// Its path.
    #[must_use]
    pub fn path(&self) -> String {
        match self {
            Self::All => "/mcp".to_owned(),
            Self::One(slug) => format!("/mcp/{slug}"),
            Self::Rest => "/v1".to_owned(),
        }
    }

    /// The provider whose tools a token of this face may use; `None` for all of them.
    #[must_use]
    pub fn provider(&self) -> Option<&str> {
        match self {
            Self::All | Self::Rest => None,
            Self::One(slug) => Some(slug),
        }
    }

    /// The scopes that tokens of this face can carry: those of an MCP endpoint never administer.
    #[must_use]
    pub const fn ceiling(&self) -> ScopeSet {
        match self {
            Self::All | Self::One(_) => ScopeSet::ALL.without(Scope::Admin),
            Self::Rest => ScopeSet::ALL,
        }
    }

    /// The face that is in both; `None` if there is none. REST has no MCP endpoint in it, nor the reverse.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::All, face @ Self::One(_)) | (face @ Self::One(_), Self::All) => {
                Some(face.clone())
            }
            (one, two) => (one == two).then(|| one.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_a_face_of_this_gateway_or_nothing() {
        let own = "https://gw.example:8443";
        let hosts = OwnHosts::new(["gateway.internal".to_owned()], None);
        let face = |text: &str| Face::of_resource(Some(text), own, &hosts).ok();
        let one = Some(Face::One("github".to_owned()));

        for (text, wanted) in [
            ("https://gw.example:8443/mcp", Some(Face::All)),
            ("https://gw.example:8443/mcp/", Some(Face::All)),
            ("HTTPS://GW.Example:8443/mcp", Some(Face::All)),
            ("https://gw.example:8443", Some(Face::All)),
            ("https://gw.example:8443/", Some(Face::All)),
            ("https://gw.example:8443/mcp/github", one.clone()),
            ("https://gw.example:8443/mcp/github/", one.clone()),
            ("https://gateway.internal/mcp/github", one),
            ("https://Gateway.internal:8443/mcp", Some(Face::All)),
            ("https://gateway.internal:9443/mcp", None),
            ("http://gateway.internal/mcp", None),
            ("https://localhost:8443/mcp", None),
            ("https://gw.example:8443/mcp//", None),
            ("https://gw.example:8443//mcp", None),
            ("https://gw.example:8443/MCP", None),
            ("https://gw.example:8443/mcp/../mcp", None),
            ("https://gw.example:8443/mcp/a/b", None),
            ("https://gw.example:8443/mcp/%67ithub", None),
            ("https://gw.example:8443/mcp?x=1", None),
            ("https://gw.example:8443/mcp#x", None),
            ("https://user@gw.example:8443/mcp", None),
            ("https://gw.example:8443@evil.example/mcp", None),
            ("https://gw.example/mcp", None),
            ("http://gw.example:8443/mcp", None),
            ("https://evil.example/mcp", None),
            ("https:\\\\gw.example:8443/mcp", None),
            ("https:gw.example:8443/mcp", None),
            ("https://gw.example:8443/v1", Some(Face::Rest)),
            ("https://gw.example:8443/v1/", Some(Face::Rest)),
            ("https://gw.example:8443/v1/principals", None),
            ("https://gw.example:8443/V1", None),
            ("mcp", None),
        ] {
            assert_eq!(face(text), wanted, "{text}");
        }
        assert_eq!(Face::of_resource(None, own, &hosts), Ok(Face::All));
        let local = "http://127.0.0.1:8080";
        for (text, wanted) in [
            ("http://localhost:8080/mcp", Some(Face::All)),
            ("http://[::1]:8080/mcp", None),
            ("http://127.0.0.2:8080/mcp", None),
            ("http://localhost:9/mcp", None),
        ] {
            assert_eq!(Face::of_resource(Some(text), local, &hosts).ok(), wanted, "{text}");
        }
    }

    #[test]
    fn below_a_path_a_resource_has_that_path() {
        let hosts = OwnHosts::default();
        let own = "https://gw.example/a";
        let face = |text: &str| Face::of_resource(Some(text), own, &hosts).ok();

        for (text, wanted) in [
            ("https://gw.example/a/mcp", Some(Face::All)),
            ("https://gw.example/a", Some(Face::All)),
            ("https://gw.example/a/", Some(Face::All)),
            ("https://gw.example/a/mcp/github", Some(Face::One("github".to_owned()))),
            ("https://gw.example/a/v1", Some(Face::Rest)),
            ("https://gw.example/mcp", None),
            ("https://gw.example", None),
            ("https://gw.example/ab", None),
            ("https://gw.example/amcp", None),
            ("https://gw.example/a//mcp", None),
        ] {
            assert_eq!(face(text), wanted, "{text}");
        }
    }

    #[test]
    fn faces_meet_in_the_narrower_one() {
        let one = |slug: &str| Face::One(slug.to_owned());

        assert_eq!(Face::All.intersection(&one("a")), Some(one("a")));
        assert_eq!(one("a").intersection(&one("a")), Some(one("a")));
        assert_eq!(one("a").intersection(&one("b")), None);
        assert_eq!(Face::Rest.intersection(&Face::Rest), Some(Face::Rest));
        for mcp in [Face::All, one("a")] {
            assert_eq!(Face::Rest.intersection(&mcp), None);
            assert_eq!(mcp.intersection(&Face::Rest), None);
        }
    }

    #[test]
    fn only_rest_administers() {
        assert!(Face::Rest.ceiling().contains(Scope::Admin));
        for mcp in [Face::All, Face::One("a".to_owned())] {
            assert!(!mcp.ceiling().contains(Scope::Admin));
            assert!(mcp.ceiling().contains(Scope::McpsInvoke));
        }
    }

    #[test]
    fn a_path_names_its_face() {
        for face in [Face::All, Face::Rest, Face::One("github".to_owned())] {
            assert_eq!(Face::at(&face.path()), Some(face));
        }
        for other in ["", "/", "/v1/", "/mcp/", "/v1/x", "mcp"] {
            assert_eq!(Face::at(other), None, "{other}");
        }
    }
}
