//! `POST /v1/mcps/{id}/invoke`: every way a call can end, in the order of its steps.

mod before;
mod crowded;
mod decided;
mod encrypted;
mod fair;
mod forms;
mod hangups;
mod hostile;
mod idempotency;
mod isolation;
mod notices;
mod obligations;
pub(super) mod records;
mod remarks;
mod results;
mod upstream;
mod values;
