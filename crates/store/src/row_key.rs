//! Codes over rows of the log that wait: for their seals, or for the ends of their calls. Who can write the
//! database but has no key of the installation can neither add such a row nor change one.

use std::{fmt, sync::Arc};

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Purpose for which the key is derived.
const ROWS: &[u8] = b"audit-rows";

/// Key of the codes over waiting rows. Clones are the same.
#[derive(Clone)]
pub struct RowKey(Arc<Hmac<Sha256>>);

impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowKey(…)")
    }
}

/// Columns that the code of a row covers, besides its record.
#[derive(Debug, Clone, Copy)]
pub(crate) enum CodedRow<'a> {
    Intent { id: &'a str, org_id: &'a str },
    Event { id: &'a str, org_id: &'a str, kind: &'a str, committed_at: i64 },
}

/// A packed record.
#[derive(Debug, Clone)]
pub(crate) struct PackedRecord {
    pub(crate) bytes: Vec<u8>,
}

impl PackedRecord {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        Self { bytes }
    }
}

impl RowKey {
    /// Derives it from the key of the installation.
    #[must_use]
    pub fn derive(installation: &[u8; 32]) -> Self {
        let derived = keyed(installation).chain_update(ROWS).finalize().into_bytes();
        Self(Arc::new(keyed(&derived.into())))
    }

    /// The code of a row with this record.
    pub(crate) fn code(&self, row: CodedRow<'_>, record: &PackedRecord) -> Vec<u8> {
        self.over(row, &record.bytes).finalize().into_bytes().to_vec()
    }

    /// Returns true if the row has the code that it was written with. A row without one has not.
    pub(crate) fn fits(
        &self,
        row: CodedRow<'_>,
        packed: Option<&[u8]>,
        code: Option<&[u8]>,
    ) -> bool {
        let Some((packed, code)) = packed.zip(code) else { return false };
        self.over(row, packed).verify_slice(code).is_ok()
    }

    /// The code over each part behind its length.
    fn over(&self, row: CodedRow<'_>, record: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::clone(&self.0);
        let mut add = |part: &[u8]| {
            mac.update(&part.len().to_be_bytes());
            mac.update(part);
        };
        match row {
            CodedRow::Intent { id, org_id } => {
                for text in ["intent", id, org_id] {
                    add(text.as_bytes());
                }
            }
            CodedRow::Event { id, org_id, kind, committed_at } => {
                for text in ["event", id, org_id, kind] {
                    add(text.as_bytes());
                }
                add(&committed_at.to_be_bytes());
            }
        }
        add(record);
        mac
    }
}

/// HMAC by a key that is shorter than a block.
fn keyed(key: &[u8; 32]) -> Hmac<Sha256> {
    let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
    block.iter_mut().zip(key).for_each(|(to, byte)| *to = *byte);
    Hmac::new(&block)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_fits_its_row_alone() {
        let key = RowKey::derive(&[1; 32]);
        let row = CodedRow::Event { id: "evt_1", org_id: "org_1", kind: "a.b", committed_at: 7 };
        let intent = CodedRow::Intent { id: "evt_1", org_id: "org_1" };
        let code = key.code(row, &PackedRecord::of(b"record".to_vec()));
        let others = [
            CodedRow::Event { id: "evt_2", org_id: "org_1", kind: "a.b", committed_at: 7 },
            CodedRow::Event { id: "evt_1", org_id: "org_2", kind: "a.b", committed_at: 7 },
            CodedRow::Event { id: "evt_1", org_id: "org_1", kind: "a.c", committed_at: 7 },
            CodedRow::Event { id: "evt_1", org_id: "org_1a", kind: ".b", committed_at: 7 },
            CodedRow::Event { id: "evt_1", org_id: "org_1", kind: "a.b", committed_at: 8 },
            intent,
        ];

        assert!(key.fits(row, Some(b"record"), Some(&code)));
        assert!(!key.fits(row, Some(b"Record"), Some(&code)));
        assert!(!RowKey::derive(&[2; 32]).fits(row, Some(b"record"), Some(&code)));
        for lacking in [(None, Some(&code[..])), (Some(&b"record"[..]), None)] {
            assert!(!key.fits(row, lacking.0, lacking.1));
        }
        for other in others {
            assert!(!key.fits(other, Some(b"record"), Some(&code)), "{other:?}");
        }
        let code = key.code(intent, &PackedRecord::of(b"record".to_vec()));
        assert!(key.fits(intent, Some(b"record"), Some(&code)));
        assert!(!format!("{key:?}").contains(['1', '[']), "{key:?}");
    }
}
