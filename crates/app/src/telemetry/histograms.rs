//! Durations as histograms of fixed buckets. An observation costs some nanoseconds and no memory,
//! whether anybody reads them or not.

use std::{
    array,
    cell::Cell,
    fmt::Write,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
    },
};

use portcullis_core::clock::Timestamp;

/// Upper bound of a bucket in microseconds, and the same in seconds as it is shown.
type Bound = (u64, &'static str);

/// The most buckets with a bound.
const MOST: usize = 20;

/// Bounds for work of machines.
pub static MOMENTS: [Bound; MOST] = [
    (10, "0.00001"),
    (25, "0.000025"),
    (50, "0.00005"),
    (100, "0.0001"),
    (250, "0.00025"),
    (500, "0.0005"),
    (1_000, "0.001"),
    (2_500, "0.0025"),
    (5_000, "0.005"),
    (10_000, "0.01"),
    (25_000, "0.025"),
    (50_000, "0.05"),
    (100_000, "0.1"),
    (250_000, "0.25"),
    (500_000, "0.5"),
    (1_000_000, "1"),
    (2_500_000, "2.5"),
    (5_000_000, "5"),
    (10_000_000, "10"),
    (30_000_000, "30"),
];

/// Bounds for decisions of people.
pub static DAYS: [Bound; 14] = [
    (1_000_000, "1"),
    (5_000_000, "5"),
    (15_000_000, "15"),
    (60_000_000, "60"),
    (120_000_000, "120"),
    (300_000_000, "300"),
    (600_000_000, "600"),
    (1_800_000_000, "1800"),
    (3_600_000_000, "3600"),
    (14_400_000_000, "14400"),
    (43_200_000_000, "43200"),
    (86_400_000_000, "86400"),
    (259_200_000_000, "259200"),
    (604_800_000_000, "604800"),
];

/// Threads that count in places of their own do not wait for each other's caches.
const SHARDS: usize = 4;

/// All histograms, for the metrics endpoint.
static ALL: Mutex<Vec<LabelledTimes>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct LabelledTimes {
    family: &'static Family,
    /// The value of the family's label.
    label: String,
    times: Arc<Times>,
}

/// Histograms of one name that differ in one label.
#[derive(Debug)]
pub struct Family {
    /// Its name; it ends in `_seconds`.
    pub name: &'static str,
    pub help: &'static str,
    /// The label; empty for a family of one.
    pub label: &'static str,
    /// Bounds of its buckets, at most 20.
    pub bounds: &'static [Bound],
}

/// Counts of observations by duration.
#[derive(Debug)]
pub struct Times {
    bounds: &'static [Bound],
    shards: [Shard; SHARDS],
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Shard {
    buckets: [AtomicU64; MOST + 1],
    micros: AtomicU64,
}

impl Times {
    /// The times of a family under one value of its label; shown from now on. Asked for again, it
    /// is the same.
    #[must_use]
    pub fn of(family: &'static Family, label: &str) -> Arc<Self> {
        let mut all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
        let known = all.iter().find(|it| it.family.name == family.name && it.label == label);
        if let Some(known) = known {
            return Arc::clone(&known.times);
        }
        let shards = array::from_fn(|_| Shard::default());
        let times = Arc::new(Self { bounds: family.bounds, shards });
        all.push(LabelledTimes { family, label: label.to_owned(), times: Arc::clone(&times) });
        times
    }

    /// Counts a duration between two moments; a negative one counts as zero.
    pub fn count(&self, from: Timestamp, to: Timestamp) {
        let micros = to.as_micros().saturating_sub(from.as_micros());
        let micros = u64::try_from(micros).unwrap_or(0);
        let bucket = self.bounds.partition_point(|(bound, _)| *bound < micros);
        if let Some(shard) = self.shards.get(shard()) {
            if let Some(bucket) = shard.buckets.get(bucket) {
                bucket.fetch_add(1, Relaxed);
            }
            shard.micros.fetch_add(micros, Relaxed);
        }
    }

    fn write(&self, text: &mut String, family: &Family, label: &str) {
        let Family { name, label: key, .. } = family;
        let own = if key.is_empty() { String::new() } else { format!("{key}=\"{label}\"") };
        let (first, alone) = match own.as_str() {
            "" => (String::new(), String::new()),
            own => (format!("{own},"), format!("{{{own}}}")),
        };
        let ends = family.bounds.iter().map(|(_, shown)| *shown).chain(["+Inf"]);
        let mut count = 0;
        // Writing to a string cannot fail.
        for (place, end) in ends.enumerate() {
            let in_it = self.shards.iter().filter_map(|shard| shard.buckets.get(place));
            count += in_it.map(|bucket| bucket.load(Relaxed)).sum::<u64>();
            let _ = writeln!(text, "{name}_bucket{{{first}le=\"{end}\"}} {count}");
        }
        let micros: u64 = self.shards.iter().map(|shard| shard.micros.load(Relaxed)).sum();
        let seconds = micros / 1_000_000;
        let rest = micros % 1_000_000;
        let _ = writeln!(text, "{name}_sum{alone} {seconds}.{rest:06}");
        let _ = writeln!(text, "{name}_count{alone} {count}");
    }
}

/// The place in which this thread counts.
fn shard() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static MINE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    MINE.with(|mine| {
        if mine.get() == usize::MAX {
            mine.set(NEXT.fetch_add(1, Relaxed) % SHARDS);
        }
        mine.get()
    })
}

/// All histograms in the text format of Prometheus.
#[must_use]
pub fn render() -> String {
    let all = ALL.lock().unwrap_or_else(PoisonError::into_inner);
    let mut ordered: Vec<&LabelledTimes> = all.iter().collect();
    ordered.sort_by_key(|it| (it.family.name, it.label.as_str()));
    let mut text = String::new();
    let mut last = "";
    for LabelledTimes { family, label, times } in ordered {
        if family.name != last {
            let _ = writeln!(text, "# HELP {} {}", family.name, family.help);
            let _ = writeln!(text, "# TYPE {} histogram", family.name);
            last = family.name;
        }
        times.write(&mut text, family, label);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    static FAMILY: Family =
        Family { name: "test_seconds", help: "Of a test", label: "stage", bounds: &MOMENTS };
    static ALONE: Family =
        Family { name: "alone_seconds", help: "Of another", label: "", bounds: &MOMENTS };
    static SLOW: Family =
        Family { name: "slow_seconds", help: "Of people", label: "", bounds: &DAYS };

    fn took(times: &Times, micros: i64) {
        times.count(Timestamp::from_micros(1_000), Timestamp::from_micros(1_000 + micros));
    }

    #[test]
    fn what_is_counted_is_shown_cumulatively_with_its_sum() {
        let times = Times::of(&FAMILY, "a");
        for micros in [-5, 10, 11, 25, 1_000_000, 60_000_000] {
            took(&times, micros);
        }

        let text = render();

        for line in [
            "# HELP test_seconds Of a test",
            "# TYPE test_seconds histogram",
            "test_seconds_bucket{stage=\"a\",le=\"0.00001\"} 2",
            "test_seconds_bucket{stage=\"a\",le=\"0.000025\"} 4",
            "test_seconds_bucket{stage=\"a\",le=\"0.5\"} 4",
            "test_seconds_bucket{stage=\"a\",le=\"1\"} 5",
            "test_seconds_bucket{stage=\"a\",le=\"30\"} 5",
            "test_seconds_bucket{stage=\"a\",le=\"+Inf\"} 6",
            "test_seconds_sum{stage=\"a\"} 61.000046",
            "test_seconds_count{stage=\"a\"} 6",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} in:\n{text}");
        }
    }

    #[test]
    fn a_family_of_one_has_no_label() {
        took(&Times::of(&ALONE, ""), 1);
        took(&Times::of(&ALONE, ""), 1);

        let text = render();

        assert!(text.contains("alone_seconds_bucket{le=\"0.00001\"} 2\n"), "{text}");
        assert!(text.contains("alone_seconds_sum 0.000002\n"), "{text}");
        assert!(text.contains("alone_seconds_count 2\n"), "{text}");
    }

    #[test]
    fn decisions_of_people_have_bounds_of_their_own() {
        let times = Times::of(&SLOW, "");
        took(&times, 60_000_000);
        took(&times, 700_000_000_000);

        let text = render();

        for line in ["le=\"15\"} 0", "le=\"60\"} 1", "le=\"604800\"} 1", "le=\"+Inf\"} 2"] {
            assert!(text.contains(&format!("slow_seconds_bucket{{{line}\n")), "{line} in:\n{text}");
        }
    }

    #[test]
    fn threads_count_together() {
        let times = Times::of(&FAMILY, "threads");
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| (0..1_000).for_each(|_| took(&times, 7)));
            }
        });

        assert!(render().contains("test_seconds_count{stage=\"threads\"} 8000\n"));
    }
}
