//! Number of instructions of each stage of a call, compared with the stored ones.
//!
//! Counted by valgrind's callgrind, which neither other programs nor a slow machine disturb. What
//! remains is chance in hash tables, less than a hundredth, and the processor: the C library and the
//! cryptography choose their routines by it. So counts are compared only where AVX2 is, as when they
//! were stored.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

/// Hundredths, more or less, that count as unchanged.
const TOLERANCE: u64 = 4;
/// As in the bench.
const RUNS: u64 = 100;
/// Function within which instructions are counted (`--toggle-collect` of Callgrind).
const COUNTED: &str = "*stages*counted*";

type Counts = BTreeMap<String, u64>;

/// Result of the comparison.
pub(crate) struct Report {
    /// One line for each stage.
    pub(crate) lines: Vec<String>,
    /// True if all are unchanged, or nothing could be compared.
    pub(crate) holds: bool,
}

/// Counts, and compares with what is stored, or stores it.
pub(crate) fn run(root: &Path, accept: bool) -> io::Result<Report> {
    let counted = count(root)?;
    let file = root.join("crates/core/benches/stages.json");
    if accept {
        fs::write(&file, serde_json::to_string_pretty(&counted)? + "\n")?;
    }
    let stored: Counts = serde_json::from_slice(&fs::read(&file)?)?;
    let mut report = compare(&stored, &counted);
    if !like_where_they_were_stored() {
        report.lines.push("not compared: this processor has no AVX2".to_owned());
        report.holds = true;
    }
    Ok(report)
}

#[cfg(target_arch = "x86_64")]
fn like_where_they_were_stored() -> bool {
    std::is_x86_feature_detected!("avx2")
}

#[cfg(not(target_arch = "x86_64"))]
fn like_where_they_were_stored() -> bool {
    false
}

fn compare(stored: &Counts, counted: &Counts) -> Report {
    let mut report = Report { lines: Vec::new(), holds: stored.len() == counted.len() };
    for (stage, now) in counted {
        let before = stored.get(stage).copied().unwrap_or(0);
        let fits = now.abs_diff(before) * 100 <= before * TOLERANCE;
        let verdict = match (fits, *now > before) {
            (true, _) => "",
            (false, true) => "  MORE than before",
            (false, false) => "  less than before: store it with `cargo xtask counts --accept`",
        };
        report.lines.push(format!("{stage:<12} {now:>9}  stored {before:>9}{verdict}"));
        report.holds &= fits;
    }
    report
}

fn count(root: &Path) -> io::Result<Counts> {
    let program = build(root)?;
    let names = Command::new(&program).output()?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    names.lines().map(|name| Ok((name.to_owned(), count_one(&program, name)?))).collect()
}

/// Builds the bench and tells where it is.
fn build(root: &Path) -> io::Result<PathBuf> {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--profile", "counted", "--locked", "--package", "portcullis-core"])
        .args(["--bench", "stages", "--message-format", "json-render-diagnostics"])
        .current_dir(root)
        // Clippy may be the compiler of the tests; it leaves out what the optimizer does first.
        .env_remove("RUSTC_WORKSPACE_WRAPPER")
        .stderr(std::process::Stdio::inherit())
        .output()?;
    let messages = String::from_utf8_lossy(&built.stdout).into_owned();
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let stages = |message: &Value| message.pointer("/target/name") == Some(&Value::from("stages"));
    let path = messages
        .filter(stages)
        .find_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    path.ok_or_else(|| io::Error::other("the bench `stages` was not built"))
}

fn count_one(program: &Path, stage: &str) -> io::Result<u64> {
    let out = program.with_extension(format!("{stage}.callgrind"));
    let ran = Command::new("valgrind")
        .args(["--tool=callgrind", &format!("--toggle-collect={COUNTED}")])
        .arg(format!("--callgrind-out-file={}", out.display()))
        .arg(program)
        .arg(stage)
        .output()?;
    let told = fs::read_to_string(&out)?;
    fs::remove_file(&out)?;
    let totals = told.lines().find_map(|line| line.strip_prefix("totals: "));
    let counted = totals.and_then(|text| text.trim().parse::<u64>().ok()).unwrap_or(0);
    if !ran.status.success() || counted == 0 {
        let said = String::from_utf8_lossy(&ran.stderr).into_owned();
        return Err(io::Error::other(format!("counting `{stage}` failed: {said}")));
    }
    Ok(counted / RUNS)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(of: &[(&str, u64)]) -> Counts {
        of.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
    }

    #[test]
    fn more_than_the_tolerance_more_or_less_is_news() {
        let stored = counts(&[("a", 1_000), ("b", 50)]);
        for (a, holds) in [(1_000, true), (1_040, true), (1_041, false), (960, true), (959, false)]
        {
            assert_eq!(compare(&stored, &counts(&[("a", a), ("b", 50)])).holds, holds, "{a}");
        }
        assert!(!compare(&stored, &counts(&[("a", 1_000)])).holds, "a stage that is gone");
        assert!(!compare(&stored, &counts(&[("a", 1_000), ("c", 50)])).holds, "a new stage");
    }
}
