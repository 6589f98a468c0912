//! `[limits]`: where the limits of plans and policies are counted.

use std::{ops::RangeInclusive, time::Duration};

use portcullis_store::CountersUrl;
use serde::Deserialize;

use super::{ConfigError, secrets::SecretSource};

/// Milliseconds that a node waits for an answer of the server.
const TIMEOUT_MS: u64 = 200;
/// The least is that of a network, the most what callers wait for an answer anyway.
const POSSIBLE_MS: RangeInclusive<u64> = 10..=10_000;

/// `[limits]`.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Limits {
    /// The Redis or Valkey server in which nodes count together; each node by itself when absent.
    redis: Option<SecretSource>,
    /// Milliseconds to wait for an answer of that server before a request is refused.
    timeout_ms: Option<u64>,
}

impl Limits {
    /// The server, if nodes count together.
    pub(crate) fn counters(&self) -> Result<Option<CountersUrl>, ConfigError> {
        let Some(source) = &self.redis else { return Ok(None) };
        let wrong = |error: String| ConfigError::Wrong(format!("`limits.redis`: {error}"));
        let url = source.read().map_err(wrong)?;
        url.expose().parse().map(Some).map_err(|error| wrong(format!("{error}")))
    }

    /// Time to wait for an answer of the server. Refuses times in which none can come, and those
    /// that callers would not wait for.
    pub(crate) fn patience(&self) -> Result<Duration, ConfigError> {
        let timeout = self.timeout_ms.unwrap_or(TIMEOUT_MS);
        if POSSIBLE_MS.contains(&timeout) {
            return Ok(Duration::from_millis(timeout));
        }
        let least = POSSIBLE_MS.start();
        let most = POSSIBLE_MS.end();
        Err(ConfigError::Wrong(format!("`limits.timeout_ms` has to be {least} to {most}")))
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

    #[test]
    fn an_answer_is_waited_for_as_long_as_is_set_within_bounds() {
        let patience = |text: &str| toml::from_str::<Limits>(text).unwrap().patience();

        assert_eq!(patience("").unwrap(), Duration::from_millis(200));
        for timeout in [10, 1_500, 10_000] {
            let text = format!("timeout_ms = {timeout}");
            assert_eq!(patience(&text).unwrap(), Duration::from_millis(timeout));
        }
        for timeout in [0, 9, 10_001] {
            let refused = patience(&format!("timeout_ms = {timeout}")).unwrap_err().to_string();
            assert!(refused.contains("`limits.timeout_ms` has to be 10 to 10000"), "{refused}");
        }
    }
}
