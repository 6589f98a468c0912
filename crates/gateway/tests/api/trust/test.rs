//! `portcullis trust test`: what becomes of a JWT, and why.

use std::io::Write;

use portcullis_testkit::OldKeys;

use super::{APP, GATEWAY, prepared};
use crate::prelude::*;

/// A gateway with a rule for jobs and one for people.
struct Scene {
    gateway: Gateway,
    oidc: Oidc,
    org: String,
    service: String,
}

/// Tokens that the rule `jobs` accepts.
fn job() -> Wanted {
    Wanted::new(GATEWAY).claim("repository_id", "821093847").claim("ref", "refs/heads/main")
}

/// Output of the command.
struct TestOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl Scene {
    fn new() -> Self {
        let (gateway, org) = prepared();
        let oidc = Oidc::start();
        let service = gateway.service(&org, "mcps:read mcps:invoke").id;
        let jobs = format!(
            "match = {{ repository_id = \"821093847\", ref = \"refs/heads/*\" }}\n\
             principal = \"{service}\"\nscopes = [\"mcps:read\"]\nsingle_use = true"
        );
        let people = "match = { email_verified = true, groups = \"mcp-*\" }\nuser_from = \"sub\"\n\
                      roles = { \"mcp-admins\" = \"admin\", \"*\" = \"member\" }";
        gateway.configure(&oidc.trust("jobs", &org, GATEWAY, &jobs));
        gateway.configure(&oidc.trust("people", &org, APP, people));
        Self { gateway, oidc, org, service }
    }

    /// Runs the command with the JWT on standard input; fails if it repeats the JWT.
    fn test_jwt(&self, jwt: &str, more: &[&str]) -> TestOutput {
        let mut process = self
            .gateway
            .command()
            .args(["trust", "test", "--config"])
            .arg(self.gateway.config_file())
            .args(more)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // What it does not read, because it is too much, it need not take.
        let _ = process.stdin.take().unwrap().write_all(jwt.as_bytes());
        let output = process.wait_with_output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let told = TestOutput {
            code: output.status.code(),
            out: text(output.stdout),
            err: text(output.stderr),
        };
        for part in jwt.split('.').filter(|part| part.len() > 20) {
            assert!(!told.out.contains(part) && !told.err.contains(part), "{}", told.out);
        }
        assert!(!told.err.contains("panicked"), "{}", told.err);
        told
    }

    fn json(&self, jwt: &str) -> Value {
        serde_json::from_str(&self.test_jwt(jwt, &["--json"]).out).unwrap()
    }
}

