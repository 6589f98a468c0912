//! Notices by webhook: their signatures, and what they tell of approvals.

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    thread,
};

use http::{HeaderMap, HeaderName};

use crate::{
    approvals::{approver, decide, pending_approval},
    prelude::*,
};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OLD_SECRET: &str = "whsec_c2VjcmV0c2VjcmV0c2VjcmV0c2VjcmV0";

/// Longer than any notice of a test takes.
const PATIENCE: Duration = Duration::from_secs(30);

const POLICIES: &str = r#"
@id("all") permit (principal, action, resource);
@id("told") @notify("webhook:secops") @reason("Somebody looks")
forbid (principal, action == Mcp::Action::"up:echo", resource);
@id("payouts") @notify("webhook:secops") @reason("Finance looks at payouts")
@require_approval("approvers=finance ttl=15m")
forbid (principal, action == Mcp::Action::"up:pay", resource);
"#;

/// A message as it arrived.
#[derive(Debug)]
pub(super) struct ReceivedMessage {
    headers: HeaderMap,
    body: String,
}

impl ReceivedMessage {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map(|value| value.to_str().unwrap()).unwrap_or_default()
    }

    pub(super) fn message(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    fn kind(&self) -> String {
        self.message()["type"].as_str().unwrap().to_owned()
    }

    /// Asserts that the library of Standard Webhooks verifies this message, and none that was changed.
    fn verify_with(&self, secret: &str) {
        let library = standardwebhooks::Webhook::new(secret).unwrap();
        library.verify(self.body.as_bytes(), &self.headers).expect(&self.body);
        let other = self.body.replacen('{', "[", 1);
        assert!(library.verify(other.as_bytes(), &self.headers).is_err(), "{self:?}");
    }
}

/// A receiver of messages, which refuses the first of each kind that is named.
pub(super) fn receiver(refused: &[&str]) -> (String, mpsc::Receiver<ReceivedMessage>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/hook", listener.local_addr().unwrap());
    let mut refused: Vec<String> = refused.iter().map(ToString::to_string).collect();
    let (sender, received) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let message = read(&mut stream);
            let kind = message.kind();
            let status = match refused.iter().position(|it| *it == kind) {
                Some(at) => {
                    refused.remove(at);
                    "500 Internal Server Error"
                }
                None => "204 No Content",
            };
            let length = "content-length: 0\r\nconnection: close";
            let head = format!("HTTP/1.1 {status}\r\n{length}\r\n\r\n");
            stream.write_all(head.as_bytes()).unwrap();
            if sender.send(message).is_err() {
                return;
            }
        }
    });
    (address, received)
}

fn read(stream: &mut TcpStream) -> ReceivedMessage {
    let mut text = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).unwrap();
        text.extend_from_slice(&piece[..count]);
        let request = String::from_utf8_lossy(&text).into_owned();
        let Some((head, body)) = request.split_once("\r\n\r\n") else { continue };
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        let lines = lines.map(|(name, value)| (name.parse::<HeaderName>(), value.parse()));
        let headers: HeaderMap = lines.map(|(name, it)| (name.unwrap(), it.unwrap())).collect();
        if headers["content-length"] == body.len().to_string() {
            return ReceivedMessage { headers, body: body.to_owned() };
        }
    }
}

/// The next message of this kind.
pub(super) fn next(received: &mpsc::Receiver<ReceivedMessage>, kind: &str) -> ReceivedMessage {
    loop {
        let message = received.recv_timeout(PATIENCE).expect(kind);
        if message.kind() == kind {
            return message;
        }
    }
}

