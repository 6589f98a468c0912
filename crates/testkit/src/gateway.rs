//! The real binary as a child process on a data folder of its own.

mod requests;

use std::{
    fs,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{
    PostgresDatabase,
    programs::{KilledOnDrop, printed_by},
};

/// The longest a test waits for anything.
const PATIENCE: Duration = Duration::from_mins(1);
const POLL: Duration = Duration::from_millis(5);

/// Policies that permit every tool to everybody.
const PERMIT_ALL: &str = "@id(\"permit-all\") permit (principal, action, resource);\n";

/// Builds a gateway. By default it has no providers and permits everything, and
/// stores where `PORTCULLIS_TEST_STORE` says: on SQLite, or on a PostgreSQL database of its own.
#[derive(Debug)]
pub struct Builder {
    binary: PathBuf,
    config: String,
    providers: String,
    policies: Vec<(String, String)>,
    environment: Vec<(String, String)>,
    on_sqlite: bool,
}

/// A user or service account with a token.
#[derive(Debug, Clone)]
pub struct Principal {
    /// The org's id.
    pub org: String,
    pub id: String,
    pub token_id: String,
    pub token: String,
}

impl Builder {
    /// A gateway from `binary`: `env!("CARGO_BIN_EXE_portcullis")` in a test of the gateway.
    #[must_use]
    pub fn new(binary: impl Into<PathBuf>) -> Self {
        Self {
            binary: binary.into(),
            config: String::new(),
            providers: String::new(),
            policies: vec![("permit-all.cedar".to_owned(), PERMIT_ALL.to_owned())],
            environment: Vec::new(),
            on_sqlite: false,
        }
    }

    /// Remembers on SQLite, whatever the other tests do.
    #[must_use]
    pub fn on_sqlite(mut self) -> Self {
        self.on_sqlite = true;
        self
    }

    /// Adds TOML tables to the configuration, such as `[server]`.
    #[must_use]
    pub fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self.config.push('\n');
        self
    }

    /// Adds a stdio provider.
    #[must_use]
    pub fn stdio(mut self, slug: &str, command: &[&str], more: &str) -> Self {
        let command = json!(command);
        let entry = format!("[[providers]]\nslug = \"{slug}\"\ncommand = {command}\n{more}\n");
        self.providers.push_str(&entry);
        self
    }

    /// Adds a streamable HTTP provider on a loopback address.
    #[must_use]
    pub fn http(mut self, slug: &str, url: &str, more: &str) -> Self {
        let entry = format!(
            "[[providers]]\nslug = \"{slug}\"\nurl = \"{url}\"\nallow_private = true\n{more}\n"
        );
        self.providers.push_str(&entry);
        self
    }

    /// Adds the built-in sample server as provider `sample`.
    #[must_use]
    pub fn sample(self) -> Self {
        self.sample_with("")
    }

    /// The same, with more configuration of it.
    #[must_use]
    pub fn sample_with(self, more: &str) -> Self {
        let binary = self.binary.to_string_lossy().into_owned();
        self.stdio("sample", &[&binary, "sample-mcp"], more)
    }

    /// Replaces all policies by one file.
    #[must_use]
    pub fn policies(mut self, cedar: &str) -> Self {
        self.policies = vec![("test.cedar".to_owned(), cedar.to_owned())];
        self
    }

    /// Sets an environment variable of the gateway.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Writes the data folder without starting anything.
    #[must_use]
    pub fn prepare(self) -> Gateway {
        let folder =
            tempfile::Builder::new().prefix("portcullis-test-").tempdir().expect("a folder");
        fs::create_dir(folder.path().join("policies")).expect("a policy folder");
        for (name, text) in &self.policies {
            fs::write(folder.path().join("policies").join(name), text).expect("a policy file");
        }
        let mut config = format!("data_dir = \".\"\n{}\n{}", self.config, self.providers);
        let own_store = self.on_sqlite || self.config.contains("[database]");
        let database = if own_store { None } else { PostgresDatabase::chosen(&self.binary) };
        config.extend(database.as_ref().map(PostgresDatabase::config));
        fs::write(folder.path().join("portcullis.toml"), config).expect("a configuration file");
        let gateway = Gateway {
            binary: self.binary,
            environment: self.environment,
            folder,
            client: client(),
            running: None,
            database,
        };
        let key = gateway.folder().join("key");
        gateway.run(&["key", "new", &key.to_string_lossy()]);
        gateway
    }

    /// Prepares and starts it. For tests on a runtime of several threads.
    pub fn start(self) -> Gateway {
        let mut gateway = self.prepare();
        gateway.start();
        gateway
    }
}

