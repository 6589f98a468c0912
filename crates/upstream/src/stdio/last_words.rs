//! The last lines of a program's error output, and how it ended.

use std::{
    collections::VecDeque,
    fmt::Write as _,
    os::unix::process::ExitStatusExt as _,
    process::ExitStatus,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// The most lines that are kept, and the most characters of one.
const LINES: usize = 5;
const LONGEST: usize = 200;

/// End of the last child of a program, and the last lines that it wrote.
#[derive(Debug, Default)]
pub(crate) struct LastWords(Mutex<Words>);

#[derive(Debug, Default)]
struct Words {
    lines: VecDeque<String>,
    end: Option<ExitStatus>,
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
    pub(super) fn said(&self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let mut words = self.words();
        if words.lines.len() == LINES {
            words.lines.pop_front();
        }
        words.lines.push_back(line.chars().take(LONGEST).collect());
    }

    pub(super) fn ended(&self, status: Option<ExitStatus>) {
        self.words().end = status;
    }

    /// A sentence about the end of the child, if it ended.
    pub(super) fn told(&self) -> Option<String> {
        let words = self.words();
        let status = words.end?;
        let mut told = match (status.code(), status.signal()) {
            (Some(code), _) => format!("the program ended with exit code {code}"),
            (None, Some(signal)) => format!("the program was ended by signal {signal}"),
            (None, None) => "the program ended".to_owned(),
        };
        if !words.lines.is_empty() {
            told.push_str("; its last words:");
            for line in &words.lines {
                // Writing to a string cannot fail.
                let _ = write!(told, " {line} ⏎");
            }
            told.truncate(told.len() - " ⏎".len());
        }
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_is_told_with_the_last_lines_before_it() {
        let words = LastWords::default();
        for number in 0..9 {
            words.said(&format!("line {number}"));
        }
        words.said(" ");
        assert_eq!(words.told(), None, "it lives");

        words.ended(Some(ExitStatus::from_raw(7 << 8)));
        assert_eq!(
            words.told().unwrap(),
            "the program ended with exit code 7; its last words: line 4 ⏎ line 5 ⏎ line 6 ⏎ line 7 ⏎ \
             line 8"
        );

        words.forget();
        words.ended(Some(ExitStatus::from_raw(9)));
        assert_eq!(words.told().unwrap(), "the program was ended by signal 9");
    }
}
