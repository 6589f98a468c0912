//! Speed of DLP: clean, dirty and hostile bodies, against a plain memory scan.
//!
//! Every figure is the least processor time of several rounds on one thread, so that a busy
//! machine changes little. Scanning a document and parsing its JSON are measured apart, as they follow
//! one another in a call.

use std::{hint::black_box, time::Duration};

use portcullis_core::{
    dlp::{Engine, FingerprintKey, Mask, Settings, Unscannable},
    json::{Bounds, Document},
};
use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::{Failure, Verdict, args::DlpArgs, say};

mod accuracy;
mod bodies;

/// One body and what it cost.
struct Row {
    name: String,
    bytes: usize,
    scan: Duration,
    /// Parsing the JSON, before it is scanned.
    parse: Duration,
    /// Masking everything that was found; nothing where nothing was.
    redact: Option<Duration>,
    /// Looking for a byte that is not there, over the same bytes.
    memory: Duration,
    findings: u64,
    refused: bool,
}

/// Goal.
const LEAST_CLEAN: f64 = 400.0;
const LEAST_PROSE: f64 = 400.0;
const LEAST_WEBHOOKS: f64 = 150.0;
const LEAST_ADDRESSES: f64 = 60.0;
const LEAST_HOSTILE: f64 = 20.0;
const MOST_DIRTY: f64 = 5.0;
const MOST_HOSTILE: f64 = 20.0;

/// Measures the speed, or the accuracy where there are cases or corpora.
pub(crate) fn run(args: &DlpArgs) -> Result<Verdict, Failure> {
    if args.cases.is_empty() && args.corpora.is_empty() { speed(args) } else { accuracy::run(args) }
}

/// Prints the tables, and whether the goals hold.
fn speed(args: &DlpArgs) -> Result<Verdict, Failure> {
    let engine = Engine::new(&Settings::default())?;
    let bench = Bench { engine, key: FingerprintKey::new([7; 32]), rounds: args.rounds };
    let wanted = |name: &str| name.contains(&args.only);
    let sized = |name, body: fn(usize) -> Value| {
        let sizes = bodies::SIZES.iter().filter(|_| wanted(name));
        sizes.map(|size| bench.row(name, &body(*size))).collect::<Result<Vec<Row>, _>>()
    };
    let clean = sized("clean", bodies::clean)?;
    let dirty = sized("dirty", bodies::dirty)?;
    let prose = sized("prose", bodies::prose)?;
    let webhooks = sized("webhooks", bodies::webhooks)?;
    let addresses = sized("addresses", bodies::addresses)?;
    let hostile = bodies::hostile().into_iter().filter(|(name, _)| wanted(name));
    let hostile = hostile.map(|(name, value)| bench.row(&name, &value));
    let hostile = hostile.collect::<Result<Vec<Row>, _>>()?;
    let basis = clean.last().map_or(0.0, Row::speed);
    let groups = [&clean, &dirty, &prose, &webhooks, &addresses];
    let usual = || groups.into_iter().flatten();
    if args.json {
        let rows = usual().chain(&hostile).map(Row::json);
        say(&format!("{}\n", rows.collect::<Value>()));
    } else {
        table("Clean and dirty", usual(), basis);
        table("Hostile, 1 MB each", hostile.iter(), basis);
    }
    let goals = [
        (&clean, LEAST_CLEAN),
        (&prose, LEAST_PROSE),
        (&webhooks, LEAST_WEBHOOKS),
        (&addresses, LEAST_ADDRESSES),
    ];
    Ok(verdict(&goals, &clean, &dirty, &hostile))
}

/// Compares rows with the least speeds that are wanted of them, and dirty and hostile bodies with clean
/// ones.
fn verdict(goals: &[(&Vec<Row>, f64)], clean: &[Row], dirty: &[Row], hostile: &[Row]) -> Verdict {
    let basis = clean.last().map_or(0.0, Row::speed);
    let slow_usual =
        goals.iter().flat_map(|(rows, least)| rows.iter().filter(move |row| row.speed() < *least));
    let slow_dirty =
        clean.iter().zip(dirty).filter(|(clean, dirty)| clean.speed() > MOST_DIRTY * dirty.speed());
    let slow_hostile = hostile.iter().filter(|row| {
        !row.refused && (row.speed() < LEAST_HOSTILE || basis > MOST_HOSTILE * row.speed())
    });
    let slow: Vec<&Row> =
        slow_usual.chain(slow_dirty.map(|(_, row)| row)).chain(slow_hostile).collect();
    for row in &slow {
        say(&format!(
            "below its goal: {}, {} bytes, {:.0} MB/s\n",
            row.name,
            row.bytes,
            row.speed()
        ));
    }
    if slow.is_empty() { Verdict::Holds } else { Verdict::Broken }
}

