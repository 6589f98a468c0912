//! The gateway as a program: its config, its commands, its process. Nothing else here knows them.

use std::{
    fs::OpenOptions,
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::StatusCode;
use portcullis_store::RowKey;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;
use tokio::{
    fs,
    io::{AsyncBufReadExt as _, BufReader, Lines},
    process::{Child, ChildStderr, Command},
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::{
    Failure,
    client::{self, Connection},
    policies, say_aside, upstream,
};

/// Policies that every installation has.
const POLICIES: usize = 100;
/// Per minute, and never reached.
const LIMIT: &str = "1000000000";
const SCOPES: &str = "mcps:read mcps:invoke policies:read audit:read";
const START_TIMEOUT: Duration = Duration::from_mins(2);
const STOP_TIMEOUT: Duration = Duration::from_secs(30);
const TOOL_PATH: &str = "/v1/mcps/bench:echo";
const LISTENING: &str = "listening on http://";

/// Differences of an installation from the usual one.
#[derive(Debug, Default)]
pub(crate) struct Setup<'a> {
    /// The URL of an empty PostgreSQL database to use instead of SQLite.
    pub(crate) database: Option<&'a str>,
    /// The URL of the Redis server in which limits are counted.
    pub(crate) redis: Option<&'a str>,
    /// The resources of the server pass, too, and all may be called and read.
    pub(crate) reads: bool,
    /// Tools that the server lists besides the called one.
    pub(crate) more_tools: usize,
    /// Number of connections that the node holds, those of one address bounded as by default; otherwise
    /// loopback counts as a trusted proxy, for all connections of a measurement come from there.
    pub(crate) bounded_connections: Option<usize>,
}

/// A configured gateway with a data folder, an org and a token; not yet running.
#[derive(Debug)]
pub(crate) struct Installation {
    folder: TempDir,
    binary: PathBuf,
    /// A service token that may list, invoke, simulate and read all events.
    pub(crate) token: String,
}

impl Installation {
    /// Writes config and policies into a new folder, removed with this value, and makes org, principal and
    /// token; with the given gateway, or that of [`binary`].
    pub(crate) async fn create(
        given: Option<&Path>,
        upstream: SocketAddr,
    ) -> Result<Self, Failure> {
        Self::set_up(given, upstream, &Setup::default()).await
    }

    /// The same with what `setup` says.
    pub(crate) async fn set_up(
        given: Option<&Path>,
        upstream: SocketAddr,
        setup: &Setup<'_>,
    ) -> Result<Self, Failure> {
        let binary = binary(given).await?;
        let folder = folder()?;
        let policy_folder = folder.path().join("policies");
        fs::create_dir(&policy_folder).await?;
        let mut policies = policies::permit_and(POLICIES - 1);
        if setup.reads {
            policies.push_str(policies::PERMIT_READS);
        }
        fs::write(policy_folder.join("bench.cedar"), policies).await?;
        let config = config(folder.path(), upstream, setup);
        let mut installation = Self { folder, binary, token: String::new() };
        fs::write(installation.config(), config).await?;
        installation.make_key().await?;
        installation.token = installation.mint("bench").await?;
        Ok(installation)
    }

    async fn make_key(&self) -> Result<(), Failure> {
        let data = self.folder.path().join("data");
        fs::create_dir_all(&data).await?;
        let made =
            Command::new(&self.binary).args(["key", "new"]).arg(data.join("key")).output().await?;
        if made.status.success() {
            return Ok(());
        }
        Err(format!("`portcullis key` failed: {}", String::from_utf8_lossy(&made.stderr)).into())
    }

    /// The key of the codes over rows of its log that wait.
    pub(crate) fn row_key(&self) -> Result<RowKey, Failure> {
        let text = std::fs::read_to_string(self.folder.path().join("data/key"))?;
        let key = STANDARD.decode(text.trim())?.try_into();
        Ok(RowKey::derive(&key.map_err(|_| "the key has another length")?))
    }

    /// Adds a provider at this address, whose tools services may call, with these lines of its config.
    pub(crate) fn add_provider(
        &self,
        slug: &str,
        address: &str,
        more: &str,
    ) -> Result<(), Failure> {
        let mut config = OpenOptions::new().append(true).open(self.config())?;
        write!(
            config,
            "\n[[providers]]\nslug = \"{slug}\"\nurl = \"http://{address}\"\n\
             allow_private = true\n{more}"
        )?;
        let permit = format!(
            "@id(\"{slug}\") permit (principal is Mcp::Service, \
             action in Mcp::Action::\"{slug}:*\", resource);\n"
        );
        let policy = self.folder.path().join(format!("policies/{slug}.cedar"));
        Ok(std::fs::write(policy, permit)?)
    }

    /// Adds these lines to the config.
    pub(crate) fn add_config(&self, lines: &str) -> Result<(), Failure> {
        let mut config = OpenOptions::new().append(true).open(self.config())?;
        Ok(config.write_all(lines.as_bytes())?)
    }

    /// A token of the org that connects providers for it.
    pub(crate) async fn admin_token(&self) -> Result<String, Failure> {
        self.token_of("keeper", "bench", "providers:read providers:write admin").await
    }

    /// Makes an org and a service principal of this name, and gives a token of it.
    pub(crate) async fn mint(&self, name: &str) -> Result<String, Failure> {
        let org = self.org(name).await?;
        self.token_of(name, &org, SCOPES).await
    }

    /// Makes an org of this name whose limits are never reached, and gives its id.
    pub(crate) async fn org(&self, name: &str) -> Result<String, Failure> {
        let limits = ["--requests-per-minute", LIMIT, "--invocations-per-minute", LIMIT];
        let create = ["org", "create", name, "--plan", "enterprise"];
        self.member("id", &[&create[..], &limits].concat()).await
    }

    /// Makes a service principal of this name, and gives a token of it.
    pub(crate) async fn token_of(
        &self,
        name: &str,
        org: &str,
        scopes: &str,
    ) -> Result<String, Failure> {
        let granted = ["--scopes", scopes];
        let create = ["principal", "create", name, "--org", org, "--type", "service"];
        let principal = self.member("id", &[&create[..], &granted].concat()).await?;
        let create = ["token", "create", "--principal", &principal];
        self.member("token", &[&create[..], &granted].concat()).await
    }

    /// Exports the whole log and has it verified; returns the fault that the verifier found.
    pub(crate) async fn verify(&self) -> Result<Option<String>, Failure> {
        let file = self.folder.path().join("log.jsonl");
        let path = file.to_str().ok_or("a folder whose name is no text")?;
        self.printed(&["audit", "export", "--org", "bench", "--output", path]).await?;
        let keys = self.printed(&["audit", "key", "list"]).await?;
        let key = keys.pointer("/0/key").and_then(Value::as_str).ok_or("the log has no key")?;
        let verify = Command::new(&self.binary)
            .args(["audit", "verify", path, "--key", key])
            .stdin(Stdio::null())
            .output()
            .await?;
        let told = [verify.stdout, verify.stderr].concat();
        let told = String::from_utf8_lossy(&told).trim().to_owned();
        Ok((!verify.status.success()).then_some(told))
    }

    /// Runs a command with `--json` and takes one member of what it prints.
    async fn member(&self, member: &str, arguments: &[&str]) -> Result<String, Failure> {
        let printed = self.printed(arguments).await?;
        let command = arguments.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        let value = printed.get(member).and_then(Value::as_str);
        Ok(value.ok_or_else(|| format!("`portcullis {command}` printed no `{member}`"))?.to_owned())
    }

    /// Runs a command with `--json`; fails when it does.
    async fn printed(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let output = Command::new(&self.binary)
            .args(arguments)
            .arg("--config")
            .arg(self.config())
            .arg("--json")
            .stdin(Stdio::null())
            .output()
            .await?;
        let command = arguments.iter().take(2).copied().collect::<Vec<_>>().join(" ");
        if !output.status.success() {
            let words = String::from_utf8_lossy(&output.stderr);
            return Err(format!("`portcullis {command}` failed: {}", words.trim()).into());
        }
        Ok(serde_json::from_slice(&output.stdout).unwrap_or_default())
    }

    fn config(&self) -> PathBuf {
        self.folder.path().join("portcullis.toml")
    }

    /// The folder that holds config and data.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts the gateway on the data it has and waits until it knows the tool.
    pub(crate) async fn start(&self) -> Result<Running, Failure> {
        self.start_by(Command::new(&self.binary)).await
    }

    /// The same with these variables of the environment over its config.
    pub(crate) async fn start_with(&self, variables: &[(&str, &str)]) -> Result<Running, Failure> {
        let mut command = Command::new(&self.binary);
        command.envs(variables.iter().copied());
        self.start_by(command).await
    }

    /// The same under a program that runs others.
    pub(crate) async fn start_under(&self, mut program: Command) -> Result<Running, Failure> {
        program.arg(&self.binary);
        self.start_by(program).await
    }

    async fn start_by(&self, mut command: Command) -> Result<Running, Failure> {
        let mut child = command
            .arg("serve")
            .arg("--config")
            .arg(self.config())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .map_err(|error| format!("{} cannot be started: {error}", self.binary.display()))?;
        let stderr = child.stderr.take().ok_or("the gateway has no standard error")?;
        let mut lines = BufReader::new(stderr).lines();
        let address = timeout(START_TIMEOUT, listening(&mut lines))
            .await
            .map_err(|_| "the gateway did not say in time that it listens")??;
        let mut log = JoinSet::new();
        log.spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let pid = child.id().ok_or("the gateway ended at once")?;
        let running = Running { child, _log: log, pid, address };
        timeout(START_TIMEOUT, self.tool_is_known(address))
            .await
            .map_err(|_| format!("the gateway did not learn of {TOOL_PATH} in time"))??;
        Ok(running)
    }

    async fn tool_is_known(&self, address: SocketAddr) -> Result<(), Failure> {
        let question = client::get(address, &self.token, TOOL_PATH)?;
        let mut connection = Connection::open(address).await?;
        while connection.send(question.clone()).await?.status != StatusCode::OK {
            sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }
}

fn config(folder: &Path, upstream: SocketAddr, setup: &Setup<'_>) -> String {
    // A JSON string is a TOML string too.
    let text = |text: &str| Value::from(text).to_string();
    let quoted = |name: &str| text(&folder.join(name).to_string_lossy());
    let line = |head: &str, value: Option<&str>| {
        value.map_or_else(String::new, |value| format!("{head}{}\n", text(value)))
    };
    let more = setup.more_tools;
    format!(
        r#"data_dir = {data}

[server]
listen = "127.0.0.1:0"
{connections}

[policies]
path = {policies}

{database}{redis}
[[providers]]
slug = "bench"
name = "Bench"
url = "http://{upstream}{path}{tools}"
auth = "none"
allow_private = true
max_in_flight = 1024
{expose}"#,
        data = quoted("data"),
        connections = setup.bounded_connections.map_or_else(
            || "trusted_proxies = [\"127.0.0.0/8\"]".to_owned(),
            |most| format!("max_connections = {most}"),
        ),
        policies = quoted("policies"),
        database = line("[database]\nurl = ", setup.database),
        redis = line("[limits]\nredis = ", setup.redis),
        expose = if setup.reads { "expose = [\"tools\", \"resources\"]\n" } else { "" },
        path = upstream::PATH,
        tools = if more > 0 { format!("/{more}") } else { String::new() },
    )
}

/// Reads the log up to the line that says where the gateway listens.
async fn listening(lines: &mut Lines<BufReader<ChildStderr>>) -> Result<SocketAddr, Failure> {
    let mut said = String::new();
    while let Some(line) = lines.next_line().await? {
        if let Some(address) = address_in(&line) {
            return Ok(address);
        }
        said.push_str(&line);
        said.push('\n');
    }
    Err(format!("the gateway ended before it listened:\n{said}").into())
}

fn address_in(line: &str) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(LISTENING)?;
    let end = rest.find(|c: char| !(c.is_ascii_hexdigit() || ".:[]".contains(c)));
    rest.get(..end.unwrap_or(rest.len()))?.parse().ok()
}

/// A gateway that listens; it is killed with this value.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    _log: JoinSet<()>,
    pub(crate) pid: u32,
    pub(crate) address: SocketAddr,
}

