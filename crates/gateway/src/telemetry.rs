//! Logs to stderr, metrics to a listener of their own.

mod process;

use std::io::IsTerminal as _;

use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use portcullis_core::{limits::Resource, refusal::CODES};
use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::{
    config::{Log, LogFormat},
    serve::{BindError, listen_beside, plain},
};

/// Libraries that would print what must not be printed, held to warnings whatever the filter.
const HELD: [&str; 3] = ["hyper_util=warn", "h2=warn", "tokio_postgres=warn"];

/// Begins to log. Rejects a filter that does not parse.
pub(crate) fn log(settings: &Log) -> Result<(), String> {
    let wrong = |error| format!("`log.level` is `{}`: {error}", settings.level);
    let mut filter =
        EnvFilter::try_new(&settings.level).map_err(|error| wrong(error.to_string()))?;
    for directive in HELD {
        if let Ok(directive) = directive.parse() {
            filter = filter.add_directive(directive);
        }
    }
    let registry = tracing_subscriber::registry().with(filter);
    // For people alone, unless they want none (no-color.org).
    let colours = std::io::stderr().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let layer = fmt::layer().with_writer(std::io::stderr).with_ansi(colours).with_target(true);
    match settings.format {
        LogFormat::Text => registry.with(layer.compact()).try_init(),
        LogFormat::Json => registry.with(layer.json().flatten_event(true)).try_init(),
    }
    .map_err(|error| error.to_string())
}

/// Begins to count.
pub(crate) fn metrics() -> Result<PrometheusHandle, String> {
    let handle = PrometheusBuilder::new().install_recorder().map_err(|error| error.to_string())?;
    describe_counter!("portcullis_http_requests_total", "Requests by method, route and status");
    describe_counter!("portcullis_refusals_total", "Requests that were refused, by error code");
    describe_counter!("portcullis_rate_limited_total", "Requests beyond a limit, by which");
    describe_gauge!("portcullis_connections", Unit::Count, "Connections of clients");
    describe_counter!(
        "portcullis_connections_refused_total",
        "Connections closed at once, by which limit was met"
    );
    describe_gauge!("portcullis_build_info", "1; the version stands in the label");
    gauge!("portcullis_build_info", "version" => env!("CARGO_PKG_VERSION")).set(1.0);
    start_counters();
    portcullis_app::telemetry::counters::describe();
    Ok(handle)
}

/// Starts the counters whose labels are known at zero: `increase` and `rate` do not see an event that
/// makes its own series.
fn start_counters() {
    for code in CODES {
        counter!("portcullis_refusals_total", "code" => code).increment(0);
    }
    for resource in [Resource::Requests, Resource::Invocations, Resource::Unauthenticated] {
        counter!("portcullis_rate_limited_total", "resource" => resource.as_str()).increment(0);
    }
    for limit in ["address", "node"] {
        counter!("portcullis_connections_refused_total", "limit" => limit).increment(0);
    }
}

/// Serves `/metrics` until the process ends. Fails if the port cannot be had.
pub(crate) fn serve_metrics(
    address: &str,
    handle: PrometheusHandle,
) -> Result<impl Future<Output = ()> + use<>, BindError> {
    let (listener, bound) = listen_beside(address, "server.metrics_listen")?;
    tracing::info!("metrics on http://{bound}/metrics");
    let render = move || {
        let text =
            handle.render() + &portcullis_app::telemetry::histograms::render() + &process::render();
        async move { ([("content-type", "text/plain; version=0.0.4; charset=utf-8")], text) }
    };
    let router = axum::Router::new().route("/metrics", axum::routing::get(render));
    Ok(plain(listener, router))
}
