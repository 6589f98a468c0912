//! Stored rows that cannot be read: each is told by name, and concerns nothing beside it.

use portcullis_testkit::tool;

use crate::prelude::*;

const KEYED: &str = "protocol = \"legacy\"\nauth = \"api_key\"";
const KEY: &str = "the-key-of-acme-0123456789";

struct Scene {
    gateway: Gateway,
    who: Principal,
    _servers: [McpServer; 2],
}

/// Two providers with a tool each, both connected for the org.
async fn scene() -> Scene {
    let spoilt = McpServer::start(vec![tool("a")]).await;
    let sound = McpServer::start(vec![tool("a")]).await;
    let gateway = gateway().http("spoilt", &spoilt.url(), KEYED).http("sound", &sound.url(), KEYED);
    let (gateway, who) = serve(gateway.config("[server]\nmetrics_listen = \"127.0.0.1:0\""));
    let scene = Scene { gateway, who, _servers: [spoilt, sound] };
    for slug in ["spoilt", "sound"] {
        scene.connect(slug).await;
    }
    scene
}

impl Scene {
    async fn connect(&self, slug: &str) -> String {
        let body = json!({ "api_key": KEY, "owner": "org" }).to_string();
        let path = format!("/v1/providers/{slug}/connect");
        let answer = self.gateway.post(&self.who, &path, &body).await.ok();
        answer.at("/data/id").as_str().unwrap().to_owned()
    }

    async fn call(&self, tool: &str) -> Answer {
        self.gateway.invoke(&self.who, tool, json!({})).await
    }

    async fn connections(&self) -> Vec<Value> {
        let listed = self.gateway.get(&self.who, "/v1/providers").await.ok();
        items(&listed).clone()
    }

    /// Makes the credential of the provider `spoilt` one that is sealed for another place: it opens no more
    /// than one with a flipped byte. Gives the connection's id.
    async fn spoil(&mut self) -> String {
        let id = of(&self.connections().await, "spoilt")["id"].as_str().unwrap().to_owned();
        self.tamper(&format!(
            "UPDATE secrets SET sealed = (SELECT sealed FROM secrets WHERE row_id <> '{id}' \
             AND kind = 'connection') WHERE row_id = '{id}'"
        ));
        id
    }

    /// Changes the database while no process has anything of it in memory.
    fn tamper(&mut self, statement: &str) {
        self.gateway.kill();
        self.gateway.tamper(statement);
        self.gateway.start();
    }

    /// Rows of the table that were left out, as they are counted.
    async fn unreadable(&self, table: &str) -> u64 {
        let text = self.gateway.metrics().await;
        let series = format!("portcullis_unreadable_rows_total{{table=\"{table}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&series)?.parse().ok()).unwrap()
    }

    /// The answer of `portcullis check`; true if it is content.
    fn check(&self) -> (String, bool) {
        let mut check = self.gateway.command();
        check.args(["check", "--config"]).arg(self.gateway.config_file());
        let output = check.output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), output.status.success())
    }

    /// Everything that concerns the other provider goes on.
    async fn neighbours_go_on(&self) {
        self.call("sound:a").await.ok();
        for path in ["/v1/mcps", "/v1/providers", "/v1/audit/events", "/v1/policies"] {
            has!("{path}"; self.gateway.get(&self.who, path).await, 200);
        }
    }
}

