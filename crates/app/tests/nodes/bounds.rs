//! Bounds of ranges: moments are measured in microseconds and written in milliseconds, and no event
//! is lost or shown twice between the two.

use std::{collections::BTreeSet, path::Path};

use portcullis_app::{ExportAsk, ExportError, ExportOutput, ExportRequest, Progress};
use portcullis_core::{
    audit::export::{Line, Report, Verifier},
    clock::Timestamp,
};
use portcullis_store::{EventFilter, EventOrder, ExportBeat, Org, Visibility};
use portcullis_testkit::run_python;
use proptest::{
    prelude::*,
    strategy::ValueTree,
    test_runner::{Config, RngAlgorithm, TestRng, TestRunner},
};

use crate::{
    log::{Log, Payload},
    node::NOW,
};

struct Unwatched;

impl Progress for Unwatched {
    async fn reached(&mut self, _: ExportBeat) -> Result<(), ExportError> {
        Ok(())
    }
}

fn micros(offset: i64) -> Timestamp {
    Timestamp::from_micros(NOW.as_micros() + offset)
}

/// Events around each whole millisecond, and what is around them.
const MOMENTS: [i64; 12] = [-1001, -1000, -999, -1, 0, 1, 500, 999, 1000, 1001, 1999, 2000];

async fn logged(log: &Log) -> Org {
    log.clock.set(micros(-5_000));
    let org = log.org("acme").await;
    let who = log.principal();
    for moment in MOMENTS {
        log.clock.set(micros(moment));
        log.append(&log.call(org.id, who, Payload::CommittedTo)).await;
    }
    log.verify(&org, None).await.unwrap();
    org
}

/// An export at `path`, as our own verifier reads it, and the places of its events.
async fn exported(
    log: &Log,
    org: &Org,
    request: &ExportRequest,
    path: &Path,
) -> (Report, BTreeSet<u64>) {
    let file = std::fs::File::create(path).unwrap();
    let output = ExportOutput { out: Box::new(file), file: None };
    log.operator.export(org.id, log.identity(), request, output, &mut Unwatched).await.unwrap();
    let text = std::fs::read_to_string(path).unwrap();
    let mut verifier = Verifier::new(log.verifier_keys(org), None);
    let mut places = BTreeSet::new();
    for line in text.lines() {
        verifier.line(line.as_bytes()).unwrap();
        if let Line::Event(event) = Line::parse(line.as_bytes()).unwrap() {
            places.insert(event.event["sequence"].as_u64().unwrap());
        }
    }
    (verifier.finish().unwrap(), places)
}

