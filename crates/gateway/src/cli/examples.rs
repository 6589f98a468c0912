//! Examples at the end of `--help`, for each command that takes arguments.

use clap::Command;

/// Commands, with what is typed after `portcullis` and their names; several to a command in one order.
const EXAMPLES: [(&str, &[&str]); 65] = [
    ("quickstart", &["--port 0 --data-dir /tmp/portcullis"]),
    ("serve", &["--config /etc/portcullis/portcullis.toml", "--port 0 --last-good"]),
    ("check", &["--config /etc/portcullis/portcullis.toml", "--start --json"]),
    ("ready", &["--live"]),
    ("migrate", &["", "--from /var/lib/portcullis"]),
    (
        "org create",
        &[
            "acme --plan pro",
            "acme --plan enterprise --requests-per-minute 6000 --invocations-per-minute 600",
        ],
    ),
    (
        "login",
        &["--url https://gateway.acme.example", "--url https://gateway.acme.example --no-browser"],
    ),
    ("logout", &["--url https://gateway.acme.example"]),
    ("org show", &["--org acme", "--url https://gateway.acme.example"]),
    ("org disable", &["acme"]),
    ("org enable", &["acme"]),
    ("org set-plan", &["acme --plan pro"]),
    (
        "principal create",
        &["ana --type user --role member", "ci --type service --scopes 'mcps:read mcps:invoke'"],
    ),
    ("principal set-role", &["ana --role auditor"]),
    ("principal set-groups", &["ana finance on-call", "ana --none"]),
    ("principal disable", &["ana --org acme"]),
    ("principal enable", &["ana --org acme"]),
    ("principal list", &["--org acme", "--search ana", "--url https://gateway.acme.example"]),
    ("principal key add", &["ci --key-file ci.pub.pem"]),
    ("principal key list", &["ci"]),
    ("principal key remove", &["ci --key NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs"]),
    (
        "token create",
        &["--principal ci --expires-in 30d", "--principal ana --scopes 'mcps:read' --label laptop"],
    ),
    ("token list", &["--org acme", "--search laptop"]),
    ("token inspect", &["tok_01M754BKTKX1YB8Q05NMW9TP4G", "-"]),
    ("token revoke", &["tok_01M754BKTKX1YB8Q05NMW9TP4G"]),
    ("login-link", &["--principal ana --org acme"]),
    ("session list", &["--principal ana --org acme", "--search ana"]),
    ("session end", &["ses_01M754BKTKX1YB8Q05NMW9TP4G"]),
    ("consent list", &["--org acme", "--search cursor"]),
    ("consent withdraw", &["con_01M754BKTKX1YB8Q05NMW9TP4G --org acme"]),
    ("capability list", &["--waiting", "--kind prompt,resource --provider github --json"]),
    ("capability diff", &["github:create_issue", "prompt:github:triage"]),
    ("capability accept", &["github:create_issue github:list_issues", "--provider github"]),
    ("approval list", &["--status pending --org acme"]),
    ("approval show", &["apr_01M754BKTKX1YB8Q05NMW9TP4G"]),
    ("approval approve", &["apr_01M754BKTKX1YB8Q05NMW9TP4G --reason 'ticket 4711'"]),
    ("approval deny", &["apr_01M754BKTKX1YB8Q05NMW9TP4G --reason 'wrong account'"]),
    ("client-config", &["--client claude", "--client vscode --provider github"]),
    ("trust test", &["--jwt-file token.jwt --org acme"]),
    ("policy validate", &["", "--strict --policies ./policies"]),
    ("policy list", &["--json"]),
    ("policy simulate", &["calls.yaml"]),
    ("policy test", &["", "tests/github.yaml"]),
    ("policy diff", &["", "--from ./policies-before"]),
    ("policy init", &["", "--services-read", "--add github"]),
    ("policy schema", &["", "--json"]),
    ("policy tools", &[""]),
    ("policy explain", &["evt_01M754BKTKX1YB8Q05NMW9TP4G"]),
    (
        "policy disable",
        &["no-prod --ttl 1h", "no-prod --ttl 1h --reason 4711 --url https://gateway.acme.example"],
    ),
    ("policy enable", &["no-prod"]),
    ("key new", &["", "/etc/portcullis/key"]),
    ("key rotate", &["", "--rewrap-only"]),
    (
        "audit export",
        &[
            "--org acme --from 2026-11-01T00:00:00Z --to 2026-12-01T00:00:00Z --output november.jsonl",
            "--url https://gateway.acme.example --format csv --decision deny",
        ],
    ),
    ("audit tail", &["--org acme --follow", "--org acme --decision deny --lines 50"]),
    ("audit show", &["evt_01M754BKTKX1YB8Q05NMW9TP4G"]),
    ("audit verify", &["--org acme"]),
    ("audit reindex", &["", "--org acme --check"]),
    ("audit key list", &["--org acme"]),
    ("audit key rotate", &[""]),
    ("audit key retire", &[""]),
    ("audit erase", &["--org acme --actor usr_01M754BKTKX1YB8Q05NMW9TP4G --reason 'request 4711'"]),
    ("audit hold add", &["--org acme --reason 'case 4711' --from 2026-01-01T00:00:00Z"]),
    ("audit hold list", &["--org acme"]),
    ("audit hold remove", &["hld_01M754BKTKX1YB8Q05NMW9TP4G --org acme"]),
    ("dlp scan", &["answer.json", "- --direction input --format json"]),
];

