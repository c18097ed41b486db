//! The page of a run's A/B experiments: the page of a comparison of a run with itself.

use maud::{Markup, html};

use super::compared::figure_table;
use super::plot::{effects, multiples};
use super::{made_by, page, rare, section};
use crate::compare::{ComparedExperiment, ExperimentComparison};

impl ExperimentComparison<'_> {
    pub fn html(&self) -> String {
        let body = html! {
            p.lead { (self.verdict) }
            p.dim { (self.source_line()) }
            @for experiment in &self.experiments { (section(&experiment.title(), &figures(experiment))) }
            (rare("What happened", &self.report.event_table()))
            (rare("Quality of the data", &self.report.quality_list()))
            (rare("What the words mean", &self.report.definitions()))
            (made_by(self.command))
        };
        page(&self.title(), &body)
    }
}

fn figures(experiment: &ComparedExperiment) -> Markup {
    html! {
        (effects::of_rows("B against A: the difference of each figure, with its interval over the pairs", &experiment.metrics))
        (figure_table(&experiment.metrics))
        p.dim { "By " (experiment.method()) "." }
        @if !experiment.calibration.is_empty() {
            h3 { "A against A, which must show no difference" }
            (figure_table(&experiment.calibration))
        }
        h3 { "Each figure from block to block" }
        (multiples::markup(&experiment.metrics, &experiment.names()))
    }
}
