//! "Only" rules: what only some places may name. Clocks are a rule of clippy.toml.

use super::{
    Violation,
    code::before_tests,
    paths::{code_of, named},
    repository::{File, Repository},
};

/// Something that only some places may name.
struct Wall {
    patterns: &'static [&'static str],
    /// Places that may name them: beginnings of file paths.
    only: &'static [&'static str],
    remedy: &'static str,
}

const WALLS: [Wall; 4] = [
    Wall {
        patterns: &["rusqlite", "tokio_postgres"],
        only: &["crates/store/", "crates/bench/", "crates/app/tests/"],
        remedy: "only store knows SQL: give it a function of its own there",
    },
    Wall {
        patterns: &["reqwest"],
        only: &["crates/testkit/", "crates/bench/", GATEWAY_TESTS],
        remedy: "only upstream dials out, with its `HttpClient`: ask it",
    },
    Wall {
        patterns: &["hyper::client", "hyper_util::client"],
        only: &["crates/upstream/", "crates/testkit/", "crates/bench/", GATEWAY_TESTS],
        remedy: "only upstream dials out: ask it",
    },
    Wall {
        patterns: &["tokio::process", "process::Command"],
        only: &[
            "crates/upstream/", "crates/testkit/", "crates/bench/", "xtask/", CORE_BENCHES,
            GATEWAY_TESTS,
        ],
        remedy: "only upstream starts processes: ask it",
    },
];

/// Benches unpack archives; nothing else of core starts a program.
const CORE_BENCHES: &str = "crates/core/benches/";
const GATEWAY_TESTS: &str = "crates/gateway/tests/";

/// Finds walled-in paths outside their walls; inline tests are free.
pub(crate) fn check(repository: &Repository) -> Vec<Violation> {
    repository.rust().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Violation> {
    let code = code_of(before_tests(&file.text));
    let paths = named(&code);
    let mut found = Vec::new();
    for wall in WALLS.iter().filter(|wall| !wall.only.iter().any(|p| file.path.starts_with(p))) {
        for path in &paths {
            if let Some(pattern) = wall.patterns.iter().find(|pattern| path.contains(pattern)) {
                let what = format!("names `{pattern}`");
                found.push(Violation::new(&file.path, path.line, what, wall.remedy));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut found = check(&Repository::of(&[(path, text)]));
        found.sort();
        found.into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn sql_outside_store_is_found_at_its_line() {
        assert_eq!(lines("crates/app/src/a.rs", "//! A.\nuse rusqlite::Connection;\n"), [2]);
        assert!(lines("crates/store/src/a.rs", "use rusqlite::Connection;\n").is_empty());
    }

    #[test]
    fn a_word_in_a_comment_or_string_names_nothing() {
        assert!(
            lines("crates/app/src/a.rs", "// rusqlite::Connection\nlet a = \"reqwest::get\";")
                .is_empty()
        );
    }

    #[test]
    fn grouped_processes_and_clients_are_found() {
        let text = "use tokio::{process::Command, sync::mpsc};\nuse hyper_util::client::legacy;\n";

        assert_eq!(lines("crates/gateway/src/a.rs", text), [1, 2]);
    }

    #[test]
    fn an_exit_status_is_not_a_process() {
        assert!(lines("crates/gateway/src/main.rs", "use std::process::ExitCode;").is_empty());
    }

    #[test]
    fn inline_tests_may_dial_and_the_quickstart_asks_upstream() {
        let tests = "fn f() {}\n#[cfg(test)]\nmod tests { use reqwest::Client; }\n";

        assert!(lines("crates/app/src/a.rs", tests).is_empty());
        for path in ["crates/gateway/src/cli/quickstart.rs", "crates/upstream/src/a.rs"] {
            assert_eq!(lines(path, "use reqwest::Client;"), [1], "{path}");
        }
    }
}
