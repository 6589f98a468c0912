//! Request for an export: its range, format, filters and extras.

use portcullis_core::clock::Timestamp;
use portcullis_store::{
    EventFilter,
    filters::{Given, Wrong, read_given},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

/// The longest range, in days.
const MOST_DAYS: i64 = 366;
/// The range if the request has no beginning, in days.
const USUAL_DAYS: i64 = 30;
const DAY: i64 = 86_400;

portcullis_core::words! { listed
    /// Format of an export.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
    #[serde(rename_all = "snake_case")]
    #[schema(as = ExportFormat)]
    pub enum Format {
        #[default]
        /// A manifest, events and a checkpoint, each a line of JSON: the form that can be verified.
        Jsonl = "jsonl",
        /// A table for spreadsheets.
        Csv = "csv",
        /// OCSF API Activity, an event a line.
        Ocsf = "ocsf",
    }
}

impl Format {
    /// The names of all.
    pub const NAMES: [&str; 3] = ["jsonl", "csv", "ocsf"];

    /// The ending of its files.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Ocsf => "ocsf.jsonl",
        }
    }

    /// Its media type.
    #[must_use]
    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Jsonl | Self::Ocsf => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8; header=present",
        }
    }
}

/// The body of an export; without any, the last 30 days as `jsonl`.
#[derive(Debug, Clone, Default, ToSchema)]
#[schema(as = ExportAsked)]
pub struct ExportAsk {
    /// RFC 3339, inclusive, on `recorded_at`; 30 days before `to` by default. Fractions of a
    /// millisecond are rounded up.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub from: Option<Timestamp>,
    /// RFC 3339, exclusive; now by default. At most 366 days after `from`.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub to: Option<Timestamp>,
    /// `jsonl` (default), `csv` or `ocsf`.
    #[schema(example = "jsonl", pattern = "^(jsonl|csv|ocsf)$")]
    pub format: Option<String>,
    /// The filters of `GET /v1/audit/events`, each with an array of values.
    #[schema(value_type = Option<Object>)]
    pub filters: Given,
    /// Of `jsonl`: `payloads`, `proofs`. Of `csv`: `bom`, the mark by which Excel reads UTF-8.
    #[schema(value_type = Option<Vec<String>>)]
    pub include: Vec<String>,
    /// Of `jsonl`: the size of a tree whose checkpoint you kept. The file then also proves that
    /// the log of that time is its beginning.
    pub since: Option<u64>,
}

/// An export that can be made.
#[derive(Debug, Clone)]
pub struct ExportRequest {
    /// From when on. **Invariant:** both bounds are whole milliseconds, as they are written.
    pub from: Timestamp,
    /// Until when; not included.
    pub to: Timestamp,
    pub format: Format,
    pub(crate) filter: EventFilter,
    given: Given,
    /// True if what was captured of arguments and results goes along, with all salts.
    pub(crate) payloads: bool,
    /// True if each event of a filtered export has its own proof.
    pub(crate) proofs: bool,
    /// True if a table begins with a byte order mark.
    pub(crate) bom: bool,
    /// The size of the tree that the file shows to be the beginning of the log.
    pub(crate) since: Option<u64>,
}

impl ExportAsk {
    /// Fills in defaults. Rejects what cannot be made, naming the member.
    pub fn read(self, now: Timestamp) -> Result<ExportRequest, Wrong> {
        // Not rounded up: what is recorded later in this millisecond is the next export's.
        let to = self.to.map_or(now.floor_to_millis(), Timestamp::ceil_to_millis);
        let usual = || to.plus_seconds(-USUAL_DAYS * DAY);
        let from = self.from.map_or_else(usual, Timestamp::ceil_to_millis);
        if from >= to {
            return Err(Wrong::new("to", "has to be later than `from`"));
        }
        if to.as_micros().saturating_sub(from.as_micros()) > MOST_DAYS * DAY * 1_000_000 {
            return Err(Wrong::new("from", format!("may be {MOST_DAYS} days before `to`")));
        }
        let named = self.format.as_deref().map_or(Some(Format::Jsonl), Format::from_word);
        let format = named
            .ok_or_else(|| Wrong::new("format", format!("takes {}", Format::NAMES.join(", "))))?;
        for what in &self.include {
            let goes_with = match what.as_str() {
                "payloads" | "proofs" => Format::Jsonl,
                "bom" => Format::Csv,
                _ => return Err(Wrong::new("include", "takes payloads, proofs, bom")),
            };
            if format != goes_with {
                let problem = "takes payloads and proofs with the format jsonl, bom with csv";
                return Err(Wrong::new("include", problem));
            }
        }
        if format != Format::Jsonl && self.since.is_some() {
            return Err(Wrong::new(
                "since",
                "goes with the format jsonl; the others prove nothing",
            ));
        }
        let includes = |name: &str| self.include.iter().any(|what| what == name);
        let filter = read_given(&self.filters)
            .map_err(|wrong| Wrong { name: format!("filters/{}", wrong.name), ..wrong })?;
        Ok(ExportRequest {
            from,
            to,
            format,
            filter,
            payloads: includes("payloads"),
            proofs: includes("proofs"),
            bom: includes("bom"),
            since: self.since,
            given: self.filters,
        })
    }
}

