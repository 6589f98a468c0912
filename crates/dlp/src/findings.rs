//! Results of a scan: findings with places and fingerprints, never matched text.

pub(super) mod finding;
pub(super) mod fingerprint;
pub(super) mod subject;
