//! Settings by which the author of a file decides which code runs on the machine of the gateway: a
//! program that gets its code as an argument, and variables that put code into other programs.

/// An interpreter that takes code as an argument.
struct Interpreter {
    /// Names, without the digits of a version.
    names: &'static [&'static str],
    /// Letters of flags behind which code stands.
    letters: &'static str,
    /// Longer flags and subcommands behind which code stands, in lower case.
    words: &'static [&'static str],
    /// Flags behind which a value stands, in lower case.
    valued: &'static [&'static str],
}

const INTERPRETERS: [Interpreter; 9] = [
    Interpreter {
        names: &["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "csh", "tcsh"],
        letters: "c",
        words: &["--command", "--init-command"],
        valued: &["-o", "+o", "--rcfile", "--init-file"],
    },
    Interpreter {
        names: &["python", "pypy"],
        letters: "c",
        words: &[],
        valued: &["-w", "-x", "--check-hash-based-pycs"],
    },
    Interpreter {
        names: &["node", "nodejs", "bun", "deno"],
        letters: "ep",
        words: &["--eval", "--print", "eval"],
        valued: &["-r", "--require", "--import", "--loader", "--conditions"],
    },
    Interpreter {
        names: &["perl", "ruby", "lua", "luajit", "osascript", "julia", "rscript", "elixir"],
        letters: "eE",
        words: &["--eval"],
        valued: &["-i", "-r", "-l"],
    },
    Interpreter {
        names: &["php"],
        letters: "rBRE",
        words: &["--run"],
        valued: &["-c", "-d", "--php-ini", "--define"],
    },
    Interpreter {
        names: &["powershell", "pwsh"],
        letters: "c",
        words: &["-command", "-encodedcommand", "-enc", "-ec", "-e", "/c"],
        valued: &["-executionpolicy", "-ep", "-ex", "-windowstyle", "-w", "-version"],
    },
    Interpreter { names: &["cmd"], letters: "", words: &["/c", "/k"], valued: &[] },
    Interpreter {
        names: &["npx", "npm", "pnpx"],
        letters: "c",
        words: &["--call"],
        valued: &["-p", "--package"],
    },
    Interpreter {
        names: &["env"],
        letters: "S",
        words: &["--split-string"],
        valued: &["-u", "--unset"],
    },
];

/// Variables that programs take code, or the place of code, from.
const VARIABLES: [&str; 60] = [
    "BASHOPTS", "BASH_ENV", "BROWSER", "BUNDLE_GEMFILE", "CLASSPATH", "DOTNET_STARTUP_HOOKS",
    "EDITOR", "ENV", "GCONV_PATH", "GEM_HOME", "GEM_PATH", "GIT_ASKPASS", "GIT_EDITOR",
    "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_PROXY_COMMAND", "GIT_SEQUENCE_EDITOR",
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_TEMPLATE_DIR", "GLIBC_TUNABLES", "IFS", "JAVA_OPTS",
    "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "LUA_CPATH", "LUA_INIT", "LUA_PATH", "NODE_OPTIONS",
    "NODE_PATH", "NODE_REPL_EXTERNAL_MODULE", "OPENSSL_CONF", "OPENSSL_ENGINES", "OPENSSL_MODULES",
    "PAGER", "PATH", "PERL5DB", "PERL5LIB", "PERL5OPT", "PERLLIB", "PHPRC", "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND", "PS4", "PYTHONBREAKPOINT", "PYTHONHOME", "PYTHONINSPECT", "PYTHONPATH",
    "PYTHONSTARTUP", "PYTHONUSERBASE", "RUBYLIB", "RUBYOPT", "SHELL", "SHELLOPTS", "SSH_ASKPASS",
    "SUDO_ASKPASS", "VISUAL", "ZDOTDIR", "_JAVA_OPTIONS",
];

/// Beginnings of names of such variables: of loaders, of Git, and of where packages come from.
const FAMILIES: [&str; 12] = [
    "BASH_FUNC_", "CORECLR_", "COR_PROFILER", "DYLD_", "GIT_CONFIG", "LD_", "NPM_CONFIG_",
    "PIP_EXTRA_INDEX", "PIP_INDEX", "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX", "UV_INDEX",
];

/// Warnings for the operator about a program and the names of its variables, in words that name both.
pub(super) fn warnings<'a>(
    slug: &str,
    command: &[String],
    variables: impl Iterator<Item = &'a str>,
) -> Vec<String> {
    let code = inline_code(command).map(|call| {
        format!(
            "`{slug}` runs code that stands in its arguments, with `{call}`. Read it before the gateway \
             does."
        )
    });
    let decisive = variables.filter(|name| decides_code(name)).map(|name| {
        let name = super::secrets::quote_name(name);
        format!(
            "`{slug}` sets the variable {name}, which decides what code its programs run. Leave it \
             out unless you know what it is for."
        )
    });
    code.into_iter().chain(decisive).collect()
}