fn of<'a>(connections: &'a [Value], slug: &str) -> &'a Value {
    connections.iter().find(|it| it["slug"] == slug).unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_credential_that_cannot_be_read_is_told_by_name_and_healed_by_connecting_again() {
    let mut scene = scene().await;
    assert!(scene.check().1);

    let id = scene.spoil().await;

    scene.neighbours_go_on().await;
    has!(scene.call("spoilt:a").await, "/error/code": "provider_auth_required");
    let connections = scene.connections().await;
    assert_eq!(of(&connections, "sound")["status"], "connected");
    let spoilt = of(&connections, "spoilt");
    assert_eq!(spoilt["status"], "error");
    assert!(spoilt["last_error"].as_str().unwrap().contains("connect it again"), "{spoilt}");
    let log = scene.gateway.wait_for_log("a stored row cannot be read");
    for name in [id.as_str(), "spoilt", &scene.who.org] {
        assert!(log.contains(name), "`{name}` in {log}");
    }
    assert!(!scene.gateway.log().contains(KEY));
    assert!(scene.unreadable("secrets").await > 0);
    let (told, content) = scene.check();
    assert!(!content && told.contains("unreadable  secrets") && told.contains(&id), "{told}");

    scene.connect("spoilt").await;

    assert_eq!(scene.call("spoilt:a").await.status, 200);
    assert_eq!(of(&scene.connections().await, "spoilt")["status"], "connected");
    let (told, content) = scene.check();
    assert!(content, "{told}");

    // Instead of being healed, it can be ended.
    let id = scene.spoil().await;
    scene.neighbours_go_on().await;
    scene.gateway.delete(&scene.who, &format!("/v1/providers/{id}")).await.ok();
    assert!(scene.check().1, "its credential went with it");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_a_token_and_a_principal_that_cannot_be_read_take_no_other_along() {
    let mut scene = scene().await;
    let org = &scene.who.org;
    let id = of(&scene.connections().await, "spoilt")["id"].clone();
    let id = id.as_str().unwrap();
    let ben = scene.gateway.user(org, "member", "mcps:read");
    let cid = scene.gateway.principal(org, "cid", &["--role", "member"], &[]);

    scene.gateway.kill();
    for statement in [
        format!("UPDATE providers SET status = 'b\u{f6}gus' WHERE id = '{id}'"),
        format!("UPDATE tokens SET kind = 'bogus' WHERE principal_id = '{}'", ben.id),
        format!("UPDATE principals SET role = 'bogus' WHERE id = '{}'", cid.id),
    ] {
        scene.gateway.tamper(&statement);
    }
    scene.gateway.start();

    scene.neighbours_go_on().await;
    let log = scene.gateway.wait_for_log(id);
    assert!(log.contains("unreadable value in `providers.status`"), "{log}");
    for stranger in [&ben, &cid] {
        has!(scene.gateway.get(stranger, "/v1/mcps").await, 401 "invalid_token");
    }
    let _ = scene.gateway.wait_for_log(&cid.token_id);
    assert!(scene.gateway.log().contains("unreadable value in `principals.role`"));
    assert!(scene.unreadable("tokens").await > 0);
    assert_eq!(of(&scene.connections().await, "spoilt"), &Value::Null);
    assert_eq!(scene.call("spoilt:a").await.code(), "not_found");
    let tokens = scene.gateway.admin(&["token", "list", "--org", "acme"]);
    assert!(tokens.to_string().contains(&scene.who.id), "{tokens}");
    let (told, content) = scene.check();
    assert!(!content);
    for table in ["providers", "tokens", "principals"] {
        assert!(told.contains(&format!("unreadable  {table}")), "{table}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_intent_that_cannot_be_read_keeps_the_node_from_nothing() {
    let mut scene = scene().await;
    let intent = |id: &str| {
        format!(
            "INSERT INTO audit_intents (id, org_id, node, opened_at) \
             VALUES ('{id}', '{}', 'gone', 1795172535123000)",
            scene.who.org
        )
    };
    let torn = "evt_01M7W9Y2TK0000000000000001";
    let torn_row = intent(torn);
    let nameless = intent("evt_???");

    scene.gateway.kill();
    scene.gateway.tamper(&torn_row);
    scene.gateway.tamper(&nameless);
    scene.gateway.start();

    scene.neighbours_go_on().await;
    let event = scene.gateway.get(&scene.who, &format!("/v1/audit/events/{torn}")).await;
    assert_eq!(event.code(), "not_found");
    let told = scene.gateway.get(&scene.who, "/v1/audit/events?type=audit.rows_refused").await;
    assert_eq!(items(&told).len(), 1);
    let path = format!("/v1/audit/events/{}", items(&told)[0]["id"].as_str().unwrap());
    let event = scene.gateway.get(&scene.who, &path).await.ok();
    has!(event, "/data/count": 1, "/data/detached/refused/rows/0/id": torn);
    let left = scene.gateway.ask("SELECT COUNT(*) FROM audit_intents WHERE node = 'gone'");
    assert_eq!(left, "1", "one of which nobody knows whose it is stays for the operator");
    let (told, content) = scene.check();
    assert!(!content && told.contains("unreadable  audit_intents"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_list_of_tools_that_was_changed_is_asked_for_again() {
    let mut scene = scene().await;

    scene.tamper("UPDATE capability_lists SET definitions = '[{\"name\":'");

    let listed = until(|| scene.gateway.get(&scene.who, "/v1/mcps"), |it| items(it).len() == 2);
    listed.await;
    scene.neighbours_go_on().await;
    scene.gateway.kill();
    scene.gateway.start();
    assert_eq!(scene.call("spoilt:a").await.status, 200, "it was kept anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pin_that_cannot_be_read_holds_its_own_tool_only() {
    let server = McpServer::start(vec![tool("a"), tool("b")]).await;
    let (mut gateway, who) = serve(gateway().http("other", &server.url(), "protocol = \"legacy\""));
    let status = async |gateway: &Gateway, tool: &str, status: &str| {
        let path = format!("/v1/mcps/other:{tool}");
        until(|| gateway.get(&who, &path), |it| it.at("/data/status") == status).await;
    };
    status(&gateway, "a", "available").await;

    gateway.kill();
    gateway
        .tamper("UPDATE capability_pins SET version = NULL, definition = '{' WHERE capability_id = 'other:a'");
    gateway.start();

    status(&gateway, "b", "available").await;
    let gone = gateway.invoke(&who, "other:a", json!({})).await;
    assert_ne!(gone.status, 200, "no definition of it is the accepted one: {}", gone.text);
    gateway.admin(&["tool", "accept", "other:a"]);
    status(&gateway, "a", "available").await;
}
