//! Rights of a login of the command line, which no other client gets.

use super::{Laptop, read};
use crate::{
    oauth::{
        LINKS, Site,
        client::{Client, returned},
    },
    prelude::*,
};

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_has_rest_and_no_client_of_an_mcp_endpoint_administers() {
    let declared = "[[oauth.client]]\nid = \"desk\"\nredirect_uris = [\"https://desk.example/cb\"]";
    let site = Site::built(gateway().config(&format!("{LINKS}\n{declared}")).sample());
    site.gateway.admin(&["principal", "set-role", &site.ana, "--role", "admin"]);
    let laptop = Laptop::of(&site);
    let browser = site.browser().await;
    assert!(laptop.log_in(&browser, "allow").await.status.success());
    let own = site.ana_with(read(&laptop.file())["access_token"].as_str().unwrap());
    let desk = Client {
        gateway: &site.gateway,
        id: "desk".to_owned(),
        redirect_uri: "https://desk.example/cb".to_owned(),
    };
    let asked = |resource: &str| {
        let mut request = desk.request();
        request.insert("scope", "admin mcps:read".to_owned());
        request.insert("resource", format!("{}{resource}", site.gateway.url()));
        request
    };
    let org = async |who: &Principal| site.gateway.get(who, "/v1/org").await;

    assert_eq!(org(&own).await.status, 200);
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}});
    let mcp = site.gateway.request_of(&own, Method::POST, "/mcp").json(&list);
    let mcp = site.gateway.send(mcp.header("accept", "application/json, text/event-stream")).await;
    assert_eq!(mcp.status, 401, "{}", mcp.text);
    for endpoint in ["/mcp", "/mcp/sample"] {
        let tokens = desk.tokens(&browser, &asked(endpoint)).await;
        has!("{endpoint}"; org(&site.ana_with(&tokens.access)).await, 403 "insufficient_scope");
    }
    let tokens = desk.tokens(&browser, &asked("/v1")).await;
    assert_eq!(org(&site.ana_with(&tokens.access)).await.status, 200);
    let app = site.client("https://app.example/cb").await;
    app.code(&browser, &app.request()).await;
    let mut request = app.request();
    request.insert("resource", format!("{}/v1", site.gateway.url()));
    assert_eq!(returned(&app.asks(&browser, &request).await)["error"], "invalid_target");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_gets_no_more_than_a_member_has_and_policies_are_switched_off_remotely() {
    let policies = "@id(\"base\") permit (principal, action, resource);
@id(\"short\") forbid (principal, action == Mcp::Action::\"sample:list_items\", resource)
when { context.input has limit && context.input.limit > 10 };";
    let site = Site::built(gateway().config(LINKS).sample().policies(policies));
    let laptop = Laptop::of(&site);
    let browser = site.browser().await;
    assert!(laptop.log_in(&browser, "allow").await.status.success());
    let scope = read(&laptop.file())["scope"].as_str().unwrap().to_owned();
    assert!(!scope.contains("admin") && scope.contains("mcps:read"), "{scope}");
    let url = site.gateway.url();
    let (_, told) = laptop
        .fails(&["policy", "disable", "short", "--ttl", "1h", "--reason", "x", "--url", url], &[])
        .await;
    assert!(told.contains("insufficient_scope"), "{told}");
    site.gateway.admin(&["principal", "set-role", &site.ana, "--role", "admin"]);
    let browser = site.browser().await;
    assert!(laptop.log_in(&browser, "allow").await.status.success());

    let (_, silent) =
        laptop.fails(&["policy", "disable", "short", "--ttl", "1h", "--url", url], &[]).await;
    assert!(silent.contains("add `--reason TEXT`"), "{silent}");
    laptop.prints("policy disable short --ttl 1h --reason 4711").await;

    let ana = site.ana_with(read(&laptop.file())["access_token"].as_str().unwrap());
    let off = site.gateway.get(&ana, "/v1/policies/short").await.ok();
    assert_eq!(off.at("/data/origin/override/reason"), "4711");
    laptop.prints("policy enable short").await;
    let on = site.gateway.get(&ana, "/v1/policies?status=disabled").await;
    assert!(items(&on).is_empty(), "{}", on.text);
}