/// The interpreter and the flag behind which code stands, as in `sh -c`.
fn inline_code(command: &[String]) -> Option<String> {
    command.iter().enumerate().find_map(|(at, argument)| {
        let name = program(argument);
        let known = INTERPRETERS.iter().find(|it| it.names.contains(&&*name))?;
        let flag = known.code_flag(command.get(at + 1..).unwrap_or_default())?;
        Some(format!("{name} {flag}"))
    })
}

/// The name of a program without its folder, ending and version.
fn program(argument: &str) -> String {
    let name = argument.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    let name =
        [".exe", ".cmd", ".bat"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    name.trim_end_matches(|it: char| it.is_ascii_digit() || it == '.' || it == '-').to_owned()
}

impl Interpreter {
    /// The flag among these arguments behind which code stands. What follows the name of a script or
    /// of a package is not for the interpreter.
    fn code_flag<'a>(&self, arguments: &'a [String]) -> Option<&'a str> {
        let mut is_value = false;
        for argument in arguments {
            let word = argument.split('=').next().unwrap_or_default();
            let lower = word.to_ascii_lowercase();
            if std::mem::take(&mut is_value) {
                continue;
            }
            if self.words.contains(&&*lower) || self.has_code_letter(word) {
                return Some(word);
            }
            if !argument.starts_with(['-', '+', '/']) {
                return None;
            }
            is_value = word == argument && self.valued.contains(&&*lower);
        }
        None
    }

    /// True for a flag, or several in one argument such as `-lc`, behind which code stands.
    fn has_code_letter(&self, word: &str) -> bool {
        let letters = word.strip_prefix('-').unwrap_or_default();
        letters.len() <= 6
            && letters.bytes().all(|it| it.is_ascii_alphanumeric())
            && letters.contains(|it| self.letters.contains(it))
    }
}

fn decides_code(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    VARIABLES.contains(&&*name) || FAMILIES.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code_in(command: &str) -> Option<String> {
        let command: Vec<String> = command.split(' ').map(str::to_owned).collect();
        inline_code(&command)
    }

    #[test]
    fn code_among_the_arguments_is_seen_however_the_interpreter_is_called() {
        for (command, wanted) in [
            ("sh -c x", "sh -c"),
            ("/bin/bash -lc x", "bash -lc"),
            ("bash -o pipefail -c x", "bash -c"),
            ("bash.exe --norc -c x", "bash -c"),
            ("env -u B A=1 zsh -c x", "zsh -c"),
            ("env -S x", "env -S"),
            ("sudo -u me sh -c x", "sh -c"),
            ("busybox sh -c x", "sh -c"),
            ("docker run -i --rm alpine sh -c x", "sh -c"),
            ("python3.12 -I -c x", "python -c"),
            ("python -W ignore -Ic x", "python -Ic"),
            ("node -e x", "node -e"),
            ("node --require a -pe x", "node -pe"),
            ("node --eval=x", "node --eval"),
            ("deno eval x", "deno eval"),
            ("perl -ne x", "perl -ne"),
            ("ruby -r a -e x", "ruby -e"),
            ("php -r x", "php -r"),
            ("pwsh -ExecutionPolicy Bypass -Command x", "pwsh -Command"),
            ("powershell.exe -EncodedCommand x", "powershell -EncodedCommand"),
            ("cmd /c x", "cmd /c"),
            ("npx -y -p a -c x", "npx -c"),
        ] {
            assert_eq!(code_in(command).as_deref(), Some(wanted), "{command}");
        }
    }

    #[test]
    fn programs_with_flags_of_their_own_are_left_alone() {
        for command in [
            "npx -y server -c config.json",
            "npx -y mcp-server-files /srv",
            "uvx mcp-db -e production",
            "node server.js -e production",
            "node --inspect server.js",
            "python -m server -c x",
            "python server.py -c x",
            "bash start.sh -c x",
            "docker run -i --rm -e BOX_TOKEN mcp/box",
            "shell-server -c x",
            "sh",
            "",
        ] {
            assert_eq!(code_in(command), None, "{command}");
        }
    }

    #[test]
    fn variables_that_decide_about_code_are_told_from_others() {
        let names = "LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES PATH Path NODE_OPTIONS \
            PYTHONSTARTUP PYTHONPATH BASH_ENV BASH_FUNC_x%% PERL5OPT RUBYOPT GIT_SSH_COMMAND \
            npm_config_registry";
        for name in names.split(' ') {
            assert!(decides_code(name), "{name}");
        }
        for name in
            ["LOG_LEVEL", "API_KEY", "FILES_PATH", "PORT", "NODE_ENV", "PATHS", "GITHUB_TOKEN"]
        {
            assert!(!decides_code(name), "{name}");
        }
    }
}
