//! Events as lines of a table (RFC 4180), for spreadsheets.
//!
//! A spreadsheet runs what looks like a formula. So a cell that begins with `=`, `+`, `-`, `@`, one of their
//! full-width forms, a tab, a line feed or a carriage return gets an apostrophe in front.

use std::borrow::Cow;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use csv::{Terminator, WriterBuilder};

use super::row::{Sealed, StoredError};

/// Mark by which Excel reads a table as UTF-8, before everything else.
const MARK: &[u8] = "\u{feff}".as_bytes();

/// The columns, always these and in this order.
const COLUMNS: [&str; 20] = [
    "sequence", "id", "occurred_at", "type", "actor_type", "actor_id", "actor_name", "via",
    "target", "decision", "policy", "policy_set", "dlp_result", "outcome", "http_status",
    "executed", "reason", "source_ip", "request_id", "leaf_hash",
];

/// The header, behind the mark if that is wanted.
pub(super) fn csv_head(mark: bool) -> Vec<u8> {
    let mark = if mark { MARK } else { &[] };
    [mark, &line(COLUMNS)].concat()
}

/// The line of an event. With `mismatches` the last cell names them instead of the leaf hash, which is not that of
/// this event.
pub(super) fn csv_line(sealed: &Sealed<'_>, mismatches: &[String]) -> Result<Vec<u8>, StoredError> {
    let stored = sealed.stored()?;
    let names = sealed.names()?;
    let governance = stored.governance.as_ref();
    let target = stored.target.as_ref().and_then(|target| target.id.as_deref());
    let cells: [Cow<'_, str>; COLUMNS.len()] = [
        Cow::Owned(sealed.sequence.to_string()),
        stored.id,
        stored.occurred_at,
        stored.kind,
        stored.actor.kind,
        cell(stored.actor.id.as_deref()),
        cell(names.actor_name.as_deref()),
        cell(stored.actor.via.as_deref()),
        cell(target),
        cell(governance.and_then(|it| it.decision.as_deref())),
        cell(governance.and_then(|it| it.policy.as_deref())),
        cell(governance.and_then(|it| it.policy_set.as_deref())),
        cell(governance.map(|it| &*it.dlp_result)),
        stored.outcome.status,
        Cow::Owned(stored.outcome.http_status.to_string()),
        stored.outcome.executed,
        cell(governance.and_then(|it| it.reason.as_deref())),
        cell(names.source_ip.as_deref()),
        cell(stored.request.as_ref().map(|request| &*request.id)),
        Cow::Owned(attested(sealed, mismatches)),
    ];
    Ok(line(cells.iter().map(|cell| harmless(cell).into_owned())))
}

fn line(cells: impl IntoIterator<Item = impl AsRef<[u8]>>) -> Vec<u8> {
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(Vec::new());
    // Writing to memory cannot fail.
    let _ = writer.write_record(cells);
    writer.into_inner().unwrap_or_default()
}

fn attested(sealed: &Sealed<'_>, mismatches: &[String]) -> String {
    if mismatches.is_empty() {
        STANDARD.encode(sealed.leaf_hash)
    } else {
        format!("mismatch: {}", mismatches.join(" "))
    }
}

fn cell(text: Option<&str>) -> Cow<'_, str> {
    Cow::Borrowed(text.unwrap_or_default())
}

/// Beginnings of what spreadsheets take for formulas.
const FORMULAS: [char; 11] =
    ['=', '+', '-', '@', '\u{ff1d}', '\u{ff0b}', '\u{ff0d}', '\u{ff20}', '\t', '\n', '\r'];

/// The same text, of which a spreadsheet makes no formula.
fn harmless(text: &str) -> Cow<'_, str> {
    if text.starts_with(FORMULAS) { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    const CORE: &str = r#"{"actor":{"auth":{"method":"operator","trust":null},"id":"sa_1","token_id":"tok_1","type":"service","via":null},"commitments":{},"governance":{"decision":"deny","determining_policies":[],"dlp_findings":[],"dlp_result":"skipped","policy":"p","policy_set":"sha256:1","policy_version":null,"reason":"REASON","shadow":[]},"id":"evt_1","occurred_at":"2026-11-20T11:02:10.123Z","org_id":"org_1","outcome":{"error_code":null,"executed":"no","http_status":403,"status":"denied"},"request":{"id":"req_1","idempotent":false,"trace_id":null},"schema":1,"target":null,"type":"mcp.invocation"}"#;

    fn row(reason: &str) -> String {
        let core = CORE.replace("\"REASON\"", &serde_json::to_string(reason).unwrap());
        let sealed = Sealed {
            core: &core,
            detached: Some(r#"{"actor_name":"Alice, \"A\"","input":null}"#),
            salts: None,
            sequence: 7,
            recorded_at: Timestamp::default(),
            leaf_hash: [0; 32],
        };
        String::from_utf8(csv_line(&sealed, &[]).unwrap()).unwrap()
    }

    #[test]
    fn a_line_is_quoted_as_rfc_4180_says() {
        let line = row("no, \"never\"\nat all");

        let wanted = concat!(
            "7,evt_1,2026-11-20T11:02:10.123Z,mcp.invocation,service,sa_1,\"Alice, \"\"A\"\"\",,,",
            "deny,p,sha256:1,skipped,denied,403,no,\"no, \"\"never\"\"\nat all\",,req_1,",
            "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"
        );
        assert_eq!(line, wanted);
    }

    #[test]
    fn what_a_spreadsheet_would_run_is_a_text() {
        for start in FORMULAS {
            let line = row(&format!("{start}1+1"));

            assert!(line.contains(&format!("'{start}1+1")), "{line:?}");
        }
        assert!(row("a=1").contains(",a=1,"));
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let sealed = Sealed {
            core: "{}",
            detached: None,
            salts: None,
            sequence: 7,
            recorded_at: Timestamp::default(),
            leaf_hash: [0; 32],
        };

        assert_eq!(csv_line(&sealed, &[]), Err(StoredError(7)));
    }
}
