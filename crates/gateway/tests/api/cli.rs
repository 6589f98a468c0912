//! The operator's commands: orgs, principals, tokens.

use std::io::Write;

use crate::prelude::*;

#[tokio::test]
async fn orgs_and_tokens_are_made_and_a_token_is_printed_once() {
    // Orgs are made listed and given plans.
    let gateway = gateway().prepare();
    let free = gateway.org("free", &[]);
    gateway.org("large", &plan("5", "4"));
    gateway.admin(&["org", "set-plan", &free, "--plan", "pro"]);

    let listed = gateway.admin(&["org", "list"]);

    let told = |org: &Value| {
        ["name", "plan", "requests_per_minute", "invocations_per_minute"].map(|it| org[it].clone())
    };
    let plans: Vec<_> = listed.as_array().unwrap().iter().map(told).collect();
    assert_eq!(json!(plans), json!([["free", "pro", 600, 100], ["large", "enterprise", 5, 4]]));
    for (command, code, wanted) in [
        ("org create free", 1, "free"),
        ("org create ", 1, "name"),
        ("org create x --plan enterprise", 2, "requests-per-minute"),
        ("org create x --plan free --requests-per-minute 5", 1, "enterprise"),
        ("org create x --plan gold", 2, "gold"),
        (&["org create x", &plan("0", "1").join(" ")].join(" "), 2, "0"),
        ("org set-plan nobody --plan pro", 1, "nobody"),
        ("org create x y", 2, "y"),
    ] {
        assert_fails(&gateway, &words(command), code, wanted).await;
    }

    // A token is printed once and can do no more than its principal.
    let org = gateway.org("acme", &[]);
    let admin = gateway.user(&org, "admin", "mcps:read");
    let service = gateway.service(&org, "mcps:read mcps:invoke");

    let plain = create(&gateway, &admin, &[]);
    assert!(plain["token"].as_str().unwrap().starts_with("mcp_live_"), "{plain}");
    let scopes = plain["scopes"].as_str().unwrap();
    assert!(scopes.contains("audit:read"), "{scopes}");
    assert!(!scopes.contains("admin") && !scopes.contains("audit:export"), "{scopes}");
    assert!(create(&gateway, &service, &[])["token"].as_str().unwrap().starts_with("svc_live_"));
    assert_eq!(create(&gateway, &admin, &["--scopes", "admin"])["scopes"], "admin");
    for (more, code, wanted) in [
        (&["--scopes", "mcps:read audit:read"][..], 1, "cannot be had here"),
        (&["--scopes", "everything"], 2, "everything"),
        (&["--scopes", ""], 2, "scopes"),
        (&["--expires-in", "59s"], 1, "60 seconds"),
        (&["--expires-in", "366d"], 1, "365 days"),
        (&["--expires-in", "forever"], 2, "forever"),
        (&["--expires-in=-5m"], 2, "-5m"),
        (&["--allowed-from", "10.0.0.0/33"], 2, "10.0.0.0/33"),
        (&["--allowed-from", ""], 2, "allowed-from"),
    ] {
        let mut command = vec!["token", "create", "--principal", &service.id];
        command.extend(more);
        assert_fails(&gateway, &command, code, wanted).await;
    }
    let unknown = ["token", "create", "--principal", "sa_01M754BKTK9KV856N96WMEHWY9"];
    assert_eq!(failure(&gateway, &unknown).await.0, 1);
    let listed = gateway.admin(&["token", "list", "--org", &org]);
    assert_eq!(listed.as_array().unwrap().len(), 5);
    assert!(!listed.to_string().contains("_live_"), "{listed}");
    let text = run(&gateway, &["token", "list", "--org", &org]).await;
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.starts_with("ID") && !text.contains("_live_"), "{text}");
    let stored = gateway.stored();
    let holds = |text: &str| stored.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds(plain["id"].as_str().unwrap()));
    assert!(!holds(plain["token"].as_str().unwrap()), "only a hash is stored");
}

