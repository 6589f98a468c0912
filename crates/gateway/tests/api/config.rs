//! The configuration: what is refused and how that is told, TLS, proxies, the environment.

use std::{net::TcpListener, os::unix::fs::PermissionsExt};

use reqwest::Certificate;

use crate::prelude::*;

/// Message of a `serve` that does not start.
async fn refusal(gateway: &Gateway) -> String {
    let (code, told) = failure(gateway, &["serve"]).await;
    assert_eq!(code, 1, "{told}");
    assert!(!told.contains("listening on") && !told.contains("hunter2"), "{told}");
    told
}

#[tokio::test]
async fn a_configuration_that_is_wrong_is_refused_and_the_wrong_is_named() {
    let with = |toml: &str| gateway().config(toml).prepare();
    for (gateway, wanted) in [
        (with("[server]\nlisten_on = \"127.0.0.1:1\""), "listen_on"),
        (with("[sever]\nlisten = \"127.0.0.1:1\""), "sever"),
        (with("[server]\nlisten = \"localhost:1\""), "server.listen"),
        (with("[server]\nlisten = \"0.0.0.0:1\""), "no TLS"),
        (with("[server]\nlisten = \"[::]:1\""), "no TLS"),
        (with("[server]\nlisten = 1"), "listen"),
        (with("[server]\nmetrics_listen = \"nowhere\""), "server.metrics_listen"),
        (with("[server]\nhealth_listen = \"nowhere\""), "server.health_listen"),
        (with("[server]\nmax_connections_per_address = 0"), "max_connections_per_address"),
        (with("[server]\nunauthenticated_idle_seconds = 0"), "unauthenticated_idle_seconds"),
        (with("[server]\ntrusted_proxies = [\"10.0.0.0/33\"]"), "server.trusted_proxies"),
        (with("[server.tls]\ncertificate = \"/no.crt\"\nkey = \"/no.key\""), "/no.crt"),
        (with("[database]\nurl = \"mysql://x\""), "database.url"),
        (with("[database]\nurl = \"postgres://gate:hunter2@db/x?sslmod=require\""), "`sslmod`"),
        (with("[database]\nulr = \"postgres://gate:hunter2@db/x\""), "did you mean `url`"),
        (with("[database]\nurl = \"postgres://gate:hunter2@db/x"), "line 3, `url`"),
        (with("[keys]\nfile = \"/nowhere.key\""), "/nowhere.key"),
        (with("[policies]\npath = \"/nowhere\""), "/nowhere"),
        (with("[mcp]\nttl_seconds = 3601"), "mcp.ttl_seconds"),
        (with("[mcp]\nttl_seconds = -1"), "ttl_seconds"),
        (with("[mcp]\nhosts = [\"https://gate.internal\"]"), "mcp.hosts"),
        (with("[mcp]\nhosts = [\"gate.internal:0\"]"), "mcp.hosts"),
        (with("[log]\nlevel = \"=,=\""), "log.level"),
        (with("[dlp.actions.input]\nsecret = \"explode\""), "explode"),
        (gateway().env("PORTCULLIS_SERVER__LISTN", "x").prepare(), "`PORTCULLIS_SERVER__LISTN`"),
        (gateway().env("PORTCULLIS_TRACES", "x").prepare(), "`PORTCULLIS_TRACES`"),
        (gateway().env("PORTCULLIS_SERVER_NODE", "x").prepare(), "`PORTCULLIS_SERVER__NODE`"),
    ] {
        assert_named(&gateway, wanted).await;
    }
}

