//! The output of a load: its summary, files, and whether its assertions hold.

use model::runs::Run;
use report::styles::ReportStyle;
use report::{Assertion, AssertionOutcome, FigureValue};

use super::args::LoadArgs;
use crate::cli::Format;
use crate::commands::output_files::OutputFiles;
use crate::error::UnmetCondition;
use crate::session::FinishedRun;
use crate::summary;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SummaryFormat {
    Own(Format),
    Style(ReportStyle),
    Csv,
}

/// Collects the results of the runs.
#[derive(Debug)]
pub(crate) struct LoadOutput {
    summary_format: SummaryFormat,
    assertions: Vec<Assertion>,
    files: OutputFiles,
    wants_intervals: bool,
    /// The figures of the runs up to now, by variant.
    runs: Vec<(String, Vec<Vec<FigureValue>>)>,
    breaches: Vec<String>,
}

impl LoadOutput {
    pub(crate) fn new(args: &LoadArgs, format: Format) -> anyhow::Result<Self> {
        let LoadArgs { request, tls, output: args, .. } = args;
        let inputs = [&request.body, &request.targets, &tls.ca, &tls.client_cert, &tls.client_key];
        let summary_format = match args.style {
            Some(style) => SummaryFormat::Style(style),
            None if args.csv => SummaryFormat::Csv,
            None => SummaryFormat::Own(format),
        };
        Ok(Self {
            summary_format,
            assertions: args.assert.clone(),
            // A file that cannot be written is refused before the load, not after it.
            files: OutputFiles::check(
                &[("--hgrm", &args.hgrm), ("--hlog", &args.hlog)],
                inputs.into_iter().flatten(),
            )?,
            wants_intervals: args.hlog.is_some(),
            runs: Vec::new(),
            breaches: Vec::new(),
        })
    }

    /// Whether all intervals of a run must be kept for a file, which the dashboard does not.
    pub(crate) fn wants_intervals(&self) -> bool {
        self.wants_intervals
    }

    /// Whether the summary shows the variation of the rate, as far as intervals are kept.
    pub(crate) fn shows_intervals(&self) -> bool {
        self.summary_format == SummaryFormat::Style(ReportStyle::Wrk)
    }

    /// Adds a run that has ended, and prints it.
    pub(crate) fn take(&mut self, variant: &str, finished: &FinishedRun) -> anyhow::Result<()> {
        let Some(run) = finished.run() else { return Ok(()) };
        match self.summary_format {
            SummaryFormat::Style(style) => {
                summary::print_text(&report::styles::report(run, style).unwrap_or_default())?;
            }
            SummaryFormat::Own(format) => finished.print(format)?,
            // Printed at the end, under one line of names.
            SummaryFormat::Csv => {}
        }
        let figures = report::load_figures(run).unwrap_or_default();
        match self.runs.last_mut().filter(|(name, _)| name == variant) {
            Some((_, runs)) => runs.push(figures),
            None => self.runs.push((variant.to_owned(), vec![figures])),
        }
        self.check(finished);
        self.write_files(run)
    }

    fn check(&mut self, finished: &FinishedRun) {
        let Some(figures) = finished.figures() else { return };
        for assertion in &self.assertions {
            match assertion.check(&figures) {
                AssertionOutcome::Holds => {}
                AssertionOutcome::Breached(reason) => self.breaches.push(format!("{assertion}: {reason}")),
            }
        }
    }

    /// Of several runs, the files hold the last.
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

    /// Prints the result of all runs. A failed assertion takes precedence over a failed run.
    pub(crate) fn finish(self, failure: anyhow::Result<()>) -> anyhow::Result<()> {
        let all: Vec<_> = self.runs.iter().flat_map(|(_, runs)| runs.clone()).collect();
        match self.summary_format {
            SummaryFormat::Csv => summary::print_text(&report::csv(&all))?,
            SummaryFormat::Own(Format::Text) | SummaryFormat::Style(_) if all.len() > 1 => {
                summary::print_text(&format!("\n{}", report::repeated(&self.runs)))?;
            }
            // A program that reads JSON computes the spread itself.
            SummaryFormat::Own(_) | SummaryFormat::Style(_) => {}
        }
        if self.breaches.is_empty() {
            return failure;
        }
        Err(UnmetCondition::of_assertions(&self.breaches))
    }
}
