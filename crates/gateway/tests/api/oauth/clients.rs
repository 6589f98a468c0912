//! Clients of other people get in without a token: a real browser opens the address that they print, a person
//! logs in at a real OpenID provider and allows it, and they list the tools and call one.

mod pages;

use portcullis_testkit::Chromium;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use super::Site;
use crate::{
    login::issuers,
    mcp::clients::{PATIENCE, node, script},
    prelude::*,
};

/// Sentences of every page of consent.
pub(super) const QUESTION: &str = "asks to use tools through this gateway";

/// A program that prints an address for a browser; it ends when it is dropped.
pub(super) struct Program {
    _child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    said: String,
}

impl Program {
    /// Starts it with its errors among what it prints.
    pub(super) fn start(command: &Command) -> Self {
        let command = command.as_std();
        let mut merged = Command::new("sh");
        merged.args(["-c", "exec \"$@\" 2>&1", "sh"]).arg(command.get_program());
        let set = command.get_envs().filter_map(|(name, value)| Some((name, value?)));
        merged
            .args(command.get_args())
            .envs(set)
            .env("PORTCULLIS_TEST_SERVERS", servers())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut child = merged.spawn().expect("a client that starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { _child: child, lines, said: String::new() }
    }

    /// Text found in the first line that has it.
    pub(super) async fn says<T>(&mut self, find: impl Fn(&str) -> Option<T>) -> T {
        loop {
            let line = timeout(PATIENCE, self.lines.next_line()).await;
            let line = line.unwrap_or_else(|_| panic!("nothing more after:\n{}", self.said));
            let line = line.unwrap().unwrap_or_else(|| panic!("it ended:\n{}", self.said));
            if let Some(found) = find(&line) {
                return found;
            }
            self.said.push_str(&line);
            self.said.push('\n');
        }
    }

    /// All that it says, once it has ended.
    pub(super) async fn ends(mut self) -> String {
        while let Some(line) =
            timeout(PATIENCE, self.lines.next_line()).await.expect("an end in time").unwrap()
        {
            self.said.push_str(&line);
            self.said.push('\n');
        }
        self.said
    }

    /// The address that it wants a browser to open.
    pub(super) async fn opens(&mut self) -> String {
        self.says(|line| {
            let address = line.get(line.find("http")?..)?.split_whitespace().next()?;
            // Some print it in pieces as well.
            let is_whole = address.contains("/oauth/authorize?") && address.contains("=S256");
            is_whole.then(|| address.to_owned())
        })
        .await
    }
}

/// Signs a browser in as Ana by a link, which goes on to what `until` shows.
pub(super) fn sign_in(site: &Site, browser: &Chromium, until: &str) {
    sign_in_at(site.gateway.url(), site, browser, until);
}

/// The same of a gateway whose clients find it at this address.
pub(super) fn sign_in_at(url: &str, site: &Site, browser: &Chromium, until: &str) {
    let made = site.gateway.admin(&["login-link", "--principal", &site.ana]);
    // The shell does not know the port of this gateway.
    let (_, code) = made["url"].as_str().unwrap().split_once("code=").unwrap();
    let address = format!("{url}/login/link?code={code}");
    let offer = browser.go(&address, "logs this browser in as");
    assert!(offer.text.contains("Ana") && offer.text.contains("acme"), "{}", offer.text);
    browser.click("Log in", until);
}

/// A gateway at which people log in at a provider with pages of its own, and that provider.
fn site_with_issuer(builder: Builder) -> (Site, Oidc) {
    let issuers::Site { gateway, oidc, org } = issuers::Site::enrolled(builder, "", "");
    oidc.show_pages(&issuers::person(&json!({"name": "Ana"})));
    (Site { gateway, org, ana: String::new() }, oidc)
}

/// Logs Ana in with a browser that the provider shows its page; she consents to the gateway there, and comes back to
/// what `until` shows.
fn log_in(site: &mut Site, browser: &Chromium, until: &str) {
    browser.fill("Enter any login", "ana");
    browser.fill("and password", "any");
    browser.click("Sign-in", "Authorize");
    browser.click("Continue", until);
    let sessions = site.gateway.admin(&["session", "list", "--org", &site.org]);
    sessions[0]["principal_id"].as_str().expect("a session").clone_into(&mut site.ana);
}

/// Fails unless the newest of so many calls names its client.
async fn assert_named(site: &Site, calls: usize, client: &str) {
    let event = site.events("mcp.invocation", calls).await.pop().unwrap();
    has!(event, "/actor/id": *site.ana, "/actor/client/kind": "registered",
        "/detached/label": client);
}

/// A program that gets in by a browser, and the name that it registers.
type Entrant = (Command, &'static str);

async fn all_get_in(programs: Vec<Entrant>) {
    let (mut site, _oidc) = site_with_issuer(gateway().sample());
    let browser = Chromium::start();
    for (number, (mut command, client)) in programs.into_iter().enumerate() {
        command.arg(format!("{}/mcp", site.gateway.url())).args(["sample__list_items", "{}"]);
        let mut program = Program::start(&command);

        let address = program.opens().await;
        browser.forget();
        browser.go(&address, "Sign-in");
        log_in(&mut site, &browser, QUESTION);
        if number == 0 {
            // Her session ends while the question is open: the form leads to the provider, and back to the question.
            browser.forget();
            browser.click("Allow", "Sign-in");
            log_in(&mut site, &browser, QUESTION);
        }
        browser.click("Allow", "/callback?code=");
        let object = |line: &str| serde_json::from_str(line).ok().filter(Value::is_object);
        let said = program.says(object).await;

        let tools = said["tools"].as_array().expect("a list");
        assert!(tools.iter().any(|it| it == "sample__list_items"), "{client}: {said}");
        assert!(said["result"]["structuredContent"].is_object(), "{client}: {said}");
        assert_named(&site, number + 1, client).await;
    }
}

pub(super) fn typescript(mode: &str) -> Command {
    let mut command = Command::new(node());
    command.arg(script("oauth.mjs")).arg(mode);
    command
}

fn python(mode: &str) -> Command {
    let mut command = Command::new(servers().join("venv/bin/python"));
    command.arg(script("oauth.py")).arg(mode);
    command
}

#[tokio::test(flavor = "multi_thread")]
async fn the_official_sdks_get_in_by_a_browser_and_call_a_tool() {
    all_get_in(vec![
        (typescript("legacy"), "TypeScript SDK legacy"),
        (typescript("modern"), "TypeScript SDK modern"),
        (python("sdk"), "Python SDK"),
    ])
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mcp_remote_and_fastmcp_get_in_by_a_browser_and_call_a_tool() {
    let folder = tempfile::tempdir().unwrap();
    let mut remote = typescript("bridge");
    remote.env("MCP_REMOTE_CONFIG_DIR", folder.path());
    let mut fastmcp = python("fastmcp");
    // Instead of a browser of the machine, a program that prints the address.
    fastmcp.env("BROWSER", "echo %s").env("HOME", folder.path());
    all_get_in(vec![(remote, "MCP CLI Proxy"), (fastmcp, "FastMCP Client")]).await;
}
