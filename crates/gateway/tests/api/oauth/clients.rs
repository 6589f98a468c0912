//! Clients of other people get in without a token: the official SDKs and `FastMCP`.

use std::process::Stdio;

use portcullis_testkit::servers;
use reqwest::Url;
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
    time::timeout,
};

use super::{Site, client::Client};
use crate::mcp::clients::{PATIENCE, node, script};

/// A client that runs, and the lines that it prints.
struct Program {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Program {
    fn start(mut command: Command, site: &Site) -> Self {
        command
            .arg(format!("{}/mcp", site.gateway.url()))
            .args(["sample__list_items", "{}"])
            .env("PORTCULLIS_TEST_SERVERS", servers())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = command.spawn().expect("a client that starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    async fn says(&mut self, what: &str) -> Value {
        let line = timeout(PATIENCE, self.lines.next_line()).await.expect("a line in time");
        let line = line.unwrap().unwrap_or_else(|| panic!("{what} ended"));
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{what}: {error}: {line}"))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_other_people_get_in_by_a_browser_and_call_a_tool() {
    let site = Site::start();
    let browser = site.browser().await;
    let typescript = |era: &str| {
        let mut command = Command::new(node());
        command.arg(script("oauth.mjs")).arg(era);
        command
    };
    let python = |mode: &str| {
        let mut command = Command::new(servers().join("venv/bin/python"));
        command.arg(script("oauth.py")).arg(mode);
        command
    };
    for (what, command) in [
        ("TypeScript SDK, legacy", typescript("legacy")),
        ("TypeScript SDK, modern", typescript("modern")),
        ("Python SDK", python("sdk")),
        ("FastMCP", python("fastmcp")),
    ] {
        let mut program = Program::start(command, &site);

        let open = program.says(what).await;
        let open = Url::parse(open["open"].as_str().unwrap()).unwrap();
        let path = format!("{}?{}", open.path(), open.query().unwrap());
        let page = browser.open(&path).await;
        let back = Client::decides(&browser, &page, "allow", false).await;
        let address = format!("{}\n", back.header("location"));
        program.child.stdin.take().unwrap().write_all(address.as_bytes()).await.unwrap();
        let said = program.says(what).await;

        let items = &said["result"]["structuredContent"];
        assert!(items.is_object(), "{what}: {said}");
    }
}
