//! The first steps of an operator: commands in the wrong folder, names, and files that stay private.

use std::{
    os::unix::fs::PermissionsExt,
    process::{Command, Output},
};

use crate::prelude::*;

/// The binary in a folder without any configuration.
fn portcullis(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_portcullis"));
    command.current_dir(folder).args(arguments);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PORTCULLIS_")) {
        command.env_remove(name);
    }
    command.output().expect("the binary")
}

fn stderr_of(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_command_without_a_configuration_makes_nothing_unsaid() {
    // A command in the wrong folder makes no installation.
    let folder = tempfile::tempdir().unwrap();

    let created = portcullis(folder.path(), &["org", "create", "acme"]);

    assert_eq!(created.status.code(), Some(1), "{}", stderr_of(&created));
    assert!(stderr_of(&created).contains("--config"), "{}", stderr_of(&created));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);

    // A command without a configuration says so first.
    let folder = tempfile::tempdir().unwrap();
    let event = "evt_01M754BKTKX1YB8Q05NMW9TP4G";
    let commands: [&[&str]; 3] = [&["serve"], &["check"], &["policy", "explain", event]];

    let empty = commands.map(|command| portcullis(folder.path(), command));
    let untouched = fs::read_dir(folder.path()).unwrap().count();
    fs::create_dir(folder.path().join("portcullis-data")).unwrap();
    fs::write(folder.path().join("portcullis-data/portcullis.toml"), "data_dir = \".\"\n").unwrap();
    let overlooked = commands.map(|command| portcullis(folder.path(), command));

    assert_eq!(untouched, 0);
    for (said, cure) in empty.iter().map(|said| (said, "portcullis quickstart")).chain(
        overlooked.iter().map(|said| (said, "add `--config portcullis-data/portcullis.toml`")),
    ) {
        let errors = stderr_of(said);
        assert_eq!(said.status.code(), Some(1), "{errors}");
        assert!(errors.contains("no configuration was named") && errors.contains(cure), "{errors}");
        assert!(errors.contains("`portcullis-data"), "{errors}");
    }

    // Files that are made without a configuration are told with their folder.
    let folder = tempfile::tempdir().unwrap();

    let key = portcullis(folder.path(), &["key", "new"]);
    let policies = portcullis(folder.path(), &["policy", "init"]);
    let elsewhere = portcullis(folder.path(), &["key", "new", "elsewhere"]);

    for made in [&key, &policies] {
        let told = stderr_of(made);
        assert!(made.status.success(), "{told}");
        let wanted = "no configuration was named: the data folder is `portcullis-data`";
        assert!(told.contains(wanted), "{told}");
    }
    assert_eq!(stderr_of(&elsewhere), "");
}

