//! Plots as inline SVG, with the numbers behind them as a table.
//!
//! Geometry stands in attributes of SVG and colours in classes of the style sheet: a page has no style
//! of its own. Texts of steps are in UTC.

use std::fmt::Write as _;

use super::json::Json;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 170.0;
/// Space for the labels of the axes: left, right, above, below.
const LEFT: f64 = 40.0;
const RIGHT: f64 = 8.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 20.0;
/// Labels below the axis of time, at most.
const MOST_LABELS: usize = 6;

/// A series of numbers: the member of a step, its name, and its class in the style sheet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Series {
    member: &'static str,
    pub(super) name: &'static str,
    pub(super) class: &'static str,
}

/// Decisions about calls.
pub(super) const DECISIONS: [Series; 4] = [
    Series { member: "/allowed", name: "allowed", class: "allowed" },
    Series { member: "/asked", name: "asked", class: "asked" },
    Series { member: "/denied", name: "denied", class: "denied" },
    Series { member: "/undecided", name: "undecided", class: "undecided" },
];

/// Findings of DLP.
pub(super) const FINDINGS: [Series; 3] = [
    Series { member: "/flagged", name: "flagged", class: "flagged" },
    Series { member: "/redacted", name: "redacted", class: "asked" },
    Series { member: "/blocked", name: "blocked", class: "denied" },
];

/// Times of allowed calls.
pub(super) const LATENCIES: [Series; 2] = [
    Series { member: "/p50_ms", name: "p50", class: "p50" },
    Series { member: "/p99_ms", name: "p99", class: "p99" },
];

/// A place on an axis with its label.
#[derive(Debug, PartialEq)]
pub(super) struct Tick {
    pub(super) at: String,
    pub(super) label: String,
}

#[derive(Debug, PartialEq)]
pub(super) struct BarPart {
    pub(super) class: &'static str,
    pub(super) y: String,
    pub(super) height: String,
}

/// The bar of a step that has calls.
#[derive(Debug)]
pub(super) struct Bar {
    pub(super) title: String,
    pub(super) x: String,
    pub(super) width: String,
    pub(super) segments: Vec<BarPart>,
}

/// A line, with a gap where a step has no number.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) class: &'static str,
    /// Points of each part between gaps.
    pub(super) parts: Vec<String>,
    pub(super) dots: Vec<Dot>,
}

/// A point of a line.
#[derive(Debug)]
pub(super) struct Dot {
    pub(super) title: String,
    pub(super) x: String,
    pub(super) y: String,
}

/// A row of the table behind a plot.
#[derive(Debug)]
pub(super) struct PlotRow {
    pub(super) at: String,
    pub(super) moment: String,
    pub(super) numbers: Vec<String>,
}

#[derive(Debug)]
pub(super) struct Plot {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) series: &'static [Series],
    pub(super) bars: Vec<Bar>,
    pub(super) lines: Vec<Line>,
    pub(super) across: Vec<Tick>,
    pub(super) along: Vec<Tick>,
    /// Steps that have a number, the newest first.
    pub(super) rows: Vec<PlotRow>,
}

impl Plot {
    /// Bars of what is counted within each step, one series on the other.
    pub(super) fn of_bars(
        id: &'static str,
        title: &'static str,
        counts: &Json,
        series: &'static [Series],
    ) -> Self {
        let scene = Scene::of(counts, series);
        let totals = scene.steps.iter().map(|step| step.numbers.iter().flatten().sum());
        let axis = Axis::up_to(totals.fold(0.0, f64::max), 1.0);
        let steps = (0_u32..).zip(&scene.steps);
        let bars = steps.filter_map(|(place, step)| scene.bar(place, step, &axis)).collect();
        scene.into_plot(id, title, &axis, bars, Vec::new())
    }

    /// A line for each series.
    pub(super) fn of_lines(
        id: &'static str,
        title: &'static str,
        counts: &Json,
        series: &'static [Series],
    ) -> Self {
        let scene = Scene::of(counts, series);
        let all = scene.steps.iter().flat_map(|step| step.numbers.iter().flatten().copied());
        let axis = Axis::up_to(all.fold(0.0, f64::max), 0.1);
        let lines = (0..series.len()).map(|nth| scene.line(nth, &axis)).collect();
        scene.into_plot(id, title, &axis, Vec::new(), lines)
    }

    /// Returns true if no step has a number.
    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// A small line without axes, for tiles and lists.
#[derive(Debug)]
pub(super) struct Sparkline {
    pub(super) title: String,
    pub(super) points: String,
}

impl Sparkline {
    /// The numbers at this member of each step; `what` they count.
    pub(super) fn of(counts: &Json, member: &str, what: &str) -> Self {
        let steps = counts.items("/steps");
        let numbers = steps.iter().map(|step| number(step, member).unwrap_or(0.0));
        Self::through(&numbers.collect::<Vec<_>>(), what)
    }

    /// The numbers of a list; `what` they count.
    pub(super) fn of_list(numbers: &Json, what: &str) -> Self {
        let numbers = numbers.items("").into_iter().map(|it| it.0.as_f64().unwrap_or(0.0));
        Self::through(&numbers.collect::<Vec<_>>(), what)
    }

