//! What a load leaves behind: the summary in the shape that is wanted, files, and whether its assertions hold.

use loadgen::results::Style;
use report::{Assertion, AssertionOutcome, FigureValue};
use telemetry::model::Run;

use super::args::LoadArgs;
use crate::args::{Format, usage};
use crate::check::Breach;
use crate::outputs::Outputs;
use crate::session::Finished;
use crate::summary;

/// How runs are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape {
    Own(Format),
    Style(Style),
    Csv,
}

/// Gathers what runs come to.
#[derive(Debug)]
pub(crate) struct Output {
    shape: Shape,
    assertions: Vec<Assertion>,
    files: Outputs,
    wants_intervals: bool,
    /// The figures of the runs so far, those of one variant together.
    runs: Vec<(String, Vec<Vec<FigureValue>>)>,
    breaches: Vec<String>,
}

impl Output {
    pub(crate) fn new(args: &LoadArgs, format: Format) -> anyhow::Result<Self> {
        let LoadArgs { request, tls, output: args, .. } = args;
        let inputs = [&request.body, &request.targets, &tls.ca, &tls.client_cert, &tls.client_key];
        let style = args
            .style
            .as_deref()
            .map(|text| text.parse::<Style>().map_err(|error| usage(format!("--style {text}: {error}"))));
        let assertion = |text: &String| {
            let parsed = text.parse::<Assertion>();
            let known = parsed.and_then(|assertion| assertion.is_known_of_load().map(|()| assertion));
            known.map_err(|error| usage(format!("--assert {error}")))
        };
        let shape = match style.transpose()? {
            Some(style) => Shape::Style(style),
            None if args.csv => Shape::Csv,
            None => Shape::Own(format),
        };
        Ok(Self {
            shape,
            assertions: args.assert.iter().map(assertion).collect::<anyhow::Result<_>>()?,
            // A file that cannot be written is found out before the load, not after it.
            files: Outputs::check(
                &[("--hgrm", &args.hgrm), ("--hlog", &args.hlog)],
                inputs.into_iter().flatten(),
            )?,
            wants_intervals: args.hlog.is_some(),
            runs: Vec::new(),
            breaches: Vec::new(),
        })
    }

    /// True if all intervals of a run have to be kept.
    pub(crate) fn wants_intervals(&self) -> bool {
        self.wants_intervals
    }

    /// Takes in a run that has ended, and prints it.
    pub(crate) fn take(&mut self, variant: &str, finished: &Finished) -> anyhow::Result<()> {
        let Some(run) = finished.run() else { return Ok(()) };
        match self.shape {
            Shape::Style(style) => {
                summary::print_text(&loadgen::results::report(run, style).unwrap_or_default())?;
            }
            Shape::Own(format) => finished.print(format)?,
            // One line of names stands above those of all runs.
            Shape::Csv => {}
        }
        let figures = report::load_figures(run).unwrap_or_default();
        match self.runs.last_mut().filter(|(name, _)| name == variant) {
            Some((_, runs)) => runs.push(figures),
            None => self.runs.push((variant.to_owned(), vec![figures])),
        }
        self.check(finished);
        self.write_files(run)
    }

    fn check(&mut self, finished: &Finished) {
        let Some(figures) = finished.figures() else { return };
        for assertion in &self.assertions {
            match assertion.check(&figures) {
                AssertionOutcome::Holds => {}
                AssertionOutcome::Breached(reason) => self.breaches.push(format!("{assertion}: {reason}")),
            }
        }
    }

    /// With several runs the files hold the last one.
    fn write_files(&self, run: &Run) -> anyhow::Result<()> {
        let (Some(percentiles), Some((log, lacking))) =
            (report::percentile_file(run), report::interval_log(run))
        else {
            return Ok(());
        };
        self.files.write("--hgrm", || Ok(percentiles))?;
        self.files.write("--hlog", || {
            if lacking > 0 {
                crate::say(format_args!("--hlog lacks {lacking} samples of early intervals"));
            }
            Ok(log)
        })
    }

    /// Tells what all runs together come to. A breach counts for more than a run's own failure.
    pub(crate) fn finish(self, failure: anyhow::Result<()>) -> anyhow::Result<()> {
        let all: Vec<_> = self.runs.iter().flat_map(|(_, runs)| runs.clone()).collect();
        match self.shape {
            Shape::Csv => summary::print_text(&report::csv(&all))?,
            Shape::Own(Format::Text) | Shape::Style(_) if all.len() > 1 => {
                summary::print_text(&format!("\n{}", report::repeated(&self.runs)))?;
            }
            // A program that reads JSON finds the spread itself.
            Shape::Own(_) | Shape::Style(_) => {}
        }
        if self.breaches.is_empty() {
            return failure;
        }
        Err(Breach::of(&self.breaches))
    }
}
