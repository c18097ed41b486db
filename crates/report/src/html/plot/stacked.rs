//! Stacked bars as SVG: over time, and one for each of a few things.

use maud::{Markup, html};

use super::{AxisTick, WIDTH, number, seconds, short};
use crate::html::wide;
use crate::numbers::percent;

const LEFT: f64 = 60.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 22.0;
const HEIGHT: f64 = 220.0;
const BOTTOM: f64 = 34.0;
/// Height of one horizontal bar with its gap.
const BAR: f64 = 30.0;
/// Colours that there are.
pub(crate) const PARTS_MAX: usize = 5;

/// One bar over time; without parts nothing is known.
#[derive(Debug)]
pub(crate) struct TimeBar {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    /// In the order of the names.
    pub(crate) parts: Option<Vec<f64>>,
}

impl TimeBar {
    /// Its values in words.
    fn text(&self, names: &[String], unit: &str) -> String {
        let parts = names.iter().zip(self.parts.iter().flatten()).filter(|(_, part)| **part > 0.0);
        let parts: Vec<String> =
            parts.map(|(name, part)| format!("{name} {} {unit}", short(*part))).collect();
        format!("{}: {}", seconds(self.end_s), parts.join(", "))
    }
}

/// Bars over time, whose parts lie on each other in the order of `names`. Empty if nothing is above 0.
pub(crate) fn over_time(
    title: &str,
    y_name: &str,
    names: &[String],
    bars: &[TimeBar],
    ticks: &[AxisTick],
) -> Markup {
    let height = |bar: &TimeBar| bar.parts.iter().flatten().sum::<f64>();
    let high = bars.iter().map(height).fold(0.0, f64::max);
    let (Some(first), Some(last)) = (bars.first(), bars.last()) else { return html! {} };
    let (left, right) = (first.start_s, last.end_s);
    if high <= 0.0 || right <= left {
        return html! {};
    }
    let bottom = HEIGHT - BOTTOM;
    let x = |seconds: f64| LEFT + (seconds - left) / (right - left) * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| bottom - value / high * (bottom - TOP);
    let drawing = html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            @for value in [0.0, high / 2.0, high] {
                line.grid x1=(LEFT) x2=(WIDTH - RIGHT) y1=(number(y(value))) y2=(number(y(value))) {}
                text x=(LEFT - 6.0) y=(number(y(value) + 4.0)) text-anchor="end" { (short(value)) }
            }
            @for (seconds, label) in ticks.iter().filter(|(seconds, _)| (left..=right).contains(seconds)) {
                text x=(number(x(*seconds).min(WIDTH - 24.0))) y=(bottom + 14.0) text-anchor="middle" { (label) }
            }
            text.name x=(LEFT) y=(HEIGHT - 4.0) { "time since the beginning" }
            text.name x="2" y="12" { (y_name) }
            @for bar in bars.iter().filter(|bar| height(bar) > 0.0) {
                g {
                    title { (bar.text(names, y_name)) }
                    @for (at, from, part) in stacked(bar.parts.iter().flatten()) {
                        rect class=(format!("b{at}")) x=(number(x(bar.start_s))) width=(number(x(bar.end_s) - x(bar.start_s)))
                            y=(number(y(from + part))) height=(number(y(from) - y(from + part))) {}
                    }
                }
            }
        }
    };
    html! { figure { figcaption { (title) } (wide(title, &drawing)) (legend(names.iter().map(|name| &**name))) } }
}

/// One bar, of a name and of parts with names.
#[derive(Debug)]
pub(crate) struct NamedBar {
    pub(crate) name: String,
    pub(crate) parts: Vec<(&'static str, f64)>,
}

/// A bar for each, all on one scale, with shares where they fit. Empty if nothing is above 0.
pub(crate) fn each(title: &str, unit: &str, bars: &[NamedBar]) -> Markup {
    let sum = |bar: &NamedBar| bar.parts.iter().map(|(_, value)| value).sum::<f64>();
    let high = bars.iter().map(sum).fold(0.0, f64::max);
    let Some(first) = bars.first().filter(|_| high > 0.0) else { return html! {} };
    let height = BAR * bars.len() as f64;
    let left = LEFT + 110.0;
    let x = |value: f64| left + value / high * (WIDTH - left - 90.0);
    let drawing = html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(title) {
            @for (row, bar) in bars.iter().enumerate() {
                @let top = BAR * row as f64 + 4.0;
                text x=(left - 6.0) y=(top + 15.0) text-anchor="end" { (bar.name) }
                @for (at, from, part) in stacked(bar.parts.iter().map(|(_, value)| value)) {
                    @let width = x(from + part) - x(from);
                    rect class=(format!("b{at}")) x=(number(x(from))) width=(number(width)) y=(top) height=(BAR - 8.0) {}
                    @if width > 46.0 {
                        text.share x=(number(x(from) + width / 2.0)) y=(top + 15.0) text-anchor="middle" { (percent(part, sum(bar))) }
                    }
                }
                text x=(number(x(sum(bar)) + 6.0)) y=(top + 15.0) { (short(sum(bar))) " " (unit) }
            }
        }
    };
    html! { figure { figcaption { (title) } (wide(title, &drawing)) (legend(first.parts.iter().map(|(name, _)| *name))) } }
}

/// Each part with its colour and where it begins.
fn stacked<'a>(parts: impl Iterator<Item = &'a f64>) -> Vec<(usize, f64, f64)> {
    let mut from = 0.0;
    let placed = parts.enumerate().map(|(at, &part)| {
        let begins = from;
        from += part;
        (at.min(PARTS_MAX - 1), begins, part)
    });
    placed.filter(|(.., part)| *part > 0.0).collect()
}

fn legend<'a>(names: impl Iterator<Item = &'a str>) -> Markup {
    html! {
        ul.legend {
            @for (at, name) in names.enumerate() {
                li { svg.key viewBox="0 0 30 8" aria-hidden="true" { rect class=(format!("b{}", at.min(PARTS_MAX - 1))) width="30" height="8" {} } (name) }
            }
        }
    }
}
