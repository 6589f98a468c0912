//! A policy folder of the size that figures are quoted for.

use std::fmt::Write as _;

/// Permits whatever the server offers.
pub(crate) const PERMIT_READS: &str = "\n@id(\"bench-reads\")\npermit (principal is Mcp::Service, \
     action in Mcp::Action::\"provider:bench\", resource);\n";

/// One policy that permits the call and `others` that do not forbid it: some never match its
/// principal or tool, some do and ask what DLP found.
pub(crate) fn permit_and(others: usize) -> String {
    let mut text = String::from(
        "@id(\"bench-echo\")\n@title(\"Services may call the echo\")\n\
         permit (principal is Mcp::Service, action == Mcp::Action::\"bench:echo\", resource);\n",
    );
    for number in 1..=others {
        let (scope, condition) = match number % 10 {
            0 => (
                "principal is Mcp::Service, action in Mcp::Action::\"bench:*\", resource",
                "context.dlp.findings.contains(\"private_key\")",
            ),
            1 | 2 => (
                "principal, action in Mcp::Action::\"hint:destructive\", resource",
                "context.dlp.count > 0",
            ),
            3 | 4 => (
                "principal is Mcp::User, action in Mcp::Action::\"bench:*\", resource",
                "context.request.bytes > 65536",
            ),
            _ => (
                "principal in Mcp::Group::\"team-NUMBER\", action in Mcp::Action::\"bench:*\", resource",
                "context.request.bytes > 1024",
            ),
        };
        let scope = scope.replace("NUMBER", &number.to_string());
        let _ = write!(
            text,
            "\n@id(\"bench-{number:03}\")\n@reason(\"Rule {number} of the benchmark\")\n\
             forbid ({scope})\nwhen {{ {condition} }};\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_has_an_id_of_its_own() {
        let text = permit_and(99);

        let mut ids: Vec<_> = text.lines().filter(|line| line.starts_with("@id(")).collect();
        assert_eq!(ids.len(), 100);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 100);
    }
}
