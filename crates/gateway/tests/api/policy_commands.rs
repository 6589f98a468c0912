//! `portcullis policy …`: what a security team runs before anything is in force.

use std::process::Output;

use crate::prelude::*;

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
        Self::exposing("[\"tools\"]", policies)
    }

    /// The same with what the provider exposes.
    fn exposing(kinds: &str, policies: &str) -> Self {
        let sample = gateway().sample_with(&format!("expose = {kinds}"));
        let gateway = sample.policies(policies).prepare();
        let config = gateway.config_file();
        let described = gateway.run(&["policy", "tools", "--config", &config.to_string_lossy()]);
        let tools = gateway.folder().join("tools.json");
        fs::write(&tools, described).unwrap();
        Self { gateway, tools }
    }

    /// Puts the policies back as they were.
    fn reset(&self) {
        fs::remove_dir_all(self.policies("")).unwrap();
        self.write("test.cedar", POLICIES);
    }

    fn policies(&self, name: &str) -> PathBuf {
        self.gateway.folder().join("policies").join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.policies(name).parent().unwrap()).unwrap();
        fs::write(self.policies(name), text).unwrap();
    }

    async fn policy(&self, command: &str) -> Output {
        let command = format!("policy {command} --tools {}", self.tools.display());
        run(&self.gateway, &words(&command)).await
    }

    /// The output of a command, which has to end with this code and hold this part.
    async fn says(&self, command: &str, code: i32, part: &str) -> String {
        assert_printed(&self.policy(command).await, code, part)
    }

    /// The output of a command with `--json`.
    async fn prints(&self, command: &str) -> Value {
        let output = self.policy(&format!("{command} --json")).await;
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

pub(crate) fn assert_printed(output: &Output, code: i32, part: &str) -> String {
    let (ended, text) = code_and_text(output);
    assert_eq!(ended, code, "{text}");
    assert!(text.contains(part), "`{part}` in {text}");
    text
}

fn code_and_text(output: &Output) -> (i32, String) {
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(!text.contains("panicked"), "{text}");
    (output.status.code().unwrap(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_and_test_tell_every_error_with_its_place() {
    // Validate tells every error with its place.
    let desk = Desk::with(POLICIES);
    desk.says("validate", 0, "2 active, 0 shadow, 0 disabled").await;
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
    for place in ["one.cedar:3:", "two.cedar:1:", "three.cedar:2:1"] {
        desk.says("validate", 1, place).await;
    }
    let json = desk.prints("validate").await;
    assert_eq!(json["valid"], false);
    assert!(json["errors"].as_array().unwrap().len() >= 3, "{json}");

    // Strict validation takes warnings for errors.
    desk.reset();
    desk.write(
        "more.cedar",
        "@id(\"silent\") forbid (principal is Mcp::Service, action, resource);",
    );

    desk.says("validate", 0, "more.cedar:1: warning: `silent`").await;
    desk.says("validate --strict", 1, "").await;

    // Test runs the cases of the folder and fails when one is not as expected.
    desk.reset();
    desk.write("tests/lists.yaml", CASES);

    desk.says("test", 0, "2 passed, 0 failed").await;

    desk.write(
        "tests/more.json",
        r#"{"cases": [{"tool": "sample:create_note",
        "input": {"title": "a", "text": "b"}, "expect": {"decision": "deny"}}]}"#,
    );
    let text = desk.says("test", 1, "2 passed, 1 failed").await;
    assert!(text.contains("decision: expected `deny`, got `allow`"), "{text}");

    desk.write("tests/more.json", r#"{"cases": [{"tool": "sample:create_note"}]}"#);
    let text = desk.says("test", 1, "more.json:1:").await;
    assert!(text.contains("expects nothing"), "{text}");

    // Validation runs the cases beside the policies.
    desk.reset();
    desk.write("tests/lists.yaml", CASES);

    desk.says("validate", 0, "2 cases passed, 0 not run").await;

    desk.write("tests/lists.yaml", &CASES.replace("policy: short-lists", "policy: other"));
    let text = desk.says("validate", 1, "tests/lists.yaml:9:").await;
    assert!(text.contains("policy: expected `other`, got `short-lists`"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cases_beside_the_law_of_policies_hold_for_the_command() {
    let gateway = gateway().prepare();
    let folders = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src/policy/cases");
    for folder in fs::read_dir(folders).unwrap().map(|entry| entry.unwrap().path()) {
        let [policies, tools] = [folder.clone(), folder.join("tools.json")];
        let [policies, tools] = [policies, tools].map(|path| path.to_string_lossy().into_owned());
        let test = ["policy", "test", "--policies", &policies, "--tools", &tools];

        assert_printed(&run(&gateway, &test).await, 0, " passed, 0 failed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_schema_is_printed_for_editors_also_beside_broken_policies() {
    let desk = Desk::with("permit (principal");
    desk.write(
        "facts.toml",
        "[facts.\"sample:create_note\"]\nwords = { type = \"Long\", from = \"$.text | len\" }\n",
    );

    let text = desk.says("schema", 0, "action \"sample:list_items\"").await;
    assert!(text.contains("words"), "{text}");
    let json = desk.prints("schema").await;
    let tool = &json["Mcp"]["actions"]["sample:create_note"];
    assert_eq!(tool["appliesTo"]["resourceTypes"][0], "Tool");
}

#[tokio::test(flavor = "multi_thread")]
async fn approvers_whom_nobody_knows_and_exceptions_for_nothing_are_warned_of() {
    let asks =
        "@id(\"asks\") @reason(\"ask\") @require_approval(\"approvers=staff,finance,treasury\")
forbid (principal, action == Mcp::Action::\"sample:create_note\", resource);";
    let config = "[[trust]]\nname = \"idp\"\norg = \"acme\"\nissuer = \"https://idp.example\"\n\
        audience = \"gate\"\nmatch = { tenant = \"acme\" }\nuser_from = \"sub\"\n\
        roles = { finance = \"admin\", \"*\" = \"member\" }\n\
        jwks_url = \"https://127.0.0.1:9/keys\"\nallow_private = true\n\
        [[dlp.allow]]\nreason = \"misspelt\"\ntool = \"smaple:echo\"";
    let gateway = gateway().sample().policies(asks).config(config).prepare();
    gateway.org("acme", &[]);
    gateway.admin(&["principal", "create", "ana", "--org", "acme"]);
    gateway.admin(&["principal", "set-groups", "ana", "staff"]);

    let checked = run(&gateway, &["check"]).await;
    let strict = run(&gateway, &["policy", "validate", "--strict"]).await;

    let checked = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert_eq!(checked.matches("no principal is in the group").count(), 1, "{checked}");
    assert!(checked.contains("the policy `asks`: no principal is in the group `treasury`"));
    assert!(checked.contains("`dlp.allow` entry 1 allows nothing"), "{checked}");
    assert!(checked.contains("(did you mean `sample`?)"), "{checked}");
    let text = assert_printed(&strict, 1, "`asks`: no principal is in the group `treasury`");
    assert!(!text.contains("`finance`") && !text.contains("`staff`"), "{text}");
}

#[tokio::test(flavor = "multi_thread")]
async fn validate_names_the_id_of_a_principal_that_a_policy_gives_by_its_name() {
    let named = "@id(\"hers\") permit (principal == Mcp::User::\"ana\", action, resource);";
    let desk = Desk::with(named);

    let unknown = desk.says("validate", 0, "`Mcp::User::\"ana\"` is nobody's").await;
    desk.gateway.org("acme", &[]);
    let ana = desk.gateway.admin(&["principal", "create", "ana"]);
    let (_, known) = code_and_text(&desk.policy("validate").await);

    assert!(!unknown.contains("write"), "{unknown}");
    let advice = format!("write `Mcp::User::{}` in place of", ana["id"]);
    assert!(known.contains(&advice) && known.contains("org `acme`"), "{known}");
    let folder = desk.gateway.folder().join("policies");
    assert!(known.contains(&format!("{}/", folder.display())), "{known}");
    assert_eq!(known.matches("nobody's").count(), 1, "one warning for one name: {known}");
}

#[tokio::test(flavor = "multi_thread")]
async fn validation_warns_of_many_policies_that_every_call_meets() {
    let unscoped = |n: usize| {
        format!(
            "@id(\"u{n}\") permit (principal, action, resource) when {{ context.request.mfa }};\n"
        )
    };
    let desk = Desk::with(&(0..51).map(unscoped).collect::<String>());

    desk.says("validate", 0, "51 policies name neither principals nor actions").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn simulate_and_diff_answer_like_the_api_and_init_adds_a_provider() {
    // Simulate answers like the api also for a draft.
    let desk = Desk::with(POLICIES);
    let body = desk.gateway.folder().join("ask.yaml");
    let simulate = format!("simulate {}", body.display());
    let draft = "input: {limit: 5}\npolicies: {remove: [base]}\nbaseline: live\n";
    fs::write(&body, format!("tool: sample:list_items\n{draft}")).unwrap();

    desk.says(&simulate, 0, "sample:list_items: deny by default-deny (default_deny)").await;
    has!(desk.prints(&simulate).await, "/results/0/change": "newly_denied");

    fs::write(&body, "tool: sample:list_items\ninputs: {}\n").unwrap();
    desk.says(&simulate, 1, "/inputs").await;

    // Diff tells what another folder would change.
    desk.reset();
    let other = desk.gateway.folder().join("other");
    fs::create_dir(&other).unwrap();
    let changed =
        POLICIES.replace("> 10", "> 20") + "@id(\"new\") permit (principal, action, resource);";
    fs::write(other.join("all.cedar"), changed.replace("@id(\"base\")", "@id(\"all\")")).unwrap();
    let other = other.to_string_lossy().into_owned();

    let same = desk.policies("").display().to_string();
    for line in ["+ all", "+ new", "~ short-lists", "- base"] {
        desk.says(&format!("diff --policies {other} --from {same}"), 1, line).await;
    }
    desk.says(&format!("diff --from {same}"), 0, "").await;
    desk.says("diff", 1, "ever in force").await;

    // Init adds a provider beside what is there.
    desk.reset();

    desk.says("init --add sample", 0, "").await;
    let added = fs::read_to_string(desk.policies("sample.cedar")).unwrap();
    assert!(added.contains("// @id(\"sample-services-read\")"), "{added}");
    assert!(!added.contains("no-credentials-out"), "{added}");
    desk.says("validate", 0, "").await;
    // What it comments on is a policy once the marks are taken away.
    let lines = added.lines().skip_while(|line| !line.contains("sample-services-read"));
    let permit: Vec<&str> = lines.map_while(|line| line.strip_prefix("// ")).collect();
    desk.write("services.cedar", &permit.join("\n"));
    desk.says("validate", 0, "4 active").await;
    desk.says("init --add other", 1, "no tools of a provider `other`").await;

    // Init lets service accounts read if it is told to.
    desk.reset();

    desk.says("init --add sample --services-read", 0, "").await;

    let added = fs::read_to_string(desk.policies("sample.cedar")).unwrap();
    assert!(added.contains("\n@id(\"sample-services-read\")\n"), "{added}");
    assert!(!added.contains("may use nothing here yet"), "{added}");
    desk.says("validate", 0, "4 active").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn init_and_the_starter_set_permit_prompts_listed_resources_and_skills() {
    let all = "[\"tools\", \"prompts\", \"resources\", \"skills\"]";
    for (kinds, init, permits, passed) in [
        (all, "init", 4, "6 passed, 0 failed"),
        (all, "init --services-read", 8, "6 passed, 0 failed"),
        ("[\"skills\"]", "init", 1, "1 passed, 0 failed"),
        ("[\"prompts\"]", "init", 1, "1 passed, 0 failed"),
        ("[\"resources\"]", "init", 1, "2 passed, 0 failed"),
    ] {
        let desk = Desk::exposing(kinds, POLICIES);
        fs::remove_file(desk.policies("test.cedar")).unwrap();

        desk.says(init, 0, "").await;

        // Credentials stay inside.
        desk.says("validate --strict", 0, &format!("{} active", permits + 1)).await;
        desk.says("test", 0, passed).await;
        let written = fs::read_to_string(desk.policies("starter.cedar")).unwrap();
        for (kind, part) in [
            ("prompts", "  Mcp::Action::\"prompt:sample:customer_letter\"\n], resource);"),
            ("resources", "resource:sample\", resource)\nwhen { context.resource.listed };"),
            ("resources", "//   resource:sample  resources and templates: 2\n"),
            ("skills", "  Mcp::Action::\"skill:sample:refund-policy\"\n], resource);"),
        ] {
            assert_eq!(written.contains(part), kinds.contains(kind), "{kinds}: {part}: {written}");
        }
    }

    let desk = Desk::exposing(all, STARTER);
    desk.write("tests/starter.yaml", STARTER_CASES);
    desk.says("test", 0, "8 passed, 0 failed").await;
}

const STARTER: &str = include_str!("../../assets/starter.cedar");

const STARTER_CASES: &str = r#"
defaults:
  principal: {type: user, roles: [member]}
cases:
  - {tool: "prompt:sample:customer_letter", input: {customer: a}, expect: {policy: read-only-tools}}
  - {tool: "resource:sample:sample://guide", input: {uri: "sample://guide"}, expect: {policy: read-only-tools}}
  - tool: "resource:sample:sample://customers/a"
    input: {uri: "sample://customers/a"}
    expect: {policy: read-only-tools}
  - {tool: "resource:sample:sample://other", input: {uri: "sample://other"}, expect: {policy: default-deny}}
  - principal: {type: service, roles: [service]}
    tool: "resource:sample:sample://guide"
    input: {uri: "sample://guide"}
    expect: {policy: read-only-tools-for-services}
  - {tool: "skill:sample:skill://refund-policy/SKILL.md", input: {uri: "skill://refund-policy/SKILL.md"}, expect: {policy: read-only-tools}}
  - principal: {type: service, roles: [service]}
    tool: "skill:sample:skill://refund-policy/SKILL.md"
    input: {uri: "skill://refund-policy/examples/email.md"}
    expect: {policy: read-only-tools-for-services}
  - {tool: "prompt:sample:customer_letter", input: {customer: a}, dlp: {findings: [aws_access_key]}, expect: {policy: no-secrets-out}}
"#;

#[tokio::test(flavor = "multi_thread")]
async fn init_writes_a_starter_set_that_loads_and_cases_that_hold() {
    let desk = Desk::with(POLICIES);
    fs::remove_file(desk.policies("test.cedar")).unwrap();
    // A name that YAML would read as something else.
    let described = fs::read_to_string(&desk.tools).unwrap();
    fs::write(&desk.tools, described.replace("list_items", "list: items")).unwrap();

    desk.says("init", 0, "").await;
    desk.says("validate", 0, "").await;
    let text = desk.says("test", 0, "0 failed").await;
    assert!(!text.contains("0 passed"), "{text}");
    let starter = fs::read_to_string(desk.policies("starter.cedar")).unwrap();
    assert!(starter.contains("sample:create_note"), "{starter}");
    assert!(starter.contains("  Mcp::Action::\"sample:list: items\""), "{starter}");
    let cases = fs::read_to_string(desk.policies("tests/starter.yaml")).unwrap();
    assert!(cases.contains("    tool: \"sample:list: items\"\n"), "{cases}");
    assert!(!starter.contains("resource.read_only"), "a hint permits nothing: {starter}");
    desk.says("init", 1, "exists").await;
    desk.says("list", 0, "sample-no-destruction-by-services").await;
    desk.says("init --add sample", 1, "nothing was written").await;
    assert!(
        !desk.policies("sample.cedar").exists() && !desk.policies("tests/sample.yaml").exists()
    );
    desk.says("validate", 0, "").await;
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
async fn policies_about_prompts_and_resources_are_checked_against_a_file_of_all_kinds() {
    let desk = Desk::exposing("[\"tools\", \"prompts\", \"resources\"]", POLICIES);
    for (scope, code, part) in [
        (r#"action, resource == Mcp::Prompt::"sample:customer_letter""#, 0, "3 active"),
        (r#"action, resource == Mcp::Prompt::"sample:customer_leter""#, 1, "customer_leter"),
        (r#"action == Mcp::Action::"prompt:sample:customer_letter", resource"#, 0, "3 active"),
        (r#"action == Mcp::Action::"resource:sample", resource"#, 0, "3 active"),
        (r#"action == Mcp::Action::"resource:simple", resource"#, 0, "no such provider"),
    ] {
        desk.write("kinds.cedar", &format!("@id(\"kinds\") permit (principal, {scope});"));
        desk.says("validate", code, part).await;
    }
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

    assert_printed(&run(&gateway, &["policy", "validate"]).await, 0, "");
    fs::write(&file, format!("{POLICIES}\n{wrong}")).unwrap();
    assert_printed(&run(&gateway, &["policy", "validate"]).await, 1, "no such tool");
    fs::write(&file, POLICIES).unwrap();
    assert_printed(&run(&gateway, &["check"]).await, 0, "sample: known, ");
    assert_printed(&run(&gateway, &["check", "--start"]).await, 1, "exit code 3");
    assert_printed(&run(&gateway, &["provider", "list"]).await, 0, "known");
    assert_printed(&run(&gateway, &["provider", "list", "--start"]).await, 0, "exit code 3");
    let ask = ["policy", "validate", "--ask"];
    assert_printed(&run(&gateway, &ask).await, 0, "its tools are not known here");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_that_does_not_load_fails_reload_and_is_told_by_every_health_view() {
    let (gateway, _) = serve(gateway().sample().policies(POLICIES));
    let ready = async || gateway.send(gateway.request(Method::GET, "/readyz")).await.ok();
    assert_eq!(ready().await.at("/data").get("policies"), None);
    fs::write(gateway.folder().join("policies/broken.cedar"), "permit (principal").unwrap();

    let reloaded = run(&gateway, &["policy", "reload"]).await;

    assert_printed(&reloaded, 1, "broken.cedar:1:");
    assert_printed(&reloaded, 1, "decides by the policies that were last in force");
    assert_eq!(ready().await.at("/data/policies"), "reload_failed");
    let validated = run(&gateway, &["policy", "validate"]).await;
    assert_printed(&validated, 1, "say why\n  broken.cedar:1:");
}

#[tokio::test(flavor = "multi_thread")]
async fn reload_says_when_nothing_serves() {
    let gateway = gateway().policies(POLICIES).prepare();

    assert_printed(&run(&gateway, &["policy", "reload"]).await, 1, "nothing serves");
}
