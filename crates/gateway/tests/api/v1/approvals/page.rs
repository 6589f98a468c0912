//! `GET /approvals/{id}`: a page for browsers that cannot sign in, and the way to that of the console for others.

use reqwest::Method;

use crate::gateway;

#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_how_to_decide_and_nothing_of_any_approval() {
    let gateway = gateway().start();
    let page = |path: &str| gateway.send(gateway.request(Method::GET, path));

    let known = page("/approvals/apr_01M754BKTKX1YB8Q05NMW9TP4G").await.ok();

    assert_eq!(known.header("content-type"), "text/html; charset=utf-8");
    let policy = known.header("content-security-policy");
    assert!(policy.contains("default-src 'none'") && policy.contains("frame-ancestors 'none'"));
    assert_eq!(known.header("referrer-policy"), "no-referrer");
    assert_eq!(known.header("x-frame-options"), "DENY");
    assert_eq!(known.header("cache-control"), "no-store");
    for text in [
        &format!("{}/v1/approvals/apr_01M754BKTKX1YB8Q05NMW9TP4G/decision", gateway.url()),
        "portcullis approval approve apr_01M754BKTKX1YB8Q05NMW9TP4G",
        "approvals:decide",
    ] {
        assert!(known.text.contains(text), "{text}: {}", known.text);
    }
    assert!(!known.text.contains("<script") && !known.text.contains("style"), "{}", known.text);
    for wrong in [
        "apr_",
        "apr_01m754bktkx1yb8q05nmw9tp4g",
        "evt_01M754BKTKX1YB8Q05NMW9TP4G",
        "%3Cscript%3Ealert(1)%3C%2Fscript%3E",
        "%ff",
        "%00",
    ] {
        let answer = page(&format!("/approvals/{wrong}")).await;
        assert_eq!(answer.status, 404, "{wrong}");
        assert!(!answer.text.contains("<script") && !answer.text.contains("apr_0"), "{wrong}");
    }
}