struct Bench {
    engine: Engine,
    key: FingerprintKey,
    rounds: usize,
}

impl Bench {
    fn row(&self, name: &str, value: &Value) -> Result<Row, Failure> {
        let text = value.to_string();
        let document = Document::parse(text.as_bytes(), Bounds::UPSTREAM)?;
        let scanned = self.engine.scan(document.root(), &self.key);
        let refused = matches!(scanned, Err(Unscannable::TooMuchDecoding { .. }));
        let scan = self.least(|| {
            let _ = black_box(self.engine.scan(black_box(&document).root(), &self.key));
        });
        let parse = self.least(|| {
            let _ = black_box(Document::parse(black_box(text.as_bytes()), Bounds::UPSTREAM));
        });
        let memory = self.least(|| {
            // JSON text never holds the byte 0x01.
            black_box(memchr::memchr(1, black_box(text.as_bytes())));
        });
        let findings = scanned.unwrap_or_default();
        let redact = (!findings.is_empty()).then(|| {
            self.least(|| {
                let mask = |_: &_| Some(Mask::Placeholder);
                let _ = black_box(self.engine.redact(&document, &findings, None, mask));
            })
        });
        let name = name.to_owned();
        let bytes = text.len();
        let findings = findings.count();
        Ok(Row { name, bytes, scan, parse, redact, memory, findings, refused })
    }

    /// The least time of an act, repeated until a round takes long enough to be measured.
    fn least(&self, mut act: impl FnMut()) -> Duration {
        let started = used();
        act();
        let once = used().saturating_sub(started).max(Duration::from_nanos(20));
        let repeats = (Duration::from_millis(20).as_nanos() / once.as_nanos()).clamp(1, 100_000);
        let repeats = u32::try_from(repeats).unwrap_or(1);
        let mut least = once;
        for _ in 0..self.rounds {
            let started = used();
            for _ in 0..repeats {
                act();
            }
            least = least.min(used().saturating_sub(started) / repeats);
        }
        least
    }
}

/// The processor time of this thread so far.
fn used() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

impl Row {
    /// Megabytes per second.
    fn speed(&self) -> f64 {
        megabytes(self.bytes) / self.scan.as_secs_f64()
    }

    /// The same for parsing.
    fn parse_speed(&self) -> f64 {
        megabytes(self.bytes) / self.parse.as_secs_f64()
    }

    fn json(&self) -> Value {
        json!({
            "body": self.name,
            "bytes": self.bytes,
            "findings": self.findings,
            "refused": self.refused,
            "scan_us": self.scan.as_secs_f64() * 1e6,
            "parse_us": self.parse.as_secs_f64() * 1e6,
            "redact_us": self.redact.map(|took| took.as_secs_f64() * 1e6),
            "memory_scan_us": self.memory.as_secs_f64() * 1e6,
            "mb_per_s": self.speed(),
            "parse_mb_per_s": self.parse_speed(),
        })
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

fn table<'a>(title: &str, rows: impl Iterator<Item = &'a Row>, basis: f64) {
    say(&format!("\n{title}\n\n"));
    say(
        "| body | bytes | findings | scan | MB/s | against 1 MB clean | parse MB/s | redact | memory scan MB/s |\n",
    );
    say("|---|---|---|---|---|---|---|---|---|\n");
    for row in rows {
        let redact = row
            .redact
            .map_or("–".to_owned(), |took| format!("{:.1} µs", took.as_secs_f64() * 1e6));
        let findings = if row.refused { "refused".to_owned() } else { row.findings.to_string() };
        say(&format!(
            "| {} | {} | {findings} | {:.1} µs | {:.0} | {:.1} × | {:.0} | {redact} | {:.0} |\n",
            row.name,
            row.bytes,
            row.scan.as_secs_f64() * 1e6,
            row.speed(),
            basis / row.speed(),
            row.parse_speed(),
            megabytes(row.bytes) / row.memory.as_secs_f64(),
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::bodies::{SIZES, addresses, base64, clean, dirty, prose};

    #[test]
    fn bodies_are_about_as_large_as_asked_for() {
        for size in SIZES {
            for body in [clean(size), dirty(size), prose(size), addresses(size)] {
                let length = body.to_string().len();

                assert!(length <= size + 1_100 && length + 1_000 > size, "{length} for {size}");
            }
        }
    }

    #[test]
    fn base64_is_written_as_everybody_writes_it() {
        assert_eq!(base64("Many hands"), "TWFueSBoYW5k");
    }
}