    fn through(numbers: &[f64], what: &str) -> Self {
        let most = numbers.iter().copied().fold(0.0, f64::max);
        let width = 96.0 / lossy(numbers.len().saturating_sub(1).max(1));
        let points = (0_u32..).zip(numbers).map(|(place, number)| {
            let y = 19.0 - 17.0 * number / most.max(1.0);
            format!("{:.1},{y:.1}", 2.0 + width * f64::from(place))
        });
        let points: Vec<String> = points.collect();
        let all = format_number(numbers.iter().sum());
        let title = format!("{what}: {all} in all, at most {}", format_number(most));
        Self { title, points: points.join(" ") }
    }
}

/// A step of time with the number of each series.
struct PlotStep {
    at: String,
    moment: String,
    numbers: Vec<Option<f64>>,
}

/// Steps that are to be drawn.
struct Scene {
    series: &'static [Series],
    by: String,
    steps: Vec<PlotStep>,
    width: f64,
}

impl Scene {
    fn of(counts: &Json, series: &'static [Series]) -> Self {
        let step = |step: Json| PlotStep {
            at: step.text("/at"),
            moment: step.moment("/at"),
            numbers: series.iter().map(|it| number(&step, it.member)).collect(),
        };
        let steps: Vec<PlotStep> = counts.items("/steps").into_iter().map(step).collect();
        let width = (WIDTH - LEFT - RIGHT) / lossy(steps.len().max(1));
        Self { series, by: counts.text("/step"), steps, width }
    }

    /// The left edge of a step.
    fn left(&self, place: u32) -> f64 {
        LEFT + self.width * f64::from(place)
    }

    /// The moment in as few letters as the step needs.
    fn label(&self, step: &PlotStep) -> String {
        let part = match self.by.as_str() {
            "day" => 5..10,
            "hour" => 5..13,
            _ => 11..16,
        };
        let hour = if self.by == "hour" { "h" } else { "" };
        format!("{}{hour}", step.moment.get(part).unwrap_or_default())
    }

    fn title(&self, step: &PlotStep) -> String {
        let numbers = step.numbers.iter().zip(self.series);
        let said: Vec<String> = numbers
            .filter_map(|(number, series)| Some((number.filter(|it| *it > 0.0)?, series.name)))
            .map(|(number, name)| format!("{} {name}", format_number(number)))
            .collect();
        format!("{} UTC: {}", step.moment, said.join(", "))
    }

    fn bar(&self, place: u32, step: &PlotStep, axis: &Axis) -> Option<Bar> {
        let mut below = 0.0;
        let mut segments = Vec::new();
        for (number, series) in step.numbers.iter().zip(self.series) {
            let Some(number) = number.filter(|it| *it > 0.0) else { continue };
            let top = axis.y(below + number);
            let bottom = axis.y(below);
            below += number;
            segments.push(BarPart {
                class: series.class,
                y: format!("{top:.1}"),
                height: format!("{:.1}", bottom - top),
            });
        }
        let gap = (self.width * 0.15).min(2.0);
        (!segments.is_empty()).then(|| Bar {
            title: self.title(step),
            x: format!("{:.1}", self.left(place) + gap / 2.0),
            width: format!("{:.1}", self.width - gap),
            segments,
        })
    }

    fn line(&self, nth: usize, axis: &Axis) -> Line {
        let mut parts = vec![String::new()];
        let mut dots = Vec::new();
        for (place, step) in (0_u32..).zip(&self.steps) {
            let Some(number) = step.numbers.get(nth).copied().flatten() else {
                parts.push(String::new());
                continue;
            };
            let x = format!("{:.1}", self.left(place) + self.width / 2.0);
            let y = format!("{:.1}", axis.y(number));
            if let Some(part) = parts.last_mut() {
                let _ = write!(part, "{x},{y} ");
            }
            dots.push(Dot { title: self.title(step), x, y });
        }
        parts.retain(|part| !part.is_empty());
        Line { class: self.series.get(nth).map_or("", |it| it.class), parts, dots }
    }

    fn into_plot(
        self,
        id: &'static str,
        title: &'static str,
        axis: &Axis,
        bars: Vec<Bar>,
        lines: Vec<Line>,
    ) -> Plot {
        let every = self.steps.len().div_ceil(MOST_LABELS).max(1);
        let along = (0_u32..).zip(&self.steps).step_by(every).map(|(place, step)| Tick {
            at: format!("{:.1}", self.left(place) + self.width / 2.0),
            label: self.label(step),
        });
        let along = along.collect();
        let told = |step: &PlotStep| step.numbers.iter().flatten().any(|number| *number > 0.0);
        let row = |step: &PlotStep| PlotRow {
            at: step.at.clone(),
            moment: step.moment.clone(),
            numbers: step
                .numbers
                .iter()
                .map(|it| it.map(format_number).unwrap_or_default())
                .collect(),
        };
        let rows = self.steps.iter().rev().filter(|step| told(step)).map(row).collect();
        Plot { id, title, series: self.series, bars, lines, across: axis.ticks(), along, rows }
    }
}

/// The axis of numbers: from 0 up to a round number.
struct Axis {
    top: f64,
    step: f64,
}

impl Axis {
    /// An axis that shows numbers up to `most`, with at most five gridlines, `least` apart or more.
    fn up_to(most: f64, least: f64) -> Self {
        let mut step = least;
        let mut factors = [2.0, 2.5, 2.0].into_iter().cycle();
        while step * 4.0 < most {
            step *= factors.next().unwrap_or(2.0);
        }
        Self { top: (most / step).ceil().max(1.0) * step, step }
    }

