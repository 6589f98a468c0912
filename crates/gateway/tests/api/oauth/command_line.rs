//! The command line on another machine: `portcullis login`, and commands over the API.

mod encrypted;
mod evidence;
mod rights;

use std::{
    net::{SocketAddr, TcpListener},
    os::unix::fs::PermissionsExt as _,
    process::Output,
    thread,
};

use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

use super::{
    Site,
    client::{Client, led_to},
};
use crate::{login::browser::Browser, prelude::*};

/// A machine without the installation, at which Ana works.
struct Laptop<'a> {
    site: &'a Site,
    state: TempDir,
    /// The only authority whose certificates it trusts.
    authority: Option<PathBuf>,
}

impl<'a> Laptop<'a> {
    fn of(site: &'a Site) -> Self {
        Self { site, state: tempfile::tempdir().unwrap(), authority: None }
    }

    /// A command with these variables.
    fn command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::from(self.site.gateway.command());
        command.args(arguments).env("XDG_STATE_HOME", self.state.path()).kill_on_drop(true);
        command.envs(variables.iter().copied()).current_dir(self.state.path());
        command.envs(self.authority.iter().map(|file| ("SSL_CERT_FILE", file)));
        command
    }

    async fn with(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = self.command(arguments, variables);
        timeout(PATIENCE, command.output()).await.expect("a command that ends").unwrap()
    }

    /// Output of a command over the API.
    async fn prints(&self, command: &str) -> String {
        let mut arguments = vec!["--url", self.site.gateway.url()];
        arguments.extend(words(command));
        let output = self.with(&arguments, &[]).await;
        let told = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{command}: {told}");
        String::from_utf8(output.stdout).unwrap()
    }

    async fn json(&self, command: &str) -> Value {
        serde_json::from_str(&self.prints(&format!("{command} --json")).await).unwrap()
    }

    /// Exit code and message of a command that fails.
    async fn fails(&self, arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String) {
        let output = self.with(arguments, variables).await;
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && !told.contains("panicked"), "{arguments:?}: {told}");
        (output.status.code().unwrap(), told)
    }

    /// Begins a login; gives the command and the path that it sends the browser to.
    async fn begin(&self, more: &[&str]) -> (Child, String) {
        let mut arguments = vec!["login", "--no-browser", "--url", self.site.gateway.url()];
        arguments.extend(more);
        let mut command = self.command(&arguments, &[]);
        let mut login = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(login.stderr.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.expect("a line").unwrap().unwrap();
        login.stderr = Some(lines.into_inner().into_inner());
        let (_, path) =
            line.split_once(self.site.gateway.url()).unwrap_or_else(|| panic!("{line}"));
        (login, path.to_owned())
    }

    /// Logs Ana in with a browser, who decides as said.
    async fn log_in(&self, browser: &Browser<'_>, decision: &str) -> Output {
        let (login, path) = self.begin(&[]).await;
        let page = browser.open(&path).await;
        assert!(page.text.contains("Portcullis command line"), "{}", page.text);
        let back = Client::decides(browser, &page, decision, false).await;
        assert_eq!(opened(led_to(&back).as_str()).await, 200);
        timeout(PATIENCE, login.wait_with_output()).await.expect("the login ends").unwrap()
    }

    /// The file of the login.
    fn file(&self) -> PathBuf {
        let folder = self.state.path().join("portcullis/logins");
        let mut files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files.next().expect("a login is kept")
    }

    /// Lets the access token be about to end.
    fn age(&self) -> Value {
        let mut login = read(&self.file());
        login["expires_at"] = json!("2026-01-01T00:00:00Z");
        fs::write(self.file(), login.to_string()).unwrap();
        login
    }
}

/// The status of the page that a browser is shown at an address.
async fn opened(url: &str) -> u16 {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.get(url).send().await.unwrap().status().as_u16()
}

fn read(file: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
}

fn mode(file: &Path) -> u32 {
    fs::metadata(file).unwrap().permissions().mode() & 0o777
}

/// A site whose Ana is an admin.
fn site() -> Site {
    let site = Site::sampled();
    site.gateway.admin(&["principal", "set-role", &site.ana, "--role", "admin"]);
    site
}

