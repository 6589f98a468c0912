//! Tools that wait: `GET /console/waiting`, `POST /console/waiting/{id}/accept`.

use super::{Site, hidden, link_of_action};
use crate::{login::browser::Page, prelude::*};

#[tokio::test(flavor = "multi_thread")]
async fn an_admin_of_the_only_org_accepts_a_tool_and_one_of_several_is_told_the_command() {
    let tools = ["read", "write"].map(|name| tool(name, Script::Echo));
    let upstream = Hostile::start(tools.to_vec()).await;
    let gateway = gateway()
        .config("[login]\nlinks = true")
        .http("up", &upstream.url(), "pin = \"review\"")
        .start();
    let org = gateway.org("acme", &ENOUGH);
    let site = Site { gateway, upstream, org };
    let browser = site.browser("Ada", "admin").await;
    let open = || browser.open("/console/waiting");
    let page = eventually("tools that wait", async || {
        let page = open().await;
        page.text.contains("up:write").then_some(page)
    })
    .await;
    let token = hidden(&page, "form_token");
    let accept = async |page: &Page| {
        let version = hidden(page, "version");
        let fields = [("form_token", &*token), ("version", &*version)];
        browser.submit(&link_of_action(page, "/console/waiting/"), &fields).await
    };

    has!(accept(&page).await, 303);
    let left = open().await;
    site.gateway.org("beta", &ENOUGH);
    let of_several = open().await;
    has!(accept(&left).await, 409);

    assert!(!left.text.contains("up:read"), "{}", left.text);
    assert!(!of_several.text.contains("Accept this version"), "{}", of_several.text);
    let command = "portcullis tool accept up:write --version sha256:";
    assert!(of_several.text.contains(command), "{}", of_several.text);
}
