//! `GET /v1/providers`, `GET /v1/providers/{id}`, `GET /v1/providers/waiting`: the connections a caller may use, and
//! the providers that wait for one.

use portcullis_testkit::tool;
use reqwest::StatusCode;

use crate::{mcp::ask, prelude::*};

/// No server listens there.
const NOWHERE: &str = "http://127.0.0.1:9/mcp";
const LEGACY: &str = "protocol = \"legacy\"";

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_listed_by_slug_with_their_state() {
    let server = McpServer::start(vec![tool("a"), tool("b"), tool("c")]).await;
    let (gateway, who) = serve(
        gateway()
            .http("up", &server.url(), "protocol = \"legacy\"\nname = \"Up and running\"")
            .http("down", NOWHERE, LEGACY),
    );

    let all = gateway.get(&who, "/v1/providers").await;

    assert_eq!(members(&all, "slug"), ["down", "up"]);
    assert_eq!(members(&all, "status"), ["error", "connected"]);
    assert_enveloped(&all, "providers");
    let up = &items(&all)[1];
    assert!(is_id(up["id"].as_str().unwrap(), "prv_"), "{up}");
    has!(up, "/name": "Up and running", "/tools": 3, "/owner": {"type": "org", "id": who.org},
        "/auth/type": "none", "/last_error": null);
    let error = items(&all)[0]["last_error"].as_str().unwrap();
    assert!(!error.contains("127.0.0.1"), "{error}");
    let one = gateway.get(&who, &format!("/v1/providers/{}", up["id"].as_str().unwrap())).await;
    assert_eq!(one.at("/data"), up);
    for (query, wanted) in [
        ("?status=connected", "up"),
        ("?status=error,needs_auth", "down"),
        ("?status=pending", ""),
        ("?slug=up,other", "up"),
        ("?owner=org", "down up"),
        ("?owner=me", ""),
    ] {
        let answer = gateway.get(&who, &format!("/v1/providers{query}")).await;
        assert_eq!(members(&answer, "slug").join(" "), wanted, "{query}");
    }
    let page = gateway.get(&who, "/v1/providers?limit=1").await;
    let cursor = page.at("/meta/pagination/next_cursor").as_str().unwrap();
    let rest = gateway.get(&who, &format!("/v1/providers?limit=1&cursor={cursor}")).await;
    assert_eq!((members(&page, "slug"), members(&rest, "slug")), (vec!["down"], vec!["up"]));
    assert_eq!(rest.at("/meta/pagination/next_cursor"), &Value::Null);
    for id in ["prv_01M754BKTK9TG1TCT7SPYHDJTD", "up", "prv_", "%00"] {
        assert_eq!(gateway.get(&who, &format!("/v1/providers/{id}")).await.status, 404, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_of_one_org_does_not_exist_for_another() {
    let server = McpServer::start(vec![tool("a")]).await;
    let mut gateway = gateway().sample().start();
    let owner = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    let other = gateway.service(&gateway.org("other", &ENOUGH), ALL_SCOPES);
    gateway.stop();
    gateway.configure(&format!(
        "[[providers]]\nslug = \"private\"\nurl = \"{}\"\nallow_private = true\n{LEGACY}\n\
         org = \"{}\"",
        server.url(),
        owner.org
    ));
    gateway.start();

    let mine = gateway.get(&owner, "/v1/providers").await;
    let theirs = gateway.get(&other, "/v1/providers").await;

    assert_eq!(members(&mine, "slug"), ["private", "sample"]);
    assert_eq!(members(&theirs, "slug"), ["sample"]);
    assert_ne!(items(&mine)[1]["id"], items(&theirs)[0]["id"], "each org has its own connection");
    let id = items(&mine)[0]["id"].as_str().unwrap();
    for path in [format!("/v1/providers/{id}"), "/v1/mcps/private:a".to_owned()] {
        assert_eq!(gateway.get(&owner, &path).await.status, 200, "{path}");
        has!("{path}"; gateway.get(&other, &path).await, 404 "not_found");
    }
    assert_eq!(members(&gateway.get(&other, "/v1/mcps?provider=private").await, "id").len(), 0);
    let call = gateway.invoke(&other, "private:a", json!({"x": 1})).await;
    let unknown = gateway.invoke(&other, "private:b", json!({"x": 1})).await;
    assert_eq!((call.status.as_u16(), unknown.status.as_u16()), (404, 404));
    let told = call.at("/error/message").to_string();
    assert_eq!(told.replace("private:a", "private:b"), unknown.at("/error/message").to_string());
    assert_eq!(gateway.invoke(&owner, "private:a", json!({"x": 1})).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_declares_and_does_not_pass_is_told_and_declared_to_no_client() {
    let server = Hostile::start(vec![crate::scene::tool("a", Script::Echo)]).await;
    let exposes = "expose = [\"tools\", \"prompts\"]";
    let (gateway, who) = serve(gateway().http("up", &server.url(), exposes));
    let unknown = "com.example/files";

    let shown = gateway.get(&who, "/v1/providers").await.ok();
    let listed = gateway.admin(&["provider", "list"]);
    let checked = gateway.run(&["check", "--config", &gateway.config_file().to_string_lossy()]);
    let declared =
        json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": {(unknown): {}}}});
    let asked = json!({"name": "a", "arguments": {}, "_meta": declared});
    ask(&gateway, &who, "/mcp/up", "tools/call", asked).await.ok();
    let told = ask(&gateway, &who, "/mcp/up", "server/discover", json!({})).await;

    let dropped = json!(["resources", unknown]);
    assert_eq!(items(&shown)[0]["dropped"], dropped);
    assert_eq!(listed[0]["dropped"], dropped);
    assert!(checked.contains("resources, com.example/files"), "{checked}");
    assert_eq!(told.status, 200, "{}", told.text);
    assert!(!told.text.contains(unknown), "{}", told.text);
    assert!(!server.calls()[0].message.to_string().contains(unknown));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_provider_that_nobody_connected_is_listed_with_what_it_waits_for() {
    let server = McpServer::start(vec![tool("a")]).await;
    let keyed = format!("{LEGACY}\nauth = \"api_key\"");
    let other = format!("{keyed}\nowners = [\"org\"]");
    let (gateway, who) = serve(
        gateway().http("free", &server.url(), LEGACY).http("keyed", &server.url(), &keyed).http(
            "other",
            &server.url(),
            &other,
        ),
    );
    let waiting =
        async |query: &str| gateway.get(&who, &format!("/v1/providers/waiting{query}")).await.ok();
    // At the node, and over its API.
    let listed = || {
        let here = gateway.admin(&["provider", "list"]);
        let mut there = gateway.command();
        there.args(["provider", "list", "--json", "--url", gateway.url()]);
        let there = there.env("PORTCULLIS_TOKEN", &who.token).output().unwrap();
        let there: Value = serde_json::from_slice(&there.stdout).expect("JSON");
        let by_slug = |list: Value| {
            let mut all = list.as_array().unwrap().clone();
            // What a connection with credentials of its own has is known at the gateway that made it only.
            all.retain_mut(|it| it["tools"].take().is_number() && it["dropped"].take().is_array());
            all.sort_by_key(|it| it["slug"].to_string());
            all
        };
        let [here, there] = [here, there].map(by_slug);
        assert_eq!(here, there);
        let state = |it: &Value| format!("{} {} {}", it["slug"], it["status"], it["waits_for"]);
        here.iter().map(|it| state(it).replace('"', "")).collect::<Vec<_>>()
    };

    let all = waiting("").await;
    assert_eq!(members(&all, "slug"), ["keyed", "other"]);
    let first = json!({
        "slug": "keyed", "name": "keyed", "exposes": ["tools"], "waits_for": "key", "for_me": true,
        "for_org": true,
    });
    assert_eq!(items(&all)[0], first);
    assert_eq!(items(&all)[1]["for_me"], false);
    let page = waiting("?limit=1").await;
    let cursor = page.at("/meta/pagination/next_cursor").as_str().unwrap();
    let rest = waiting(&format!("?limit=1&cursor={cursor}")).await;
    assert_eq!((members(&page, "slug"), members(&rest, "slug")), (vec!["keyed"], vec!["other"]));
    let states = ["free connected null", "keyed pending key", "other pending key"];
    assert_eq!(listed(), states);
    let checked = gateway.admin(&["check"]);
    assert_eq!(checked["providers"][1]["waits_for"], "key");

    let key = json!({"api_key": "the-key-0123456789"}).to_string();
    gateway.post(&who, "/v1/providers/keyed/connect", &key).await.ok();

    assert_eq!(members(&waiting("").await, "slug"), ["other"]);
    let states = ["free connected null", "keyed connected null", "other pending key"];
    assert_eq!(listed(), states);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_key_goes_to_its_provider_and_nowhere_else() {
    let key = "sk-the-provider-key-0123456789";
    let server = McpServer::start(vec![tool("a")]).await;
    let with_key = |more: &str| {
        format!("{LEGACY}\nauth = \"api_key\"\napi_key = {{ env = \"THE_KEY\" }}\n{more}")
    };
    let (gateway, who) = serve(
        gateway()
            .env("THE_KEY", key)
            .config("[log]\nlevel = \"trace\"")
            .http("bearer", &server.url(), &with_key(""))
            .http("header", &server.url(), &with_key("api_key_header = \"X-Api-Key\"")),
    );

    let mut told = vec![gateway.starting_log().to_owned()];
    for tool in ["bearer:a", "header:a"] {
        let call = gateway.invoke(&who, tool, json!({"x": 1})).await.ok();
        told.push(call.text);
    }
    server.fail(Some(StatusCode::UNAUTHORIZED));
    let refused = gateway.invoke(&who, "bearer:a", json!({"x": 1})).await;
    assert_eq!(refused.refusal(), (409, "provider_auth_required"));
    told.push(refused.text);
    let bearer = || gateway.get(&who, "/v1/providers?slug=bearer");
    until(bearer, |answer| members(answer, "status") == ["needs_auth"]).await;

    let seen = server.requests();
    let calls: Vec<_> =
        seen.iter().filter(|(_, message)| message["method"] == "tools/call").collect();
    assert_eq!(calls[0].0["authorization"], format!("Bearer {key}"));
    assert_eq!(calls[1].0["x-api-key"], key);
    assert!(!calls[1].0.contains_key("authorization"));
    for (headers, message) in &seen {
        assert!(!format!("{headers:?}{message}").contains(&who.token), "the caller's token left");
    }
    for path in ["/v1/providers", "/v1/mcps?view=full", "/v1/audit/events?limit=200"] {
        told.push(gateway.get(&who, path).await.ok().text);
    }
    for text in told {
        assert!(!text.contains(key), "the key is told: {text}");
    }
}

/// A program that tells what it misses, with a secret in it, and ends.
const BROKEN: [&str; 3] = ["sh", "-c", BROKEN_SCRIPT];
const BROKEN_SCRIPT: &str =
    "echo 'starting' >&2; echo 'key glpat-F4k3abcdefghijklmnop is no good' >&2; exit 3";

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_ends_says_why_without_its_secrets() {
    let (gateway, who) = serve(gateway().stdio("broken", &BROKEN, ""));

    let ended = |it: &Answer| {
        items(it)[0]["last_error"].as_str().is_some_and(|told| told.contains("exit code 3"))
    };
    let all = until(|| gateway.get(&who, "/v1/providers"), ended).await;

    let told = items(&all)[0]["last_error"].as_str().unwrap();
    for part in ["starting", "[REDACTED:gitlab_token] is no good"] {
        assert!(told.contains(part), "{told}");
    }
    let log = gateway.log();
    assert!(log.contains("exit code 3") && !log.contains("glpat-F4k3"), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_operator_tests_a_provider_and_calls_what_only_reads() {
    let (gateway, who) = serve(gateway().on_sqlite().sample().stdio("broken", &BROKEN, ""));
    let tested = async |arguments: &[&str], token: &str| {
        let mut command = tokio::process::Command::from(gateway.command());
        command.args(["provider", "test"]).args(arguments).env("PORTCULLIS_TOKEN", token);
        command.arg("--config").arg(gateway.config_file());
        let output = command.output().await.expect("a command that starts");
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    };

    for (command, token, succeeds, part) in [
        ("sample", "", true, "list_items"),
        ("sample --call list_items", &who.token, true, "content"),
        ("sample --call list_items", "svc_live_wrong", false, "token"),
        ("sample --call create_note", &who.token, false, "only reads"),
        ("broken", "", false, "exit code 3"),
        ("nothing", "", false, "no provider `nothing`"),
    ] {
        let (success, told) = tested(&words(command), token).await;

        assert_eq!(success, succeeds, "{command}: {told}");
        assert!(told.contains(part), "{command}: {told}");
    }
    let events = gateway.get(&who, "/v1/audit/events?type=mcp.invocation").await;
    assert_eq!(items(&events).len(), 1, "the call is recorded: {}", events.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_not_ready_yet_is_starting() {
    let (gateway, who) = serve(gateway().stdio("slow", &["sleep", "600"], "timeout_seconds = 1"));
    let told = |it: &Answer| {
        let slow = items(it).first();
        slow.is_some_and(|slow| slow["status"] == "starting" && slow["last_error"].is_string())
    };

    let listed = until(|| gateway.get(&who, "/v1/providers?status=starting"), told).await;

    let why = items(&listed)[0]["last_error"].as_str().expect("a sentence");
    assert!(why.contains("still starting"), "{why}");
    assert_eq!(gateway.get(&who, "/v1/mcps/slow:anything").await.status, 404);
}