#[tokio::test]
async fn a_provider_that_is_declared_wrongly_is_refused_with_what_to_change() {
    let stdio = |more: &str| gateway().stdio("a", &["x"], more);
    let http = |more: &str| gateway().http("a", "http://127.0.0.1:1", more);
    let with = |toml: &str| gateway().config(&format!("[[providers]]\nslug = \"a\"\n{toml}"));
    for (builder, wanted) in [
        (gateway().stdio("a", &[], ""), "`a`"),
        (gateway().stdio("A B", &["x"], ""), "A B"),
        (stdio("url = \"https://x\""), "url"),
        (stdio("auth = \"api_key\""), "env"),
        (stdio("").stdio("a", &["x"], ""), "`a` is declared twice (lines "),
        (stdio("org = \"acme\""), "`a`"),
        (http("auth = \"oauth2\"\napi_key = \"x\""), "api_key"),
        (gateway().http("a", "ftp://127.0.0.1", ""), "`a`"),
        (with("url = \"http://10.0.0.7/mcp\""), "`allow_private = true`"),
        (with("command = \"npx -y x\""), "`command = [\"npx\", \"-y\", \"x\"]`"),
        (http("auth = \"api_key\"\napi_key = \"x\""), "api_key = { file = \"PATH\" }"),
        (http("forms = \"all\""), "`defaults`"),
        (http("forms = \"defaults\"\nprotocol = \"modern\""), "older era"),
        (http("api_key = { env = \"NOT_SET\" }\nauth = \"api_key\""), "NOT_SET"),
        (http("expose = [\"events\"]"), "`apps`"),
        (http("allow_dynamic_skills = true"), "needs `skills` in `expose`"),
        (http("expose = [\"apps\"]"), "needs `tools`"),
        (http("apps_domain = true"), "`apps` in `expose`"),
        (http("expose = [\"tools\", \"apps\"]\napps_csp = { connect = [\"a b\"] }"), "no origin"),
        (http("expose = [\"tools\", \"apps\"]\napps_permissions = [\"usb\"]"), "`camera`"),
    ] {
        assert_named(&builder.prepare(), wanted).await;
    }
}

/// Fails unless the gateway refuses with an error that names this.
async fn assert_named(gateway: &Gateway, wanted: &str) {
    let told = refusal(gateway).await;
    // A first start may tell before that it made the keys of the logs.
    let error = told.lines().any(|line| line.starts_with("error: "));
    assert!(error && told.contains(wanted), "{wanted}: {told}");
}

#[tokio::test]
async fn without_a_key_it_says_how_to_make_one() {
    let gateway = gateway().prepare();
    let key = gateway.folder().join("key");
    let mode = fs::metadata(&key).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    fs::remove_file(&key).unwrap();

    let told = refusal(&gateway).await;

    assert!(told.contains("portcullis key new") && told.contains("key"), "{told}");
    fs::write(&key, "c2hvcnQ=").unwrap();
    assert!(refusal(&gateway).await.contains("32 bytes"), "a key of another size");
    let again = gateway.command().args(["key", "new"]).arg(&key).output().unwrap();
    assert!(!again.status.success(), "a key is never overwritten");
    assert_eq!(fs::read_to_string(&key).unwrap(), "c2hvcnQ=");
}

