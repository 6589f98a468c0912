//! Cursors: authenticated and encrypted, bound to org, list and filters, valid for 24 hours.

use aws_lc_rs::{
    aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey},
    digest,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use portcullis_core::{clock::Timestamp, id::OrgId, refusal::Refusal};

const LIFETIME_SECONDS: i64 = 24 * 60 * 60;
const VERSION: &str = "c1.";

/// Seals and opens cursors.
pub struct Cursors(RandomizedNonceKey);

impl std::fmt::Debug for Cursors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cursors")
    }
}

/// The list that a cursor belongs to: it opens nowhere else.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List<'a> {
    pub(crate) org: OrgId,
    pub(crate) name: &'static str,
    pub(crate) filters: &'a [(&'a str, Option<&'a str>)],
}

impl List<'_> {
    fn binding(&self) -> Vec<u8> {
        let mut context = digest::Context::new(&digest::SHA256);
        for part in [self.org.to_string().as_str(), self.name] {
            context.update(part.as_bytes());
            context.update(&[0]);
        }
        for (name, value) in self.filters {
            context.update(name.as_bytes());
            context.update(&[1]);
            context.update(value.unwrap_or_default().as_bytes());
            context.update(&[0]);
        }
        context.finish().as_ref().to_vec()
    }
}

impl Cursors {
    /// Under a key of 32 bytes.
    pub fn new(key: &[u8; 32]) -> Result<Self, aws_lc_rs::error::Unspecified> {
        RandomizedNonceKey::new(&AES_256_GCM, key).map(Self)
    }

    /// A cursor that resumes `list` after `position`.
    pub(crate) fn seal(&self, list: &List<'_>, position: &str, now: Timestamp) -> Option<String> {
        let mut sealed = format!("{}|{position}", now.as_seconds()).into_bytes();
        let aad = Aad::from(list.binding());
        let nonce = self.0.seal_in_place_append_tag(aad, &mut sealed).ok()?;
        let mut bytes = nonce.as_ref().to_vec();
        bytes.append(&mut sealed);
        Some(format!("{VERSION}{}", URL_SAFE_NO_PAD.encode(bytes)))
    }

    /// The position inside a cursor. Rejects a foreign, changed or old one.
    pub(crate) fn open(
        &self,
        list: &List<'_>,
        cursor: &str,
        now: Timestamp,
    ) -> Result<String, Refusal> {
        self.opened(list, cursor, now).ok_or_else(|| {
            let message = "The cursor is not valid for this list and these filters, or older than \
                           24 hours; begin again without it.";
            Refusal::bad_parameter("cursor", message)
        })
    }

    fn opened(&self, list: &List<'_>, cursor: &str, now: Timestamp) -> Option<String> {
        let bytes = URL_SAFE_NO_PAD.decode(cursor.strip_prefix(VERSION)?).ok()?;
        let (nonce, sealed) = bytes.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut sealed = sealed.to_vec();
        let plain = self.0.open_in_place(nonce, Aad::from(list.binding()), &mut sealed).ok()?;
        let (sealed_at, position) = std::str::from_utf8(plain).ok()?.split_once('|')?;
        let age = now.as_seconds() - sealed_at.parse::<i64>().ok()?;
        (age <= LIFETIME_SECONDS).then(|| position.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_000_000);

    fn list<'a>(name: &'static str, filters: &'a [(&'static str, Option<&'a str>)]) -> List<'a> {
        List { org: "org_01M754BKTKX1YB8Q05NMW9TP4G".parse().unwrap(), name, filters }
    }

    #[test]
    fn a_cursor_opens_where_it_was_made_and_nowhere_else() {
        let cursors = Cursors::new(&[7; 32]).unwrap();
        let mine = list("mcps", &[("q", Some("x"))]);
        let cursor = cursors.seal(&mine, "github:list_repos", NOW).unwrap();

        assert_eq!(cursors.open(&mine, &cursor, NOW).unwrap(), "github:list_repos");
        for other in [list("mcps", &[("q", None)]), list("policies", &[("q", Some("x"))])] {
            assert!(cursors.open(&other, &cursor, NOW).is_err());
        }
        assert!(cursors.open(&mine, &cursor, NOW.plus_seconds(LIFETIME_SECONDS + 1)).is_err());
        assert!(Cursors::new(&[8; 32]).unwrap().open(&mine, &cursor, NOW).is_err());
        for broken in ["", "c1.", "c1.AAAA", &cursor[..cursor.len() - 1]] {
            assert!(cursors.open(&mine, broken, NOW).is_err(), "{broken}");
        }
    }
}
