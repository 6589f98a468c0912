//! Repository chores that are neither the product nor its tests.

use std::{env, io::Write as _, path::Path, process::ExitCode};

mod advisories;
mod counts;
mod dist;
mod mutants;
mod release;
mod sabotage;
mod screenshots;
mod tidy;

const HELP: &str = "\
Usage: cargo xtask tidy
       cargo xtask counts [--accept]
       cargo xtask release
       cargo xtask dist [--binary FILE]
       cargo xtask advisories FOLDER
       cargo xtask screenshots [BINARY]
       cargo xtask sabotage [ID…]
       cargo xtask mutants

tidy   checks the rules of this repository that the compiler cannot check;
       prints one line per violation and ends with status 1 if there is any
counts counts the instructions that each stage of a governed call takes (with
       valgrind) and ends with status 1 if they are 4 % more or less than those in
       crates/core/benches/stages.json; --accept stores them there
release builds the gateway, lets its benchmark call it, and builds it once more for what
       the calls have shown to run often; prints where it is. Takes three times as
       long as `cargo build --profile shipped`, and needs llvm-profdata of the
       compiler's LLVM
dist   makes what is published of a release, for this machine, in target/dist: an archive, a Debian
       package, an SBOM, their checksums, and the files of the container image; --binary takes
       a gateway that is already built. Needs GNU tar and dpkg-deb
advisories writes xtask/advisories.toml, which `tidy` checks Cargo.lock against, anew from a
       checkout of the RustSec database (github.com/rustsec/advisory-db) in FOLDER
screenshots takes pictures of the console of the built gateway, in each look, into
       target/screenshots. Needs node, chromium and what `./test` installs
sabotage breaks promises of docs/threat-model.md in a copy of the tree, one after the other
       (xtask/sabotages.toml), and tells which tests of the API notice; ends with status 1 if one
       that was noticed is not any more. Needs what `./test` installs, and timeout
mutants tries a fixed sample of 150 mutants with the tests of their crates, into target/mutants.out.
       Needs cargo-mutants and what `./test` installs
";

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => run_tidy(),
        ["counts"] => run_counts(false),
        ["counts", "--accept"] => run_counts(true),
        ["release"] => run_release(),
        ["dist"] => run_dist(None),
        ["dist", "--binary", binary] => run_dist(Some(Path::new(binary))),
        ["advisories", database] => run_advisories(Path::new(database)),
        ["sabotage", ids @ ..] => run_sabotage(ids),
        ["mutants"] => run_mutants(),
        ["screenshots"] => run_screenshots(&root().join("target/debug/portcullis")),
        ["screenshots", binary] => run_screenshots(Path::new(binary)),
        ["help" | "--help" | "-h"] => {
            say(HELP);
            ExitCode::SUCCESS
        }
        _ => {
            say(HELP);
            ExitCode::from(2)
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

fn run_counts(accept: bool) -> ExitCode {
    match counts::run(root(), accept) {
        Ok(report) => {
            report.lines.iter().for_each(|line| say(&format!("{line}\n")));
            if report.holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            say(&format!("the instructions cannot be counted: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn run_release() -> ExitCode {
    match release::run(root()) {
        Ok(path) => {
            say(&format!("{}\n", path.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("the gateway cannot be built: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn run_dist(binary: Option<&Path>) -> ExitCode {
    match dist::run(root(), binary) {
        Ok(made) => {
            for path in made {
                say(&format!("{}\n", path.display()));
            }
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("the release cannot be made: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn run_screenshots(binary: &Path) -> ExitCode {
    match screenshots::run(root(), binary) {
        Ok(folder) => {
            say(&format!("{}\n", folder.display()));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("the pictures cannot be taken: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn run_sabotage(ids: &[&str]) -> ExitCode {
    match sabotage::run(root(), ids) {
        Ok(missed) if missed.is_empty() => ExitCode::SUCCESS,
        Ok(missed) => {
            say(&format!("not caught any more: {}\n", missed.join(", ")));
            ExitCode::FAILURE
        }
        Err(error) => {
            say(&format!("the sabotages cannot be tried: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn run_mutants() -> ExitCode {
    match mutants::run(root()) {
        Ok(status) if status.success() => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            say(&format!("the mutants cannot be tried: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn run_advisories(database: &Path) -> ExitCode {
    match advisories::refresh(root(), database) {
        Ok(count) => {
            say(&format!("{}: {count} advisories\n", advisories::TABLE));
            ExitCode::SUCCESS
        }
        Err(error) => {
            say(&format!("the advisories cannot be read: {error}\n"));
            ExitCode::from(2)
        }
    }
}

fn run_tidy() -> ExitCode {
    let violations = match tidy::violations(root()) {
        Ok(violations) => violations,
        Err(error) => {
            say(&format!("tidy cannot read the repository: {error}\n"));
            return ExitCode::from(2);
        }
    };
    for violation in &violations {
        say(&format!("{violation}\n"));
    }
    match violations.len() {
        0 => {
            say("tidy: nothing to complain about\n");
            ExitCode::SUCCESS
        }
        count => {
            say(&format!("tidy: {count} to mend\n"));
            ExitCode::FAILURE
        }
    }
}

/// Writes to standard output; a reader that went away is no reason to stop.
fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
