//! Everything under `/v1`.

mod invoke;
