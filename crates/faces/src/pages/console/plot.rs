//! Plots as inline SVG, with the numbers behind them as a table.
//!
//! Geometry stands in attributes of SVG and colours in classes of the style sheet: a page has no style
//! of its own. Texts of steps are in UTC.

use std::fmt::Write as _;

use askama::{Template, filters::HtmlSafe};

use super::json::Json;
use crate::pages::html::{Html, html};

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
    name: &'static str,
    class: &'static str,
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

/// A plot, and the numbers behind it as a table.
#[derive(Template)]
#[template(path = "plot.html")]
pub(super) struct Plot {
    id: &'static str,
    title: &'static str,
    scene: Scene,
    axis: Axis,
    /// Bars or lines.
    drawn: Html,
}

/// A plot is made of markup.
impl HtmlSafe for Plot {}

/// Bars of what is counted within each step, one series on the other.
pub(super) fn bars(
    id: &'static str,
    title: &'static str,
    counts: &Json,
    series: &'static [Series],
) -> Plot {
    let scene = Scene::of(counts, series);
    let totals = scene.steps.iter().map(|step| step.numbers.iter().flatten().sum());
    let axis = Axis::up_to(totals.fold(0.0, f64::max), 1.0);
    let steps = (0_u32..).zip(&scene.steps);
    let drawn = steps.map(|(place, step)| scene.bar(place, step, &axis)).collect();
    Plot { id, title, scene, axis, drawn }
}

/// A line for each series.
pub(super) fn lines(
    id: &'static str,
    title: &'static str,
    counts: &Json,
    series: &'static [Series],
) -> Plot {
    let scene = Scene::of(counts, series);
    let all = scene.steps.iter().flat_map(|step| step.numbers.iter().flatten().copied());
    let axis = Axis::up_to(all.fold(0.0, f64::max), 0.1);
    let series = series.iter().enumerate();
    let drawn = series.map(|(nth, series)| scene.line(nth, series.class, &axis)).collect();
    Plot { id, title, scene, axis, drawn }
}

/// The numbers at a member of each step as a small line without axes; `what` they count.
pub(super) fn sparkline(counts: &Json, member: &str, what: &str) -> Html {
    let steps = counts.items("/steps");
    let numbers: Vec<f64> = steps.iter().map(|step| number(step, member).unwrap_or(0.0)).collect();
    draw_sparkline(&numbers, what)
}

/// The numbers of a list as a small line without axes; `what` they count.
pub(super) fn sparkline_of_list(numbers: &Json, what: &str) -> Html {
    let numbers = numbers.items("").into_iter().map(|it| it.0.as_f64().unwrap_or(0.0));
    draw_sparkline(&numbers.collect::<Vec<_>>(), what)
}

