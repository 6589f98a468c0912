//! A PostgreSQL server of one's own, which can crash and come back.

use std::{
    fs::{self, OpenOptions, Permissions},
    io::Write as _,
    net::SocketAddr,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use rustix::process::geteuid;
use tempfile::TempDir;

use crate::programs::{free_address, printed_by};

const PASSWORD: &str = "store-canary-51ab";

/// A server with an empty database `postgres`; it is stopped and removed when this is dropped.
#[derive(Debug)]
pub struct PostgresServer {
    folder: TempDir,
    programs: PathBuf,
    address: SocketAddr,
    settings: String,
}

impl PostgresServer {
    /// Makes and starts one. Panics without the server programs of PostgreSQL.
    pub fn start() -> Self {
        Self::start_with("fsync=off")
    }

    /// The same, with these settings (`name=value`, separated by spaces) beside those of every one.
    pub fn start_with(settings: &str) -> Self {
        let server = Self::make(settings);
        server.start_again();
        server
    }

    /// The same, but over TCP it speaks TLS with this certificate, both as PEM, and nothing else.
    pub fn start_with_tls(certificate: &str, key: &str) -> Self {
        let server = Self::make("fsync=off");
        let data = server.folder.path().join("data");
        // Written over what is there, and so by whom it belongs to.
        fs::write(
            data.join("pg_hba.conf"),
            "hostssl all all 127.0.0.1/32 scram-sha-256\nlocal all all scram-sha-256\n",
        )
        .expect("a file of rules");
        for (name, text) in [("server.crt", certificate), ("server.key", key)] {
            let file = data.join(name);
            fs::write(&file, text).expect("a file");
            fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("permissions");
            Self::give(&file);
        }
        let settings = data.join("postgresql.conf");
        let mut settings = OpenOptions::new().append(true).open(settings).expect("the settings");
        settings.write_all(b"ssl = on\n").expect("a setting");
        server.start_again();
        server
    }

    fn make(settings: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("portcullis-postgres-").tempdir();
        let folder = folder.expect("a folder");
        let address = free_address();
        let settings = format!(" -c {}", settings.replace(' ', " -c "));
        let server = Self { folder, programs: programs(), address, settings };
        let password = server.folder.path().join("password");
        fs::write(&password, PASSWORD).expect("a file");
        Self::give(server.folder.path());
        let pwfile = format!("--pwfile={}", password.display());
        let signing_in = ["--username=postgres", "--auth=scram-sha-256", &pwfile];
        let mut initdb = server.command("initdb");
        initdb.args(signing_in).args(["--no-sync", "--encoding=UTF8", "--locale=C"]);
        printed_by(&mut initdb);
        server
    }

    /// Gives a file or a folder to whom the server runs as.
    fn give(path: &Path) {
        if geteuid().is_root() {
            let owned = Command::new("chown").args(["-R", "postgres"]).arg(path).status();
            assert!(owned.is_ok_and(|status| status.success()), "a file for the user postgres");
        }
    }

    /// Starts it again at the same address.
    pub fn start_again(&self) {
        let options = format!(
            "--options=-c listen_addresses=127.0.0.1 -c port={} -c unix_socket_directories={} \
             -c max_connections=200{}",
            self.address.port(),
            self.folder.path().display(),
            self.settings
        );
        let log = format!("--log={}", self.folder.path().join("log").display());
        self.run("pg_ctl", &["start", "--wait", "--silent", &log, &options]);
    }

    /// Ends it at once, as a crash would: what was committed is all that is left.
    pub fn crash(&self) {
        self.run("pg_ctl", &["stop", "--wait", "--silent", "--mode=immediate"]);
    }

    /// Runs a statement in it.
    pub fn execute(&self, statement: &str) {
        super::run(&self.url_at(self.address), &[statement]);
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The configuration of a gateway that uses it by way of this address.
    #[must_use]
    pub fn config_at(&self, address: SocketAddr) -> String {
        format!("[database]\nurl = \"{}\"\n", self.url_at(address))
    }

    /// Its URL by way of this address.
    #[must_use]
    pub fn url_at(&self, address: SocketAddr) -> String {
        format!("postgres://postgres:{PASSWORD}@{address}/postgres")
    }

    /// Its URL by way of a socket of this machine.
    #[must_use]
    pub fn url_over_socket(&self) -> String {
        let (folder, port) = (self.folder.path().display(), self.address.port());
        format!("postgres://postgres:{PASSWORD}@/postgres?host={folder}&port={port}")
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        printed_by(self.command(program).args(arguments));
    }

    /// PostgreSQL refuses to run as root, so root lends it another user.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = if geteuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "postgres", "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.current_dir("/").env("PGDATA", self.folder.path().join("data"));
        command.stdin(Stdio::null());
        command
    }
}

/// The folder of the newest server programs.
fn programs() -> PathBuf {
    let all = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = all
        .map(|entry| entry.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .collect();
    found.sort();
    found.pop().unwrap_or_else(|| {
        let told = Command::new("pg_config").arg("--bindir").output().expect("pg_config");
        Path::new(String::from_utf8_lossy(&told.stdout).trim()).to_owned()
    })
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        let stopped =
            self.command("pg_ctl").args(["stop", "--silent", "--mode=immediate"]).output();
        // What does not stop ends with its folder.
        let _ = stopped;
    }
}
