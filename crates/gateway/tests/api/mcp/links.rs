//! URIs in answers and questions of tools, which carry their provider where there are several.

use super::{ask, modern, resources::exposed};
use crate::prelude::*;

#[tokio::test(flavor = "multi_thread")]
async fn uris_in_answers_of_tools_carry_their_provider_where_there_are_several() {
    let scene = exposed().await;
    for (path, name, link, panel) in [
        ("/mcp", "up__link", "up+notes://a", "ui://up/panel"),
        ("/mcp/up", "link", "notes://a", "ui://panel"),
    ] {
        let params = json!({"name": name, "arguments": {}});
        let answer = ask(&scene.gateway, &scene.who, path, "tools/call", params).await;
        has!(answer, 200, "/result/content/0/uri": link, "/result/content/1/resource/uri": panel,
            "/result/content/1/resource/text": "notes://a");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn uris_in_questions_of_tools_carry_their_provider_where_there_are_several() {
    let scene = exposed().await;
    for (path, name, link) in
        [("/mcp", "up__asks", "up+notes://a"), ("/mcp/up", "asks", "notes://a")]
    {
        let params = json!({"name": name, "arguments": {},
            "_meta": {"io.modelcontextprotocol/clientCapabilities": {"sampling": {}}}});
        let request = modern(&scene.gateway, &scene.who, path, "tools/call", &params);
        let answer = scene.gateway.send(request).await;
        has!(answer, 200, "/result/inputRequests/a/params/messages/0/content/uri": link);
    }
}
