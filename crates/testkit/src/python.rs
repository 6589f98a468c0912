//! Programs in Python.

use std::{ffi::OsStr, process::Command};

use crate::programs::printed_by;

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
    let printed = printed_by(python.args(["-B", "-c", program]).args(arguments));
    String::from_utf8_lossy(&printed).into_owned()
}