    fn y(&self, number: f64) -> f64 {
        let space = HEIGHT - TOP - BOTTOM;
        TOP + space * (1.0 - number / self.top)
    }

    fn ticks(&self) -> Vec<Tick> {
        let numbers = (0_u32..=5).map(|nth| f64::from(nth) * self.step);
        let numbers = numbers.take_while(|number| *number <= self.top + self.step / 2.0);
        numbers
            .map(|it| Tick { at: format!("{:.1}", self.y(it)), label: format_number(it) })
            .collect()
    }
}

fn number(step: &Json, member: &str) -> Option<f64> {
    step.at(member).0.as_f64()
}

/// A number for readers: whole, or with what is worth telling of its fraction.
fn format_number(number: f64) -> String {
    let text = if number < 10.0 { format!("{number:.2}") } else { format!("{number:.0}") };
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

fn lossy(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn counts() -> Json {
        let step = |minute: u32, allowed: u64, denied: u64, p50: Option<f64>| {
            json!({
                "at": format!("2026-11-26T20:{minute:02}:00.000Z"),
                "calls": allowed + denied, "allowed": allowed, "denied": denied, "asked": 0,
                "undecided": 0, "p50_ms": p50, "p99_ms": p50.map(|it| it * 4.0),
            })
        };
        let steps = [
            step(0, 3, 1, Some(1.25)),
            step(1, 0, 0, None),
            step(2, 9, 0, Some(2.0)),
            step(3, 0, 2, Some(1.0)),
        ];
        Json(json!({ "step": "minute", "steps": steps }))
    }

    #[test]
    fn bars_stand_on_each_other_within_round_axes_above_a_table() {
        let plot = Plot::of_bars("decisions", "Decisions", &counts(), &DECISIONS);

        let labels: Vec<&str> = plot.across.iter().map(|tick| &*tick.label).collect();
        assert_eq!(labels, ["0", "5", "10"]);
        let along: Vec<&str> = plot.along.iter().map(|tick| &*tick.label).collect();
        assert_eq!(along, ["20:00", "20:01", "20:02", "20:03"]);
        assert_eq!(plot.bars.len(), 3, "a step without calls has no bar");
        let [first, ..] = &*plot.bars else { panic!() };
        assert_eq!(first.title, "2026-11-26 20:00:00 UTC: 3 allowed, 1 denied");
        let [allowed, denied] = &*first.segments else { panic!("{first:?}") };
        let y = |segment: &BarPart| segment.y.parse::<f64>().unwrap();
        let height = denied.height.parse::<f64>().unwrap();
        assert!((y(denied) + height - y(allowed)).abs() < 0.2, "{first:?}");
        let numbers: Vec<_> = plot.rows.iter().map(|row| row.numbers.join(" ")).collect();
        assert_eq!(numbers, ["0 0 2 0", "9 0 0 0", "3 0 1 0"]);
    }

    #[test]
    fn lines_have_gaps_where_there_is_no_number() {
        let plot = Plot::of_lines("latency", "Latency", &counts(), &LATENCIES);

        let [p50, p99] = &*plot.lines else { panic!() };
        assert_eq!((p50.parts.len(), p50.dots.len(), p99.class), (2, 3, "p99"));
        assert!(!plot.is_empty());
        let nothing = Json(json!({ "step": "day", "steps": [] }));
        assert!(Plot::of_lines("latency", "Latency", &nothing, &LATENCIES).is_empty());
    }

    #[test]
    fn axes_are_round_and_reach_the_largest_number() {
        for (most, least, expected) in [
            (0.0, 1.0, "0 1"),
            (3.0, 1.0, "0 1 2 3"),
            (9.0, 1.0, "0 5 10"),
            (1_999.0, 1.0, "0 500 1000 1500 2000"),
            (0.7, 0.1, "0 0.2 0.4 0.6 0.8"),
        ] {
            let axis = Axis::up_to(most, least);
            let ticks: Vec<String> = axis.ticks().into_iter().map(|tick| tick.label).collect();

            assert_eq!(ticks.join(" "), expected, "{most}");
        }
    }

    #[test]
    fn a_sparkline_has_a_point_for_each_step() {
        let line = Sparkline::of(&counts(), "/calls", "Calls");

        assert_eq!(line.title, "Calls: 15 in all, at most 9");
        assert_eq!(line.points.split(' ').count(), 4);
    }
}
