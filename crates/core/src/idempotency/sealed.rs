//! Stored answers, sealed: a reader of the database without the key file can open none.
//!
//! Each answer has a key of its own, HKDF-SHA-256 (RFC 5869) of the installation's with org and
//! event as context, so that a random nonce of AES-256-GCM is never asked for more than a few.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey},
    hkdf::{HKDF_SHA256, Prk},
};

use crate::{
    id::OrgId,
    random::{self, Random},
};

/// Purpose for which the key of stored answers is derived.
pub const ANSWERS: &str = "idempotent-answers";

/// Seals the answers of one installation.
pub struct AnswerKey(Prk);

impl std::fmt::Debug for AnswerKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AnswerKey(…)")
    }
}

impl AnswerKey {
    /// From 32 bytes that are used for nothing else.
    #[must_use]
    pub fn new(key: &[u8; 32]) -> Self {
        Self(Prk::new_less_safe(HKDF_SHA256, key))
    }

    /// Seals an answer to what `subject` names in the org. `None` if the cipher fails, which it
    /// does for no input.
    #[must_use]
    pub fn seal(
        &self,
        org: OrgId,
        subject: &str,
        answer: &[u8],
        source: &dyn Random,
    ) -> Option<Vec<u8>> {
        let nonce = random::bytes::<NONCE_LEN>(source);
        let mut sealed = Vec::with_capacity(NONCE_LEN + answer.len() + AES_256_GCM.tag_len());
        sealed.extend_from_slice(&nonce);
        sealed.extend_from_slice(answer);
        let text = sealed.get_mut(NONCE_LEN..)?;
        let nonce = Nonce::assume_unique_for_key(nonce);
        let tag = self.key(org, subject)?.seal_in_place_separate_tag(nonce, Aad::empty(), text);
        sealed.extend_from_slice(tag.ok()?.as_ref());
        Some(sealed)
    }

    /// Opens what [`Self::seal`] gave. `None` for another key, org or subject, or changed bytes.
    #[must_use]
    pub fn open(&self, org: OrgId, subject: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut text = sealed.to_vec();
        let length = self.key(org, subject)?.open_in_place(nonce, Aad::empty(), &mut text);
        let length = length.ok()?.len();
        text.truncate(length);
        Some(text)
    }

    fn key(&self, org: OrgId, subject: &str) -> Option<LessSafeKey> {
        let org = org.to_string();
        let context = [ANSWERS.as_bytes(), b"\n", org.as_bytes(), b"\n", subject.as_bytes()];
        let expanded = self.0.expand(&context, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(expanded)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Sevens;

    #[test]
    fn an_answer_opens_only_under_its_key_for_its_org_and_subject() {
        let key = AnswerKey::new(&[1; 32]);
        let org: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap();
        let other: OrgId = "org_01M754BKTKX1YB8Q05NMW9TP4H".parse().unwrap();

        let sealed = key.seal(org, "evt_1", b"the answer", &Sevens).unwrap();

        assert!(!sealed.windows(3).any(|window| window == b"ans"));
        assert_eq!(key.open(org, "evt_1", &sealed).unwrap(), b"the answer");
        assert_eq!(key.open(org, "evt_2", &sealed), None);
        assert_eq!(key.open(other, "evt_1", &sealed), None);
        assert_eq!(AnswerKey::new(&[2; 32]).open(org, "evt_1", &sealed), None);
        for at in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[at] ^= 1;
            assert_eq!(key.open(org, "evt_1", &changed), None, "byte {at}");
            assert_eq!(key.open(org, "evt_1", &sealed[..at]), None, "length {at}");
        }
    }
}
