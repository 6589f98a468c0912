//! `[limits]`: where the limits of plans and policies are counted.

use portcullis_store::CountersUrl;
use serde::Deserialize;

use super::{ConfigError, providers::SecretSource};

/// `[limits]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// The Redis or Valkey server in which nodes count together; each node by itself when absent.
    redis: Option<SecretSource>,
}

impl Limits {
    /// The server, if nodes count together.
    pub(crate) fn counters(&self) -> Result<Option<CountersUrl>, ConfigError> {
        let Some(source) = &self.redis else { return Ok(None) };
        let wrong = |error: String| ConfigError::Wrong(format!("`limits.redis`: {error}"));
        let url = source.read().map_err(wrong)?;
        url.expose().parse().map(Some).map_err(|error| wrong(format!("{error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(text: &str) -> Result<Option<CountersUrl>, ConfigError> {
        toml::from_str::<Limits>(text).unwrap().counters()
    }

    #[test]
    fn without_a_server_each_node_counts_by_itself() {
        assert!(counters("").unwrap().is_none());
    }

    #[test]
    fn the_server_may_stand_in_the_file_or_elsewhere_and_its_password_is_not_shown() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("redis");
        std::fs::write(&file, "rediss://:hunter2@counters.example/1\n").unwrap();
        let text = format!("redis = {{ file = {:?} }}", file.to_str().unwrap());

        let there = counters(&text).unwrap().unwrap();

        assert_eq!(there.to_string(), "counters.example:6379");
        let here = "redis = \"redis://:hunter2@counters.example\"";
        assert!(!format!("{:?}", toml::from_str::<Limits>(here).unwrap()).contains("hunter2"));
        assert!(counters(here).unwrap().is_some());
    }

    #[test]
    fn what_names_no_server_is_refused() {
        for text in ["redis = \"counters.example\"", "redis = { env = \"NOT_SET_ANYWHERE\" }"] {
            let refused = counters(text).unwrap_err().to_string();

            assert!(refused.contains("`limits.redis`"), "{refused}");
        }
    }
}
