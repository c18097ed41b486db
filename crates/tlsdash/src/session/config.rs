//! The options of a run, resolved before anything is started.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use experiment::ExperimentPlan;
use log_store::UploadTarget;
use model::alerts::Alert;
use output_file::FileIdentity;

use super::frontend::Frontend;
use super::recording::RecordingFile;
use crate::cli::appearance::Appearance;
use crate::cli::configuration::effective_options::PROXY;
use crate::cli::configuration::source::{ConfigurationSource, SettingOrigin};
use crate::cli::{Format, ProxyOptions, RunOptions};
use crate::control::ControlOptions;
use crate::error::usage;
use crate::journals::choice::JournalChoice;
use crate::journals::state_directory;
use crate::upgrade::program::UpgradeProgram;
use crate::value;

/// The most clients that may have separate metrics: a scraper keeps every label value it has seen.
const METRICS_CLIENTS_MAX: usize = 1_000;

/// How a run is shown and recorded.
#[derive(Clone, Debug)]
pub(crate) struct SessionConfig {
    pub(crate) journal: JournalChoice,
    pub(crate) interval: Duration,
    pub(crate) frontend: Frontend,
    /// Whether `--headless` was given.
    pub(crate) headless: bool,
    /// Whether the run outlives its terminal.
    pub(crate) keep_running: bool,
    pub(crate) format: Format,
    pub(crate) appearance: Appearance,
    pub(crate) duration: Option<Duration>,
    /// Intervals kept in memory without a dashboard. A summary needs totals only, and a service may run for months.
    pub(crate) history: usize,
    /// Where records are sent.
    pub(crate) upload: Option<UploadTarget>,
    /// The file of `--record`.
    pub(crate) record: Option<RecordingFile>,
    /// The experiment of `--ab`.
    pub(crate) experiment: Option<ExperimentPlan>,
    /// The control socket; `None` without one.
    pub(crate) control: Option<ControlOptions>,
    /// The address of `--metrics`.
    pub(crate) metrics: Option<SocketAddr>,
    /// The number of clients with separate metrics.
    pub(crate) metrics_clients: usize,
    /// The alerts of `--alert`.
    pub(crate) alerts: Vec<Alert>,
    /// The options of the proxy; `None` without one.
    pub(crate) configuration: Option<Box<RunConfiguration>>,
}

impl SessionConfig {
    /// Resolves the options of a run before anything is started.
    ///
    /// # Errors
    /// When two options exclude each other, or the path of `--record` is refused.
    pub(crate) fn resolve(
        run: &RunOptions,
        duration: Option<Duration>,
        appearance: Appearance,
    ) -> anyhow::Result<Self> {
        let journal: JournalChoice = (*run.journal).clone();
        let frontend = Frontend::choose(run.headless, &appearance);
        if journal == JournalChoice::Off && frontend != Frontend::Headless {
            return Err(usage(
                "--journal off goes with --headless only: the dashboard shows what the journal holds",
            ));
        }
        let upload = run.upload.as_deref().cloned().map(UploadTarget::new).transpose();
        let upload = upload.map_err(|error| usage(format!("--upload {error}")))?;
        let journal = if upload.is_some() { journal.in_file()? } else { journal };
        let file_of_journal = match &journal {
            JournalChoice::File(path) => Some(path.clone()),
            JournalChoice::Auto | JournalChoice::OwnFile(_) => state_directory::own_file(),
            _ => None,
        };
        if let (Some(file), Some(record)) = (file_of_journal, &run.record)
            && is_same_file(&file, record)
        {
            let (record, journal) = (record.display(), run.journal.text());
            return Err(usage(format!(
                "--record {record}: --journal {journal} is the same file; name another"
            )));
        }
        let record = run.record.as_deref().map(|path| RecordingFile::check(path, run.append)).transpose()?;
        if run.metrics.is_some() && journal == JournalChoice::Off {
            return Err(usage(
                "--metrics shows what the journal holds: it goes not together with --journal off",
            ));
        }
        if run.metrics_clients > 0 && run.metrics.is_none() {
            return Err(usage("--metrics-clients goes with --metrics ADDR"));
        }
        if run.metrics_clients > METRICS_CLIENTS_MAX {
            let clients = run.metrics_clients;
            return Err(usage(format!(
                "--metrics-clients {clients}: at most {METRICS_CLIENTS_MAX} clients have metrics of their own"
            )));
        }
        if run.append && record.is_none() {
            return Err(usage(
                "--append goes with --record FILE.journal: it says what becomes of a file that exists",
            ));
        }
        check_experiment_ends(run, duration)?;
        Ok(Self {
            journal,
            interval: run.interval.0,
            frontend,
            headless: run.headless,
            keep_running: run.keep_running,
            format: run.format,
            appearance,
            duration,
            history: 1,
            upload,
            record,
            experiment: run.ab.as_deref().cloned(),
            control: None,
            metrics: run.metrics,
            metrics_clients: run.metrics_clients,
            alerts: value::values(&run.alert),
            configuration: None,
        })
    }
}

/// # Errors
/// When the run ends before its experiment would.
pub(crate) fn check_experiment_ends(run: &RunOptions, duration: Option<Duration>) -> anyhow::Result<()> {
    if let Some((plan, duration)) = run.ab.as_ref().zip(duration)
        && duration <= plan.length()
    {
        let (words, takes) = (plan.text(), plan.length());
        return Err(usage(format!(
            "--ab {words}: it takes {takes:?}, and --duration ends the run after {duration:?}"
        )));
    }
    Ok(())
}

/// The options of the proxy of a run.
#[derive(Clone, Debug)]
pub(crate) struct RunConfiguration {
    /// The options in force, without live changes.
    pub(crate) options: ProxyOptions,
    /// Where they are read again; `None` in the demo.
    pub(crate) source: Option<ConfigurationSource>,
    /// The program that an upgrade starts; `None` in the demo, and with a dashboard, which needs the terminal.
    pub(crate) program: Option<UpgradeProgram>,
}

impl RunConfiguration {
    /// The options of `source`, as they would be in force after a restart.
    pub(super) fn complete(&self, options: ProxyOptions) -> anyhow::Result<ProxyOptions> {
        let mut options = options.with_defaults()?;
        if self.options.listen.is_empty() {
            // The sockets come from the service manager.
            options.listen.clear();
        }
        options.check()?;
        Ok(options)
    }

    /// The origin of a setting's value, if it was not changed live.
    pub(super) fn origin(&self, name: &str) -> Option<SettingOrigin> {
        let word = name.strip_prefix(PROXY)?;
        let word = if word.starts_with("certificate") { "cert" } else { word };
        Some(self.source.as_ref()?.origin(word, &self.options))
    }
}

/// Whether both paths are the same file, which need not exist.
fn is_same_file(a: &Path, b: &Path) -> bool {
    FileIdentity::of(a).is_ok_and(|a| FileIdentity::of(b).is_ok_and(|b| a == b))
}
