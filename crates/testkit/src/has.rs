//! `has!`: a row of what an answer, or a part of one, has to be.

use std::fmt;

use serde_json::Value;

use crate::Answer;

/// Something with values at JSON pointers.
pub trait Pointed {
    fn value(&self) -> &Value;

    /// HTTP status of an answer.
    fn status(&self) -> Option<u16> {
        None
    }

    /// All of it, for a message.
    fn shown(&self) -> String {
        self.value().to_string()
    }
}

impl Pointed for Answer {
    fn value(&self) -> &Value {
        &self.json
    }

    fn status(&self) -> Option<u16> {
        Some(self.status.as_u16())
    }

    fn shown(&self) -> String {
        format!("{} {}", self.status, self.text)
    }
}

impl Pointed for Value {
    fn value(&self) -> &Value {
        self
    }
}

impl<T: Pointed> Pointed for &T {
    fn value(&self) -> &Value {
        (*self).value()
    }

    fn status(&self) -> Option<u16> {
        (*self).status()
    }

    fn shown(&self) -> String {
        (*self).shown()
    }
}

/// Fails with every difference and all that was found unless it has this status, and each of these
/// values at its pointer; `null` stands for none. `context` names the row of a table.
#[track_caller]
pub fn assert_has(
    context: fmt::Arguments<'_>,
    found: &impl Pointed,
    status: Option<u16>,
    wanted: &Value,
) {
    let value = found.value();
    let at = |pointer: &str| value.pointer(pointer).unwrap_or(&Value::Null);
    let rows = wanted.as_object().into_iter().flatten();
    let mut faults: Vec<String> = rows
        .filter(|(pointer, wanted)| at(pointer) != *wanted)
        .map(|(pointer, wanted)| format!("`{pointer}` is {}, not {wanted}", at(pointer)))
        .collect();
    if status.is_some() && status != found.status() {
        faults.push(format!("the status is {:?}, not {status:?}", found.status()));
    }
    assert!(faults.is_empty(), "{context}: {} in {}", faults.join("; "), found.shown());
}

/// Fails unless an answer has a status, an error code, and values at JSON pointers: all that is named, in
/// this order, as in `has!(answer, 400 "invalid_request", "/error/details/parameter": "limit")`. A row of a
/// table names itself before it, as in `has!("{path}"; answer, 404)`.
#[macro_export]
macro_rules! has {
    ($context:literal; $found:expr, $status:literal $code:literal $(, $($rows:tt)*)?) => {{
        let rows = ::serde_json::json!({"/error/code": $code, $($($rows)*)?});
        $crate::assert_has(format_args!($context), &$found, Some($status), &rows)
    }};
    ($context:literal; $found:expr, $status:literal $(, $($rows:tt)*)?) => {
        $crate::assert_has(format_args!($context), &$found, Some($status), &::serde_json::json!({$($($rows)*)?}))
    };
    ($context:literal; $found:expr, $($rows:tt)+) => {
        $crate::assert_has(format_args!($context), &$found, None, &::serde_json::json!({$($rows)+}))
    };
    ($($row:tt)+) => {
        $crate::has!("the answer"; $($row)+)
    };
}
