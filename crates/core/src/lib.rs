//! .
pub mod dlp;
