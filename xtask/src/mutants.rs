//! A sample of mutants, chosen by the hashes of their names: it stays the same while lines move.

use std::{collections::BTreeMap, io, path::Path, process};

const SEED: u64 = 20_261_128;
const SAMPLE: usize = 150;
const CRATES: [&str; 6] = ["core", "dlp", "json", "store", "app", "upstream"];

/// Tries the sample; results are in `target/mutants.out`.
pub(crate) fn run(root: &Path) -> io::Result<process::ExitStatus> {
    let listed = mutants(root).arg("--list").output()?;
    let chosen = choose(&String::from_utf8_lossy(&listed.stdout));
    if chosen.is_empty() {
        return Err(io::Error::other(String::from_utf8_lossy(&listed.stderr)));
    }
    let mut command = mutants(root);
    command.args(["--output", "target"]);
    command.args(chosen.iter().flat_map(|pattern| ["--re", pattern.as_str()])).status()
}

fn mutants(root: &Path) -> process::Command {
    let mut command = process::Command::new(env!("CARGO"));
    command.arg("mutants").current_dir(root);
    command.args(CRATES.map(|name| format!("--package=portcullis-{name}")));
    command
}

/// Patterns of the chosen ones among lines of the form `FILE:LINE:COLUMN: CHANGE`.
fn choose(listed: &str) -> Vec<String> {
    let mut by_hash = BTreeMap::new();
    for line in listed.lines() {
        if let [file, _, _, change] = line.splitn(4, ':').collect::<Vec<_>>().as_slice() {
            by_hash.entry(hash(&format!("{file}:{change}"))).or_insert(line);
        }
    }
    let escaped =
        |it: char| if r"\.+*?()|[]{}^$".contains(it) { format!("\\{it}") } else { it.into() };
    let pattern = |line: &&str| format!("^{}$", line.chars().map(escaped).collect::<String>());
    by_hash.values().take(SAMPLE).map(pattern).collect()
}

/// FNV-1a, with its low bits mixed into the high ones, by which they are ordered.
fn hash(name: &str) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    name.bytes().fold(SEED, step).wrapping_mul(0xff51_afd7_ed55_8ccd).swap_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_move_change_nothing_but_their_numbers() {
        let before = choose("crates/a.rs:1:2: replace f -> (u8) with 1\nno mutant\n");
        let after = choose("crates/a.rs:7:2: replace f -> (u8) with 1\n");
        assert_eq!(before, [r"^crates/a\.rs:1:2: replace f -> \(u8\) with 1$"]);
        assert_eq!(after, [before[0].replace(":1:", ":7:")]);
    }
}