#[test]
fn a_jwt_is_told_with_the_rule_and_subject_or_what_speaks_against_it() {
    // A jwt that would be accepted is told with its rule and subject.
    let scene = Scene::new();
    let jwt = scene.oidc.service_token(&job());
    let file = scene.gateway.folder().join("job.jwt");
    fs::write(&file, format!("{jwt}\n")).unwrap();

    let shown = scene.json(&jwt);
    let told = scene.test_jwt("", &["--jwt-file", &file.to_string_lossy()]);

    has!("named without their values"; shown, "/accepted": true, "/check": null,
        "/signature": "verified", "/subject/rule": "jobs",
        "/subject/who/principal": scene.service.as_str(), "/subject/scopes": "mcps:read",
        "/subject/max_ttl_seconds": 900, "/subject/single_use": true,
        "/claims/repository_id": "821093847", "/other_claims": ["client_id"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    assert!(told.out.contains("rule        jobs: matches"), "{}", told.out);
    assert!(told.out.contains(&format!("accepted as {}", scene.service)), "{}", told.out);
    assert!(!fs::read_to_string(&file).unwrap().split('.').any(|part| told.out.contains(part)));

    // A user is told with the role.
    let wanted =
        Wanted::new(APP).claim("email_verified", true).claim("groups", vec!["mcp-admins", "x"]);

    let shown = scene.json(&scene.oidc.user_token("00u1", &wanted));

    let user = &shown["subject"]["who"]["user"];
    has!("{shown}"; user, "/subject": "00u1", "/role": "admin", "/issuer": scene.oidc.issuer());

    // Each rule says what speaks against it.
    let jwt = scene.oidc.service_token(&job().claim("ref", "refs/tags/v1"));

    let shown = scene.json(&jwt);
    let told = scene.test_jwt(&jwt, &[]);

    assert_eq!((&shown["accepted"], &shown["check"]), (&json!(false), &json!("trust")));
    let faults = |rule: usize| shown["rules"][rule]["faults"].to_string();
    assert!(faults(0).contains("`ref` is not"), "{shown}");
    assert!(!faults(0).contains("repository_id"), "{shown}");
    assert!(faults(1).contains("`aud` does not hold") && faults(1).contains("`email_verified`"));
    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("would be refused") && told.err.contains("(trust)"), "{}", told.err);
    assert!(told.out.contains("trust: `ref` is not \"refs/heads/*\""), "{}", told.out);

    // An org can be named.
    let jwt = scene.oidc.service_token(&job());
    assert_eq!(scene.test_jwt(&jwt, &["--org", &scene.org]).code, Some(0));
    assert_eq!(scene.test_jwt(&jwt, &["--org", "acme"]).code, Some(0));
    let unknown = scene.test_jwt(&jwt, &["--org", "nobody"]).err;
    assert!(unknown.contains("no org `nobody`"), "{unknown}");
    let other = scene.test_jwt(&jwt, &["--org", "org_01M754BKTK9TG1TCT7SPYHDJTD"]);
    assert_eq!(other.code, Some(1));
    assert!(other.err.contains("(issuer)"), "{}", other.err);
    assert!(!other.out.contains("\nrule "), "rules of other orgs are not asked: {}", other.out);
}

#[test]
fn every_class_of_check_is_told_and_nothing_of_a_jwt_is_repeated() {
    // A jwt on the command line is refused and not repeated.
    let scene = Scene::new();
    let jwt = scene.oidc.service_token(&job());
    let mut command = scene.gateway.command();

    let output = command.args(["trust", "test", &jwt]).output().unwrap();

    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(told.contains("--jwt-file") && !told.contains(&jwt[..20]), "{told}");

    // What a stranger wrote cannot act on the terminal.
    let jwt = scene.oidc.service_token(&job().claim("ref", "a\u{1b}]0;x\u{7}\u{202e}b"));

    let told = scene.test_jwt(&jwt, &[]);

    let claim = "claim       ref = \"a\\u001b]0;x\\u0007\\u{202e}b\"";
    assert!(told.out.contains(claim), "{}", told.out);
    assert!(!told.out.contains(['\u{1b}', '\u{7}', '\u{202e}']));

    // A file that is not there is named.
    let told = scene.test_jwt("", &["--jwt-file", "/nowhere.jwt"]);

    assert_eq!(told.code, Some(1));
    assert!(told.err.contains("/nowhere.jwt"), "{}", told.err);

    // Every class of check is told.
    let good = scene.oidc.service_token(&job());
    let check = |jwt: &str| scene.json(jwt)["check"].clone();

    assert_eq!(check("not a jwt"), "signature");
    assert_eq!(check(&"x".repeat(100_000)), "signature");
    assert_eq!(check(&Oidc::start().service_token(&job())), "issuer");
    assert_eq!(check(&scene.oidc.service_token(&Wanted::new("https://other.example"))), "audience");
    scene.oidc.set_clock(-7200);
    assert_eq!(check(&scene.oidc.service_token(&job())), "time");
    scene.oidc.set_clock(0);
    scene.oidc.rotate(OldKeys::Withdrawn);
    assert_eq!(check(&good), "signature", "its key is gone");
    assert!(scene.json(&scene.oidc.service_token(&job()))["accepted"].as_bool().unwrap());
    scene.oidc.stop();
    let shown = scene.json(&good);
    assert_eq!(shown["check"], "unavailable");
    assert!(shown["reason"].as_str().unwrap().contains("cannot be reached"), "{shown}");
}
