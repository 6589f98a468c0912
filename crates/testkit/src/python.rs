//! Programs in Python.

use std::{ffi::OsStr, process::Command};

/// Runs the text of a program with these arguments, and gives what it printed.
///
/// # Panics
///
/// If it fails.
#[must_use]
pub fn run_python<A: AsRef<OsStr>>(
    program: &str,
    arguments: impl IntoIterator<Item = A>,
) -> String {
    let mut python = Command::new("python3");
    let output = python.args(["-B", "-c", program]).args(arguments).output().expect("python3");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "a program in Python failed: {error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
