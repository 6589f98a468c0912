//! The metrics listener: there only if asked for, with labels that callers cannot multiply.

use crate::prelude::*;

const LISTENING: &str = "[server]\nmetrics_listen = \"127.0.0.1:0\"";

async fn spray(gateway: &Gateway) {
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    for n in 0..10 {
        gateway.get(&who, &format!("/v1/mcps/sample:chosen_{n}")).await;
        gateway.get(&who, &format!("/v1/nothing/{n}")).await;
        let method = Method::from_bytes(format!("VERB{n}").as_bytes()).unwrap();
        gateway.send(gateway.request_of(&who, method, "/v1/mcps")).await;
    }
    gateway.invoke(&who, "sample:create_note", json!({"title": "a", "text": "b"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_counted_by_route_method_and_status_and_by_nothing_a_caller_chooses() {
    let gateway = gateway().config(LISTENING).sample().start();
    spray(&gateway).await;

    let text = gateway.metrics().await;

    for counted in [
        "portcullis_http_requests_total{method=\"GET\",path=\"/v1/mcps/{id}\",status=\"404\"} 10",
        "portcullis_http_requests_total{method=\"GET\",path=\"none\",status=\"404\"} 10",
        "portcullis_http_requests_total{method=\"other\",path=\"/v1/mcps\",status=\"405\"} 10",
        "portcullis_http_requests_total{method=\"POST\",path=\"/v1/mcps/{id}/invoke\",status=\"200\"} 1",
        "portcullis_http_request_seconds_count{class=\"invoke\"} 1\n",
        "portcullis_http_request_seconds_count{class=\"api\"} 20\n",
        "portcullis_http_request_seconds_count{class=\"none\"} 10\n",
        "portcullis_http_request_seconds_count{class=\"assets\"} 0\n",
        "portcullis_invocations_total{outcome=\"success\",executed=\"yes\"} 1",
        "portcullis_provider_up{provider=\"sample\"} 1",
    ] {
        assert!(text.contains(counted), "{counted} in:\n{text}");
    }
    for chosen in ["chosen_", "nothing", "VERB", "svc_live_", "create_note", "org_", "127.0.0.1"] {
        assert!(!text.contains(chosen), "{chosen} in:\n{text}");
    }
}

/// A configuration with a name in each label that the operator chooses.
const NAMES: &str = r#"[server]
metrics_listen = "127.0.0.1:0"
[webhooks.secops]
url = "http://127.0.0.1:1/"
allow_private = true
[audit.anchor]
file = "checkpoints.jsonl"
[[audit.anchor.witnesses]]
url = "https://witness.example/submit"
key = "witness.example/w1+ec287413+BOtyw1Qc4+rpmSsM9QaVDOmKhIOmqX3LER5VR/A6F1jT"
[[audit.sink]]
name = "copy"
type = "file"
path = "copy.jsonl"
"#;

/// The series of counters in a text, each with its value.
fn counted(text: &str) -> BTreeMap<&str, &str> {
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let counters: BTreeSet<&str> = kinds.filter_map(|it| it.strip_suffix(" counter")).collect();
    let samples = text.lines().filter_map(|line| line.rsplit_once(' '));
    samples.filter(|(series, _)| counters.contains(series.split('{').next().unwrap())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn counters_whose_labels_are_known_start_at_zero_and_what_happens_adds_no_series() {
    let gateway = gateway().config(NAMES).sample().start();

    let at_first = gateway.metrics().await;
    spray(&gateway).await;
    let later = gateway.metrics().await;

    let at_first = counted(&at_first);
    for series in [
        "portcullis_approvals_total{change=\"expired\"}",
        "portcullis_audit_anchored_total{anchor=\"file\",outcome=\"set_back\"}",
        "portcullis_audit_anchored_total{anchor=\"witness.example/w1\",outcome=\"set_back\"}",
        "portcullis_audit_log_forked_total",
        "portcullis_audit_mismatched_reads_total",
        "portcullis_audit_refused_rows_total",
        "portcullis_audit_sink_failures_total{sink=\"copy\"}",
        "portcullis_audit_stopped_removals_total",
        "portcullis_audit_sink_rejected_total{sink=\"copy\"}",
        "portcullis_connections_refused_total{limit=\"node\"}",
        "portcullis_dlp_findings_total{direction=\"output\",category=\"secret\"}",
        "portcullis_invocations_total{outcome=\"unknown\",executed=\"unknown\"}",
        "portcullis_output_mismatches_total{provider=\"sample\"}",
        "portcullis_policy_notices_total{channel=\"webhook:secops\",outcome=\"dropped\"}",
        "portcullis_policy_reload_failures_total",
        "portcullis_rate_limited_total{resource=\"invocations\"}",
        "portcullis_refusals_total{code=\"policy_denied\"}",
        "portcullis_unreadable_rows_total{table=\"secrets\"}",
        "portcullis_upstream_failures_total{provider=\"sample\",reason=\"timeout\"}",
    ] {
        assert_eq!(at_first.get(series), Some(&"0"), "{series} in {at_first:?}");
    }
    let by_request = "portcullis_http_requests_total";
    let families: BTreeSet<&str> =
        at_first.keys().map(|series| series.split('{').next().unwrap()).collect();
    for (name, _) in documented().iter().filter(|(_, kind)| *kind == "counter") {
        assert!(families.contains(&**name) || name == by_request, "{name}");
    }
    let later = counted(&later);
    let new = later.keys().filter(|series| !at_first.contains_key(*series));
    let new: Vec<_> = new.filter(|series| !series.starts_with(by_request)).collect();
    assert!(new.is_empty(), "{new:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_api_port_has_no_metrics() {
    let gateway = gateway().start();

    has!(gateway.send(gateway.request(Method::GET, "/metrics")).await, 404);
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The metrics of docs/metrics.md and their kinds.
fn documented() -> BTreeMap<String, String> {
    let text = fs::read_to_string(root().join("docs/metrics.md")).unwrap();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let cells = rows.filter_map(|row| row.split_once("` | ")).filter(|(name, _)| is_name(name));
    cells
        .map(|(name, rest)| (name.to_owned(), rest.split(' ').next().unwrap().to_owned()))
        .collect()
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c == '_';
    (text.starts_with("portcullis_") || text.starts_with("process_")) && text.chars().all(plain)
}

/// The names in a text, wherever they stand.
fn names(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_ascii_lowercase() && c != '_');
    words.filter(|word| is_name(word)).map(str::to_owned).collect()
}

/// The string literals of the sources that are names of metrics.
fn in_sources(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            in_sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") {
            let text = fs::read_to_string(&path).unwrap();
            let literals = text.split('"').skip(1).step_by(2).filter(|it| is_name(it));
            found.extend(literals.map(str::to_owned));
        }
    }
}

fn expressions(value: &Value, found: &mut Vec<String>) {
    for (key, value) in value.as_object().into_iter().flatten() {
        if let (Some(text), "expr" | "query") = (value.as_str(), key.as_str()) {
            found.push(text.to_owned());
        }
        expressions(value, found);
    }
    for item in value.as_array().into_iter().flatten() {
        expressions(item, found);
    }
}

#[test]
fn every_metric_is_documented_and_every_documented_one_exists() {
    let mut sources = BTreeSet::new();
    for name in ["app", "faces", "gateway", "store", "upstream"] {
        in_sources(&root().join("crates").join(name).join("src"), &mut sources);
    }
    let ours: BTreeSet<String> = documented().into_keys().collect();

    assert!(ours.len() > 30, "{ours:?}");
    assert_eq!(sources, ours);
}

/// The metrics that a text names, histograms by any of their series.
fn families(text: &str) -> BTreeSet<String> {
    let documented = documented();
    let family = |name: String| {
        let of = |end| {
            name.strip_suffix(end)
                .filter(|it| documented.get(*it).is_some_and(|k| k == "histogram"))
        };
        ["_bucket", "_sum", "_count"].into_iter().find_map(of).map_or(name.clone(), str::to_owned)
    };
    names(text).into_iter().map(family).collect()
}

#[test]
fn the_dashboard_shows_every_metric_and_none_that_there_is_not() {
    let text = fs::read_to_string(root().join("deploy/grafana/portcullis.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    expressions(&dashboard, &mut all);
    let shown = families(&all.join("\n"));

    assert_eq!(shown, documented().into_keys().collect());
}

/// The texts that follow `start` in the lines of a file, to the next character that no name has.
fn words_after(file: &str, start: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(root().join(file)).unwrap();
    let rest = text.lines().filter_map(|line| line.split_once(start)).map(|(_, rest)| rest);
    let words = rest.filter_map(|rest| rest.split(|it: char| !it.is_ascii_alphanumeric()).next());
    words.map(str::to_owned).collect()
}

#[test]
fn every_alert_is_documented_and_tested_and_asks_for_metrics_that_there_are() {
    let rules = "deploy/helm/portcullis/portcullis.rules.yml";
    let text = fs::read_to_string(root().join(rules)).unwrap();

    let alerts = words_after(rules, "- alert: ");

    assert!(alerts.len() > 10, "{alerts:?}");
    assert_eq!(alerts, words_after("deploy/checks/alerts.yml", "alertname=\""));
    let rows = words_after("docs/metrics.md", "| `Portcullis");
    assert_eq!(alerts, rows.into_iter().map(|rest| format!("Portcullis{rest}")).collect());
    let asked = families(&text);
    let documented: BTreeSet<String> = documented().into_keys().collect();
    assert!(asked.len() > 10 && asked.is_subset(&documented), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_exposed_has_the_kind_that_is_documented_and_times_of_every_stage() {
    let gateway = gateway().config(LISTENING).sample().start();
    spray(&gateway).await;
    let who = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    let found = json!({"title": "a", "text": "card 4111 1111 1111 1111"});
    gateway.invoke(&who, "sample:create_note", found).await;

    let text = gateway.metrics().await;

    let documented = documented();
    let kinds = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    let kinds: BTreeMap<&str, &str> = kinds.collect();
    for (name, kind) in &kinds {
        assert_eq!(documented.get(*name).map(String::as_str), Some(*kind), "{name}");
    }
    for name in ["process_resident_memory_bytes", "portcullis_connections", "portcullis_build_info"]
    {
        assert!(kinds.contains_key(name), "{name} in:\n{text}");
    }
    for counted in [
        "portcullis_refusals_total{code=\"not_found\"} 20",
        "portcullis_dlp_findings_total{direction=\"input\",category=\"financial\"} 1",
        "portcullis_upstream_seconds_count{provider=\"sample\"} 2",
        "portcullis_stage_seconds_count{stage=\"upstream\"} 2",
        "portcullis_stage_seconds_bucket{stage=\"intent\",le=\"+Inf\"} 2",
    ] {
        assert!(text.contains(counted), "{counted} in:\n{text}");
    }
    let looked_up = |line: &str| line.strip_prefix("portcullis_token_lookups_total ")?.parse().ok();
    let looked_up: Option<u32> = text.lines().find_map(looked_up);
    // Two tokens, and each once more if the connections of its org were made meanwhile.
    assert!(looked_up.is_some_and(|count| (2..=4).contains(&count)), "{looked_up:?}");
    let stages = "authenticate limits body validate dlp_input policy_input connection dlp_output \
        policy_output outcome";
    for stage in stages.split(' ') {
        assert!(text.contains(&format!("stage_seconds_sum{{stage=\"{stage}\"}}")), "{stage}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_in_use_is_looked_up_again_once_something_changed() {
    let (gateway, who) = serve(gateway().config(LISTENING).sample());

    // Longer than anything unconfirmed is trusted.
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_secs(11) {
        gateway.invoke(&who, "sample:create_note", json!({"title": "a", "text": "b"})).await.ok();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let text = gateway.metrics().await;
    let of = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.parse().ok());
    let looked_up: u32 = of("portcullis_token_lookups_total ").unwrap();
    let renewed: u32 = of("portcullis_token_renewals_total ").unwrap();
    // At first, after the first round of the watch, and after the connection to `sample` was made.
    assert!((1..=3).contains(&looked_up), "{looked_up} look-ups");
    assert_eq!(renewed, 0, "nothing changed");

    // By another process on the same file.
    gateway.admin(&["token", "revoke", &who.token_id]);
    until(|| gateway.get(&who, "/v1/mcps"), |it| it.status == 401).await;
}
