//! `portcullis policy …`: what a security team runs before anything is in force.

use std::{fs, path::PathBuf, process::Output};

use portcullis_testkit::Gateway;
use serde_json::Value;

use crate::{
    gateway,
    given::{run, serve, until},
};

const POLICIES: &str = r#"@id("base")
permit (principal, action, resource);

@id("short-lists")
@reason("Lists are short")
forbid (principal, action == Mcp::Action::"sample:list_items", resource)
when { context.input has limit && context.input.limit > 10 };
"#;

const CASES: &str = "
defaults:
  principal: {type: user, id: ana, roles: [member]}
  tool: sample:list_items
cases:
  - id: short lists are fine
    input: {limit: 5}
    expect: {decision: allow, policy: base}
  - id: long ones are not
    input: {limit: 50}
    expect: {decision: deny, policy: short-lists, cause: explicit_deny}
";

/// A folder of policies, tools in a file so that no provider is needed, and what a command says.
struct Desk {
    gateway: Gateway,
    tools: PathBuf,
}

impl Desk {
    fn with(policies: &str) -> Self {
        let gateway = gateway().sample().policies(policies).prepare();
        let config = gateway.config_file();
        let described = gateway.run(&["policy", "tools", "--config", &config.to_string_lossy()]);
        let tools = gateway.folder().join("tools.json");
        fs::write(&tools, described).unwrap();
        Self { gateway, tools }
    }

    fn policies(&self, name: &str) -> PathBuf {
        self.gateway.folder().join("policies").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.policies(name).parent().unwrap()).unwrap();
        fs::write(self.policies(name), text).unwrap();
    }

    async fn policy(&self, command: &[&str]) -> Output {
        let tools = self.tools.to_string_lossy().into_owned();
        let command = [&["policy"], command, &["--tools", &tools]].concat();
        run(&self.gateway, &command).await
    }
}

