//! `portcullis dlp scan` and `portcullis dlp test`.

use std::io::Write;

use super::{CARD, EMAIL, TOKEN, findings};
use crate::prelude::*;

/// Exit code and output of a command, which must not panic nor show a match.
async fn code_and_text(gateway: &Gateway, command: &[&str]) -> (i32, String) {
    let output = run(gateway, command).await;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    for found in [TOKEN, EMAIL, CARD, "panicked"] {
        assert!(!text.contains(found), "{command:?}: {text}");
    }
    (output.status.code().unwrap(), text)
}

/// Output of a command of DLP, which has to end with this code and tell this part.
async fn said(gateway: &Gateway, command: &[&str], code: i32, part: &str) -> String {
    let (ended, shown) = code_and_text(gateway, &[&["dlp"], command].concat()).await;
    assert_eq!(ended, code, "{command:?}: {shown}");
    assert!(shown.contains(part), "{command:?}: `{part}` in {shown}");
    shown
}

fn file(gateway: &Gateway, name: &str, text: &str) -> String {
    let path = gateway.folder().join(name);
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_scan_of_a_text_of_any_size_says_what_it_finds_once() {
    // A scan says what it finds and its exit code says whether.
    let gateway = gateway().config("[dlp.limits]\nmax_bytes = 20000").prepare();
    let clean = file(&gateway, "clean.json", r#"{"a": ["nothing", 1]}"#);
    let dirty = json!({ "a": [TOKEN], "b": { "card": CARD } }).to_string();
    let dirty = file(&gateway, "dirty.json", &dirty);
    let text = file(&gateway, "notes.txt", &format!("first\nmail {EMAIL}\nand {EMAIL}\n"));
    let binary = gateway.folder().join("binary");
    fs::write(&binary, b"\xFF\xFE").unwrap();

    assert_eq!(said(&gateway, &["scan", &clean], 0, "").await, "nothing found\n");

    for wanted in ["github_token", "/a/0", "redact", "credit_card", "/b/card", "very_likely"] {
        said(&gateway, &["scan", &dirty], 1, wanted).await;
    }
    let (_, shown) =
        code_and_text(&gateway, &["dlp", "scan", &dirty, "--direction", "input"]).await;
    assert!(shown.contains("block"), "{shown}");

    let (code, shown) = code_and_text(&gateway, &["dlp", "scan", &text, "--json"]).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let finding = &shown["findings"][0];
    assert_eq!((code, &finding["lines"], &finding["count"]), (1, &json!([2, 3]), &json!(2)));

    let binary = binary.to_string_lossy();
    for (unscannable, wanted) in [(&*binary, "UTF-8"), ("/nowhere", "/nowhere")] {
        said(&gateway, &["scan", unscannable], 2, wanted).await;
    }

    // A text of any size is scanned in windows and a match is told once.
    // Lines of 31 bytes, so that the bounds of windows fall at every place of a match.
    let text = format!("mail {EMAIL:>25}\n").repeat(10_000);
    let text = file(&gateway, "large.txt", &text);

    let (code, shown) = scanned(&gateway, &[&text]).await;

    let finding = &shown["findings"][0];
    let spans: Vec<&Value> = finding["spans"].as_array().unwrap().iter().collect();
    let lines: Vec<u64> = (1..=10_000).collect();
    assert_eq!((code, &finding["count"], &finding["lines"]), (1, &json!(10_000), &json!(lines)));
    for (index, span) in spans.iter().enumerate() {
        let end = 30 + 31 * index;
        let wanted = json!({ "start": end - EMAIL.len(), "end": end, "line": index + 1 });
        assert_eq!(**span, wanted);
    }
}

/// The JSON that a scan prints, and its exit code.
async fn scanned(gateway: &Gateway, arguments: &[&str]) -> (i32, Value) {
    let (code, shown) =
        code_and_text(gateway, &[&["dlp", "scan", "--json"], arguments].concat()).await;
    (code, serde_json::from_str(shown.lines().next().unwrap()).unwrap())
}

#[tokio::test]
async fn json_lines_and_standard_input_are_scanned_too() {
    // Json has spans in its strings and json lines have lines.
    let gateway = gateway().prepare();
    let whole = file(&gateway, "whole", &json!({ "a": format!("to {EMAIL}") }).to_string());
    let lines = format!("{{\"a\": 1}}\n\n{{\"a\": \"{EMAIL}\"}}\n");
    let lines = file(&gateway, "lines.log", &lines);

    let (code, shown) = scanned(&gateway, &[&whole]).await;
    let finding = &shown["findings"][0];
    let spans = json!([{ "start": 3, "end": 3 + EMAIL.len() }]);
    assert_eq!((code, &finding["path"], &finding["spans"]), (1, &json!("/a"), &spans));

    let (code, shown) = scanned(&gateway, &[&lines]).await;
    let finding = &shown["findings"][0];
    assert_eq!((code, &finding["path"], &finding["line"]), (1, &json!("/a"), &json!(3)));
    let (_, shown) = code_and_text(&gateway, &["dlp", "scan", &lines]).await;
    assert!(shown.contains("LINE") && shown.contains("/a"), "{shown}");

    // Standard input is scanned too.
    let config = gateway.config_file();
    let mut scan = gateway
        .command()
        .args(["dlp", "scan", "-", "--config"])
        .arg(config)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();

    scan.stdin.take().unwrap().write_all(CARD.as_bytes()).unwrap();

    let output = scan.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).contains("credit_card"));
}