async fn governed(address: &str, more: &str) -> Scene {
    let config = format!(
        "[server]\nmetrics_listen = \"127.0.0.1:0\"\n\
         [webhooks.secops]\nurl = \"{address}\"\nallow_private = true\n{more}"
    );
    let tools = vec![tool("echo", Script::Echo), tool("pay", Script::Echo)];
    scene_with(tools, "", |builder| builder.policies(POLICIES).config(&config)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notice_without_a_secret_has_an_id_and_an_approval_that_ends_is_told() {
    // Without a secret a notice has an id and a moment.
    let (address, received) = receiver(&[]);
    let scene = governed(&address, "").await;

    let answer = scene.invoke("echo", json!({"word": "sesame"})).await;

    scene.check(&answer, SUCCESS).await;
    let notice = next(&received, "policy.notice");
    assert!(notice.header("webhook-id").starts_with("msg_"), "{notice:?}");
    assert!(notice.header("webhook-timestamp").parse::<i64>().is_ok(), "{notice:?}");
    assert_eq!(notice.header("webhook-signature"), "");
    assert_eq!(notice.header("content-type"), "application/json");
    has!(notice.message(), "/policy": "told", "/decision": "allow", "/tool": "up:echo",
        "/principal_id": scene.who.id.as_str(), "/request_id": *answer.at("/meta/request_id"));
    assert!(!notice.body.contains("sesame"), "{notice:?}");

    // An approval that ends is told and counted.
    let answer = scene.invoke("pay", json!({"to": "DE"})).await;
    next(&received, "approval.requested");

    scene.gateway.admin(&["principal", "disable", &scene.who.id]);

    let ended = next(&received, "approval.expired").message();
    has!(ended, "/data/id": *answer.at("/error/details/approval/id"), "/data/status": "expired",
        "/data/input": null);
    let figures = scene.gateway.metrics().await;
    for line in [
        "portcullis_approvals_total{change=\"requested\"} 1",
        "portcullis_approvals_total{change=\"expired\"} 1",
        "portcullis_approvals_pending ",
        "portcullis_approvals_oldest_pending_seconds ",
    ] {
        assert!(figures.contains(line), "{line} in:\n{figures}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn while_a_secret_is_changed_a_notice_is_signed_with_both() {
    let (address, received) = receiver(&[]);
    let secrets = format!("secret = \"{SECRET}\"\nprevious_secret = \"{OLD_SECRET}\"");
    let scene = governed(&address, &secrets).await;

    scene.invoke("echo", json!({})).await;

    let notice = next(&received, "policy.notice");
    for secret in [SECRET, OLD_SECRET] {
        notice.verify_with(secret);
    }
    assert_eq!(notice.header("webhook-signature").split(' ').count(), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_for_approval_is_told_until_it_arrives_masked_and_signed() {
    let (address, received) = receiver(&["approval.requested"]);
    let scene = governed(&address, &format!("secret = \"{SECRET}\"")).await;
    let input = json!({"from": "4111 1111 1111 1111", "to": "D\u{200b}E"});

    let answer = scene.invoke("pay", input).await;

    let first = next(&received, "approval.requested");
    let again = next(&received, "approval.requested");
    assert_eq!(first.header("webhook-id"), again.header("webhook-id"));
    assert!(first.header("webhook-id").starts_with("evt_"), "{first:?}");
    assert_eq!(first.body, again.body);
    for message in [&first, &again] {
        message.verify_with(SECRET);
        assert!(!message.body.contains("1111 1111"), "{message:?}");
    }
    let told = first.message();
    let data = &told["data"];
    let asked = answer.at("/error/details/approval");
    let moment = |pointer: &str| {
        let text = told.pointer(pointer).and_then(Value::as_str).unwrap();
        Timestamp::parse_rfc3339(text).unwrap().as_seconds()
    };
    let sent: i64 = first.header("webhook-timestamp").parse().unwrap();
    assert!((sent - moment("/timestamp")).abs() < 30, "{first:?}");
    assert_eq!(moment("/data/expires_at") - moment("/data/created_at"), 900);
    has!(data, "/id": asked["id"], "/expires_at": asked["expires_at"], "/url": asked["url"],
        "/org_id": scene.who.org.as_str(), "/policy": "payouts", "/tool": "up:pay",
        "/reason": "Finance looks at payouts", "/status": "pending", "/approvers": ["finance"],
        "/requester/id": scene.who.id.as_str(), "/input/to": "D[U+200B]E");
    let found = &data["findings"][0];
    assert_eq!((&found["detector"], &found["path"]), (&json!("credit_card"), &json!("/from")));
    assert!(data["digest"].as_str().unwrap().starts_with("sha256:"), "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_told_with_who_made_it_and_without_the_input() {
    let (address, received) = receiver(&[]);
    let scene = governed(&address, "").await;
    let admin = approver(&scene.gateway, &scene.who.org);

    for (to, vote, kind, status) in [
        ("DE", "approve", "approval.granted", "approved"),
        ("FR", "deny", "approval.denied", "denied"),
    ] {
        let id = pending_approval(&scene.invoke("pay", json!({"to": to})).await);
        decide(&scene.gateway, &admin, &id, vote).await;

        let told = next(&received, kind).message();
        let data = &told["data"];
        has!(data, "/id": id, "/status": status, "/decisions/0/by": admin.id.as_str(),
            "/decisions/0/decision": vote, "/input": null);
    }
    scene.invoke("pay", json!({"to": "DE"})).await;
    let figures = scene.gateway.metrics().await;
    for line in [
        "portcullis_approvals_total{change=\"requested\"} 2",
        "portcullis_approvals_total{change=\"granted\"} 1",
        "portcullis_approvals_total{change=\"denied\"} 1",
        "portcullis_approvals_total{change=\"consumed\"} 1",
        "portcullis_approval_decision_seconds_count 2",
    ] {
        assert!(figures.contains(line), "{line} in:\n{figures}");
    }
}
