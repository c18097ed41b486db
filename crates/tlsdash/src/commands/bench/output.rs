//! The output of a comparison: text, files, and whether its assertions hold.

use std::path::PathBuf;

use ::bench::compare::{BenchAssertionOutcome, BenchComparison};
use ::bench::output;
use ::bench::results::{FolderError, ResultsFolder};
use ::bench::run::{RunEnd, RunPlan};

use super::args::BenchOutputArgs;
use crate::commands::output_files::OutputFiles;
use crate::error::{UnmetCondition, usage};
use crate::service::environment;
use crate::summary;

#[derive(Debug)]
pub(super) struct BenchOutput(OutputFiles);

impl BenchOutput {
    /// Checks the files, before anything is started.
    pub(super) fn check(args: &BenchOutputArgs, scenario: Option<&PathBuf>) -> anyhow::Result<Self> {
        let flags = [
            ("--json", &args.json),
            ("--csv", &args.csv),
            ("--md", &args.md),
            ("--html", &args.html),
            ("--junit", &args.junit),
        ];
        OutputFiles::check(&flags, scenario).map(Self)
    }

    /// Prints the comparison and writes its files.
    ///
    /// # Errors
    /// If a file cannot be written, or an assertion does not hold.
    pub(super) fn write(&self, plan: &RunPlan, end: &RunEnd, folder: &ResultsFolder) -> anyhow::Result<()> {
        let cells = folder.cells();
        if cells.is_empty() {
            anyhow::ensure!(end.is_interrupted, "no cell was measured");
            return Ok(());
        }
        let scenario = plan.as_run(&end.missing, cells);
        let comparison = BenchComparison::of(&scenario, cells);
        let json = output::json(&comparison)?;
        folder.write_comparison(&json).map_err(folder_error)?;
        self.0.write("--json", || Ok(json))?;
        self.0.write("--csv", || Ok(output::cells_csv(cells)))?;
        self.0.write("--md", || Ok(output::markdown(&comparison)))?;
        self.0.write("--html", || {
            Ok(report::targets_page(
                &comparison,
                &conditions(plan, comparison.rounds),
                &environment::command(),
            ))
        })?;
        let took_us = cells.iter().map(|cell| cell.load_usage.wall_us).sum();
        self.0.write("--junit", || Ok(report::junit(&scenario.name, took_us, &comparison.assertions)))?;
        if !self.0.has_stdout() {
            summary::print_text(&output::text(&comparison))?;
        }
        let has_figures = cells.iter().any(|cell| cell.failure.is_none());
        anyhow::ensure!(has_figures, "every cell failed; the remarks say why");
        let breached = comparison.assertions.iter().filter_map(|result| match &result.outcome {
            BenchAssertionOutcome::Holds(_) => None,
            BenchAssertionOutcome::Breached(reason) => Some(format!(
                "{} line {}: {} of {} in {}: {reason}",
                scenario.name, result.line, result.condition, result.target, result.case
            )),
        });
        let breached: Vec<String> = breached.collect();
        if breached.is_empty() { Ok(()) } else { Err(UnmetCondition::of_assertions(&breached)) }
    }
}

/// A wrong folder is a wrong use, and a full disk is not.
pub(super) fn folder_error(error: FolderError) -> anyhow::Error {
    match error {
        FolderError::Io { .. } => anyhow::Error::new(error),
        FolderError::Taken(_)
        | FolderError::NotEmpty(_)
        | FolderError::NoComparison(_)
        | FolderError::InUse(_)
        | FolderError::OtherFormat { .. }
        | FolderError::Damaged { .. } => usage(error),
    }
}

/// The conditions of the run: seed, rounds, cores, machine.
fn conditions(plan: &RunPlan, rounds: u32) -> Vec<(String, String)> {
    let planned = plan.scenario.rounds;
    let rounds = if rounds == planned { rounds.to_string() } else { format!("{rounds} of {planned}") };
    let machine = environment::header();
    let placement = plan.scenario.cpus.clone().unwrap_or_default();
    let list = |cores: Option<String>| cores.unwrap_or_else(|| "any".to_owned());
    let conditions = [
        ("seed", plan.seed.to_string()),
        ("rounds", rounds),
        ("cores of the target", list(placement.target)),
        ("cores of the generator", list(placement.load)),
        ("cores of the upstream", list(placement.upstream)),
        ("processor", format!("{}, {} cores", machine.cpu_model, machine.cores)),
        ("frequency set by", machine.governor),
        ("kernel", machine.kernel),
        ("tlsdash", machine.version),
    ];
    let known = conditions.into_iter().filter(|(_, value)| !value.is_empty());
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}