/// A gateway and its data folder. The process is killed and the folder removed when it is dropped.
#[derive(Debug)]
pub struct Gateway {
    binary: PathBuf,
    environment: Vec<(String, String)>,
    folder: TempDir,
    client: reqwest::Client,
    running: Option<Running>,
    /// The last field, so that it is dropped when it is not used any more.
    database: Option<PostgresDatabase>,
}

/// A client that shows redirects as they are, and takes a gateway of a test at any certificate.
fn client() -> reqwest::Client {
    let follows_none = reqwest::redirect::Policy::none();
    let client = reqwest::Client::builder().no_proxy().redirect(follows_none);
    client.tls_danger_accept_invalid_certs(true).build().expect("a client")
}

#[derive(Debug)]
struct Running {
    child: KilledOnDrop,
    url: String,
    log: mpsc::Receiver<String>,
    /// Its log from before it listened.
    starting: String,
    logged: Arc<Mutex<String>>,
}

impl Gateway {
    /// The data folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The configuration file.
    #[must_use]
    pub fn config_file(&self) -> PathBuf {
        self.folder().join("portcullis.toml")
    }

    /// URL of its database, unless its configuration names another.
    #[must_use]
    pub fn database_url(&self) -> String {
        let file = || format!("sqlite:{}", self.folder().join("portcullis.db").display());
        self.database.as_ref().map_or_else(file, PostgresDatabase::url)
    }

    /// Its PostgreSQL database, if it runs on one.
    pub(crate) const fn postgres(&self) -> Option<&PostgresDatabase> {
        self.database.as_ref()
    }

    /// Every byte that its database holds.
    #[must_use]
    pub fn stored(&self) -> Vec<u8> {
        if let Some(database) = &self.database {
            return database.dump();
        }
        let files = ["portcullis.db", "portcullis.db-wal"].map(|name| self.folder().join(name));
        files.iter().flat_map(|file| fs::read(file).unwrap_or_default()).collect()
    }

    /// Adds TOML tables to the configuration of a gateway that is prepared, such as those that
    /// name an org; a running one does not notice.
    pub fn configure(&self, toml: &str) {
        let mut config = fs::read_to_string(self.config_file()).expect("a configuration");
        config.extend(["\n", toml, "\n"]);
        fs::write(self.config_file(), config).expect("a configuration file");
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.running.as_ref().expect("a running gateway").url
    }

