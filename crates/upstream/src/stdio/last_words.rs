//! The first and last lines of a program's error output, and how it ended.

use std::{
    collections::VecDeque,
    os::unix::process::ExitStatusExt as _,
    process::ExitStatus,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The most lines that are kept from the beginning and the end, and the most characters of one. Some programs
/// tell the reason first, and then how they are used.
const FIRST: usize = 4;
const LAST: usize = 6;
const LONGEST: usize = 200;

/// End of the last child of a program, and lines that it wrote.
#[derive(Debug, Default)]
pub(crate) struct LastWords(Mutex<Words>);

#[derive(Debug, Default)]
struct Words {
    first: Vec<String>,
    last: VecDeque<String>,
    /// Lines between them that are not kept.
    left_out: usize,
    /// The lines are those of a Python traceback, of which the last one names the error.
    traceback: bool,
    end: Option<ExitStatus>,
    unstarted: Option<String>,
}

impl LastWords {
    fn words(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another child begins.
    pub(super) fn forget(&self) {
        *self.words() = Words::default();
    }

    /// The child wrote a line, which is shown with control characters spelled.
    pub(super) fn record_line(&self, line: &str) {
        // Marks below a line of code say nothing without it.
        if line.trim().chars().all(|letter| "^~ ".contains(letter)) {
            return;
        }
        let mut words = self.words();
        words.traceback |= line.contains("Traceback (most recent call last)");
        let line: String = line.trim().chars().take(LONGEST).collect();
        if words.first.len() < FIRST {
            words.first.push(line);
            return;
        }
        if words.last.len() == LAST {
            words.last.pop_front();
            words.left_out += 1;
        }
        words.last.push_back(line);
    }

    pub(super) fn ended(&self, status: Option<ExitStatus>) {
        self.words().end = status;
    }

    /// There was no child: this is why.
    pub(super) fn not_started(&self, why: String) {
        *self.words() = Words { unstarted: Some(why), ..Words::default() };
    }

    /// A sentence about the end of the child, if it ended, or never was.
    pub(super) fn sentence(&self) -> Option<String> {
        let words = self.words();
        if words.unstarted.is_some() {
            return words.unstarted.clone();
        }
        let status = words.end?;
        let mut told = match (status.code(), status.signal()) {
            (Some(code), _) => format!("the program ended with exit code {code}"),
            (None, Some(signal)) => format!("the program was ended by signal {signal}"),
            (None, None) => "the program ended".to_owned(),
        };
        let error = words.last.back().or(words.first.last()).filter(|_| words.traceback);
        if let Some(error) = error {
            told = format!("{told}: {error}");
        }
        if !words.first.is_empty() {
            let gap = (words.left_out > 0).then(|| "…".to_owned());
            let lines = words.first.iter().chain(&gap).chain(&words.last);
            let lines: Vec<&str> = lines.map(String::as_str).collect();
            told = format!("{told}; its words: {}", lines.join(" ⏎ "));
        }
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_with_the_first_and_last_lines_before_it() {
        let words = LastWords::default();
        for number in 0..12 {
            words.record_line(&format!("line {number}"));
        }
        words.record_line(" ");
        assert_eq!(words.sentence(), None, "it lives");

        words.ended(Some(ExitStatus::from_raw(7 << 8)));
        assert_eq!(
            words.sentence().unwrap(),
            "the program ended with exit code 7; its words: line 0 ⏎ line 1 ⏎ line 2 ⏎ line 3 ⏎ … ⏎ line 6 ⏎ \
             line 7 ⏎ line 8 ⏎ line 9 ⏎ line 10 ⏎ line 11"
        );

        words.forget();
        let traceback = "Traceback (most recent call last):\n  File \"a.py\", line 1\n    b.c\n    ~^^\nKeyError: 'c'";
        for line in traceback.lines() {
            words.record_line(line);
        }
        words.ended(Some(ExitStatus::from_raw(1 << 8)));
        assert_eq!(
            words.sentence().unwrap(),
            "the program ended with exit code 1: KeyError: 'c'; its words: Traceback (most recent call last): ⏎ \
             File \"a.py\", line 1 ⏎ b.c ⏎ KeyError: 'c'"
        );

        words.forget();
        words.ended(Some(ExitStatus::from_raw(9)));
        assert_eq!(words.sentence().unwrap(), "the program was ended by signal 9");
    }
}
