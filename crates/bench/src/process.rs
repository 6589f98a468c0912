//! Resources of a process, as the kernel counts them.

use std::{fs, time::Duration};

use crate::Failure;

/// User and system time that the process `pid` has spent so far.
pub(crate) fn cpu_time(pid: u32) -> Result<Duration, Failure> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let ticks = cpu_ticks(&stat).ok_or("the process status cannot be read")?;
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Ok(Duration::from_micros(ticks.saturating_mul(1_000_000) / per_second))
}

/// Fields 14 and 15, counted after the name, which may hold anything.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    Some(user + system)
}

/// Resident memory of the process `pid`, in KiB.
pub(crate) fn resident_kib(pid: u32) -> Result<u64, Failure> {
    memory(pid, "VmRSS:")
}

/// The most resident memory that the process `pid` has had, in KiB.
pub(crate) fn peak_kib(pid: u32) -> Result<u64, Failure> {
    memory(pid, "VmHWM:")
}

fn memory(pid: u32, name: &str) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    Ok(kib_of(&status, name).ok_or("the process status cannot be read")?)
}

fn kib_of(status: &str, name: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_found_after_a_name_with_blanks_and_parentheses() {
        let stat = "42 (a) (b c) S 1 42 42 0 -1 4194560 100 0 0 0 70 30 0 0 20 0 1 0 5 6 7";

        assert_eq!(cpu_ticks(stat), Some(100));
    }

    #[test]
    fn resident_memory_is_found_by_its_name() {
        let status = "VmHWM:\t   99 kB\nVmRSS:\t   12 kB\n";

        assert_eq!(kib_of(status, "VmRSS:"), Some(12));
        assert_eq!(kib_of(status, "VmHWM:"), Some(99));
    }

    #[test]
    fn this_process_has_used_memory() {
        assert!(resident_kib(std::process::id()).unwrap() > 0);
        cpu_time(std::process::id()).unwrap();
    }
}
