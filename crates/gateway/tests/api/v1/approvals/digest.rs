//! The digest of a call as the documentation computes it. Opens no gateway.

use std::process::Command;

const PAGE: &str = include_str!("../../../../../../docs/approvals.md");

#[test]
fn the_program_of_the_page_computes_the_digest_of_its_call() {
    let (_, rest) = PAGE.split_once("```python file=digest.py\n").expect("a program");
    let (program, _) = rest.split_once("```").expect("its end");

    let ended = Command::new("python3").args(["-c", program]).output().expect("python3");

    let told = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
    assert!(told.starts_with("sha256:7793fa2d"), "{told}");
}
