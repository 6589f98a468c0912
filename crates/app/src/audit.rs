//! The audit log: events, their signed log, exports, copies and retention.

pub(crate) mod accesses;
pub(crate) mod anchors;
pub(crate) mod coalesced;
pub(crate) mod counts;
pub(crate) mod events;
pub(crate) mod evidence;
pub(crate) mod exports;
pub(crate) mod faults;
pub(crate) mod holds;
pub(crate) mod late;
pub(crate) mod log;
mod mismatches;
pub(crate) mod outcome;
mod pace;
pub(crate) mod proven;
mod repeats;
pub(crate) mod retention;
pub(crate) mod sinks;

use std::sync::Arc;

use portcullis_core::audit::keyring::Keyring;
use portcullis_store::AuditWriter;
use tokio::sync::Mutex;

use self::{
    accesses::{Accessed, no_looks},
    anchors::Anchors,
    coalesced::{Coalesced, no_refusals},
    exports::{ExportLimits, Folder, files::Exports},
    late::LateEvents,
    log::LogSigner,
    mismatches::Mismatches,
    retention::{LogStates, Retention},
    sinks::SinkSettings,
};
use crate::{base::Base, request::screening::Screening, telemetry::counters};

/// Settings and parts of the audit log.
#[derive(Debug)]
pub struct AuditParts {
    /// The one writer of this node's audit records.
    pub writer: AuditWriter,
    /// Origin of the logs: the public host of this installation.
    pub log_host: String,
    pub log_keys: Keyring,
    pub anchors: Anchors,
    pub retention: Retention,
    pub exports: Folder,
    pub export_limits: ExportLimits,
    /// Receivers of copies of events.
    pub sinks: Vec<SinkSettings>,
}

impl AuditParts {
    /// The log of a process that signs and exports nothing.
    pub(crate) fn bare(writer: AuditWriter, log_keys: Keyring) -> Self {
        Self {
            writer,
            log_host: String::new(),
            log_keys,
            anchors: Anchors::default(),
            retention: Retention::default(),
            exports: Folder::none(),
            export_limits: ExportLimits::default(),
            sinks: Vec::new(),
        }
    }
}

/// The audit log of a node.
#[derive(Debug)]
pub struct Audit {
    pub(crate) base: Arc<Base>,
    screening: Arc<Screening>,
    pub(crate) writer: AuditWriter,
    pub(crate) log: LogSigner,
    pub(crate) anchors: Anchors,
    retention: Retention,
    /// State of each log, as retention knows it.
    states: Mutex<LogStates>,
    pub(crate) exports: Exports,
    sinks: Vec<SinkSettings>,
    pub(crate) late_events: LateEvents,
    coalesced: Coalesced,
    accessed: Accessed,
    mismatches: Mismatches,
}

impl Audit {
    pub(crate) fn new(base: Arc<Base>, screening: Arc<Screening>, parts: AuditParts) -> Self {
        for sink in &parts.sinks {
            counters::start_sink(&sink.name);
        }
        Self {
            log: LogSigner::new(
                parts.log_host,
                Arc::clone(&base.clock),
                Arc::clone(&base.random),
                parts.log_keys,
            ),
            base,
            screening,
            writer: parts.writer,
            anchors: parts.anchors,
            retention: parts.retention,
            states: Mutex::default(),
            exports: Exports::new(parts.exports, parts.export_limits),
            sinks: parts.sinks,
            late_events: LateEvents::default(),
            coalesced: no_refusals(),
            accessed: no_looks(),
            mismatches: Mismatches::default(),
        }
    }
}