    /// The id of its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.running.as_ref().expect("a running gateway").child.0.id()
    }

    /// A command of the binary, with the environment of this gateway.
    #[must_use]
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.binary);
        let config = fs::read_to_string(self.config_file()).unwrap_or_default();
        if is_on_relaxed_postgres(&config) {
            command.env("PORTCULLIS_AUDIT__SYNC", "process-crash");
        }
        // A test whose subject is not a slow provider begins once the tools are there, also on a busy machine.
        if !config.contains("provider_patience_seconds") {
            command.env("PORTCULLIS_SERVER__PROVIDER_PATIENCE_SECONDS", "20");
        }
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Runs a command to its end and gives what it printed. Panics if it failed.
    pub fn run(&self, arguments: &[&str]) -> String {
        let printed = printed_by(self.command().args(arguments));
        String::from_utf8(printed).expect("output in UTF-8")
    }

    /// Runs a command of this installation with `--json` and gives what it printed.
    pub fn admin(&self, arguments: &[&str]) -> Value {
        let config = self.config_file();
        let mut all = arguments.to_vec();
        let config = config.to_string_lossy();
        all.extend(["--config", &*config, "--json"]);
        serde_json::from_str(&self.run(&all)).expect("output in JSON")
    }

    /// Makes an org; `plan` is such as `&["--plan", "pro"]`.
    pub fn org(&self, name: &str, plan: &[&str]) -> String {
        let mut arguments = vec!["org", "create", name];
        arguments.extend(plan);
        text(&self.admin(&arguments), "id")
    }

    /// Makes a service account with these scopes and a token for it.
    pub fn service(&self, org: &str, scopes: &str) -> Principal {
        let name = format!("service for {scopes}");
        let kind = ["--type", "service", "--scopes", scopes];
        self.principal(org, &name, &kind, &["--scopes", scopes])
    }

    /// Makes a user of this role and a token with all the role's scopes.
    pub fn user(&self, org: &str, role: &str, scopes: &str) -> Principal {
        self.principal(org, role, &["--role", role], &["--scopes", scopes])
    }

    /// Makes a principal and a token for it.
    pub fn principal(&self, org: &str, name: &str, kind: &[&str], token: &[&str]) -> Principal {
        let mut create = vec!["principal", "create", name, "--org", org];
        create.extend(kind);
        let id = text(&self.admin(&create), "id");
        let mut mint = vec!["token", "create", "--principal", &id];
        mint.extend(token);
        let made = self.admin(&mint);
        Principal {
            org: org.to_owned(),
            token: text(&made, "token"),
            token_id: text(&made, "id"),
            id,
        }
    }

    /// Starts it on a free port and waits until it listens.
    pub fn start(&mut self) {
        self.start_with(&[]);
    }

    /// Starts it on this port and waits until it listens.
    pub fn start_at(&mut self, port: u16) {
        self.start_on(port, &[]);
    }

    /// Starts it with more options of `serve` and waits until it listens.
    pub fn start_with(&mut self, options: &[&str]) {
        self.start_on(0, options);
    }

    fn start_on(&mut self, port: u16, options: &[&str]) {
        let config = self.config_file();
        let mut child = self
            .command()
            .args(["serve", "--port", &port.to_string(), "--config"])
            .arg(config)
            .args(options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a gateway that starts");
        let stderr = child.stderr.take().expect("its log");
        let (lines, log) = mpsc::channel();
        let logged: Arc<Mutex<String>> = Arc::default();
        let all = Arc::clone(&logged);
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                all.lock().expect("the log").extend([line.as_str(), "\n"]);
                let _ = lines.send(line);
            }
        });
        let starting = String::new();
        let mut running =
            Running { child: KilledOnDrop(child), url: String::new(), log, starting, logged };
        (running.url, running.starting) =
            tokio::task::block_in_place(|| running.wait_for("listening on "));
        self.running = Some(running);
    }

    /// The rest of the first log line from now on that contains `text`.
    #[must_use]
    pub fn wait_for_log(&self, text: &str) -> String {
        let running = self.running.as_ref().expect("a running gateway");
        tokio::task::block_in_place(|| running.wait_for(text)).0
    }

    /// Its log from before it listened.
    #[must_use]
    pub fn starting_log(&self) -> &str {
        &self.running.as_ref().expect("a running gateway").starting
    }

    /// Address of its metrics.
    #[must_use]
    pub fn metrics_url(&self) -> &str {
        let (_, url) = self.starting_log().split_once("metrics on ").expect("`metrics_listen`");
        url.lines().next().expect("an address").trim()
    }

    /// The text of its metrics.
    pub async fn metrics(&self) -> String {
        let answer = self.client.get(self.metrics_url()).send().await.expect("an answer");
        answer.text().await.expect("a text")
    }

    /// Everything it has logged since it was started.
    #[must_use]
    pub fn log(&self) -> String {
        let running = self.running.as_ref().expect("a running gateway");
        running.logged.lock().expect("the log").clone()
    }

    /// Kills it at once (SIGKILL).
    pub fn kill(&mut self) {
        self.running = None;
    }

    /// Ends it by force (SIGKILL) while others use it; [`Self::kill`] then clears up.
    pub fn kill_at_once(&self) {
        self.signal(Signal::KILL);
    }

    /// Asks it to end (SIGTERM) and waits until it has; gives its exit code.
    pub fn stop(&mut self) -> Option<i32> {
        self.terminate();
        self.ended()
    }

    /// Asks it to end (SIGTERM).
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Asks it to load its policies anew (SIGHUP).
    pub fn hang_up(&self) {
        self.signal(Signal::HUP);
    }

    fn signal(&self, signal: Signal) {
        let running = self.running.as_ref().expect("a running gateway");
        kill_process(Pid::from_child(&running.child.0), signal).expect("a signal");
    }

    /// Waits until it has ended; gives its exit code.
    pub fn ended(&mut self) -> Option<i32> {
        let mut running = self.running.take().expect("a running gateway");
        tokio::task::block_in_place(|| {
            for _ in 0..PATIENCE.as_millis() * 2 / POLL.as_millis() {
                if let Some(status) = running.child.0.try_wait().expect("an exit status") {
                    return status.code();
                }
                thread::sleep(POLL);
            }
            panic!("it does not end; it logged {}", running.logged.lock().expect("the log"));
        })
    }
}

impl Running {
    /// The rest of the first line that contains `text`, and all lines before it.
    fn wait_for(&self, text: &str) -> (String, String) {
        let mut seen = String::new();
        loop {
            match self.log.recv_timeout(PATIENCE) {
                Ok(line) => match line.split_once(text) {
                    Some((_, rest)) => return (rest.trim().to_owned(), seen),
                    None => seen.push_str(&(line + "\n")),
                },
                Err(gone) => panic!("no log line with `{text}` ({gone}); there were:\n{seen}"),
            }
        }
    }
}

fn text(value: &Value, member: &str) -> String {
    value[member].as_str().unwrap_or_else(|| panic!("no `{member}` in {value}")).to_owned()
}

/// True if this configuration names PostgreSQL and says nothing of `sync`. The servers of tests do not wait for
/// their disks, and `power-loss`, the default, is refused there.
fn is_on_relaxed_postgres(config: &str) -> bool {
    config.contains("\"postgres://") && !config.contains("\nsync = ")
}
