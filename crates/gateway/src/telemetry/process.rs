//! Cost of the process itself, under the names that Prometheus clients have in common.

use std::{fmt::Write, fs};

/// Unit of processor time in Linux, on every architecture (`USER_HZ`).
const TICKS_A_SECOND: u64 = 100;
/// The places of both in `/proc/self/stat`, counted after the name of the program.
const UTIME: usize = 11;
const STIME: usize = 12;
/// The place of the start, in ticks since the machine started.
const START: usize = 19;

/// In the text format of Prometheus; empty where there is no `/proc`.
pub(super) fn render() -> String {
    let mut text = String::new();
    let mut show = |name: &str, kind: &str, help: &str, value: Option<String>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        }
    };
    let stat = fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let cpu = processor_ticks(&stat).map(in_seconds);
    show("process_cpu_seconds_total", "counter", "Processor time of the process", cpu);
    let machine = fs::read_to_string("/proc/stat").unwrap_or_default();
    let began = start_ticks(&stat, &machine).map(in_seconds);
    show("process_start_time_seconds", "gauge", "Start of the process since 1970", began);
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = resident_bytes(&status).map(|bytes| bytes.to_string());
    show("process_resident_memory_bytes", "gauge", "Memory of the process", resident);
    let open = fs::read_dir("/proc/self/fd").ok().map(|files| files.count().to_string());
    show("process_open_fds", "gauge", "Files and sockets of the process", open);
    let limits = fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let most = most_files(&limits).map(|files| files.to_string());
    show("process_max_fds", "gauge", "The most files and sockets of the process", most);
    text
}

/// A field of `/proc/self/stat`. The name of the program, in parentheses, may hold anything.
fn field(stat: &str, place: usize) -> Option<u64> {
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(place)?.parse().ok()
}

/// User and system time.
fn processor_ticks(stat: &str) -> Option<u64> {
    Some(field(stat, UTIME)? + field(stat, STIME)?)
}

/// The start of the process since 1970. `machine` is `/proc/stat`, which has that of the machine.
fn start_ticks(stat: &str, machine: &str) -> Option<u64> {
    let booted = machine.lines().find_map(|line| line.strip_prefix("btime "))?;
    let booted: u64 = booted.trim().parse().ok()?;
    Some(booted * TICKS_A_SECOND + field(stat, START)?)
}

/// The soft limit of open files; `None` if there is none.
fn most_files(limits: &str) -> Option<u64> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

fn in_seconds(ticks: u64) -> String {
    format!("{}.{:02}", ticks / TICKS_A_SECOND, ticks % TICKS_A_SECOND)
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_read_as_the_kernel_writes_them() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194560 1 0 0 0 250 51 0 0 20 0 9 0 100 1 2";

        assert_eq!(processor_ticks(stat).map(in_seconds).as_deref(), Some("3.01"));
        assert_eq!(resident_bytes("VmPeak:\t 9 kB\nVmRSS:\t   12 kB\n"), Some(12_288));
        assert_eq!(processor_ticks(""), None);
        let machine = "cpu 1 2\nbtime 1700000000\n";
        assert_eq!(start_ticks(stat, machine).map(in_seconds).as_deref(), Some("1700000001.00"));
        let limits = |soft: &str| format!("Max open files            {soft}   524288   files\n");
        assert_eq!(most_files(&limits("1024")), Some(1024));
        assert_eq!(most_files(&limits("unlimited")), None);
    }

    #[test]
    fn this_process_has_all_of_them() {
        let text = render();

        for name in [
            "process_cpu_seconds_total",
            "process_start_time_seconds",
            "process_resident_memory_bytes",
            "process_open_fds",
            "process_max_fds",
        ] {
            assert!(text.contains(&format!("\n{name} ")), "{text}");
        }
    }
}
