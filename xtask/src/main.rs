//! Repository chores that are neither the product nor its tests.

use std::{
    env,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

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
screenshots takes pictures of the console of the built gateway, in each look, into
       target/screenshots. Needs node, chromium and what `./test` installs
sabotage breaks promises of docs/threat-model.md in a copy of the tree, one after the other
       (xtask/sabotages.toml), and tells which tests of the API notice; ends with status 1 if one
       that was noticed is not any more. Needs what `./test` installs, and timeout
mutants tries a fixed sample of 150 mutants with the tests of their crates, into target/mutants.out.
       Needs cargo-mutants and what `./test` installs
";

/// Lines to print, and whether everything holds.
type Outcome = (Vec<String>, bool);

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let outcome = match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["tidy"] => tidy(),
        ["counts"] => counts::run(root(), false).map(|report| (report.lines, report.holds)),
        ["counts", "--accept"] => {
            counts::run(root(), true).map(|report| (report.lines, report.holds))
        }
        ["release"] => release::run(root()).map(|path| made(&[path])),
        ["dist"] => dist::run(root(), None).map(|paths| made(&paths)),
        ["dist", "--binary", binary] => {
            dist::run(root(), Some(Path::new(binary))).map(|paths| made(&paths))
        }
        ["screenshots"] => screenshots::run(root(), &root().join("target/debug/portcullis"))
            .map(|folder| made(&[folder])),
        ["screenshots", binary] => {
            screenshots::run(root(), Path::new(binary)).map(|folder| made(&[folder]))
        }
        ["sabotage", ids @ ..] => sabotage::run(root(), ids).map(|missed| {
            let lines = missed.iter().map(|id| format!("not caught any more: {id}"));
            (lines.collect(), missed.is_empty())
        }),
        ["mutants"] => mutants::run(root()).map(|status| (Vec::new(), status.success())),
        ["help" | "--help" | "-h"] => Ok((vec![HELP.trim_end().to_owned()], true)),
        _ => Err(io::Error::other(HELP.trim_end())),
    };
    match outcome {
        Ok((lines, holds)) => {
            for line in lines {
                say(&format!("{line}\n"));
            }
            if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            say(&format!("{error}\n"));
            ExitCode::from(2)
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

fn tidy() -> io::Result<Outcome> {
    let violations = tidy::violations(root())?;
    let mut lines: Vec<String> = violations.iter().map(ToString::to_string).collect();
    lines.push(match lines.len() {
        0 => "tidy: nothing to complain about".to_owned(),
        count => format!("tidy: {count} to mend"),
    });
    Ok((lines, violations.is_empty()))
}

/// The paths of what was made.
fn made(paths: &[PathBuf]) -> Outcome {
    (paths.iter().map(|path| path.display().to_string()).collect(), true)
}

/// Writes to standard output; a reader that went away is no reason to stop.
fn say(text: &str) {
    let _ = io::stdout().lock().write_all(text.as_bytes());
}