impl Running {
    /// `kill -9`, and waits until the process is gone.
    pub(crate) async fn kill(mut self) -> Result<(), Failure> {
        Ok(self.child.kill().await?)
    }

    /// Asks it to end and waits; fails when it does not end in time or not well.
    pub(crate) async fn stop(mut self) -> Result<(), Failure> {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        kill_process(pid.ok_or("the gateway has no process id")?, Signal::TERM)?;
        let status = timeout(STOP_TIMEOUT, self.child.wait())
            .await
            .map_err(|_| "the gateway did not stop in time")??;
        if status.success() { Ok(()) } else { Err(format!("the gateway ended: {status}").into()) }
    }
}

/// A new folder that is removed with this value.
pub(crate) fn folder() -> Result<TempDir, Failure> {
    Ok(tempfile::Builder::new().prefix("bench-").tempdir_in(own_folder()?)?)
}

/// The folder of this program: on a disk, where the temporary folder may be in memory.
fn own_folder() -> Result<PathBuf, Failure> {
    let own = std::env::current_exe()?;
    Ok(own.parent().ok_or("this program is in no folder")?.to_owned())
}

/// The gateway to run: the given one, or the one beside this program, built first if cargo runs us.
pub(crate) async fn binary(given: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let folder = own_folder()?;
    let beside = folder.join("portcullis");
    if let Some(cargo) = std::env::var_os("CARGO") {
        say_aside("building the gateway\n");
        let mut build = Command::new(cargo);
        build.args(["build", "--locked", "--quiet", "--package", "portcullis"]);
        // The folder has the name of the profile, but for that of `dev`.
        if let Some(profile) = folder.file_name().filter(|name| *name != "debug") {
            build.arg("--profile").arg(profile);
        }
        if !build.stdin(Stdio::null()).status().await?.success() {
            return Err("the gateway cannot be built".into());
        }
    } else if !beside.exists() {
        return Err("there is no gateway beside this program; name one with --binary".into());
    }
    Ok(beside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_is_found_in_a_line_of_either_log_format() {
        let plain = "2026-11-20T11:02:15Z INFO listening on http://127.0.0.1:8080";
        let json = r#"{"message":"listening on http://127.0.0.1:41234","level":"INFO"}"#;

        assert_eq!(address_in(plain), Some(([127, 0, 0, 1], 8080).into()));
        assert_eq!(address_in(json), Some(([127, 0, 0, 1], 41234).into()));
        assert_eq!(address_in("starting"), None);
    }
}
