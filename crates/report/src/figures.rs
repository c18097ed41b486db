//! A run's figures with their values: for assertions, CSV, and the spread over several runs.

use model::figures::{AbsentSubject, Figure, FigureName, FigureSide, FigureSubjects, JournalCounts};
use model::runs::{Model, Run};
use records::metrics::{KnownValue, LatencyClass};

/// A figure with its value in the figure's unit; `None` without samples.
pub type FigureValue = (Figure, Option<f64>);

#[derive(Debug)]
pub struct Figures<'a> {
    pub(crate) run: &'a Run,
    journal: Option<JournalCounts>,
}

impl<'a> Figures<'a> {
    /// The figures of a run; those of the journal only if `source` names one.
    pub fn of(model: &Model, run: &'a Run, source: Option<&str>) -> Self {
        Self { run, journal: source.map(|_| JournalCounts { malformed: model.malformed() }) }
    }

    /// The figure of a name in this run.
    ///
    /// # Errors
    /// With the subject that the run lacks.
    pub(crate) fn find(&self, name: &FigureName) -> Result<Figure, AbsentSubject> {
        let subjects = FigureSubjects::of(self.run, self.journal);
        name.first_of(|figure| subjects.check(figure))
    }

    pub(crate) fn known_value(&self, figure: &Figure) -> Option<KnownValue> {
        figure.known_value(self.run, self.journal)
    }
}

/// The order in which CSV has always had the numbers of the load. Those that are not here follow, so that columns keep
/// their places.
#[rustfmt::skip]
const LOAD_COLUMNS: [&str; 46] = [
    "seconds", "rate.achieved", "rate.wanted", "requests.scheduled", "requests.sent", "requests.answered",
    "requests.ok", "requests.failed", "requests.never_sent", "requests.throttled", "requests.unfinished", "requests.late",
    "requests.warmup", "requests.reused", "requests.retried", "errors", "connections", "handshakes.full",
    "handshakes.resumed", "handshakes.failed", "resumptions.wanted", "resumptions.offered", "resumptions.observed", "early_data.wanted",
    "early_data.offered", "early_data.accepted", "early_data.rejected", "bytes.in", "bytes.out", "body.in",
    "body.out", "head.out", "head.plain", "generator.busy", "errors.body", "errors.connect",
    "errors.protocol", "errors.reset", "errors.short", "errors.status", "errors.timeout", "errors.tls",
    "status.2xx", "status.3xx", "status.4xx", "status.5xx",
];

/// The figures of a run's load, without its name in front; `None` if the run had none.
pub fn load_figures(run: &Run) -> Option<Vec<FigureValue>> {
    run.load()?;
    let is_of = |sides: &'static [FigureSide]| move |figure: &Figure| sides.contains(&figure.side());
    let classes = LatencyClass::all().filter(|class| matches!(class, LatencyClass::Load(_)));
    let mut numbers: Vec<Figure> = Figure::scalars().filter(is_of(&[FigureSide::Load])).collect();
    let column = |figure: &Figure| LOAD_COLUMNS.iter().position(|name| *name == figure.short_name());
    numbers.sort_by_key(|figure| column(figure).unwrap_or(LOAD_COLUMNS.len()));
    let of_load = numbers.into_iter().chain(classes.flat_map(Figure::of_class));
    let host = Figure::scalars().filter(is_of(&[FigureSide::Process, FigureSide::Observed]));
    let all = of_load.chain(host).chain(Figure::quotients().filter(is_of(&[FigureSide::Load])));
    let known = all.filter(|figure| figure.side().is_in(run, None));
    let with_value = |figure: Figure| {
        let value = figure.value(run, None);
        (figure, value)
    };
    Some(known.map(with_value).collect())
}

/// The figures of several runs as CSV: a line of names, then one for each run.
pub fn csv(runs: &[Vec<FigureValue>]) -> String {
    let Some(first) = runs.first() else { return String::new() };
    let names: Vec<String> = first.iter().map(|(figure, _)| figure.short_name()).collect();
    let mut text = names.join(",") + "\n";
    for figures in runs {
        let value = |wanted: &FigureValue| figures.iter().find(|(known, _)| *known == wanted.0)?.1;
        let values = first.iter().map(value);
        let values: Vec<String> =
            values.map(|value| value.map_or_else(String::new, |value| value.to_string())).collect();
        text.push_str(&values.join(","));
        text.push('\n');
    }
    text
}