/// The lines of a table without the order that a database gave them.
fn sorted(table: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = table.lines().collect();
    lines.sort_unstable();
    lines
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_and_commands_print_what_they_print_on_the_node() {
    let site = site();
    let laptop = Laptop::of(&site);
    let browser = site.browser().await;

    let output = laptop.log_in(&browser, "allow").await;

    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && told.contains("admin"), "{told}");
    let file = laptop.file();
    assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
    let login = read(&file);
    assert_eq!(login["url"], site.gateway.url());
    assert!(!told.contains(login["access_token"].as_str().unwrap()));
    let ci = laptop.json("principal create ci --type service --scopes mcps:read").await;
    let id = ci["id"].as_str().unwrap().to_owned();
    let hold = laptop.json("audit hold add --reason case --actor ci").await;
    assert_eq!(hold["actor"], id.as_str());
    let made = laptop.json("token create --principal ci --label nightly").await;
    assert!(made["token"].as_str().unwrap().starts_with("svc_live_"), "{made}");
    laptop.prints("principal disable ci").await;
    let event: Value = serde_json::from_str(
        laptop.prints("audit tail -n 1 --type principal.changed --json").await.trim(),
    )
    .unwrap();
    has!(event, "/target/id": id, "/actor/client/id": "portcullis-cli");
    let config = site.gateway.config_file();
    for command in [
        "principal list", "audit hold list", "consent list", "session list", "tool list --waiting",
        "approval list",
    ] {
        let here = format!("{command} --config {}", config.display());
        assert_eq!(
            sorted(&laptop.prints(command).await),
            sorted(&site.gateway.run(&words(&here))),
            "{command}"
        );
        let there = laptop.json(command).await;
        let here = site.gateway.admin(&words(command));
        let by_id = |all: Value| {
            let mut all = all.as_array().unwrap().clone();
            all.sort_by_key(|it| it["id"].to_string());
            all
        };
        assert_eq!(by_id(there), by_id(here), "{command}");
    }
    let disabled = laptop.json("principal enable ci").await;
    assert_eq!(disabled, site.gateway.admin(&["principal", "enable", &id]));
    let tokens = laptop.json("token list").await;
    assert!(tokens.as_array().unwrap().iter().any(|it| it["id"] == made["id"]), "{tokens}");
    let revoked = laptop.json(&format!("token revoke {}", made["id"].as_str().unwrap())).await;
    assert_eq!(revoked["descendants_revoked"], 0);
    laptop.prints(&format!("audit hold remove {}", hold["id"].as_str().unwrap())).await;
    let org = laptop.json("org show").await;
    assert_eq!((&org["id"], &org["name"]), (&json!(site.org), &json!("acme")));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_logs_in_prints_and_searches_what_the_node_does() {
    // Lists are searched on the node and over the api.
    let site = site();
    let laptop = Laptop::of(&site);
    let browser = site.browser().await;
    assert!(laptop.log_in(&browser, "allow").await.status.success());
    laptop.json("principal create ci --type service --scopes mcps:read").await;
    let made = laptop.json("token create --principal ci --label nightly").await;

    for (list, found, number) in [
        ("principal list", "CI", 1),
        ("token list", "night", 1),
        ("session list", "an", 1),
        ("consent list", "portc", 1),
        ("principal list", "na", 0),
        ("token list", "ightly", 0),
        ("session list", "ci", 0),
        ("consent list", "cursor", 0),
    ] {
        let command = format!("{list} --search {found}");
        let there = laptop.json(&command).await;
        let here = site.gateway.admin(&words(&command));
        assert_eq!(there.as_array().unwrap().len(), number, "{command}: {there}");
        assert_eq!(here.as_array().unwrap().len(), number, "{command}: {here}");
        assert_eq!(there.pointer("/0/id"), here.pointer("/0/id"), "{command}");
    }
    let nightly = site.gateway.admin(&["token", "list", "--search", "nightly"]);
    assert_eq!(nightly[0]["id"], made["id"]);
    let url = site.gateway.url();
    for wrong in ["", &"a".repeat(65)] {
        let refused = ["principal", "list", "--search", wrong, "--url", url];
        let (code, told) = laptop.fails(&refused, &[]).await;
        assert!(code == 2 && told.contains("1 to 64 characters"), "{told}");
    }

    // A login is refreshed and when it is over the message says what to do.
    assert!(laptop.log_in(&browser, "allow").await.status.success());

    let aged = laptop.age();
    laptop.prints("principal list").await;

    let fresh = read(&laptop.file());
    assert_ne!(
        (&fresh["access_token"], &fresh["refresh_token"]),
        (&aged["access_token"], &aged["refresh_token"])
    );
    assert_eq!(mode(&laptop.file()), 0o600);
    let consents = site.gateway.admin(&["consent", "list"]);
    let consent = consents[0]["id"].as_str().unwrap();
    assert_eq!(consents[0]["endpoint"], "/v1");
    site.gateway.admin(&["consent", "withdraw", consent]);
    let url = site.gateway.url();
    let command = ["principal", "list", "--url", url];
    let again = format!("portcullis login --url {url}");
    laptop.age();
    let (code, told) = laptop.fails(&command, &[]).await;
    assert!(code == 1 && told.contains(&again), "{told}");
    assert!(laptop.prints("logout").await.contains("logged out"));
    let (code, told) = laptop.fails(&command, &[]).await;
    assert!(code == 1 && told.contains("nobody is logged in") && told.contains(&again), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_who_says_no_and_a_browser_that_brings_another_state_log_nobody_in() {
    let site = site();
    let laptop = Laptop::of(&site);
    let browser = site.browser().await;

    let refused = laptop.log_in(&browser, "deny").await;

    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("access_denied"), "{told}");
    let (mut login, path) = laptop.begin(&[]).await;
    let asked = reqwest::Url::parse(&format!("{}{path}", site.gateway.url())).unwrap();
    let asked: BTreeMap<String, String> = asked.query_pairs().into_owned().collect();
    assert_eq!(
        (asked["code_challenge_method"].as_str(), asked["resource"].as_str()),
        ("S256", &*format!("{}/v1", site.gateway.url()))
    );
    let planted = format!("{}?code=x&state=y&iss={}", asked["redirect_uri"], site.gateway.url());
    assert_eq!(opened(&planted).await, 404);
    assert!(login.try_wait().unwrap().is_none(), "it goes on waiting");
    let mixed = format!(
        "{}?code=x&state={}&iss=https%3A%2F%2Fevil.example",
        asked["redirect_uri"], asked["state"]
    );
    opened(&mixed).await;
    let ended = timeout(PATIENCE, login.wait()).await.expect("an end").unwrap();
    assert!(!ended.success());
    assert!(!laptop.state.path().join("portcullis/logins").exists(), "nothing is kept");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_brings_its_token_and_refusals_are_told_with_their_request() {
    let site = site();
    let laptop = Laptop::of(&site);
    let weak = site.gateway.service(&site.org, "mcps:read");
    let url = site.gateway.url();
    let file = laptop.state.path().join("token");
    fs::write(&file, format!("{}\n", site.gateway.service(&site.org, "admin").token)).unwrap();
    let file = file.to_str().unwrap();

    let listed =
        laptop.with(&["principal", "list", "--token-file", file], &[("PORTCULLIS_URL", url)]).await;
    let (code, told) = laptop
        .fails(&["principal", "list", "--url", url], &[("PORTCULLIS_TOKEN", weak.token.as_str())])
        .await;

    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    assert!(code == 1 && told.contains("insufficient_scope") && told.contains("req_"), "{told}");
    assert!(!told.contains(&weak.token));
    let (code, told) = laptop
        .fails(&["principal", "list", "--url", url], &[("PORTCULLIS_TOKEN", "mcp_live_x")])
        .await;
    assert!(code == 1 && told.contains("invalid_token"), "{told}");
    let (_, told) = laptop
        .fails(&["principal", "list", "--url", url, "--org", "acme"], &[("PORTCULLIS_TOKEN", "x")])
        .await;
    assert!(told.contains("--org"), "{told}");
    for command in [
        "org create x",
        "org list",
        "key list",
        "migrate",
        "backup /tmp/x",
        "provider register up",
        "audit erase --reason x --actor x",
    ] {
        let mut arguments = words(command);
        arguments.extend(["--url", url]);
        let (code, told) = laptop.fails(&arguments, &[("PORTCULLIS_TOKEN", "x")]).await;
        assert!(code == 1 && told.contains("run it on a node"), "{command}: {told}");
    }
}

/// Answers each connection with this text, and counts them.
fn listener(answer: String) -> (SocketAddr, std::sync::mpsc::Receiver<String>) {
    use std::io::{Read as _, Write as _};
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let read = stream.read(&mut head).unwrap_or(0);
            let _ = tell.send(String::from_utf8_lossy(&head[..read]).into_owned());
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_goes_to_its_own_gateway_only() {
    let site = site();
    let laptop = Laptop::of(&site);
    let browser = site.browser().await;
    assert!(laptop.log_in(&browser, "allow").await.status.success());
    let (evil, at_evil) = listener(String::new());
    let to = format!(
        "HTTP/1.1 302 Found\r\nlocation: http://{evil}/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    let (redirecting, _at_redirecting) = listener(to);
    let own = laptop.file();
    let kept = read(&own);

    // The login of one gateway under the name of another.
    let twin = own.with_file_name(format!("http___127.0.0.1_{}.json", evil.port()));
    fs::copy(&own, &twin).unwrap();
    let (_, told) =
        laptop.fails(&["principal", "list", "--url", &format!("http://{evil}")], &[]).await;
    assert!(told.contains("nobody is logged in"), "{told}");
    let token = kept["access_token"].as_str().unwrap();
    let url = format!("http://{redirecting}");
    let (_, told) =
        laptop.fails(&["principal", "list", "--url", &url], &[("PORTCULLIS_TOKEN", token)]).await;
    assert!(told.contains("not the API of a gateway"), "{told}");
    assert!(at_evil.try_recv().is_err(), "nothing came there");
    for url in [
        "http://gateway.example", "http://localhost:1", "http://127.0.0.1.nip.example", "ftp://x",
        "https://u@x.example",
    ] {
        let (code, told) = laptop
            .fails(&["principal", "list", "--url", url], &[("PORTCULLIS_TOKEN", token)])
            .await;
        assert!(code == 1 && told.contains("has to be `https://host`"), "{url}: {told}");
    }
    fs::set_permissions(&own, fs::Permissions::from_mode(0o644)).unwrap();
    let (_, told) = laptop.fails(&["principal", "list", "--url", site.gateway.url()], &[]).await;
    assert!(told.contains("others can read"), "{told}");
}
