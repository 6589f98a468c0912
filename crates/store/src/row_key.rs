//! Codes over rows of the log that wait: for their seals, or for the ends of their calls. Who can write the
//! database but has no key of the installation can neither add such a row nor change one.

use std::{fmt, sync::Arc};

use aws_lc_rs::{
    digest::{SHA256, digest},
    hmac::{self, HMAC_SHA256},
};

/// Purpose for which the key is derived.
const ROWS: &[u8] = b"audit-rows";

/// Key of the codes over waiting rows. Clones are the same.
#[derive(Clone)]
pub struct RowKey(Arc<hmac::Key>);

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

/// A packed record and its SHA-256.
#[derive(Debug, Clone)]
pub(crate) struct PackedRecord {
    pub(crate) bytes: Vec<u8>,
    digest: [u8; 32],
}

impl PackedRecord {
    pub(crate) fn of(bytes: Vec<u8>) -> Self {
        let mut sum = [0; 32];
        sum.copy_from_slice(digest(&SHA256, &bytes).as_ref());
        Self { bytes, digest: sum }
    }
}

impl RowKey {
    /// Derives it from the key of the installation.
    #[must_use]
    pub fn derive(installation: &[u8; 32]) -> Self {
        let derived = hmac::sign(&hmac::Key::new(HMAC_SHA256, installation), ROWS);
        Self(Arc::new(hmac::Key::new(HMAC_SHA256, derived.as_ref())))
    }

    /// The code of a row with this record.
    pub(crate) fn code(&self, row: CodedRow<'_>, record: &PackedRecord) -> Vec<u8> {
        hmac::sign(&self.0, &message(row, &record.digest)).as_ref().to_vec()
    }

    /// Returns true if the row has the code that it was written with. A row without one has not.
    pub(crate) fn fits(
        &self,
        row: CodedRow<'_>,
        packed: Option<&[u8]>,
        code: Option<&[u8]>,
    ) -> bool {
        let Some((packed, code)) = packed.zip(code) else { return false };
        let record = digest(&SHA256, packed);
        hmac::verify(&self.0, &message(row, record.as_ref()), code).is_ok()
    }
}

/// The bytes that are authenticated: each part behind its length.
fn message(row: CodedRow<'_>, record: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(192);
    let mut add = |part: &[u8]| {
        bytes.extend_from_slice(&part.len().to_be_bytes());
        bytes.extend_from_slice(part);
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
    bytes
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