fn draw_sparkline(numbers: &[f64], what: &str) -> Html {
    let most = numbers.iter().copied().fold(0.0, f64::max);
    let width = 96.0 / lossy(numbers.len().saturating_sub(1).max(1));
    let points = (0_u32..).zip(numbers).map(|(place, number)| {
        let y = 19.0 - 17.0 * number / most.max(1.0);
        format!("{:.1},{y:.1}", 2.0 + width * f64::from(place))
    });
    let points: Vec<String> = points.collect();
    let [all, most] = [numbers.iter().sum(), most].map(format_number);
    html(
        "<svg class=\"spark\" viewBox=\"0 0 100 20\" preserveAspectRatio=\"xMinYMid\" role=\"img\">\
         <title>{}: {} in all, at most {}</title><polyline points=\"{}\"/></svg>",
        &[&what, &all, &most, &points.join(" ")],
    )
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

impl PlotStep {
    /// The numbers, for readers; empty where there is none.
    fn texts(&self) -> impl Iterator<Item = String> {
        self.numbers.iter().map(|number| number.map(format_number).unwrap_or_default())
    }
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

    /// The bar of a step that has calls.
    fn bar(&self, place: u32, step: &PlotStep, axis: &Axis) -> Html {
        let gap = (self.width * 0.15).min(2.0);
        let (x, width) = (pixels(self.left(place) + gap / 2.0), pixels(self.width - gap));
        let mut below = 0.0;
        let mut segments = Vec::new();
        for (number, series) in step.numbers.iter().zip(self.series) {
            let Some(number) = number.filter(|it| *it > 0.0) else { continue };
            let (top, bottom) = (axis.y(below + number), axis.y(below));
            below += number;
            segments.push(html(
                "<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                &[&series.class, &x, &pixels(top), &width, &pixels(bottom - top)],
            ));
        }
        if segments.is_empty() {
            return Html::default();
        }
        let segments: Html = segments.into_iter().collect();
        html("<g><title>{}</title>{}</g>\n", &[&self.title(step), &segments])
    }

    /// A line, with a gap where a step has no number.
    fn line(&self, nth: usize, class: &str, axis: &Axis) -> Html {
        let mut parts = vec![String::new()];
        let mut dots = Vec::new();
        for (place, step) in (0_u32..).zip(&self.steps) {
            let Some(number) = step.numbers.get(nth).copied().flatten() else {
                parts.push(String::new());
                continue;
            };
            let x = pixels(self.left(place) + self.width / 2.0);
            let y = pixels(axis.y(number));
            if let Some(part) = parts.last_mut() {
                let _ = write!(part, "{x},{y} ");
            }
            let dot = "<circle cx=\"{}\" cy=\"{}\" r=\"2\"><title>{}</title></circle>";
            dots.push(html(dot, &[&x, &y, &self.title(step)]));
        }
        let parts = parts.iter().filter(|part| !part.is_empty());
        let parts: Html = parts.map(|it| html("<polyline points=\"{}\"/>", &[it])).collect();
        let dots: Html = dots.into_iter().collect();
        html("<g class=\"line {}\">{}{}</g>\n", &[&class, &parts, &dots])
    }

    /// The labels below the axis of time, each with its place.
    fn labels(&self) -> impl Iterator<Item = (String, String)> {
        let every = self.steps.len().div_ceil(MOST_LABELS).max(1);
        let steps = (0_u32..).zip(&self.steps).step_by(every);
        steps.map(|(place, step)| (pixels(self.left(place) + self.width / 2.0), self.label(step)))
    }

    /// The steps that have a number, the newest first.
    fn numbers(&self) -> Vec<&PlotStep> {
        let is_told = |step: &&PlotStep| step.numbers.iter().flatten().any(|number| *number > 0.0);
        self.steps.iter().rev().filter(is_told).collect()
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

    /// Lines across: the place of each, and its number.
    fn gridlines(&self) -> impl Iterator<Item = (String, String)> {
        let numbers = (0_u32..=5).map(|nth| f64::from(nth) * self.step);
        let numbers = numbers.take_while(|number| *number <= self.top + self.step / 2.0);
        numbers.map(|number| (pixels(self.y(number)), format_number(number)))
    }
}

/// A length in an attribute.
fn pixels(length: f64) -> String {
    format!("{length:.1}")
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

    /// The texts between these marks.
    fn between<'a>(html: &'a str, start: &str, end: &str) -> Vec<&'a str> {
        html.split(start).skip(1).map(|rest| rest.split_once(end).unwrap().0).collect()
    }

    #[test]
    fn bars_stand_on_each_other_within_round_axes_above_a_table() {
        let plot = bars("decisions", "Decisions", &counts(), &DECISIONS).to_string();

        assert_eq!(between(&plot, " dy=\"3\">", "<"), ["0", "5", "10"]);
        assert_eq!(between(&plot, " y=\"164\">", "<"), ["20:00", "20:01", "20:02", "20:03"]);
        let bars = between(&plot, "<g><title>", "</g>");
        assert_eq!(bars.len(), 3, "a step without calls has no bar");
        let first = bars[0];
        assert!(
            first.starts_with("2026-11-26 20:00:00 UTC: 3 allowed, 1 denied</title>"),
            "{first}"
        );
        let lengths = |start| -> Vec<f64> {
            between(first, start, "\"").iter().map(|it| it.parse().unwrap()).collect()
        };
        let (y, height) = (lengths(" y=\""), lengths(" height=\""));
        assert!((y[1] + height[1] - y[0]).abs() < 0.2, "{first}");
        let rows = between(&plot, "</time></td><td class=\"number\">", "</td></tr>");
        let rows: Vec<_> =
            rows.iter().map(|it| it.replace("</td><td class=\"number\">", " ")).collect();
        assert_eq!(rows, ["0 0 2 0", "9 0 0 0", "3 0 1 0"]);
    }

    #[test]
    fn lines_have_gaps_where_there_is_no_number() {
        let plot = lines("latency", "Latency", &counts(), &LATENCIES).to_string();
        let nothing = Json(json!({ "step": "day", "steps": [] }));

        let [p50, p99] = between(&plot, "<g class=\"line ", "</g>")[..] else { panic!("{plot}") };
        let count = |text: &str| p50.matches(text).count();
        assert_eq!((count("<polyline"), count("<circle")), (2, 3));
        assert!(p99.starts_with("p99\"") && !plot.contains("no calls in this time"));
        let plot = lines("latency", "Latency", &nothing, &LATENCIES).to_string();
        assert!(plot.contains("no calls in this time"), "{plot}");
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

            let numbers = axis.gridlines().map(|(_, number)| number);
            assert_eq!(numbers.collect::<Vec<_>>().join(" "), expected, "{most}");
        }
    }

    #[test]
    fn a_sparkline_has_a_point_for_each_step() {
        let line = sparkline(&counts(), "/calls", "Calls").into_visible();

        assert!(line.contains("<title>Calls: 15 in all, at most 9</title>"), "{line}");
        assert_eq!(between(&line, "points=\"", "\"")[0].split(' ').count(), 4);
    }
}