#[test]
fn the_keys_and_policies_that_a_configuration_names_are_made_where_they_belong() {
    let folder = tempfile::tempdir().unwrap();
    let binary = env!("CARGO_BIN_EXE_portcullis");
    let config = format!(
        "data_dir = \"data\"\n[[providers]]\nslug = \"sample\"\ncommand = [\"{binary}\", \"sample-mcp\"]\n"
    );
    fs::write(folder.path().join("p.toml"), config).unwrap();
    let command = |arguments: &[&str]| {
        portcullis(folder.path(), &[arguments, &["--config", "p.toml"]].concat())
    };

    let unmade = command(&["check"]);
    let made = command(&["key", "new"]);
    let again = command(&["key", "new"]);
    let ungoverned = command(&["check"]);
    let begun = command(&["policy", "init"]);
    let checked = command(&["check"]);

    assert!(stderr_of(&unmade).contains("portcullis key new"), "{}", stderr_of(&unmade));
    assert!(made.status.success() && mode(&folder.path().join("data/key")) == 0o600);
    assert!(stderr_of(&again).contains("already"), "{}", stderr_of(&again));
    assert!(
        stderr_of(&ungoverned).contains("portcullis policy init"),
        "{}",
        stderr_of(&ungoverned)
    );
    let told = String::from_utf8_lossy(&ungoverned.stdout);
    assert!(told.contains("yet, and `serve` does not start without one"), "{told}");
    assert!(begun.status.success(), "{}", stderr_of(&begun));
    assert!(checked.status.success(), "{}", stderr_of(&checked));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_policies_of_the_readme_decide_calls_of_the_quickstart() {
    let readme = include_str!("../../../../README.md");
    let policies = readme.split("```cedar\n").nth(1).and_then(|it| it.split("```").next());
    let (gateway, who) = serve(gateway().sample().policies(policies.expect("policies")));

    let short = gateway.invoke(&who, "sample:list_items", json!({ "limit": 50 })).await;
    let long = gateway.invoke(&who, "sample:list_items", json!({ "limit": 51 })).await;

    assert_eq!(short.at("/governance/policy"), "agents-may-read");
    assert_eq!(long.at("/governance/policy"), "short-lists-for-agents");
}

/// Commands of the README for running it on one's own servers, without those that install it.
fn steps_of_the_readme(root: &Path) -> Vec<String> {
    let readme = include_str!("../../../../README.md");
    let section = readme.split("## Run it on your own servers").nth(1).expect("the section");
    let block = section.split("```").nth(1).expect("its commands");
    let root = root.display();
    block
        .lines()
        .filter_map(|line| line.strip_prefix("$ "))
        .filter(|line| !line.starts_with("cargo install"))
        .map(|line| line.replace(" /etc/", &format!(" {root}/etc/")))
        .map(|line| line.replace("=/etc/", &format!("={root}/etc/")))
        .collect()
}

#[test]
fn the_first_steps_of_the_readme_work_as_typed() {
    let root = tempfile::tempdir().unwrap();
    let steps = steps_of_the_readme(root.path());
    let (serve, steps) = steps.split_last().expect("commands");
    assert_eq!(serve, "portcullis serve");
    // The folders of the system are not ours to write: the same steps below another root.
    let moved = format!(
        "set -e\ncd {}/../..\n{}\nsed -i 's#/var/lib#{}/var/lib#' $PORTCULLIS_CONFIG",
        env!("CARGO_MANIFEST_DIR"),
        steps
            .iter()
            .take_while(|step| !step.starts_with("portcullis"))
            .cloned()
            .collect::<Vec<_>>()
            .join("\n"),
        root.path().display(),
    );
    let rest: Vec<&str> = steps
        .iter()
        .map(String::as_str)
        .skip_while(|step| !step.starts_with("portcullis"))
        .collect();
    let binary = Path::new(env!("CARGO_BIN_EXE_portcullis")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());

    let typed = Command::new("bash")
        .args(["-c", &format!("{moved}\n{}", rest.join("\n"))])
        .env("PATH", path)
        .output()
        .unwrap();

    assert!(typed.status.success(), "{}", stderr_of(&typed));
    assert_eq!(rest.len(), 6, "{rest:?}");
    let said = String::from_utf8_lossy(&typed.stdout).into_owned();
    assert!(said.contains("sample: connected") && said.contains("svc_live_"), "{said}");
    assert_eq!(mode(&root.path().join("var/lib/portcullis")), 0o700);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_in_a_folder_that_others_may_enter_are_for_their_owner_alone() {
    let mut gateway = gateway().on_sqlite().sample().prepare();
    fs::set_permissions(gateway.folder(), fs::Permissions::from_mode(0o755)).unwrap();
    gateway.start();
    let who = gateway.service(&gateway.org("acme", &ENOUGH), ALL_SCOPES);
    gateway.invoke(&who, "sample:list_items", json!({})).await;
    gateway.stop();

    let files = ["portcullis.db", "audit-key", "key", "policies.last-good.json", "serving.lock"];
    for name in files {
        assert_eq!(mode(&gateway.folder().join(name)), 0o600, "{name}");
    }
}

#[tokio::test]
async fn check_tells_everything_that_is_wrong_at_once() {
    let broken =
        "@id(\"broken\") permit (principal, action, resource) when { context.nope };\n@id(";
    let gateway = gateway()
        .policies(broken)
        .stdio("files", &["no-such-mcp-server"], "")
        .http("nobody", "http://127.0.0.1:9/mcp", "")
        .prepare();
    let key = gateway.folder().join("key");
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();

    let checked = run(&gateway, &["check"]).await;

    let told = String::from_utf8_lossy(&[checked.stdout, checked.stderr].concat()).into_owned();
    assert_eq!(checked.status.code(), Some(1), "{told}");
    for wrong in [
        "others can read keys",
        "the policies have errors",
        "some providers cannot be used",
        "there is no program `no-such-mcp-server`",
    ] {
        assert!(told.contains(wrong), "{wrong}: {told}");
    }
}

#[tokio::test]
async fn a_configuration_is_told_everything_that_is_wrong_with_it_at_once() {
    let gateway = gateway()
        .config(
            "[mcp]\napproval_wait_seconds = 301\n[tokens]\n[connect]\nattempt_seconds = 1\n\
             [[trust]]\nname = \"ci\"\norg = \"acme\"\nissuer = \"https://a.example\"\naudience = \"x\"\n\
             match = { a = \"b\" }\nprincipal = \"ci\"\n\
             [[trust]]\nname = \"cd\"\norg = \"acme\"\nissuer = \"https://b.example\"\naudience = \"x\"\n\
             match = { a = \"b\" }\nprincipal = \"cd\"\nscopes = [\"mcp:read\"]",
        )
        .http(
            "one",
            "http://127.0.0.1:9/mcp",
            "auth = \"api_key\"\napi_key = { env = \"NO_SUCH_KEY\" }",
        )
        .http("two", "not an address", "")
        .prepare();
    let file = gateway.config_file();
    let settings = fs::read_to_string(&file).unwrap();

    let (_, bounds) = failure(&gateway, &["check"]).await;
    fs::write(&file, settings.replace("_seconds = 301", "_seconds = 300")).unwrap();
    let (_, told) = failure(&gateway, &["check"]).await;

    assert!(bounds.contains("mcp.approval_wait_seconds"), "{bounds}");
    let names = ["trust rule `ci`: there is no org `acme`", "trust rule `cd`: `scopes`"];
    let settings = ["`one`", "NO_SUCH_KEY", "`two`", "connect.attempt_seconds"];
    for wrong in settings.into_iter().chain(names) {
        assert!(told.contains(wrong), "{wrong}: {told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_schema_is_refused_and_logs_to_a_file_have_no_colours() {
    // What is logged to a file has no colours.
    let mut gateway = gateway().sample().start();

    let log = gateway.log();

    assert!(!log.is_empty() && !log.contains('\u{1b}'), "{log:?}");

    // Another schema is refused and nothing is changed.
    gateway.stop();
    let cases = [
        ("UPDATE schema_migrations SET name = '0001_initial'", "check", "an older build"),
        ("UPDATE schema_migrations SET version = 1", "migrate", "an older build"),
        ("DELETE FROM schema_migrations", "check", "`portcullis migrate`"),
    ];

    for (change, command, wanted) in cases {
        gateway.tamper(change);
        for _ in 0..2 {
            let (code, told) = failure(&gateway, &[command]).await;

            assert_eq!(code, 1, "{told}");
            assert!(told.contains(wanted), "{told}");
        }
    }
}

#[tokio::test]
async fn names_stand_for_principals_and_the_only_org_needs_none() {
    let gateway = gateway().prepare();
    gateway.org("acme", &ENOUGH);
    let made = ["principal", "create", "ci", "--type", "service", "--scopes", "mcps:read"];
    let made = gateway.admin(&made);

    let token = gateway.admin(&["token", "create", "--principal", "ci", "--expires-in", "30d"]);

    assert_eq!(token["principal"], made["id"]);
    assert_eq!(gateway.admin(&["principal", "disable", "ci"])["id"], made["id"]);
    assert_eq!(gateway.admin(&["principal", "enable", "ci"])["id"], made["id"]);
    let tokens = gateway.admin(&["token", "list"]);
    assert_eq!(tokens.as_array().map(Vec::len), Some(1));
    assert_eq!(tokens[0]["principal_name"], "ci");
    assert_eq!(gateway.admin(&["org", "show", "acme"])["name"], "acme");
    several_orgs_have_to_be_told_apart(&gateway).await;
}

async fn several_orgs_have_to_be_told_apart(gateway: &Gateway) {
    gateway.org("globex", &ENOUGH);
    let twin = ["principal", "create", "ci", "--type", "service", "--scopes", "mcps:read"];
    let twin = gateway.admin(&[&twin[..], &["--org", "globex"]].concat());
    let choice = format!("{} of `globex`", twin["id"].as_str().unwrap());

    for (command, wanted) in [
        (&["token", "list"][..], "--org"),
        (&["token", "create", "--principal", "ci"], "--org"),
        (&["token", "create", "--principal", "ci"], &choice),
        (&["principal", "disable", "ci"], &choice),
        (&["token", "create", "--principal", "nobody"], "no principal `nobody`"),
        (&["token", "create", "--principal", "ci", "--org", "initech"], "no org `initech`"),
    ] {
        let (code, told) = failure(gateway, command).await;
        assert_eq!(code, 1, "{command:?}: {told}");
        assert!(told.contains(wanted), "{command:?}: {told}");
    }
    let one = gateway.admin(&["token", "create", "--principal", "ci", "--org", "globex"]);
    assert!(one["token"].as_str().is_some_and(|token| token.starts_with("svc_live_")));
}
