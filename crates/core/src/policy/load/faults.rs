//! Errors in annotations.

/// Error in an annotation.
#[derive(Debug)]
pub(in crate::policy) struct Fault {
    /// The annotation at fault, without `@`.
    pub(in crate::policy) key: String,
    pub(in crate::policy) code: &'static str,
    pub(in crate::policy) message: String,
}

pub(in crate::policy) fn fault(key: &str, code: &'static str, message: String) -> Fault {
    Fault { key: key.to_owned(), code, message }
}
