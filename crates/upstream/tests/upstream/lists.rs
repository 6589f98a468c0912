//! Lists that go on beyond what is read of one.

use axum::http::StatusCode;
use portcullis_core::capability::CapabilityKind;
use portcullis_upstream::ServerSettings;
use serde_json::{Value, json};

use crate::{
    fake::{Fake, discovered, error, success},
    support::{server, settings},
};

/// A server with so many pages of a thousand resources each.
async fn with_pages(pages: usize) -> Fake {
    Fake::start(move |seen| match seen.method() {
        "server/discover" => discovered(seen),
        "tools/list" => success(&seen.id(), &json!({"tools": []})),
        "resources/list" => {
            let cursor = seen.message["params"]["cursor"].as_str();
            let page: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
            let resource = |n| json!({"uri": format!("notes://{page:02}/{n:03}"), "name": "a"});
            let mut result = json!({"resources": (0..1_000).map(resource).collect::<Value>()});
            if page + 1 < pages {
                result["nextCursor"] = json!((page + 1).to_string());
            }
            success(&seen.id(), &result)
        }
        _ => error(StatusCode::NOT_FOUND, &seen.id(), -32601),
    })
    .await
}

#[tokio::test]
async fn of_a_hundred_thousand_resources_ten_thousand_are_read_and_no_page_beyond() {
    for (pages, asked, truncated) in [(10, 10, false), (11, 11, true), (100, 11, true)] {
        let fake = with_pages(pages).await;
        let client = server(ServerSettings {
            kinds: vec![CapabilityKind::Tool, CapabilityKind::Resource],
            max_response_bytes: 1 << 20,
            ..settings(fake.transport())
        });

        let list = client.list().await.unwrap();

        let names = list.definitions.iter().map(|it| it.name.as_str());
        // The last definition stands for what no list names.
        let uris: Vec<&str> = names.filter(|name| *name != "*").collect();
        assert_eq!((uris.len(), !list.truncated.is_empty()), (10_000, truncated), "{pages}");
        let ends = [uris.first(), uris.last()].map(Option::unwrap);
        assert_eq!(ends, [&"notes://00/000", &"notes://09/999"], "{pages}");
        assert!(uris.is_sorted_by(|one, other| one < other), "each stands once");
        assert_eq!(fake.count("resources/list"), asked, "{pages}");
        assert!(list.skipped.is_empty(), "{:?}", list.skipped);
    }
}
