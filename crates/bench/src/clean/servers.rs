//! Answers of real MCP servers: those that the tests drive over stdio.

use std::{
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::Failure;

/// Files read through the filesystem server at most, so that a run ends.
const MOST_FILES: usize = 12_000;

/// One server on its pipes.
struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
}

/// Calls `take` with every answer: what the servers list, and what their tools say about the
/// files below the paths.
pub(super) fn each_answer(
    servers: &Path,
    paths: &[PathBuf],
    mut take: impl FnMut(&Value) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let package = |name: &str| {
        servers.join("node_modules/@modelcontextprotocol").join(name).join("dist/index.js")
    };
    let mut everything = Server::start(Command::new("node").arg(package("server-everything")))?;
    for method in ["tools/list", "resources/list", "prompts/list", "resources/templates/list"] {
        take(&everything.ask(method, &json!({}))?)?;
    }
    for (tool, arguments) in [
        ("echo", json!({ "message": "hello" })),
        ("get-sum", json!({ "a": 3, "b": 4 })),
        ("get-tiny-image", json!({})),
        ("get-structured-content", json!({ "location": "Chicago" })),
        ("get-annotated-message", json!({ "messageType": "success" })),
        ("get-resource-links", json!({ "count": 5 })),
    ] {
        take(&everything.call(tool, &arguments)?)?;
    }
    let folders = paths.iter().filter(|path| path.is_dir());
    let mut command = Command::new("node");
    command.arg(package("server-filesystem")).args(folders.clone());
    let mut filesystem = Server::start(&mut command)?;
    take(&filesystem.ask("tools/list", &json!({}))?)?;
    let mut left = MOST_FILES;
    for folder in folders {
        filesystem.read_all(folder, &mut left, &mut take)?;
    }
    Ok(())
}

impl Server {
    fn start(command: &mut Command) -> Result<Server, Failure> {
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let input = child.stdin.take().ok_or("the server has no standard input")?;
        let output =
            BufReader::new(child.stdout.take().ok_or("the server has no standard output")?);
        let mut server = Server { child, input, output, calls: 0 };
        server.ask(
            "initialize",
            &json!({
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": { "name": "portcullis-bench", "version": "0" }
            }),
        )?;
        server.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(server)
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// The result of a request, or the error in its place.
    fn ask(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.calls += 1;
        let id = self.calls;
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))?;
        let mut line = String::new();
        while self.output.read_line(&mut line)? > 0 {
            let mut message: Value = serde_json::from_str(&line)?;
            if message.get("id") == Some(&json!(id)) && message.get("method").is_none() {
                let result = message.get_mut("result").map(Value::take);
                return Ok(result.unwrap_or(message));
            }
            line.clear();
        }
        Err("the server ended before it answered".into())
    }

    fn say(&mut self, message: &Value) -> Result<(), Failure> {
        writeln!(self.input, "{message}")?;
        Ok(self.input.flush()?)
    }

    /// Lists a folder and everything below it, and reads every file.
    fn read_all(
        &mut self,
        folder: &Path,
        left: &mut usize,
        take: &mut impl FnMut(&Value) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        take(&self.call("list_directory_with_sizes", &json!({ "path": folder }))?)?;
        let mut entries: Vec<_> = std::fs::read_dir(folder)?.collect::<Result<_, _>>()?;
        entries.sort_by_key(std::fs::DirEntry::path);
        for entry in entries {
            let (path, about) = (entry.path(), entry.metadata()?);
            if about.is_dir() {
                self.read_all(&path, left, take)?;
            } else if about.is_file() && about.len() < 200_000 && *left > 0 {
                *left -= 1;
                take(&self.call("get_file_info", &json!({ "path": path }))?)?;
                take(&self.call("read_text_file", &json!({ "path": path, "head": 200 }))?)?;
            }
        }
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