impl ExportRequest {
    /// True if the file proves that nothing in the range was left out.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.format == Format::Jsonl && self.given.is_empty()
    }

    /// The filters as they were given.
    #[must_use]
    pub fn filters(&self) -> Value {
        json!(self.given)
    }

    /// Names of the extras asked for.
    #[must_use]
    pub fn include(&self) -> Vec<&'static str> {
        let all = [("payloads", self.payloads), ("proofs", self.proofs), ("bom", self.bom)];
        all.into_iter().filter(|(_, wanted)| *wanted).map(|(name, _)| name).collect()
    }

    /// The request as it is remembered and told.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "format": self.format.as_str(),
            "from": self.from,
            "to": self.to,
            "filters": self.filters(),
            "include": self.include(),
            "since": self.since,
            "complete": self.is_complete(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_micros(1_795_172_535_123_000);

    fn wrong(ask: ExportAsk) -> String {
        ask.read(NOW).unwrap_err().name
    }

    #[test]
    fn thirty_days_of_jsonl_are_what_is_made_when_nothing_is_asked_for() {
        let request = ExportAsk::default().read(NOW).unwrap();

        assert_eq!((request.from, request.to), (NOW.plus_seconds(-30 * DAY), NOW));
        assert_eq!(request.format, Format::Jsonl);
        assert!(request.is_complete());
    }

    #[test]
    fn ranges_that_are_none_or_too_long_are_refused() {
        let ask = |from, to| ExportAsk { from: Some(from), to: Some(to), ..ExportAsk::default() };

        assert_eq!(wrong(ask(NOW, NOW)), "to");
        assert_eq!(wrong(ExportAsk { from: Some(NOW), ..ExportAsk::default() }), "to");
        assert_eq!(wrong(ask(NOW, NOW.plus_seconds(366 * DAY + 1))), "from");
        assert!(ask(NOW, NOW.plus_seconds(366 * DAY)).read(NOW).is_ok());
    }

    #[test]
    fn what_no_format_has_is_refused() {
        let ask = |format: &str, include: &str| ExportAsk {
            format: Some(format.to_owned()),
            include: vec![include.to_owned()],
            ..ExportAsk::default()
        };

        assert_eq!(wrong(ask("parquet", "proofs")), "format");
        assert_eq!(wrong(ask("jsonl", "everything")), "include");
        assert_eq!(wrong(ask("csv", "payloads")), "include");
        assert_eq!(wrong(ask("jsonl", "bom")), "include");
        assert_eq!(wrong(ask("ocsf", "bom")), "include");
        assert_eq!(ask("csv", "bom").read(NOW).unwrap().include(), ["bom"]);
        let csv = Some("csv".to_owned());
        assert_eq!(
            wrong(ExportAsk { format: csv, since: Some(1), ..ExportAsk::default() }),
            "since"
        );
        assert!(ask("jsonl", "payloads").read(NOW).unwrap().payloads);
    }

    #[test]
    fn a_filtered_export_is_not_complete() {
        let filters = Given::from([("decision".to_owned(), vec!["deny".to_owned()])]);

        let request = ExportAsk { filters, ..ExportAsk::default() }.read(NOW).unwrap();

        assert!(!request.is_complete());
        let told = request.to_json();
        assert_eq!(told["filters"], json!({"decision": ["deny"]}));
        let filters = Given::from([("colour".to_owned(), vec!["red".to_owned()])]);
        assert_eq!(wrong(ExportAsk { filters, ..ExportAsk::default() }), "filters/colour");
    }
}
