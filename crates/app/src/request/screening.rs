//! DLP settings in force, for texts that are no part of a call, and the keys of fingerprints.

pub(crate) mod specimen_report;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use arc_swap::ArcSwap;
use aws_lc_rs::hmac;
use portcullis_core::{
    capability::Capability,
    dlp::{Action, Direction, Findings, FingerprintKey, Mask, Subject, Unscannable},
    id::OrgId,
};
use serde_json::Value;

use super::dlp::Dlp;
use crate::base::{Base, tenants::Tenant};

/// Data-loss prevention as this node does it now.
#[derive(Debug)]
pub struct Screening {
    pub(crate) base: Arc<Base>,
    dlp: ArcSwap<Dlp>,
    /// Number of times that other settings came in force.
    replaced: AtomicU64,
    fingerprint_key: hmac::Key,
}

impl Screening {
    pub(crate) fn new(base: Arc<Base>, dlp: Dlp, fingerprint_key: &[u8; 32]) -> Self {
        let fingerprint_key = hmac::Key::new(hmac::HMAC_SHA256, fingerprint_key);
        let dlp = ArcSwap::from_pointee(dlp);
        Self { base, dlp, replaced: AtomicU64::new(0), fingerprint_key }
    }

    /// Puts other settings in force.
    pub(crate) fn replace(&self, dlp: Dlp) {
        self.dlp.store(Arc::new(dlp));
        self.replaced.fetch_add(1, Ordering::AcqRel);
    }

    /// A number that is another one once other settings are in force.
    pub(crate) fn settings(&self) -> u64 {
        self.replaced.load(Ordering::Acquire)
    }

    /// The scanners of calls now in use.
    #[must_use]
    pub fn dlp(&self) -> Arc<Dlp> {
        self.dlp.load_full()
    }

    /// True if DLP finds nothing in a text of a caller that is no part of a call.
    pub(crate) fn is_clean(&self, text: &str) -> bool {
        self.scan_text(text).is_ok_and(|(_, findings)| findings.is_empty())
    }

    /// A text of a caller as it may be recorded beside a call: what would not leave in an answer
    /// is masked.
    pub(crate) fn recordable(&self, text: &str) -> String {
        let dlp = self.dlp();
        let Ok((value, findings)) = self.scan_text(text) else { return String::new() };
        if findings.is_empty() {
            return text.to_owned();
        }
        let masked = dlp.engine().redact_value(&value, &findings, |finding| {
            let action = dlp.engine().default_action(finding, Direction::Output);
            (action != Action::Flag).then_some(Mask::Placeholder)
        });
        masked.as_str().map_or_else(String::new, str::to_owned)
    }

    fn scan_text(&self, text: &str) -> Result<(Value, Findings), Unscannable> {
        let value = Value::from(text);
        // These fingerprints are never shown.
        let findings = self.dlp().engine().scan(&value, &FingerprintKey::new([0; 32]))?;
        Ok((value, findings))
    }

    /// Subject of a scan: equal values have equal fingerprints within an org and nowhere else.
    pub(crate) fn subject(&self, tenant: &Tenant, tool: &Capability) -> Subject {
        let key = tenant.fingerprints.get_or_init(|| self.fingerprints_of(tenant.org));
        Subject::of(key.clone()).calling(tool.id.as_str())
    }

    /// The key under which the values of an org have their fingerprints.
    pub(crate) fn fingerprints_of(&self, org: OrgId) -> FingerprintKey {
        fingerprint_key(&self.fingerprint_key, org)
    }
}

/// The key under which the values of an org have their fingerprints.
#[must_use]
pub fn fingerprint_key(all: &hmac::Key, org: OrgId) -> FingerprintKey {
    let tag = hmac::sign(all, org.to_string().as_bytes());
    let mut key = [0; 32];
    key.copy_from_slice(tag.as_ref());
    FingerprintKey::new(key)
}
