//! `GET /approvals/{id}`: a page for browsers that cannot sign in, and the way to that of the console for others.

use crate::prelude::*;

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

#[tokio::test(flavor = "multi_thread")]
async fn the_address_leads_to_the_page_of_the_console_through_the_login() {
    let logins = "[login]\nlinks = true";
    let gateway = gateway().config(logins).start();
    let page = |path: String| gateway.send(gateway.request(Method::GET, &path));
    let path = "/approvals/apr_01M754BKTKX1YB8Q05NMW9TP4G";

    let sent = page(path.to_owned()).await;
    let login = page(sent.header("location").to_owned()).await;

    assert_eq!(sent.status, 303, "{}", sent.text);
    assert_eq!(sent.header("location"), format!("/console{path}"));
    assert_eq!(
        login.header("location"),
        "/login?return_to=%2Fconsole%2Fapprovals%2Fapr%5F01M754BKTKX1YB8Q05NMW9TP4G"
    );
    let off = crate::gateway().config(&format!("{logins}\n[console]\nenabled = false")).start();
    let page = off.send(off.request(Method::GET, path)).await.ok();
    assert!(page.text.contains("portcullis approval show apr_01M754"), "{}", page.text);
}
