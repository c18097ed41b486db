//! Published figures beside the measured ones.

use model::figures::FigureUnit;
use serde::Serialize;

use super::{CaseComparison, CellFigure, serialize};
use crate::scenario::PublishedFigure;

/// A published figure beside the measured one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedComparison {
    pub case: String,
    pub target: String,
    pub figure: String,
    /// The unit of both values.
    #[serde(serialize_with = "serialize::unit")]
    pub unit: FigureUnit,
    pub published: f64,
    /// The median that was measured; `None` if it was not.
    pub measured: Option<f64>,
    /// Measured over published; `None` without both.
    pub ratio: Option<f64>,
}

/// Puts the measured figures beside the published ones.
pub(crate) fn compare(published: &[PublishedFigure], cases: &[CaseComparison]) -> Vec<PublishedComparison> {
    published.iter().map(|figure| beside(figure, cases)).collect()
}

fn beside(published: &PublishedFigure, cases: &[CaseComparison]) -> PublishedComparison {
    let known = published.figure.parse::<CellFigure>().ok();
    let name = known.as_ref().map_or_else(|| published.figure.clone(), CellFigure::name);
    let case = cases.iter().find(|case| case.name == published.case);
    let target = case.and_then(|case| case.target(&published.target));
    let measured = target.and_then(|target| target.figure(&name)).map(|figure| figure.median);
    PublishedComparison {
        case: published.case.clone(),
        target: published.target.clone(),
        figure: name,
        unit: known.as_ref().map_or(FigureUnit::Count, CellFigure::unit),
        published: published.value,
        measured,
        ratio: measured.map(|measured| measured / published.value).filter(|ratio| ratio.is_finite()),
    }
}