#[tokio::test]
async fn json_that_cannot_be_read_is_said_to_be_so() {
    let gateway = gateway().config("[dlp.limits]\nmax_nodes = 100").prepare();
    let broken = file(&gateway, "broken.json", &format!("{{\"a\": \"{EMAIL}\",}}"));
    let deep = file(&gateway, "deep.json", &("[".repeat(100) + &"]".repeat(100)));
    let wide = file(&gateway, "wide.json", &json!(vec![0; 200]).to_string());
    let lines = format!("{{\"a\": 1}}\n{{\"a\": \n{{\"a\": \"{EMAIL}\"}}\n");
    let lines = file(&gateway, "lines.jsonl", &lines);

    for (unread, wanted) in [(&broken, "valid JSON"), (&deep, "deep"), (&wide, "100 members")] {
        let shown = said(&gateway, &["scan", unread], 3, wanted).await;
        assert!(!shown.contains("nothing found"), "{shown}");
        let (code, shown) = scanned(&gateway, &[unread]).await;
        assert_eq!((code, &shown["findings"]), (3, &json!([])));
        assert!(shown["unread"][0]["reason"].as_str().unwrap().contains(wanted), "{shown}");
    }
    let (code, shown) = scanned(&gateway, &[&lines]).await;
    assert_eq!((code, &shown["findings"][0]["line"]), (3, &json!(3)));
    assert_eq!(shown["unread"].as_array().unwrap().len(), 1, "{shown}");
    assert_eq!(shown["unread"][0]["line"], 2, "{shown}");

    let (code, shown) = scanned(&gateway, &[&broken, "--format", "text"]).await;
    assert_eq!((code, &shown["findings"][0]["lines"]), (1, &json!([1])));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fingerprint_of_an_event_is_allowed_and_the_value_passes() {
    let scene = scene(vec![tool("echo", Script::Echo)]).await;
    let flagged = scene.invoke("echo", json!({ "to": EMAIL })).await;
    let event = scene.check(&flagged, SUCCESS).await;
    let print = event["governance"]["dlp_findings"][0]["fingerprints"][0].as_str().unwrap();
    let config = scene.gateway.config_file();
    let text = file(&scene.gateway, "text.txt", EMAIL);

    let scan = ["dlp", "scan", &text, "--org", &scene.who.org];
    let (_, shown) = code_and_text(&scene.gateway, &scan).await;
    assert!(shown.contains(print), "{print}: {shown}");
    let (_, by_name) =
        code_and_text(&scene.gateway, &["dlp", "scan", &text, "--org", "acme"]).await;
    assert_eq!(by_name, shown);
    let allow = format!("[[dlp.allow]]\nreason = \"ours\"\nfingerprints = [\"{print}\"]\n");
    fs::write(&config, fs::read_to_string(&config).unwrap() + &allow).unwrap();
    let _ = scene.gateway.wait_for_log("other DLP settings are in force");

    let passed = scene.invoke("echo", json!({ "to": EMAIL })).await;
    let other = scene.invoke("echo", json!({ "to": "somebody.else@example.org" })).await;
    let event = scene.check(&passed, SUCCESS).await;
    assert_eq!(passed.at("/governance/dlp_result"), "passed");
    assert!(findings(&event, "input").is_empty());
    assert_eq!(other.at("/governance/dlp_result"), "flagged");
    assert_eq!(code_and_text(&scene.gateway, &scan).await.0, 0);
}

const STAFF: &str = r#"
[[dlp.custom]]
name = "staff_number"
category = "national_id"
pattern = "EMP-[0-9]{6}"
literals = ["EMP-"]
must_match = ["ask EMP-123456"]
must_not_match = ["EMP-12345"]
"#;

#[tokio::test]
async fn the_samples_of_ones_own_detectors_are_tried() {
    let good = gateway().config(STAFF).prepare();
    let bad = gateway().config(&STAFF.replace("EMP-12345\"", "EMP-654321\"")).prepare();
    let broken = gateway().config(&STAFF.replace("[0-9]{6}", "(?=x)")).prepare();

    said(&good, &["test"], 0, "2 samples hold").await;
    for (gateway, wanted) in [(&bad, "`must_not_match` sample 1 is found"), (&broken, "`pattern`")]
    {
        let shown = said(gateway, &["test"], 1, wanted).await;
        assert!(shown.contains("`staff_number`") && !shown.contains("654321"), "{shown}");
    }
}