#[tokio::test]
async fn principals_are_made_with_a_role_or_with_scopes() {
    let gateway = gateway().prepare();
    let org = gateway.org("acme", &[]);
    let who = gateway.service(&org, "mcps:invoke mcps:read");
    let made = gateway.admin(&["principal", "create", "ada", "--org", "acme", "--role", "auditor"]);

    assert!(who.id.starts_with("sa_") && made["id"].as_str().unwrap().starts_with("usr_"));
    let scopes = "approvals:read audit:export audit:read mcps:read policies:read providers:read";
    let mut listed: Vec<&str> = made["scopes"].as_str().unwrap().split(' ').collect();
    listed.sort_unstable();
    assert_eq!(listed.join(" "), scopes);
    assert_eq!(gateway.admin(&["principal", "list", "--org", &org]).as_array().unwrap().len(), 2);
    for (command, code, wanted) in [
        ("principal create x --org nobody", 1, "nobody"),
        ("principal create x --org acme --type service", 1, "--scopes"),
        ("principal create x --org acme --scopes mcps:read", 1, "--role"),
        ("principal create x --org acme --type service --scopes mcps:all", 2, "mcps:all"),
        ("principal create x --org acme --role root", 2, "root"),
        ("principal create  --org acme", 1, "name"),
    ] {
        assert_fails(&gateway, &words(command), code, wanted).await;
    }
}

#[tokio::test]
async fn client_config_of_a_provider_that_is_not_declared_names_the_nearest() {
    let gateway = gateway().sample().prepare();

    for (slug, wanted) in [
        ("smaple", "declares no provider `smaple` (did you mean `sample`?)"),
        ("other", "declares no provider `other`"),
    ] {
        assert_fails(&gateway, &["client-config", "--provider", slug], 1, wanted).await;
    }
}

fn create(gateway: &Gateway, who: &Principal, more: &[&str]) -> Value {
    let mut command = vec!["token", "create", "--principal", &who.id];
    command.extend(more);
    gateway.admin(&command)
}

