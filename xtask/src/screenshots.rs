//! Pictures of the console: the built gateway with the content of `quickstart`, in each look.

use std::{
    fs, io,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use serde_json::json;

/// Pages that are taken; `LIST > START` is the first such link of that list.
const PAGES: [&str; 21] = [
    "/console",
    "/console/events",
    "/console/events > /console/events/evt_",
    "/console/log",
    "/console/approvals?status=pending",
    "/console/tools",
    "/console/tools > /console/tools/sample",
    "/console/tools?kind=prompt > /console/tools/prompt",
    "/console/tools?kind=resource > /console/tools/resource",
    "/console/tools?kind=skill > /console/tools/skill",
    "/console/waiting",
    "/console/policies",
    "/console/policies > /console/policies/",
    "/console/workbench",
    "/console/dlp",
    "/console/limits",
    "/console/providers",
    "/console/people",
    "/console/tokens",
    "/console/sessions",
    "/console/clients",
];

/// Writes the pictures and gives their folder. `PORTCULLIS_TEST_SERVERS` names the folder of
/// `playwright-core`, by default the one that `./test` fills.
pub(crate) fn run(root: &Path, binary: &Path) -> io::Result<PathBuf> {
    let folder = root.join("target/screenshots");
    let data = folder.join("data");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let mut gateway = Command::new(binary)
        .args(["quickstart", "--port", "0", "--data-dir"])
        .arg(&data)
        .stdout(Stdio::piped())
        .spawn()?;
    let taken = take_pictures(root, &mut gateway, &folder);
    gateway.kill()?;
    gateway.wait()?;
    taken.map(|()| folder)
}

fn take_pictures(root: &Path, gateway: &mut Child, folder: &Path) -> io::Result<()> {
    let output = gateway.stdout.take().ok_or_else(|| io::Error::other("no output"))?;
    let mut lines = BufReader::new(output).lines().map_while(Result::ok);
    let login = lines.find(|line| line.contains("/login/link?code="));
    let login = login.ok_or_else(|| io::Error::other("quickstart printed no login link"))?;
    let input = json!({"login": login.trim(), "paths": PAGES, "folder": folder});
    let servers = std::env::var_os("PORTCULLIS_TEST_SERVERS");
    let servers = servers.map_or_else(|| root.join("target/test-servers"), PathBuf::from);
    let status = Command::new("node")
        .arg(root.join("tests/servers/console.mjs"))
        .args(["pictures", &input.to_string()])
        .env("PORTCULLIS_TEST_SERVERS", servers)
        .stdout(Stdio::null())
        .status()?;
    if status.success() { Ok(()) } else { Err(io::Error::other("node could not take them")) }
}
