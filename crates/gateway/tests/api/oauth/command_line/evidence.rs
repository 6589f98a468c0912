//! The log over the API: one event, and an export that can be verified.

use super::{Laptop, site};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn an_event_is_shown_and_the_log_is_exported_as_on_the_node() {
    let site = site();
    let laptop = Laptop::of(&site);
    let auditor = site.gateway.service(&site.org, "audit:read audit:export").token;
    let url = site.gateway.url();
    let told = async |command: &str| {
        let arguments = [words(command), vec!["--url", url]].concat();
        let output = laptop.with(&arguments, &[("PORTCULLIS_TOKEN", auditor.as_str())]).await;
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {errors}");
        String::from_utf8(output.stdout).unwrap()
    };
    let event = told("audit tail -n 1 --type principal.changed --json").await;
    let event: Value = serde_json::from_str(event.trim()).unwrap();
    let id = event["id"].as_str().unwrap();

    let shown: Value =
        serde_json::from_str(&told(&format!("audit show {id} --json")).await).unwrap();
    let made = told("audit export --output log.jsonl --json").await;
    let table = told("audit export --format csv --type principal.changed").await;

    let here = site.gateway.admin(&["audit", "show", id]);
    for member in ["id", "sequence", "type", "target", "actor"] {
        assert_eq!((&shown[member], &here[member]), (&event[member], &event[member]), "{member}");
    }
    assert!(table.contains(id), "{table}");
    let made: Value = serde_json::from_str(&made).unwrap();
    assert!(made["events"].as_u64().unwrap() > 0, "{made}");
    let keys = site.gateway.admin(&["audit", "key", "list"]);
    let key = keys[0]["key"].as_str().unwrap();
    let verified = laptop.with(&["audit", "verify", "log.jsonl", "--key", key], &[]).await;
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let weak = site.gateway.service(&site.org, "audit:read").token;
    let export = ["audit", "export", "--output", "other.jsonl", "--url", url];
    let (_, refused) = laptop.fails(&export, &[("PORTCULLIS_TOKEN", weak.as_str())]).await;
    assert!(refused.contains("insufficient_scope"), "{refused}");
    for left in ["other.jsonl", "other.jsonl.part"] {
        assert!(!laptop.state.path().join(left).exists(), "{left}");
    }
}
