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
/// Random bytes that the key of a text of the installation is derived from, besides the purpose.
const SALT_LEN: usize = 16;

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
        seal_under(&self.key(org, subject)?, answer, source)
    }

    /// Opens what [`Self::seal`] gave. `None` for another key, org or subject, or changed bytes.
    #[must_use]
    pub fn open(&self, org: OrgId, subject: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        open_under(&self.key(org, subject)?, sealed)
    }

    /// Seals a text of the installation for this purpose, under a key of its own. `None` if the cipher fails,
    /// which it does for no input.
    #[must_use]
    pub fn seal_of_installation(
        &self,
        purpose: &str,
        text: &[u8],
        source: &dyn Random,
    ) -> Option<Vec<u8>> {
        let salt = random::bytes::<SALT_LEN>(source);
        let mut sealed = salt.to_vec();
        sealed.append(&mut seal_under(&self.key_of_installation(purpose, &salt)?, text, source)?);
        Some(sealed)
    }

    /// Opens what [`Self::seal_of_installation`] gave. `None` for another key or purpose, or changed bytes.
    #[must_use]
    pub fn open_of_installation(&self, purpose: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (salt, sealed) = sealed.split_at_checked(SALT_LEN)?;
        open_under(&self.key_of_installation(purpose, salt)?, sealed)
    }

    fn key_of_installation(&self, purpose: &str, salt: &[u8]) -> Option<LessSafeKey> {
        self.expanded(&[b"installation\n", purpose.as_bytes(), b"\n", salt])
    }

    fn key(&self, org: OrgId, subject: &str) -> Option<LessSafeKey> {
        let org = org.to_string();
        let context = [ANSWERS.as_bytes(), b"\n", org.as_bytes(), b"\n", subject.as_bytes()];
        self.expanded(&context)
    }

    fn expanded(&self, context: &[&[u8]]) -> Option<LessSafeKey> {
        let expanded = self.0.expand(context, &AES_256_GCM).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(expanded)))
    }
}

fn seal_under(key: &LessSafeKey, text: &[u8], source: &dyn Random) -> Option<Vec<u8>> {
    let nonce = random::bytes::<NONCE_LEN>(source);
    let mut sealed = Vec::with_capacity(NONCE_LEN + text.len() + AES_256_GCM.tag_len());
    sealed.extend_from_slice(&nonce);
    sealed.extend_from_slice(text);
    let text = sealed.get_mut(NONCE_LEN..)?;
    let nonce = Nonce::assume_unique_for_key(nonce);
    let tag = key.seal_in_place_separate_tag(nonce, Aad::empty(), text);
    sealed.extend_from_slice(tag.ok()?.as_ref());
    Some(sealed)
}

fn open_under(key: &LessSafeKey, sealed: &[u8]) -> Option<Vec<u8>> {
    let (nonce, sealed) = sealed.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut text = sealed.to_vec();
    let length = key.open_in_place(nonce, Aad::empty(), &mut text).ok()?.len();
    text.truncate(length);
    Some(text)
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
