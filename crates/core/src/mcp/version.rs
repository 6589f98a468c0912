//! Protocol versions and the two eras that they belong to.

/// The version of the stateless era.
pub const MODERN: &str = "2026-07-28";
/// The versions with a handshake that upstream servers may speak, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The versions in which clients are answered, newest first.
pub const OFFERED: [&str; 3] = [MODERN, "2025-11-25", "2025-06-18"];

/// An era; the older one with the version that is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Era {
    /// Without sessions: each request says all that is needed to answer it.
    Modern,
    /// With a handshake.
    Legacy(&'static str),
}

impl Era {
    /// The era of a version in which clients are answered.
    #[must_use]
    pub fn offered(version: &str) -> Option<Self> {
        let known = OFFERED.into_iter().find(|known| *known == version)?;
        Some(if known == MODERN { Self::Modern } else { Self::Legacy(known) })
    }

    /// The version of the older era that is agreed on with a client that asks for `version`: that
    /// one if it is offered, else the newest.
    #[must_use]
    pub fn agreed(version: &str) -> &'static str {
        match Self::offered(version) {
            Some(Self::Legacy(version)) => version,
            Some(Self::Modern) | None => NEWEST_LEGACY,
        }
    }
}

const NEWEST_LEGACY: &str = LEGACY[0];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_gets_the_version_it_asks_for_or_the_newest_of_its_era() {
        assert_eq!(Era::agreed("2025-06-18"), "2025-06-18");
        for other in ["2025-11-25", "2024-11-05", "2026-07-28", "x"] {
            assert_eq!(Era::agreed(other), "2025-11-25", "{other}");
        }
        assert_eq!(Era::offered(MODERN), Some(Era::Modern));
        assert_eq!(Era::offered("2025-03-26"), None);
    }
}