/// Runs the verifier in Python over several exports at once; all of them have to hold, with their
/// periods proven.
fn hold_in_python(log: &Log, org: &Org, files: &[std::path::PathBuf]) {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let each = "import sys\nsys.path.insert(0, sys.argv[1])\nimport verify_audit\n\
                for path in sys.argv[3:]: print(path, *verify_audit.verify(path, sys.argv[2]))";
    let key = log.verifier_keys(org)[0].to_string();
    let files = files.iter().map(|file| file.display().to_string());
    let arguments: Vec<String> = [docs.to_owned(), key].into_iter().chain(files).collect();
    let told = run_python(each, &arguments);
    let held = told.lines().filter(|line| line.ends_with("True True")).count();
    assert_eq!(held, arguments.len() - 2, "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_is_complete_whatever_the_microsecond_of_its_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::begin(&folder).await;
    let org = logged(&log).await;
    let mut files = Vec::new();
    // Each bound at, before and behind each millisecond; `to` also as the moment it is made at.
    for (number, (from, to)) in [-1001, -1000, -999, -1, 0, 1, 500]
        .into_iter()
        .flat_map(|from| [999, 1000, 1001, 1500, 1999].map(|to| (from, to)))
        .enumerate()
    {
        log.clock.set(micros(to));
        let given = (number % 2 == 0).then(|| micros(to));
        let ask = ExportAsk { from: Some(micros(from)), to: given, ..ExportAsk::default() };
        let until = given.map_or(micros(to).floor_to_millis(), Timestamp::ceil_to_millis);
        let Ok(request) = ask.read(micros(to)) else {
            assert!(micros(from).ceil_to_millis() >= until, "{from} {to}");
            continue;
        };
        let path = folder.path().join(format!("{number}.jsonl"));

        let (report, places) = exported(&log, &org, &request, &path).await;

        assert!(report.complete && report.period_proven, "{from} {to}: {report:?}");
        let within = |moment: &i64| {
            let written = micros(*moment).floor_to_millis();
            micros(from) <= written && written < until
        };
        let wanted = MOMENTS.iter().filter(|moment| within(moment)).count();
        assert_eq!(places.len(), wanted, "{from} {to}: {places:?}");
        files.push(path);
    }
    assert!(files.len() > 25, "{files:?}");
    hold_in_python(&log, &org, &files);
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_that_follow_each_other_hold_every_event_once() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::begin(&folder).await;
    log.clock.set(micros(-5_000));
    let org = log.org("acme").await;
    let who = log.principal();
    let mut runner = TestRunner::new_with_rng(
        Config { cases: 40, failure_persistence: None, ..Config::default() },
        TestRng::deterministic_rng(RngAlgorithm::ChaCha),
    );
    let steps = prop::collection::vec((0..2_500_i64, any::<bool>()), 40);
    let steps = steps.new_tree(&mut runner).unwrap().current();
    let mut now = 0;
    let mut from = micros(-5_000);
    let mut seen = Vec::new();
    let mut appended = 0;
    for (number, (step, exports)) in steps.iter().enumerate() {
        now += step;
        log.clock.set(micros(now));
        if !exports {
            log.append(&log.call(org.id, who, Payload::CommittedTo)).await;
            appended += 1;
            continue;
        }
        let ask = ExportAsk { from: Some(from), ..ExportAsk::default() };
        let Ok(request) = ask.read(micros(now)) else { continue };
        from = request.to;
        let path = folder.path().join(format!("{number}.jsonl"));
        seen.extend(exported(&log, &org, &request, &path).await.1);
    }
    log.clock.set(micros(now + 1_000));
    let request = ExportAsk { from: Some(from), ..ExportAsk::default() }.read(micros(now + 1_000));
    seen.extend(exported(&log, &org, &request.unwrap(), &folder.path().join("last.jsonl")).await.1);

    // The org itself is event 0; each export is one more. Only the very last came too late.
    let distinct: BTreeSet<u64> = seen.iter().copied().collect();
    assert_eq!(distinct.len(), seen.len(), "twice: {seen:?} of {steps:?}");
    assert_eq!(distinct, (0..u64::try_from(seen.len()).unwrap()).collect(), "{steps:?}");
    assert!(seen.len() > appended, "{appended} {seen:?} {steps:?}");
    log.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_filter_by_time_shows_what_its_bounds_say_of_the_times_that_are_shown() {
    let folder = tempfile::tempdir().unwrap();
    let log = Log::begin(&folder).await;
    let org = logged(&log).await;
    for bound in MOMENTS.map(micros) {
        let ceiling = bound.ceil_to_millis();
        let listed = async |from, to| {
            let filter = EventFilter { from, to, ..EventFilter::default() };
            let all = Visibility::All;
            let order = EventOrder::Ascending;
            let page = log.operator.store.list_events(org.id, all, &filter, order, None, 100).await;
            page.unwrap().events
        };

        let before = listed(None, Some(ceiling)).await;
        let behind = listed(Some(ceiling), None).await;

        assert_eq!(before.len() + behind.len(), MOMENTS.len() + 1);
        let shown = |event: &portcullis_store::EventRecord| {
            Timestamp::parse_rfc3339(&event.seal.unwrap().recorded_at.to_string()).unwrap()
        };
        assert!(before.iter().all(|event| shown(event) < bound), "{bound}");
        assert!(behind.iter().all(|event| shown(event) >= bound), "{bound}");
    }
    log.close().await;
}

proptest! {
    #[test]
    fn a_rounded_bound_divides_written_moments_as_it_did_before(bound in -9_999_i64..9_999, at in -9_999_i64..9_999) {
        let bound = Timestamp::from_micros(bound);
        let written = Timestamp::from_micros(at).floor_to_millis();

        prop_assert_eq!(written < bound, written < bound.ceil_to_millis());
        prop_assert_eq!(written < bound, Timestamp::from_micros(at) < bound.ceil_to_millis());
        prop_assert_eq!(bound.ceil_to_millis().floor_to_millis(), bound.ceil_to_millis());
    }
}
