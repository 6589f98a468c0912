//! Sinks: copies of events at stdout, in files, at a receiver that is slow, dead or back again.

use portcullis_testkit::{Manner, Receiver, printing};

use crate::{planted::plant, prelude::*};

async fn call(gateway: &Gateway, who: &Principal) -> String {
    let call =
        gateway.invoke(who, "sample:create_note", json!({"title": "a", "text": "b"})).await.ok();
    call.event_id().to_owned()
}

/// Looks until it is as wanted.
async fn wait<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    eventually(what, async || look()).await
}

/// Looks until this event is among them, and gives all.
async fn until_told(event: &str, look: impl Fn() -> Vec<Value>) -> Vec<Value> {
    let told = |all: &Vec<Value>| all.iter().any(|it| it["id"] == event);
    wait("the event", || Some(look()).filter(told)).await
}

/// The events in a file of whole lines.
fn events(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    whole.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn sequences(events: &[Value], org: &str) -> Vec<i64> {
    let own = events.iter().filter(|event| event["org_id"] == org);
    own.map(|event| event["sequence"].as_i64().unwrap()).collect()
}

/// Fails unless each event up to the last is there and they come in order; some may come again.
fn assert_no_gap(sequences: &[i64]) {
    let mut next = 0;
    for sequence in sequences {
        assert!(*sequence <= next, "{next} is missing in {sequences:?}");
        next = next.max(sequence + 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_gets_every_event_in_order_without_payloads_also_after_a_kill() {
    let sink = "[[audit.sink]]\nname = \"copy\"\ntype = \"file\"\npath = \"copy/audit.jsonl\"";
    let mut gateway = gateway().config(sink).sample().prepare();
    fs::create_dir(gateway.folder().join("copy")).unwrap();
    gateway.start();
    let path = gateway.folder().join("copy/audit.jsonl");
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    plant(&gateway, &who, 300).await;
    wait("some events", || (events(&path).len() > 10).then_some(())).await;
    gateway.kill();
    let text = fs::read_to_string(&path).unwrap();
    // Half a line, as a power cut leaves it.
    fs::write(&path, format!("{text}{{\"half\":")).unwrap();

    gateway.start();
    let last = call(&gateway, &who).await;

    let all = until_told(&last, || events(&path)).await;
    let found = sequences(&all, &who.org);
    assert_no_gap(&found);
    assert!(found.len() > 300);
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        !text.contains("a payload") && !text.contains("salts") && !text.contains("203.0.113.7")
    );
    assert!(all.iter().all(|event| event.get("detached").is_none()));
    let event = gateway.get(&who, &format!("/v1/audit/events/{last}")).await;
    let copied = all.iter().find(|event| event["id"] == last.as_str()).unwrap();
    assert_eq!(copied["integrity"]["leaf_hash"], event.at("/data/integrity/leaf_hash").clone());
    assert_eq!(copied["governance"], event.at("/data/governance").clone());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_rotated_by_size_and_only_so_many_are_kept() {
    let sink = "[[audit.sink]]\nname = \"copy\"\ntype = \"file\"\npath = \"audit.jsonl\"\n\
                max_bytes = 150000\nmax_files = 2\ndetached = true";
    let (gateway, who) = serve(gateway().config(sink));
    let planted = plant(&gateway, &who, 1_000).await;
    let path = |end: &str| gateway.folder().join(format!("audit.jsonl{end}"));
    let last = planted.last().unwrap();

    // What comes after it may have made the file the one before.
    until_told(last, || ["", ".1"].iter().flat_map(|end| events(&path(end))).collect()).await;

    let read =
        || -> Vec<Value> { [".2", ".1", ""].iter().flat_map(|end| events(&path(end))).collect() };
    // Read twice, for they may be moved while they are read.
    let kept = wait("files at rest", || {
        let once = read();
        (once == read()).then_some(once)
    })
    .await;
    let found = sequences(&kept, &who.org);
    assert!(found.windows(2).all(|pair| pair[1] == pair[0] + 1), "{found:?}");
    assert!(found.len() < 1_000 && !path(".3").exists());
    for end in ["", ".1", ".2"] {
        use std::os::unix::fs::PermissionsExt as _;
        let found = fs::metadata(path(end)).unwrap();
        assert!(found.len() <= 400_000, "{end}: {}", found.len());
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
    }
    assert!(kept.iter().any(|event| event["detached"]["source_ip"] == "203.0.113.7"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_real_binary_prints_events_to_stdout_and_nothing_else() {
    let place = tempfile::tempdir().unwrap();
    let printed = place.path().join("printed");
    fs::write(&printed, "").unwrap();
    let binary = printing(env!("CARGO_BIN_EXE_portcullis"), place.path(), &printed);
    let sink = "[[audit.sink]]\nname = \"out\"\ntype = \"stdout\"";
    let (gateway, who) = serve(Builder::new(binary).config(sink).sample());

    let last = call(&gateway, &who).await;

    let all = until_told(&last, || events(&printed)).await;
    assert_no_gap(&sequences(&all, &who.org));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reader_of_stdout_that_does_not_read_holds_up_neither_calls_nor_the_end() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let binary = printing(env!("CARGO_BIN_EXE_portcullis"), place.path(), &pipe);
    let sink = "[[audit.sink]]\nname = \"out\"\ntype = \"stdout\"";
    let (mut gateway, who) = serve(Builder::new(binary).config(sink).sample());
    // More than a pipe takes.
    plant(&gateway, &who, 300).await;

    for _ in 0..20 {
        call(&gateway, &who).await;
    }
    let begun = Instant::now();

    assert_eq!(gateway.stop(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

fn otlp(receiver: &Receiver) -> String {
    format!(
        "[server]\nmetrics_listen = \"127.0.0.1:0\"\n[[audit.sink]]\nname = \"siem\"\n\
         type = \"otlp\"\nurl = \"{}\"\nallow_private = true\ntimeout_seconds = 1\n\
         token = {{ env = \"SIEM_TOKEN\" }}",
        receiver.url()
    )
}

/// The events in the bodies of log records.
fn received(receiver: &Receiver) -> Vec<Value> {
    let text = |record: &Value| record["body"]["stringValue"].as_str().unwrap().to_owned();
    receiver.records().iter().map(|it| serde_json::from_str(&text(it)).unwrap()).collect()
}

async fn metric(gateway: &Gateway, name: &str) -> f64 {
    let text = gateway.metrics().await;
    let found =
        text.lines().find_map(|line| line.strip_prefix(&format!("{name}{{sink=\"siem\"}} ")));
    found.map_or(-1.0, |value| value.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_gets_log_records_as_the_standard_has_them() {
    let receiver = Receiver::start().await;
    let config = otlp(&receiver);
    let (gateway, who) = serve(gateway().config(&config).env("SIEM_TOKEN", "s3cr3t").sample());
    let path = "/v1/mcps/sample:create_note/invoke";
    let request = gateway.json(&who, path, r#"{"input":{"title":"a","text":"b"}}"#);
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let answer = gateway.send(request.header("traceparent", trace)).await;

    let record = wait("the record", || {
        let id = json!({"key": "portcullis.event_id", "value": {"stringValue": answer.event_id()}});
        let records = receiver.records();
        records.into_iter().find(|it| it["attributes"].as_array().unwrap().contains(&id))
    })
    .await;

    has!(record, "/eventName": "mcp.invocation", "/severityNumber": 9, "/severityText": "INFO",
        "/traceId": "4bf92f3577b34da6a3ce929d0e0e4736");
    for time in ["timeUnixNano", "observedTimeUnixNano"] {
        let nanos: u128 = record[time].as_str().unwrap().parse().unwrap();
        assert!(nanos > 1_700_000_000_000_000_000, "{time}: {nanos}");
    }
    let body: Value =
        serde_json::from_str(record["body"]["stringValue"].as_str().unwrap()).unwrap();
    assert_eq!(body["id"], answer.event_id());
    assert!(receiver.authorizations().iter().all(|it| it == "Bearer s3cr3t"));
    assert!(!gateway.log().contains("s3cr3t"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dead_receiver_blocks_no_call_and_gets_everything_when_it_is_back() {
    for manner in [Manner::Hangs, Manner::Refuses(503), Manner::TakesAndHangsUp] {
        let receiver = Receiver::start().await;
        receiver.be(manner);
        let config = otlp(&receiver);
        let (mut gateway, who) = serve(gateway().config(&config).env("SIEM_TOKEN", "x").sample());
        plant(&gateway, &who, 30).await;
        receiver.wait_for_batches(1).await;

        let begun = Instant::now();
        let mut last = String::new();
        for _ in 0..10 {
            last = call(&gateway, &who).await;
        }
        let took = begun.elapsed();
        let _ = gateway.wait_for_log("a sink takes no events");
        eventually("word that it is behind", async || {
            let behind = metric(&gateway, "portcullis_audit_sink_lag_events").await >= 40.0
                && metric(&gateway, "portcullis_audit_sink_lag_seconds").await > 0.0
                && metric(&gateway, "portcullis_audit_sink_up").await == 0.0;
            behind.then_some(())
        })
        .await;
        if manner == Manner::Hangs {
            // What it was sent and did not take comes again after a restart as well.
            gateway.kill();
            gateway.start();
        }
        receiver.be(Manner::Takes);

        let all = until_told(&last, || received(&receiver)).await;
        assert_no_gap(&sequences(&all, &who.org));
        assert!(sequences(&all, &who.org).len() >= 40);
        assert!(took < PATIENCE, "{manner:?}: calls took {took:?}");
        eventually("word that it caught up", async || {
            let behind = metric(&gateway, "portcullis_audit_sink_lag_events").await != 0.0
                || metric(&gateway, "portcullis_audit_sink_up").await < 1.0;
            (!behind).then_some(())
        })
        .await;
        assert!(metric(&gateway, "portcullis_audit_sink_lag_seconds").await.abs() < f64::EPSILON);
    }
}

/// Looks until this metric of the sink has this value.
async fn until_counted(gateway: &Gateway, name: &str, wanted: impl Fn() -> usize) {
    eventually(name, async || {
        let value = metric(gateway, &format!("portcullis_audit_sink_{name}")).await;
        let wanted = f64::from(u32::try_from(wanted()).unwrap());
        ((value - wanted).abs() < f64::EPSILON).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_status_of_success_delivers_all_but_what_the_receiver_rejects() {
    for (status, body, rejected) in [
        (204, "", 0),
        (202, "{}", 0),
        (200, "{\"partialSuccess\":{\"rejectedLogRecords\":\"1\"}}", 1),
    ] {
        let receiver = Receiver::start().await;
        receiver.be(Manner::Answers(status, body));
        let config = otlp(&receiver);
        let (gateway, who) = serve(gateway().config(&config).env("SIEM_TOKEN", "x").sample());

        let last = call(&gateway, &who).await;

        until_told(&last, || received(&receiver)).await;
        let missing = || rejected * receiver.batches();
        until_counted(&gateway, "rejected_total", missing).await;
        until_counted(&gateway, "delivered_total", || receiver.records().len() - missing()).await;
        until_counted(&gateway, "failures_total", || 0).await;
    }
}

/// Trace of what a receiver refuses; those of the planted events are others.
const TRACE: &str = "7d1f6b0a95ce43e88f2ab1c04d5e9370";

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_a_receiver_refuses_for_good_is_set_aside_and_the_others_arrive() {
    let receiver = Receiver::start().await;
    receiver.be(Manner::RefusesWith(400, TRACE));
    let config = otlp(&receiver);
    let (gateway, who) = serve(gateway().config(&config).env("SIEM_TOKEN", "x").sample());
    plant(&gateway, &who, 30).await;
    let path = "/v1/mcps/sample:create_note/invoke";
    let request = gateway.json(&who, path, r#"{"input":{"title":"a","text":"b"}}"#);
    let refused =
        gateway.send(request.header("traceparent", format!("00-{TRACE}-00f067aa0ba902b7-01")));
    let refused = refused.await.ok().event_id().to_owned();
    let last = call(&gateway, &who).await;

    let all = until_told(&last, || received(&receiver)).await;

    let refused = gateway.get(&who, &format!("/v1/audit/events/{refused}")).await.ok();
    let sequence = refused.at("/data/sequence").as_i64().unwrap();
    let found = sequences(&all, &who.org);
    let missing: Vec<i64> =
        (0..*found.iter().max().unwrap()).filter(|sequence| !found.contains(sequence)).collect();
    assert_eq!(missing, [sequence]);
    until_counted(&gateway, "rejected_total", || 1).await;
    until_counted(&gateway, "up", || 1).await;
    let _ = gateway.wait_for_log("a receiver refuses this event; it is set aside");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_receiver_that_refuses_every_event_loses_none() {
    let receiver = Receiver::start().await;
    receiver.be(Manner::Refuses(400));
    let config = otlp(&receiver);
    let (gateway, who) = serve(gateway().config(&config).env("SIEM_TOKEN", "x").sample());
    plant(&gateway, &who, 30).await;
    let last = call(&gateway, &who).await;
    // Halving to one event, refusing that five times, and refusing others.
    receiver.wait_for_batches(20).await;

    receiver.be(Manner::Takes);

    let all = until_told(&last, || received(&receiver)).await;
    let mut found = sequences(&all, &who.org);
    // Others may have been offered, and taken, before the first.
    found.sort_unstable();
    assert_no_gap(&found);
    until_counted(&gateway, "rejected_total", || 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refused_events_of_one_org_in_a_row_hold_up_no_other_org_and_are_set_aside() {
    for is_alone in [false, true] {
        let receiver = Receiver::start().await;
        receiver.be(Manner::RefusesWith(400, TRACE));
        let config = otlp(&receiver);
        let (gateway, who) = serve(gateway().config(&config).env("SIEM_TOKEN", "x").sample());
        let other = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
        let path = "/v1/mcps/sample:create_note/invoke";
        for _ in 0..20 {
            let request = gateway.json(&who, path, r#"{"input":{"title":"a","text":"b"}}"#);
            let trace = format!("00-{TRACE}-00f067aa0ba902b7-01");
            gateway.send(request.header("traceparent", trace)).await.ok();
        }

        if !is_alone {
            let planted = plant(&gateway, &other, 100).await;
            let all = until_told(planted.last().unwrap(), || received(&receiver)).await;
            assert_no_gap(&sequences(&all, &other.org));
        }
        let next = if is_alone { &who } else { &other };
        eventually("an event that is set aside", async || {
            call(&gateway, next).await;
            let rejected = metric(&gateway, "portcullis_audit_sink_rejected_total").await;
            (rejected >= 1.0).then_some(())
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_at_which_a_receiver_fails_holds_up_the_log_of_its_own_org_only() {
    let receiver = Receiver::start().await;
    receiver.be(Manner::RefusesWith(500, TRACE));
    let config = otlp(&receiver);
    let (gateway, who) = serve(gateway().config(&config).env("SIEM_TOKEN", "x").sample());
    let other = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    let path = "/v1/mcps/sample:create_note/invoke";
    let request = gateway.json(&who, path, r#"{"input":{"title":"a","text":"b"}}"#);
    let trace = format!("00-{TRACE}-00f067aa0ba902b7-01");
    gateway.send(request.header("traceparent", trace)).await.ok();

    for _ in 0..4 {
        let last = call(&gateway, &other).await;
        let all = until_told(&last, || received(&receiver)).await;
        assert_no_gap(&sequences(&all, &other.org));
    }

    receiver.be(Manner::Takes);
    let last = call(&gateway, &who).await;
    let all = until_told(&last, || received(&receiver)).await;
    assert_no_gap(&sequences(&all, &who.org));
    until_counted(&gateway, "rejected_total", || 0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sink_that_is_declared_wrong_is_refused_and_the_wrong_is_named() {
    for (sink, wanted) in [
        ("name = \"a\"\ntype = \"syslog\"", "syslog"),
        ("name = \"a\"\ntype = \"file\"", "path"),
        ("name = \"a\"\ntype = \"otlp\"", "url"),
        ("name = \"a\"\ntype = \"otlp\"\nurl = \"http://127.0.0.1:1/v1/logs\"", "https"),
        ("name = \"A b\"\ntype = \"stdout\"", "lower-case"),
        ("name = \"a\"\ntype = \"stdout\"\npath = \"x\"", "path"),
        ("name = \"a\"\ntype = \"stdout\"\ncolour = \"red\"", "colour"),
        (
            "name = \"a\"\ntype = \"otlp\"\nurl = \"https://siem.example/v1/logs\"\ntoken = { env = \"NOT_SET\" }",
            "NOT_SET",
        ),
        (
            "name = \"a\"\ntype = \"stdout\"\n[[audit.sink]]\nname = \"a\"\ntype = \"file\"\npath = \"x\"",
            "twice",
        ),
        (
            "name = \"a\"\ntype = \"file\"\npath = \"x\"\n[[audit.sink]]\nname = \"b\"\ntype = \"file\"\npath = \"x\"",
            "already",
        ),
    ] {
        let gateway = gateway().config(&format!("[[audit.sink]]\n{sink}")).prepare();

        assert_fails(&gateway, &["serve"], 1, wanted).await;
    }
}
