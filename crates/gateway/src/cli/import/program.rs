//! Entries with a command: programs that speak MCP over stdio.

use super::{
    http::Remote,
    imported::Imported,
    members::{Members, SSE},
    risks,
    secrets::{Detectors, is_expanded, is_secret_name, quote_name, quoted},
    variables::default_of,
};

/// A program as a client starts it.
#[derive(Debug)]
pub(super) struct Program {
    command: Vec<String>,
    env: Vec<(String, String)>,
    cwd: Option<String>,
}

impl Program {
    pub(super) fn read(members: &mut Members) -> Result<Self, String> {
        let command = members.text("command")?.unwrap_or_default();
        let mut command = vec![command];
        command.extend(members.texts("args")?);
        let mut env = members.pairs("env")?;
        for name in members.texts("env_vars")? {
            env.push((name.clone(), format!("${{{name}}}")));
        }
        if members.left.remove("envFile").is_some() {
            return Err("its `envFile` is not read; name the variables in `env`".to_owned());
        }
        let cwd = members.text("cwd")?;
        let mut program = Self { command, env, cwd };
        program.leave_windows();
        program.name_variables_of_containers();
        Ok(program)
    }

    fn name(&self) -> &str {
        let first = self.command.first().map(String::as_str).unwrap_or_default();
        let last = first.rsplit(['/', '\\']).next().unwrap_or_default();
        last.trim_end_matches(".exe").trim_end_matches(".cmd")
    }

    /// `cmd /c npx …` is `npx …` where there is no `cmd`.
    fn leave_windows(&mut self) {
        let is_shell = self.name() == "cmd"
            && self.command.get(1).is_some_and(|it| it.eq_ignore_ascii_case("/c"));
        if is_shell && self.command.len() > 2 {
            self.command.drain(..2);
        }
    }

    /// `docker run -e NAME=VALUE` becomes `docker run -e NAME`, which takes the value from the environment.
    fn name_variables_of_containers(&mut self) {
        if !matches!(self.name(), "docker" | "podman") {
            return;
        }
        let mut names_variable = false;
        for argument in self.command.iter_mut().skip(1) {
            let joined = argument.strip_prefix("--env=").map(str::to_owned);
            let is_joined = joined.is_some();
            let pair = joined.or_else(|| names_variable.then(|| argument.clone()));
            names_variable = matches!(argument.as_str(), "-e" | "--env");
            let Some((name, value)) = pair.as_deref().and_then(|it| it.split_once('=')) else {
                continue;
            };
            // `-e NAME=${NAME}` passes the variable on that `env` sets.
            let known = self.env.iter().any(|(known, _)| known == name);
            if !known {
                self.env.push((name.to_owned(), value.to_owned()));
            }
            *argument = if is_joined { format!("--env={name}") } else { name.to_owned() };
        }
    }

    /// The server behind `npx mcp-remote URL`: the gateway speaks to it without a program between.
    pub(super) fn bridged(&self) -> Result<Option<Remote>, String> {
        let is_bridge = |it: &String| it == "mcp-remote" || it.starts_with("mcp-remote@");
        let Some(bridge) = self.command.iter().position(is_bridge) else { return Ok(None) };
        let mut arguments = self.command.iter().skip(bridge + 1);
        let mut url = None;
        let mut headers = Vec::new();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--header" => {
                    headers.extend(arguments.next().map(|it| self.header(it)).transpose()?);
                }
                "--transport" if arguments.next().is_some_and(|it| it == "sse-only") => {
                    return Err(SSE.to_owned());
                }
                other if other.starts_with("http") => url = url.or(Some(other.to_owned())),
                _ => {}
            }
        }
        let Some(url) = url else {
            return Err("`mcp-remote` is called without an address".to_owned());
        };
        let logs_in = headers.is_empty();
        Ok(Some(Remote { url, headers, logs_in }))
    }

    /// `Name: value`, with the variable of this entry that the value names.
    fn header(&self, text: &str) -> Result<(String, String), String> {
        let (name, value) = text
            .split_once(':')
            .ok_or("a `--header` of `mcp-remote` is not of the form `Name: value`")?;
        let value = value.trim();
        let own = self.env.iter().find(|(name, _)| value == format!("${{{name}}}"));
        Ok((name.trim().to_owned(), own.map_or(value, |(_, value)| value).to_owned()))
    }

    /// Writes the program.
    pub(super) fn import(
        self,
        imported: &mut Imported<'_>,
        detectors: &Detectors,
    ) -> Result<(), String> {
        if self.name().is_empty() {
            return Err("its `command` is empty".to_owned());
        }
        self.check_arguments(detectors)?;
        let names = self.env.iter().map(|(name, _)| name.as_str());
        imported.warnings = risks::warnings(&imported.slug, &self.command, names);
        let command: Vec<_> = self.command.iter().map(|it| quoted(it)).collect();
        imported.set("command", &format!("[{}]", command.join(", ")));
        if let Some(cwd) = &self.cwd {
            if is_expanded(cwd) || detectors.suspect(cwd) {
                return Err("its `cwd` is not a plain path; write the path itself".to_owned());
            }
            imported.set("cwd", &quoted(cwd));
        }
        let mut env = Vec::new();
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err("its `env` has a name that no variable can have".to_owned());
            }
            let what = format!("the variable {} of the program", quote_name(name));
            let default = default_of(value).filter(|it| detectors.is_plain_default(name, it));
            let value = match default {
                Some(default) => imported.refer_or(value, default, &what),
                None if detectors.is_plain(name, value) => quoted(value),
                None => imported.refer(name, value, &what),
            };
            env.push(format!("{} = {value}", quoted(name)));
        }
        if !env.is_empty() {
            imported.set("env", &format!("{{ {} }}", env.join(", ")));
        }
        Ok(())
    }

    /// Arguments are written as they are and seen by everybody on the machine, so none may be secret.
    fn check_arguments(&self, detectors: &Detectors) -> Result<(), String> {
        let mut before = "";
        for (number, argument) in self.command.iter().enumerate() {
            if is_expanded(argument) {
                return Err(format!(
                    "its argument {number} names a variable, which the gateway puts into no argument; \
                     write the value itself, or have the program take it from `env`"
                ));
            }
            let (flag, value) = argument.split_once('=').unwrap_or((argument, ""));
            let is_value =
                before.starts_with('-') && is_secret_flag(before) && !argument.starts_with("--");
            let has_value = !value.is_empty() && is_secret_flag(flag);
            if is_value || has_value || detectors.suspect(argument) {
                return Err(format!(
                    "its argument {number} seems to be secret, and arguments are seen by everybody on the \
                     machine; have the program take it from `env`, or start it by a script of your own"
                ));
            }
            before = argument;
        }
        Ok(())
    }
}

/// `--api-key` and its like; not `--key-file`, whose value is a path.
fn is_secret_flag(flag: &str) -> bool {
    let name = flag.trim_start_matches('-').to_ascii_lowercase();
    let is_path = ["file", "path", "dir"].iter().any(|end| name.ends_with(end));
    let is_header = flag == "-H" || name == "header";
    is_header
        || (name.len() < 40
            && !is_path
            && (flag.starts_with('-')
                || flag.chars().all(|it| it.is_ascii_uppercase() || it == '_'))
            && is_secret_name(&name))
}
