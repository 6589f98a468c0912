//! Files under `deploy/`: the binary takes every configuration, and the units and images start
//! commands that exist.

use std::process::Output;

use crate::prelude::*;

fn file(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The same as a pod or a unit does: what lies elsewhere there lies in the folder of the test.
fn check(gateway: &Gateway, config: &str) -> Output {
    let path = |name: &str| gateway.folder().join(name).to_string_lossy().into_owned();
    fs::write(gateway.config_file(), config).unwrap();
    let mut check = gateway.command();
    check
        .env("PORTCULLIS_DATA_DIR", gateway.folder())
        .env("PORTCULLIS_KEYS__FILE", path("key"))
        .env("PORTCULLIS_POLICIES__PATH", path("policies"))
        .env("PORTCULLIS_AUDIT__SIGNING_KEY", format!("{{ file = \"{}\" }}", path("audit-key")))
        .env("PORTCULLIS_AUDIT__EXPORTS__PATH", path("exports"))
        .env("PORTCULLIS_SERVER__LISTEN", "127.0.0.1:0")
        .env("PORTCULLIS_SERVER__PROVIDER_PATIENCE_SECONDS", "1")
        .env("COUNTERS_URL", "redis://127.0.0.1:1")
        .env("GITHUB_MCP_KEY", "x");
    if config.contains("[audit.anchor]") {
        check.env("PORTCULLIS_AUDIT__ANCHOR__FILE", path("checkpoints"));
    }
    check.arg("check").arg("--config").arg(gateway.config_file()).output().unwrap()
}

/// The configuration in the values of a chart: the block after `config: |`.
fn config_of(values: &str) -> String {
    let block = values.lines().skip_while(|line| *line != "config: |").skip(1);
    let lines = block.take_while(|line| line.is_empty() || line.starts_with("  "));
    lines.map(|line| line.get(2..).unwrap_or_default().to_owned() + "\n").collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_binary_takes_every_configuration_that_is_shown() {
    let mut configs = vec![];
    for name in ["single-node", "cluster", "container"] {
        configs.push((name.to_owned(), file(&format!("deploy/config/{name}.toml"))));
    }
    for name in ["values.yaml", "ci/single-values.yaml", "ci/cluster-values.yaml"] {
        let config = config_of(&file(&format!("deploy/helm/portcullis/{name}")));
        assert!(config.contains("public_host"), "{name}: {config}");
        configs.push((name.to_owned(), config));
    }

    for (name, config) in configs {
        let gateway = gateway().prepare();
        let checked = check(&gateway, &config);
        let told = String::from_utf8_lossy(&checked.stderr).into_owned();
        let shown = String::from_utf8_lossy(&checked.stdout).into_owned();

        // What the examples name is elsewhere; that it cannot be reached is found out last.
        let absent =
            ["some providers cannot be used", "the counters of the limits cannot be reached"];
        let sound = checked.status.success() || absent.iter().any(|it| told.contains(it));
        assert!(sound && shown.contains("database"), "{name}: {told}{shown}");
    }
}

#[test]
fn an_example_that_is_wrong_would_be_noticed() {
    let gateway = gateway().prepare();

    let told = check(&gateway, "[server]\npublic_hots = \"gateway.acme.example\"");

    assert_eq!(told.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&told.stderr).contains("public_hots"));
}

#[test]
fn the_image_runs_as_nobody_and_asks_the_binary_how_it_is() {
    let image = file("deploy/container/Dockerfile");
    let runtime = image.split("FROM ").find(|stage| stage.contains(" AS runtime")).unwrap();

    for line in ["USER 65532:65532", "STOPSIGNAL SIGTERM", "CMD [\"serve\"]"] {
        assert!(runtime.lines().any(|it| it == line), "{line}");
    }
    assert!(runtime.contains("CMD [\"/usr/local/bin/portcullis\", \"ready\"]"));
    assert!(!image.contains("SECRET") && !image.contains("TOKEN") && !image.contains("PASSWORD"));
    let sent = file("deploy/container/Dockerfile.dockerignore");
    assert_eq!(sent.lines().find(|line| !line.starts_with('#')), Some("*"));
}

#[test]
fn the_unit_starts_what_there_is_and_may_do_nothing_else() {
    let unit = file("deploy/systemd/portcullis.service");
    let started = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")).unwrap();
    let commands = gateway().prepare().run(&["--help"]);

    assert!(
        commands.contains(&format!("  {} ", started.rsplit_once(' ').unwrap().1)),
        "{commands}"
    );
    let lines = "User=portcullis NoNewPrivileges=yes CapabilityBoundingSet= ProtectSystem=strict \
        ProtectHome=yes PrivateDevices=yes PrivateUsers=yes RestrictNamespaces=yes \
        MemoryDenyWriteExecute=yes SystemCallFilter=@system-service UMask=0077";
    for line in lines.split(' ') {
        assert!(unit.lines().any(|it| it == line), "{line}");
    }
}
