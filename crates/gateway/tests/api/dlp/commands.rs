//! `portcullis dlp scan` and `portcullis dlp test`.

use std::{fs, io::Write, process::Stdio};

use portcullis_testkit::{Gateway, Script};
use serde_json::{Value, json};

use super::{CARD, EMAIL, TOKEN, findings};
use crate::{
    gateway,
    given::run,
    scene::{SUCCESS, scene_with, tool},
};

/// Exit code and output of a command, which must not panic nor show a match.
async fn told(gateway: &Gateway, command: &[&str]) -> (i32, String) {
    let output = run(gateway, command).await;
    let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    for found in [TOKEN, EMAIL, CARD, "panicked"] {
        assert!(!text.contains(found), "{command:?}: {text}");
    }
    (output.status.code().unwrap(), text)
}

fn file(gateway: &Gateway, name: &str, text: &str) -> String {
    let path = gateway.folder().join(name);
    fs::write(&path, text).unwrap();
    path.to_string_lossy().into_owned()
}

#[tokio::test]
async fn a_scan_says_what_it_finds_and_its_exit_code_says_whether() {
    let gateway = gateway().config("[dlp.limits]\nmax_bytes = 20000").prepare();
    let clean = file(&gateway, "clean.json", r#"{"a": ["nothing", 1]}"#);
    let dirty = json!({ "a": [TOKEN], "b": { "card": CARD } }).to_string();
    let dirty = file(&gateway, "dirty.json", &dirty);
    let text = file(&gateway, "notes.txt", &format!("first\nmail {EMAIL}\nand {EMAIL}\n"));
    let large = file(&gateway, "large.txt", &"x ".repeat(20_000));

    let (code, shown) = told(&gateway, &["dlp", "scan", &clean]).await;
    assert_eq!((code, shown.as_str()), (0, "nothing found\n"));

    let (code, shown) = told(&gateway, &["dlp", "scan", &dirty]).await;
    assert_eq!(code, 1, "{shown}");
    for wanted in ["github_token", "/a/0", "redact", "credit_card", "/b/card", "very_likely"] {
        assert!(shown.contains(wanted), "{wanted}: {shown}");
    }
    let (_, shown) = told(&gateway, &["dlp", "scan", &dirty, "--direction", "input"]).await;
    assert!(shown.contains("block"), "{shown}");

    let (code, shown) = told(&gateway, &["dlp", "scan", &text, "--json"]).await;
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let finding = &shown["findings"][0];
    assert_eq!((code, &finding["lines"], &finding["count"]), (1, &json!([2, 3]), &json!(2)));

    for (unscannable, wanted) in [(large.as_str(), "20000 bytes"), ("/nowhere", "/nowhere")] {
        let (code, shown) = told(&gateway, &["dlp", "scan", unscannable]).await;
        assert_eq!(code, 2, "{shown}");
        assert!(shown.contains(wanted), "{shown}");
    }
}

#[test]
fn standard_input_is_scanned_too() {
    let gateway = gateway().prepare();
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

#[tokio::test(flavor = "multi_thread")]
async fn a_fingerprint_of_an_event_is_allowed_and_the_value_passes() {
    let scene = scene_with(vec![tool("echo", Script::Echo)], "", |builder| builder).await;
    let flagged = scene.invoke("echo", json!({ "to": EMAIL })).await;
    let event = scene.check(&flagged, SUCCESS).await;
    let print = event["governance"]["dlp_findings"][0]["fingerprints"][0].as_str().unwrap();
    let config = scene.gateway.config_file();
    let text = file(&scene.gateway, "text.txt", EMAIL);

    let scan = ["dlp", "scan", &text, "--org", &scene.who.org];
    let (_, shown) = told(&scene.gateway, &scan).await;
    assert!(shown.contains(print), "{print}: {shown}");
    let allow = format!("[[dlp.allow]]\nreason = \"ours\"\nfingerprints = [\"{print}\"]\n");
    fs::write(&config, fs::read_to_string(&config).unwrap() + &allow).unwrap();
    let _ = scene.gateway.wait_for_log("other DLP settings are in force");

    let passed = scene.invoke("echo", json!({ "to": EMAIL })).await;
    let other = scene.invoke("echo", json!({ "to": "somebody.else@example.org" })).await;
    let event = scene.check(&passed, SUCCESS).await;
    assert_eq!(passed.at("/governance/dlp_result"), "passed");
    assert!(findings(&event, "input").is_empty());
    assert_eq!(other.at("/governance/dlp_result"), "flagged");
    assert_eq!(told(&scene.gateway, &scan).await.0, 0);
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

    let (code, shown) = told(&good, &["dlp", "test"]).await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("2 samples hold"), "{shown}");
    for (gateway, wanted) in [(&bad, "`must_not_match` sample 1 is found"), (&broken, "`pattern`")]
    {
        let (code, shown) = told(gateway, &["dlp", "test"]).await;
        assert_eq!(code, 1, "{shown}");
        assert!(shown.contains("`staff_number`") && shown.contains(wanted), "{shown}");
        assert!(!shown.contains("654321"), "{shown}");
    }
}