#[tokio::test]
async fn a_port_that_is_taken_is_told_with_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();

    let on = |listen: &str| gateway().config(&format!("[server]\n{listen}")).prepare();

    let told = refusal(&on(&format!("listen = \"{address}\""))).await;
    assert!(told.contains(&address.port().to_string()) && told.contains("--port"), "{told}");
    for key in ["metrics_listen", "health_listen"] {
        let listen = format!("listen = \"127.0.0.1:0\"\n{key} = \"{address}\"");
        let told = refusal(&on(&listen)).await;
        assert!(told.contains(&format!("`server.{key}`: {address} is taken")), "{told}");
        assert!(told.contains("set another address"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn one_data_folder_is_served_by_one_process_and_by_the_next_when_that_is_killed() {
    let (mut serving, who) = serve(gateway());

    assert_fails(&serving, &["serve", "--port", "0"], 1, "another process serves").await;
    assert_eq!(serving.get(&who, "/v1/mcps").await.status, 200);

    serving.kill();
    serving.start();
    assert_eq!(serving.get(&who, "/v1/mcps").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_lies_over_the_file() {
    let (gateway, who) = serve(
        gateway()
            .config("[server]\npublic_host = \"file.example\"")
            .env("PORTCULLIS_SERVER__PUBLIC_HOST", "env.example"),
    );

    let events = gateway.get(&who, "/v1/audit/events").await;

    let log = items(&events)[0]["integrity"]["log"].as_str().unwrap();
    assert_eq!(log, format!("env.example/audit/{}", who.org));
}

#[tokio::test]
async fn variables_that_clients_and_orchestrators_set_break_no_command() {
    let gateway = gateway()
        .env("PORTCULLIS_URL", "http://127.0.0.1:8080")
        .env("PORTCULLIS_TOKEN", "x")
        .env("PORTCULLIS_SERVICE_HOST", "10.0.0.7")
        .env("PORTCULLIS_PORT", "tcp://10.0.0.7:8080")
        .prepare();

    let listed = run(&gateway, &["org", "list"]).await;

    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_are_told_when_mcp_lists_three_tools_in_the_place_of_many() {
    let told = "41 tools: `/mcp` lists three tools to find the others with";
    for (tools, mcp, tells) in [(41, "", true), (40, "", false), (41, "tools = \"list\"", false)] {
        let listed = (0..tools).map(|number| giving(&format!("t{number}"), &json!({})));
        let server = Hostile::start(listed.collect()).await;
        let many = gateway().http("many", &server.url(), "");
        let many = many.config(&format!("[mcp]\n{mcp}")).start();

        let checked = run(&many, &["check"]).await;
        let settings = run(&many, &["client-config"]).await;
        let of_one = run(&many, &["client-config", "--provider", "many"]).await;

        let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert_eq!(checked.contains(told), tells, "{tools} {mcp}: {checked}");
        assert_eq!(many.starting_log().contains(told), tells, "{}", many.starting_log());
        let told = String::from_utf8_lossy(&settings.stderr).into_owned();
        assert_eq!(told.contains("`/mcp` lists three tools"), mcp.is_empty(), "{told}");
        assert!(of_one.stderr.is_empty());
    }
}

#[tokio::test]
async fn check_tells_what_serve_would_find_and_fails_when_something_is_amiss() {
    let good = gateway().sample().prepare();
    let bad = gateway().sample().stdio("gone", &["/nowhere/program"], "").prepare();

    let told = run(&good, &["check"]).await;
    let text = String::from_utf8_lossy(&told.stdout).into_owned();
    assert_eq!(told.status.code(), Some(0), "{text}");
    assert!(text.contains("sample: connected, 5 tools"), "{text}");
    let shown = good.admin(&["check", "--start"]);
    let database = &shown["database"];
    if good.database_url().starts_with("sqlite:") {
        assert!(text.contains("survives a power loss"), "{text}");
        assert_eq!(database["row_security"], Value::Null);
    } else {
        // The server of the tests may be one that does not wait for its disk; then it says so.
        let survives = database["survives_power_loss"].as_bool().unwrap();
        assert_eq!(text.contains("does NOT survive a power loss"), !survives, "{text}");
        assert_eq!(database["row_security"], true);
    }
    let sample = &shown["providers"][0];
    assert_eq!((&sample["slug"], &sample["status"]), (&json!("sample"), &json!("connected")));
    assert_eq!((sample["tools"].as_u64(), &sample["last_error"]), (Some(5), &Value::Null));
    assert_eq!(shown["policy_errors"], json!([]));
    let told = run(&bad, &["check"]).await;
    assert_eq!(told.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&told.stdout).contains("gone: error, 0 tools"));
    assert!(String::from_utf8_lossy(&told.stderr).contains("providers"));
}

/// A builder whose gateway speaks TLS as `localhost`, and the certificate to trust.
fn with_tls(builder: Builder, folder: &Path) -> (Builder, Certificate) {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let certificate = folder.join("tls.crt");
    let key = folder.join("tls.key");
    fs::write(&certificate, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let toml = format!("[server.tls]\ncertificate = {certificate:?}\nkey = {key:?}");
    (builder.config(&toml), Certificate::from_pem(made.cert.pem().as_bytes()).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn tls_is_spoken_and_nothing_but_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (builder, certificate) = with_tls(gateway(), folder.path());
    let gateway = builder.start();
    let (scheme, address) = gateway.url().split_once("://").unwrap();
    let url = format!("https://localhost:{}/healthz", address.rsplit_once(':').unwrap().1);
    assert_eq!(scheme, "https");

    for http1 in [false, true] {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate.clone()]);
        let client = if http1 { client.http1_only() } else { client };
        let answer = client.build().unwrap().get(&url).send().await.unwrap();
        let version = if http1 { http::Version::HTTP_11 } else { http::Version::HTTP_2 };
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        assert!(answer.headers().contains_key("x-ratelimit-limit"));
    }
    let plain = exchange(&gateway, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    assert!(!plain.contains(" 200 "), "{plain}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewed_certificate_is_used_once_it_fits_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let (builder, old) = with_tls(gateway(), folder.path());
    let gateway = builder.start();
    let url = gateway.url().replace("127.0.0.1", "localhost") + "/healthz";
    let trusts = async |certificate: &Certificate| {
        let client = reqwest::Client::builder().no_proxy().tls_certs_only([certificate.clone()]);
        client.build().unwrap().get(&url).send().await.is_ok()
    };
    let renewed = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let new = Certificate::from_pem(renewed.cert.pem().as_bytes()).unwrap();

    // As one who renews it puts files in the place of files.
    let put = |name: &str, text: String| {
        fs::write(folder.path().join("fresh"), text).unwrap();
        fs::rename(folder.path().join("fresh"), folder.path().join(name)).unwrap();
    };
    put("tls.crt", renewed.cert.pem());
    let refused = "the changed TLS certificate is not used";
    eventually(refused, async || gateway.log().contains(refused).then_some(())).await;
    assert!(trusts(&old).await && !trusts(&new).await);
    let told = run(&gateway, &["check"]).await;
    let told = String::from_utf8_lossy(&told.stderr).into_owned();
    assert!(told.contains("the TLS certificate or key cannot be used"), "{told}");

    put("tls.key", renewed.signing_key.serialize_pem());

    eventually("the renewed certificate", async || trusts(&new).await.then_some(())).await;
    assert!(!trusts(&old).await);

    // A pipe in the place of a file is not waited for.
    let pipe = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    fs::rename(&pipe, folder.path().join("tls.key")).unwrap();
    let is_told = async || (gateway.log().matches(refused).count() == 2).then_some(());
    eventually("another refusal", is_told).await;
    assert!(trusts(&new).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_declared_proxies_tell_where_a_client_is() {
    let trusting =
        |proxy: &str| gateway().config(&format!("[server]\ntrusted_proxies = [\"{proxy}\"]"));
    let cases = [
        (gateway(), "203.0.113.7", "127.0.0.1"),
        (trusting("10.0.0.0/8"), "203.0.113.7", "127.0.0.1"),
        (trusting("127.0.0.1/32"), "6.6.6.6, 203.0.113.7", "203.0.113.7"),
    ];
    for (builder, forwarded, seen) in cases {
        let (gateway, who) = serve(builder.sample());
        let path = "/v1/mcps/sample:create_note/invoke";
        let call = gateway.json(&who, path, r#"{"input":{"title":"a","text":"b"}}"#);
        let call = gateway.send(call.header("x-forwarded-for", forwarded)).await;

        let event = gateway.get(&who, &format!("/v1/audit/events/{}", call.event_id())).await;

        assert_eq!(event.at("/data/detached/source_ip"), seen, "{}", event.text);
    }
}
