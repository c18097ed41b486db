//! The first screen of a page: whether the run was good, and how fast.

use maud::{Markup, html};

use super::over_time::PlotColumns;
use crate::html::section;
use crate::html::tables::whole;
use crate::report::Report;
use crate::report::headline::Tile;

impl Report<'_> {
    pub(super) fn first_screenful(&self, plots: &PlotColumns) -> Markup {
        let warnings = self.warnings();
        html! {
            p.when { (self.which()) (self.when()) }
            @if let Some(text) = self.unfinished() { p.banner role="alert" { strong { "Unfinished. " } (text) } }
            ul.tiles { @for tile in self.headline() { (tile_markup(&tile)) } }
            (section("Conditions", &whole(&self.conditions_table())))
            (section("Experiments", &whole(&self.experiment_rows())))
            (plots.main_plot())
            (self.finding_section())
            @if !warnings.is_empty() {
                section { h2 { "Warnings" } ul.warnings { @for line in &warnings { li { (line) } } } }
            }
        }
    }
}

fn tile_markup(tile: &Tile) -> Markup {
    let is_breached = tile.conditions.iter().any(|condition| !condition.holds);
    html! {
        li.tile.breached[is_breached] {
            span.title { (tile.title) }
            strong { (tile.value) }
            @for condition in &tile.conditions {
                span.(if condition.holds { "pass" } else { "fail" }) {
                    (if condition.holds { "✓ pass: " } else { "✗ FAIL: " }) (condition.condition)
                }
            }
            span.sentence { (tile.sentence) }
        }
    }
}