#[tokio::test]
async fn a_new_token_is_told_with_its_scopes_and_with_those_that_have_to_be_named() {
    let gateway = gateway().prepare();
    gateway.org("acme", &[]);
    gateway.admin(&["principal", "create", "ana"]);
    let ana = ["token", "create", "--principal", "ana"];

    let usual = run(&gateway, &ana).await;
    let named = run(&gateway, &[&ana[..], &["--scopes", "approvals:decide"]].concat()).await;
    gateway.admin(&["principal", "create", "okta", "--type", "service", "--scopes", "scim"]);
    let without = run(&gateway, &["token", "create", "--principal", "okta"]).await;

    let token = String::from_utf8_lossy(&usual.stdout);
    let usual = String::from_utf8_lossy(&usual.stderr);
    assert!(usual.contains("scopes: mcps:invoke mcps:read providers:read"), "{usual}");
    let others = "only if named in `--scopes`: approvals:decide approvals:read";
    assert!(usual.contains(others) && !usual.contains("_live_"), "{usual}");
    assert_eq!(token.trim().lines().count(), 1, "standard output is the token alone");
    let named = String::from_utf8_lossy(&named.stderr);
    assert_eq!(named.trim(), "scopes: approvals:decide");
    let without = String::from_utf8_lossy(&without.stderr);
    assert!(without.contains("warning: the token has no scope"), "{without}");
    assert!(without.contains("only if named in `--scopes`: scim"), "{without}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_operator_does_is_in_the_log_of_the_org() {
    let (gateway, who) = serve(gateway().env("USER", "olga"));
    let brief = create(&gateway, &who, &["--label", "nightly", "--scopes", "mcps:read"]);
    let id = brief["id"].as_str().unwrap();
    assert_eq!(gateway.admin(&["token", "revoke", id])["descendants_revoked"].to_string(), "0");
    let unknown = ["token", "revoke", "tok_01M754BKTKGT8C7BR1BSH99ZV7"];
    assert_eq!(failure(&gateway, &unknown).await.0, 1);

    let events =
        gateway.get(&who, "/v1/audit/events?type=token.issued,token.revoked&order=asc").await;

    assert_eq!(members(&events, "type"), ["token.issued", "token.issued", "token.revoked"]);
    for (event, target) in items(&events).iter().zip([&who.token_id, id, id]) {
        has!(event, "/target/id": *target, "/actor/type": "system", "/actor/id": null,
            "/detached/actor_name": "olga");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_is_recorded_with_what_its_token_does() {
    let gateway = gateway().sample().start();
    let mut who = gateway.service(&gateway.org("acme", &ENOUGH), "mcps:invoke");
    let labelled = create(&gateway, &who, &["--label", "nightly-deploy"]);
    who.token = labelled["token"].as_str().unwrap().to_owned();

    let call = gateway.invoke(&who, "sample:list_items", json!({"limit": 1})).await;

    let event = gateway.get(&who, &format!("/v1/audit/events/{}", call.event_id())).await;
    assert_eq!(event.at("/data/detached/label"), "nightly-deploy", "{}", event.text);
}

#[tokio::test]
async fn a_token_is_inspected_by_its_id_or_by_itself_and_never_printed() {
    let gateway = gateway().prepare();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), "mcps:read mcps:invoke");
    let inspect = |token: &str| gateway.admin(&["token", "inspect", token]);
    let state = |token: &str| inspect(token)["state"].as_str().unwrap().to_owned();

    let known = inspect(&who.token_id);

    has!(known, "/state": "live", "/effective_scopes": "mcps:invoke mcps:read");
    assert_eq!((&known["principal"], &known["role"]), (&json!(who.id), &json!("service")));
    assert_eq!(typed(&gateway, &who.token), known);
    assert!(!known.to_string().contains(&who.token[9..]));
    gateway.admin(&["principal", "set-role", &who.id, "--scopes", "mcps:read"]);
    assert_eq!(inspect(&who.token_id)["effective_scopes"], "mcps:read");
    gateway.admin(&["principal", "disable", &who.id]);
    assert_eq!(state(&who.token_id), "principal_disabled");
    gateway.admin(&["principal", "enable", &who.id]);
    gateway.admin(&["org", "disable", "acme"]);
    assert_eq!(state(&who.token_id), "org_disabled");
    gateway.admin(&["org", "enable", "acme"]);
    assert_eq!(state(&who.token_id), "live");
    gateway.admin(&["token", "revoke", &who.token_id]);
    assert_eq!(state(&who.token_id), "revoked");
    let cut = who.token.get(..who.token.len() - 1).unwrap();
    for (token, wanted) in [(cut, "checksum"), ("tok_01M7W9Y2TK0000000000000000", "no token")] {
        let (code, told) = failure(&gateway, &["token", "inspect", token]).await;
        assert_eq!(code, 1, "{told}");
        assert!(told.contains(wanted) && !told.contains(&who.token[9..40]), "{told}");
    }
}

/// `token inspect -` with the token on standard input.
fn typed(gateway: &Gateway, token: &str) -> Value {
    let mut child = gateway
        .command()
        .args(["token", "inspect", "-", "--json", "--config"])
        .arg(gateway.config_file())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(child.stdin.take().unwrap(), "{token}").unwrap();
    let output = child.wait_with_output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn a_reader_that_is_gone_ends_a_command_quietly_and_changes_no_verdict() {
    let gateway = gateway().sample().prepare();
    let broken = crate::gateway().stdio("gone", &["/nowhere/program"], "").prepare();
    gateway.org("acme", &[]);
    let unread = |gateway: &Gateway, command: &[&str]| {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let config = gateway.config_file();
        let mut process = gateway.command();
        process.args(command).arg("--config").arg(config).stdout(writer).output().unwrap()
    };

    for command in [
        &["policy", "list"][..],
        &["org", "list", "--json"],
        &["audit", "tail", "--follow"],
        &["audit", "export"],
    ] {
        let ended = unread(&gateway, command);

        let told = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert_eq!(ended.status.code(), Some(0), "{command:?}: {told}");
        assert!(!told.contains("error") && !told.contains("panicked"), "{command:?}: {told}");
    }
    assert_eq!(unread(&broken, &["check"]).status.code(), Some(1), "what is amiss stays amiss");
}

#[tokio::test]
async fn roles_token_lives_completions_and_client_config_are_told_by_commands() {
    // A change of role names what there is from now on.
    let gateway = gateway().prepare();
    let org = gateway.org("acme", &ENOUGH);
    let user = gateway.user(&org, "member", "mcps:read");
    let service = gateway.service(&org, "mcps:read");

    let changed = gateway.admin(&["principal", "set-role", &user.id, "--role", "auditor"]);

    assert_eq!(changed["role"], "auditor");
    for (command, wanted) in [
        (&["principal", "set-role", &user.id][..], "--role"),
        (&["principal", "set-role", &user.id, "--role", "admin", "--scopes", "admin"], "scopes"),
        (&["principal", "set-role", &service.id, "--role", "admin"], "--scopes"),
        (&["principal", "set-role", &service.id], "--scopes"),
        (&["principal", "disable", "usr_01M7W9Y2TK0000000000000000"], "no principal"),
        (&["org", "disable", "nobody"], "no org"),
        (&["principal", "create", "member", "--org", "acme"], "already"),
    ] {
        assert_fails(&gateway, command, 1, wanted).await;
    }

    // A token lives as long as it was given.
    let who = gateway.service(&fresh_org(&gateway), "mcps:read");
    let time = |token: &Value, name: &str| {
        let text = token[name].as_str().unwrap();
        Timestamp::parse_rfc3339(text).unwrap().as_seconds()
    };

    for (more, seconds) in [
        (&[][..], 90 * 86_400),
        (&["--expires-in", "60"], 60),
        (&["--expires-in", "15m"], 900),
        (&["--expires-in", "365d"], 365 * 86_400),
    ] {
        let token = create(&gateway, &who, more);
        assert_eq!(time(&token, "expires_at") - time(&token, "issued_at"), seconds, "{more:?}");
    }

    // Completions are printed for each shell.
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = gateway.run(&["completions", shell]);

        assert!(script.contains("client-config") && script.contains("backup"), "{shell}: {script}");
    }

    // Client config takes only what can be the name of a variable.
    let printed = gateway.run(&["client-config", "--token-env", "_MY_TOKEN2"]);

    assert!(printed.contains("_MY_TOKEN2"), "{printed}");
    for name in ["X$(id)\"", "2X", "A B", "A-B", "Ä"] {
        let command = ["client-config", "--token-env", name];
        assert_fails(&gateway, &command, 2, "a name of an environment variable is").await;
    }

    // Commands say that there is nothing to connect.
    let listed = run(&gateway, &["provider", "list"]).await;
    let checked = run(&gateway, &["check"]).await;

    let told = String::from_utf8_lossy(&listed.stderr).into_owned();
    assert!(listed.status.success() && told.contains("nothing to connect"), "{told}");
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(told.contains("provider    nothing to connect"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_shell_does_to_orgs_and_people_is_in_the_log() {
    let mut gateway = gateway().prepare();
    let org = gateway.org("acme", &ENOUGH);
    let admin = gateway.user(&org, "admin", ALL_SCOPES);
    let other = gateway.user(&org, "member", "mcps:read");

    gateway.admin(&["principal", "disable", &other.id]);
    gateway.admin(&["org", "set-plan", "acme", "--plan", "pro"]);
    gateway.start();
    let events = gateway.get(&admin, "/v1/audit/events?type=org.changed,principal.changed").await;

    let target = |event: &Value| event["target"]["id"].as_str().unwrap().to_owned();
    let targets: Vec<String> = items(&events).iter().map(target).collect();
    assert_eq!(targets, [&*org, &other.id, &other.id, &admin.id, &org]);
    let kinds = ["org", "principal", "principal", "principal", "org"];
    assert_eq!(members(&events, "type"), kinds.map(|it| format!("{it}.changed")));
    assert!(items(&events).iter().all(|event| event["actor"]["auth"]["method"] == "operator"));
}

/// Output of a command, on the node or over the API with the token of `who`.
async fn printed(gateway: &Gateway, who: Option<&Principal>, command: &str) -> String {
    let mut process = tokio::process::Command::from(gateway.command());
    process.args(words(command)).kill_on_drop(true);
    match who {
        None => process.arg("--config").arg(gateway.config_file()),
        Some(who) => process.args(["--url", gateway.url()]).env("PORTCULLIS_TOKEN", &who.token),
    };
    let output = timeout(PATIENCE, process.output()).await.expect("a command that ends").unwrap();
    assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_print_the_same_on_the_node_and_over_the_api() {
    let gateway = gateway().sample().start();
    let org = gateway.org("acme", &ENOUGH);
    let admin = gateway.user(&org, "admin", ALL_SCOPES);
    let Principal { id: ci, token_id, .. } = gateway.service(&org, "mcps:read");
    let hold = gateway.admin(&["audit", "hold", "add", "--reason", "case 4711", "--actor", &ci]);
    let events = gateway.get(&admin, "/v1/audit/events?type=token.issued").await;
    let event = members(&events, "id")[0].to_owned();
    let key = gateway.folder().join("ci.jwk");
    let jwk = json!({"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"});
    fs::write(&key, jwk.to_string()).unwrap();

    let key = ["principal", "key", "add", &ci, "--key-file", key.to_str().unwrap()];
    assert_eq!(gateway.admin(&key)["kid"], "one");

    for command in [
        "principal key list CI",
        "principal disable CI",
        "principal enable CI",
        "principal set-groups CI ops",
        "principal set-groups CI --none",
        "audit show EVENT",
        "principal list",
        "principal list --search ad",
        "token list --search service",
        "session list",
        "consent list",
        "approval list",
        "audit hold list",
        "audit tail --target CI",
        "audit export --format csv --type token.issued",
        "audit export --format ocsf --target CI",
        "tool list",
        "capability list --waiting",
        "capability list --kind tool",
        "token inspect TOKEN",
    ] {
        for form in ["", " --json"] {
            let command = command.replace("CI", &ci).replace("EVENT", &event);
            let command = command.replace("TOKEN", &token_id) + form;
            let here = printed(&gateway, None, &command).await;
            assert_eq!(here, printed(&gateway, Some(&admin), &command).await, "{command}");
        }
    }
    assert_eq!(hold["actor"], json!(ci));

    // The last admin goes by the operator's hand only.
    let disable = ["principal", "disable", &admin.id];
    let over_api = [&disable[..], &["--url", gateway.url()]].concat();
    let mut process = gateway.command();
    let refused = process.args(over_api).env("PORTCULLIS_TOKEN", &admin.token).output().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("last admin"), "{refused}");
    assert_ne!(gateway.admin(&disable)["disabled_at"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_in_a_request_of_the_network_makes_it_the_operators() {
    let gateway = gateway().start();
    let org = gateway.org("acme", &ENOUGH);

    for (name, value) in [
        ("authorization", "Operator"),
        ("authorization", "Bearer operator"),
        ("authorization", "Bearer usr_00000000000000000000000000"),
        ("forwarded", "for=127.0.0.1;host=localhost"),
        ("x-portcullis-operator", "true"),
        ("x-portcullis-org", &org),
        ("operatorsession", &org),
    ] {
        for (method, path) in [(Method::GET, "/v1/principals"), (Method::POST, "/v1/tokens")] {
            let request = gateway.request(method, path).header(name, value);
            assert_eq!(gateway.send(request).await.status, 401, "{name}: {value} at {path}");
        }
    }
    // What only the operator has is on no listener.
    let admin = gateway.user(&org, "admin", ALL_SCOPES);
    let openapi = gateway.run(&["openapi"]);
    for path in ["/operator/orgs", "/operator/org", "/operator/login-links"] {
        for method in [Method::GET, Method::POST, Method::PATCH] {
            let request = gateway.request_of(&admin, method.clone(), path);
            assert_eq!(gateway.send(request.body("{}")).await.status, 404, "{method} {path}");
        }
        assert!(!openapi.contains(path), "{path}");
    }
}