fn told(output: &Output) -> (i32, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    (output.status.code().unwrap(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_tells_every_error_with_its_place() {
    let desk = Desk::with(POLICIES);
    let (code, text) = told(&desk.policy(&["validate"]).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("2 active, 0 shadow, 0 disabled"), "{text}");
    assert!(!desk.gateway.folder().join("portcullis.db").exists(), "a dry run leaves nothing");

    desk.write(
        "one.cedar",
        "@id(\"x\")\npermit (principal, action, resource)\nwhen { context.inptu.x };",
    );
    desk.write("two.cedar", "permit (principal");
    desk.write(
        "three.cedar",
        "@id(\"y\")\n@obligate(\"z\")\nforbid (principal, action, resource);",
    );
    let (code, text) = told(&desk.policy(&["validate"]).await);

    assert_eq!(code, 1, "{text}");
    for place in ["one.cedar:3:", "two.cedar:1:", "three.cedar:2:1"] {
        assert!(text.contains(place), "{place} in {text}");
    }
    let json = desk.policy(&["validate", "--json"]).await;
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["valid"], false);
    assert!(json["errors"].as_array().unwrap().len() >= 3, "{json}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_printed_for_editors_also_beside_broken_policies() {
    let desk = Desk::with("permit (principal");
    desk.write(
        "facts.toml",
        "[facts.\"sample:create_note\"]\nwords = { type = \"Long\", from = \"$.text | len\" }\n",
    );

    let (code, text) = told(&desk.policy(&["schema"]).await);

    assert_eq!(code, 0, "{text}");
    assert!(text.contains("action \"sample:list_items\"") && text.contains("words"), "{text}");
    let json = desk.policy(&["schema", "--json"]).await;
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    let tool = &json["Mcp"]["actions"]["sample:create_note"];
    assert_eq!(tool["appliesTo"]["resourceTypes"][0], "Tool");
}

#[tokio::test(flavor = "multi_thread")]
async fn strict_validation_takes_warnings_for_errors() {
    let desk = Desk::with(POLICIES);
    desk.write(
        "more.cedar",
        "@id(\"silent\") forbid (principal is Mcp::Service, action, resource);",
    );

    let (code, text) = told(&desk.policy(&["validate"]).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("more.cedar:1: warning: `silent`"), "{text}");
    let (code, _) = told(&desk.policy(&["validate", "--strict"]).await);
    assert_eq!(code, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_names_the_id_of_a_principal_that_a_policy_gives_by_its_name() {
    let named = "@id(\"hers\") permit (principal == Mcp::User::\"ana\", action, resource);";
    let desk = Desk::with(named);

    let (code, unknown) = told(&desk.policy(&["validate"]).await);
    desk.gateway.org("acme", &[]);
    let ana = desk.gateway.admin(&["principal", "create", "ana"]);
    let (_, known) = told(&desk.policy(&["validate"]).await);

    assert_eq!(code, 0, "{unknown}");
    assert!(unknown.contains("`Mcp::User::\"ana\"` is nobody's"), "{unknown}");
    assert!(!unknown.contains("write"), "{unknown}");
    let advice = format!("write `Mcp::User::{}` in place of", ana["id"]);
    assert!(known.contains(&advice) && known.contains("org `acme`"), "{known}");
}

#[tokio::test(flavor = "multi_thread")]
async fn test_runs_the_cases_of_the_folder_and_fails_when_one_is_not_as_expected() {
    let desk = Desk::with(POLICIES);
    desk.write("tests/lists.yaml", CASES);

    let (code, text) = told(&desk.policy(&["test"]).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("2 passed, 0 failed"), "{text}");

    desk.write(
        "tests/more.json",
        r#"{"cases": [{"tool": "sample:create_note",
        "input": {"title": "a", "text": "b"}, "expect": {"decision": "deny"}}]}"#,
    );
    let (code, text) = told(&desk.policy(&["test"]).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("2 passed, 1 failed"), "{text}");
    assert!(text.contains("decision: expected `deny`, got `allow`"), "{text}");

    desk.write("tests/more.json", r#"{"cases": [{"tool": "sample:create_note"}]}"#);
    let (code, text) = told(&desk.policy(&["test"]).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("more.json:1:") && text.contains("expects nothing"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_runs_the_cases_beside_the_policies() {
    let desk = Desk::with(POLICIES);
    desk.write("tests/lists.yaml", CASES);

    let (code, text) = told(&desk.policy(&["validate"]).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("2 cases passed, 0 not run"), "{text}");

    desk.write("tests/lists.yaml", &CASES.replace("policy: short-lists", "policy: other"));
    let (code, text) = told(&desk.policy(&["validate"]).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("tests/lists.yaml:9:"), "{text}");
    assert!(text.contains("policy: expected `other`, got `short-lists`"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_warns_of_many_policies_that_every_call_meets() {
    let unscoped = |n: usize| {
        format!(
            "@id(\"u{n}\") permit (principal, action, resource) when {{ context.request.mfa }};\n"
        )
    };
    let desk = Desk::with(&(0..51).map(unscoped).collect::<String>());

    let (code, text) = told(&desk.policy(&["validate"]).await);

    assert_eq!(code, 0, "{text}");
    assert!(text.contains("51 policies name neither principals nor actions"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn simulate_answers_like_the_api_also_for_a_draft() {
    let desk = Desk::with(POLICIES);
    let body = desk.gateway.folder().join("ask.yaml");
    fs::write(
        &body,
        "tool: sample:list_items\ninput: {limit: 5}\npolicies: {remove: [base]}\nbaseline: live\n",
    )
    .unwrap();

    let (code, text) = told(&desk.policy(&["simulate", &body.to_string_lossy()]).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("sample:list_items: deny by default-deny (default_deny)"), "{text}");
    let json = desk.policy(&["simulate", &body.to_string_lossy(), "--json"]).await;
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(json["results"][0]["change"], "newly_denied");

    fs::write(&body, "tool: sample:list_items\ninputs: {}\n").unwrap();
    let (code, text) = told(&desk.policy(&["simulate", &body.to_string_lossy()]).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("/inputs"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn diff_tells_what_another_folder_would_change() {
    let desk = Desk::with(POLICIES);
    let other = desk.gateway.folder().join("other");
    fs::create_dir(&other).unwrap();
    let changed =
        POLICIES.replace("> 10", "> 20") + "@id(\"new\") permit (principal, action, resource);";
    fs::write(other.join("all.cedar"), changed.replace("@id(\"base\")", "@id(\"all\")")).unwrap();
    let other = other.to_string_lossy().into_owned();

    let (code, text) = told(
        &desk
            .policy(&["diff", "--policies", &other, "--from", &desk.policies("").to_string_lossy()])
            .await,
    );
    assert_eq!(code, 1, "{text}");
    for line in ["+ all", "+ new", "~ short-lists", "- base"] {
        assert!(text.contains(line), "{line} in {text}");
    }
    let same = desk.policies("").to_string_lossy().into_owned();
    let (code, text) = told(&desk.policy(&["diff", "--from", &same]).await);
    assert_eq!(code, 0, "{text}");
    let (code, text) = told(&desk.policy(&["diff"]).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("ever in force"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn init_writes_a_starter_set_that_loads_and_cases_that_hold() {
    let desk = Desk::with(POLICIES);
    fs::remove_file(desk.policies("test.cedar")).unwrap();

    let (code, text) = told(&desk.policy(&["init"]).await);
    assert_eq!(code, 0, "{text}");
    let (code, text) = told(&desk.policy(&["validate"]).await);
    assert_eq!(code, 0, "{text}");
    let (code, text) = told(&desk.policy(&["test"]).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("0 failed") && !text.contains("0 passed"), "{text}");
    let starter = fs::read_to_string(desk.policies("starter.cedar")).unwrap();
    assert!(starter.contains("sample:create_note"), "{starter}");
    let (code, text) = told(&desk.policy(&["init"]).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("exists"), "{text}");
    let (code, text) = told(&desk.policy(&["list"]).await);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("sample-no-destruction-by-services"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn init_adds_a_provider_beside_what_is_there() {
    let desk = Desk::with(POLICIES);

    let (code, text) = told(&desk.policy(&["init", "--add", "sample"]).await);
    assert_eq!(code, 0, "{text}");
    let added = fs::read_to_string(desk.policies("sample.cedar")).unwrap();
    assert!(added.contains("// @id(\"sample-services-read\")"), "{added}");
    assert!(!added.contains("no-credentials-out"), "{added}");
    let (code, text) = told(&desk.policy(&["validate"]).await);
    assert_eq!(code, 0, "{text}");
    // What it comments on is a policy once the marks are taken away.
    let lines = added.lines().skip_while(|line| !line.contains("sample-services-read"));
    let permit: Vec<&str> = lines.map_while(|line| line.strip_prefix("// ")).collect();
    desk.write("services.cedar", &permit.join("\n"));
    let (code, text) = told(&desk.policy(&["validate"]).await);
    assert!(code == 0 && text.contains("4 active"), "{text}");
    let (code, text) = told(&desk.policy(&["init", "--add", "other"]).await);
    assert_eq!(code, 1, "{text}");
    assert!(text.contains("no tools of a provider `other`"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_about_a_provider_that_is_gone_is_a_warning() {
    let gone = r#"@id("gone") permit (principal, action in [Mcp::Action::"old:*", Mcp::Action::"old:x"], resource);"#;
    let desk = Desk::with(&format!("{POLICIES}\n{gone}"));

    let (code, text) = told(&desk.policy(&["validate"]).await);

    assert_eq!(code, 0, "{text}");
    assert!(text.contains("`old:*`: no such provider is configured"), "{text}");
    let (code, text) = told(&desk.policy(&["validate", "--strict"]).await);
    assert_eq!(code, 1, "{text}");
}

/// Puts another program in the place of the sample server.
fn replace_sample(gateway: &Gateway, command: &str) {
    let file = gateway.config_file();
    let text = fs::read_to_string(&file).unwrap();
    let lines = text.lines().map(|line| match line.strip_prefix("command = ") {
        Some(_) => format!("command = {command}"),
        None => line.to_owned(),
    });
    fs::write(&file, lines.collect::<Vec<_>>().join("\n")).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn tools_that_the_database_knows_are_not_asked_for_again() {
    let (mut gateway, who) = serve(gateway().sample().policies(POLICIES));
    until(|| gateway.get(&who, "/v1/mcps/sample:list_items"), |it| it.status == 200).await;
    gateway.stop();
    // A program that would say something else.
    replace_sample(&gateway, r#"["sh", "-c", "exit 3"]"#);
    let file = gateway.folder().join("policies/test.cedar");
    let wrong =
        r#"@id("typo") permit (principal, action == Mcp::Action::"sample:list_item", resource);"#;

    let (code, text) = told(&run(&gateway, &["policy", "validate"]).await);
    assert_eq!(code, 0, "{text}");
    fs::write(&file, format!("{POLICIES}\n{wrong}")).unwrap();
    let (code, text) = told(&run(&gateway, &["policy", "validate"]).await);
    assert!(code == 1 && text.contains("no such tool"), "{text}");
    fs::write(&file, POLICIES).unwrap();
    let (code, text) = told(&run(&gateway, &["check"]).await);
    assert!(code == 0 && text.contains("sample: known, "), "{text}");
    let (code, text) = told(&run(&gateway, &["check", "--start"]).await);
    assert!(code == 1 && text.contains("exit code 3"), "{text}");
    let (code, text) = told(&run(&gateway, &["policy", "validate", "--ask"]).await);
    assert!(code == 0 && text.contains("its tools are not known here"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_makes_the_running_gateway_take_the_folder_as_it_is() {
    let (gateway, who) = serve(gateway().sample().policies(POLICIES));
    fs::remove_file(gateway.folder().join("policies/test.cedar")).unwrap();
    let set = || gateway.get(&who, "/v1/policies");
    until(set, |it| it.at("/data/policy_set/last_reload/status") == "failed").await;

    let (code, text) = told(&run(&gateway, &["policy", "reload"]).await);
    assert_eq!(code, 0, "{text}");
    until(set, |it| it.at("/data/policy_set/active").as_u64() == Some(0)).await;
    let (code, text) = told(&run(&gateway, &["policy", "diff"]).await);
    assert_eq!(code, 0, "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_says_when_nothing_serves() {
    let gateway = gateway().policies(POLICIES).prepare();

    let (code, text) = told(&run(&gateway, &["policy", "reload"]).await);

    assert_eq!(code, 1);
    assert!(text.contains("nothing serves"), "{text}");
}
