//! Cost of scanning: clean and dirty bodies of four sizes, the worst bodies an attacker could send,
//! and a plain memory scan of the same bytes in the same run.
//!
//! `cargo bench -p portcullis-dlp --bench dlp`

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, Throughput};
use portcullis_dlp::{Engine, FingerprintKey, Settings};
use serde_json::Value;

#[path = "../../bench/src/dlp/bodies.rs"]
mod bodies;

/// That of the gateway, so that what is measured here is what it costs there.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

struct Bench {
    engine: Engine,
    key: FingerprintKey,
}

impl Bench {
    /// Scans a body, and looks for an absent byte in the same bytes.
    fn both(&self, criterion: &mut Criterion, group: &str, name: &str, body: &Value) {
        let text = body.to_string();
        let mut group = criterion.benchmark_group(group);
        group.throughput(Throughput::Bytes(u64::try_from(text.len()).unwrap_or(u64::MAX)));
        group.sample_size(20).measurement_time(Duration::from_secs(2));
        group.bench_with_input(BenchmarkId::new("scan", name), body, |bencher, body| {
            bencher.iter(|| black_box(self.engine.scan(black_box(body), &self.key)));
        });
        group.bench_with_input(BenchmarkId::new("memory", name), &text, |bencher, text| {
            // JSON text never holds the byte 0x01.
            bencher.iter(|| black_box(memchr::memchr(1, black_box(text.as_bytes()))));
        });
        group.finish();
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let engine = Engine::new(&Settings::default()).unwrap_or_else(|error| unreachable!("{error}"));
    let bench = Bench { engine, key: FingerprintKey::new([7; 32]) };
    for size in bodies::SIZES {
        let name = format!("{} KB", size >> 10);
        bench.both(&mut criterion, "clean", &name, &bodies::clean(size));
        bench.both(&mut criterion, "dirty", &name, &bodies::dirty(size));
        bench.both(&mut criterion, "prose", &name, &bodies::prose(size));
        bench.both(&mut criterion, "webhooks", &name, &bodies::webhooks(size));
        bench.both(&mut criterion, "addresses", &name, &bodies::addresses(size));
    }
    for (name, body) in bodies::hostile() {
        bench.both(&mut criterion, "hostile", &name, &body);
    }
    criterion.final_summary();
}