/// The command line with these examples.
pub(super) fn added_to(command: Command) -> Command {
    EXAMPLES.iter().fold(command, |command, (path, examples)| {
        let lines: Vec<String> = examples
            .iter()
            .map(|arguments| format!("  portcullis {path} {arguments}").trim_end().to_owned())
            .collect();
        let names: Vec<&str> = path.split(' ').collect();
        at(command, &names, &format!("Examples:\n{}", lines.join("\n")))
    })
}

fn at(command: Command, path: &[&str], text: &str) -> Command {
    match path {
        [] => command.after_help(text.to_owned()),
        [name, rest @ ..] => command.mut_subcommand(*name, |inner| at(inner, rest, text)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::{super::Cli, *};

    /// The words of a line as a shell has them.
    fn words(line: &str) -> Vec<String> {
        let parts = line.split('\'').enumerate();
        let words = parts.flat_map(|(at, part)| match at % 2 {
            0 => part.split_whitespace().map(str::to_owned).collect(),
            _ => vec![part.to_owned()],
        });
        words.collect()
    }

    #[test]
    fn every_example_can_be_typed() {
        for (path, examples) in EXAMPLES {
            for arguments in examples {
                let line = format!("portcullis {path} {arguments}");

                let parsed = added_to(Cli::command()).try_get_matches_from(words(&line));

                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }

    fn without_example(command: &Command, path: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name());
            let takes = inner
                .get_arguments()
                .any(|it| !["config", "json", "url", "token_file"].contains(&it.get_id().as_str()));
            let help = inner.get_after_help().map(ToString::to_string).unwrap_or_default();
            if !inner.has_subcommands() && takes && !help.contains("Example") {
                found.push(path.clone());
            }
            without_example(inner, &path, found);
        }
    }

    #[test]
    fn every_command_with_arguments_has_an_example() {
        let mut found = Vec::new();

        without_example(&added_to(Cli::command()), "portcullis", &mut found);

        assert_eq!(found, Vec::<String>::new());
    }

    const PAGE: &str = include_str!("../../../../docs/cli.md");

    /// Commands that have no commands below them, as they are typed. Hidden ones are left out.
    fn leaves(command: &Command, path: &str, found: &mut Vec<String>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let path = format!("{path} {}", inner.get_name());
            if inner.has_subcommands() {
                leaves(inner, &path, found);
            } else {
                found.push(path);
            }
        }
    }

    #[test]
    fn every_command_is_on_the_page_of_the_command_line() {
        let mut commands = Vec::new();
        leaves(&Cli::command(), "portcullis", &mut commands);

        let is_missing = |command: &String| !PAGE.contains(&format!("| `{command}` |"));
        let missing: Vec<String> = commands.into_iter().filter(is_missing).collect();

        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn every_example_of_the_page_can_be_typed() {
        let cells = PAGE.lines().filter_map(|line| line.split('|').nth(3));
        let examples = cells.map(|cell| cell.trim().trim_matches('`'));

        for line in examples.filter(|it| it.starts_with("portcullis ")) {
            let parsed = added_to(Cli::command()).try_get_matches_from(words(line));

            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
