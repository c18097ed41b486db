//! `tlsdash explain`: findings, why handshakes were full, and advice.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use log_store::StoreUrl;
use model::insight::{self, Advice, FindingSummary, HowTo, Saving, Severity, UncertainValue};
use model::runs::Run;
use model::summary::CertificateSummary;
use records::metrics::FullReason;
use serde::Serialize;

use crate::cli::{Format, RunsArgs};
use crate::error::UnmetCondition;
use crate::journals::reading::{RecordedRun, run_name};
use crate::journals::writers::WriterArgs;
use crate::summary;

/// Shown below the help.
const EXAMPLES: &str = "Examples:
  tlsdash explain                                # the newest run of the service
  tlsdash explain run.journal
  tlsdash explain --since -1h --fail-on warning  # exit code 99 if there is one";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// Format of the output
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(crate) format: Format,
    /// End with exit code 99 if a finding is so severe: info, warning or critical, or more
    #[arg(long, value_name = "SEVERITY")]
    pub(crate) fail_on: Option<FindingSeverity>,
    #[command(flatten)]
    pub(crate) runs: RunsArgs,
}

/// How severe a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FindingSeverity {
    Info,
    Warning,
    Critical,
}

impl From<FindingSeverity> for Severity {
    fn from(severity: FindingSeverity) -> Self {
        match severity {
            FindingSeverity::Info => Self::Info,
            FindingSeverity::Warning => Self::Warning,
            FindingSeverity::Critical => Self::Critical,
        }
    }
}

/// Version of the JSON's shape; later versions only add to it.
const SCHEMA: u64 = 1;

/// Certificates that the text lists.
const CERTIFICATES_MAX: usize = 20;

/// Intervals kept of the run, for estimates: more than a day of seconds.
const INTERVALS_MAX: usize = 100_000;

/// Bounds of a block that a check takes.
const BLOCK_S_MIN: u64 = 10;
const BLOCK_S_MAX: u64 = 60;

#[derive(Debug, Serialize)]
struct Explanation {
    schema: u64,
    run: String,
    duration_s: f64,
    findings: Vec<FindingSummary>,
    /// Full handshakes by reason; empty without a record.
    full_by_reason: BTreeMap<String, u64>,
    /// Full handshakes that the run's own load asked for by offering no session.
    full_by_load: u64,
    /// Changes that would resume more.
    advice: Vec<Advice>,
    /// The savings of changes; empty if the run has no calibration.
    savings: Vec<SavingText>,
    /// The certificates that are served, the one that ends first first.
    certificates: Vec<CertificateSummary>,
}

#[derive(Debug, Serialize)]
struct SavingText {
    change: String,
    /// Cores: CPU seconds a second, from the least to the most that is plausible.
    cores: [f64; 3],
    /// Share of the CPU time of all handshakes, in the same way.
    share: [f64; 3],
    how: String,
    /// An experiment that checks it, in the words of `--ab`.
    #[serde(skip_serializing_if = "Option::is_none")]
    experiment: Option<String>,
}

impl SavingText {
    fn of(saving: &Saving) -> Self {
        let three = |estimate: UncertainValue| [estimate.low, estimate.mid, estimate.high];
        let (how, experiment) = match &saving.how {
            HowTo::Setting { name, value, experiment } => {
                let how = value
                    .as_ref()
                    .map_or_else(|| format!("change {name}"), |value| format!("set {name} to {value}"));
                (how, experiment.clone())
            }
            HowTo::Otherwise(text) => ((*text).to_owned(), None),
        };
        let change = saving.change.to_string();
        Self { change, cores: three(saving.cores), share: three(saving.share), how, experiment }
    }
}

/// The command that checks an estimate with the traffic of which it was made.
struct CheckCommand {
    /// The load that is like that traffic; empty if `--load` cannot name it.
    load: String,
    /// Seconds of a block: one round of the recording, within reason.
    block_s: u64,
}

impl CheckCommand {
    fn of(args: &RunsArgs, recorded: &RecordedRun, run: &Run) -> Self {
        let block_s = (run.duration_us() / 1_000_000).clamp(BLOCK_S_MIN, BLOCK_S_MAX);
        let load = Self::source(args, recorded)
            .map_or_else(String::new, |source| format!(" --load 'like={source}'"));
        Self { load, block_s }
    }

    /// The source as `--load` takes it, which has no options to choose a run.
    fn source<'a>(args: &'a RunsArgs, recorded: &'a RecordedRun) -> Option<&'a str> {
        let RunsArgs {
            run: None, host: None, service: None, since: None, until: None, sources, writers, ..
        } = args
        else {
            return None;
        };
        let WriterArgs { uid: None, unit: None, any_user: false } = writers else { return None };
        let source = match &**sources {
            [] => &*recorded.source,
            [source] => source.to_str()?,
            _ => return None,
        };
        // A URL may have a password.
        (!source.contains([',', '\'']) && !StoreUrl::is_one(source)).then_some(source)
    }

    /// A line with the command; empty if there is no experiment.
    fn text(&self, experiment: Option<&str>) -> String {
        let Some(words) = experiment else { return String::new() };
        let load = if words.starts_with("load.") { "" } else { &self.load };
        format!("    check: tlsdash … --ab {words},block={}s{load}\n", self.block_s)
    }
}

/// Prints the explanation, and fails if there are findings as severe as `--fail-on`.
pub(crate) fn run(args: &ExplainArgs) -> anyhow::Result<()> {
    let recorded = RecordedRun::read(&args.runs.sources, &args.runs.query("explain", INTERVALS_MAX))?;
    let run = recorded.run()?;
    let explanation = Explanation::of(run);
    summary::print_text(&match args.format {
        Format::Text => explanation.text(&run_name(run), &CheckCommand::of(&args.runs, &recorded, run)),
        Format::Json => serde_json::to_string_pretty(&explanation)? + "\n",
    })?;
    match args.fail_on {
        Some(severity) => explanation.check(severity.into()),
        None => Ok(()),
    }
}

impl Explanation {
    fn of(run: &Run) -> Self {
        let summary = run.summary();
        let reasons = run.tls().map(|series| {
            let count =
                |(_, counter, word): (FullReason, _, &str)| (word.to_owned(), series.totals()[counter]);
            FullReason::ALL.into_iter().map(count).collect()
        });
        let costs = run.handshake_costs();
        let savings = costs.map(|costs| insight::savings(run, costs, run.duration_us()));
        let savings = savings.unwrap_or_default();
        let mut served = summary.proxy.map_or_else(Vec::new, |proxy| proxy.certificates);
        served.retain(|certificate| !certificate.replaced);
        Self {
            schema: SCHEMA,
            run: summary.run,
            duration_s: summary.duration_s,
            findings: summary.findings,
            full_by_reason: reasons.unwrap_or_default(),
            full_by_load: insight::full_by_load(run),
            advice: insight::advice(run),
            savings: savings.iter().map(SavingText::of).collect(),
            certificates: served,
        }
    }

    /// # Errors
    /// With the findings of that severity and above, whether or not they have closed.
    fn check(&self, severity: Severity) -> anyhow::Result<()> {
        let severe = self.findings.iter().filter(|finding| finding.severity >= severity);
        let severe: Vec<String> =
            severe.map(|finding| format!("{}: {}", finding.id, finding.sentence())).collect();
        match &*severe {
            [] => Ok(()),
            all => Err(UnmetCondition(format!("findings: {}", all.join("; "))).into()),
        }
    }

    fn text(&self, name: &str, check: &CheckCommand) -> String {
        let mut out = format!(
            "{name}, {} long\n\nFindings\n",
            records::text::quantity::elapsed_text(self.duration_s as u64)
        );
        if self.findings.is_empty() {
            out.push_str("  none\n");
        }
        self.findings.iter().for_each(|finding| finding_text(finding, &mut out));
        self.certificates_text(&mut out);
        if self.full_by_reason.is_empty() {
            out.push_str("\nWhy handshakes were full is not known: the run has no proxy that counts it\n");
            return out;
        }
        self.reasons_text(&mut out);
        out.push_str("\nWhat would resume more\n");
        if self.advice.is_empty() {
            out.push_str("  no setting, by what was counted\n");
        }
        for advice in &self.advice {
            let _ = writeln!(out, "  {}: {}", advice.flag, advice.sentence);
            out.push_str(&check.text(advice.experiment.as_deref()));
        }
        if !self.savings.is_empty() {
            out.push_str("\nWhat a change would save (estimates)\n");
        }
        for SavingText { change, share, cores, how, experiment } in &self.savings {
            let [low, mid, high] = share.map(|share| share * 100.0);
            let _ = writeln!(
                out,
                "  {change}: {mid:.0} % of handshake CPU ({low:.0} to {high:.0} %), {:.3} cores; {how}",
                cores[1]
            );
            out.push_str(&check.text(experiment.as_deref()));
        }
        out
    }

    fn certificates_text(&self, out: &mut String) {
        if !self.certificates.is_empty() {
            out.push_str("\nCertificates, by days left\n");
        }
        for one in self.certificates.iter().take(CERTIFICATES_MAX) {
            let hosts = match &*one.hosts {
                [] => String::new(),
                hosts => format!(", at {}", hosts.join(", ")),
            };
            let (days, name) = (one.days_left, one.name());
            let _ = writeln!(out, "  {days:>6}  {name}, {}, serial {}{hosts}", one.key, one.serial);
        }
        match self.certificates.len().saturating_sub(CERTIFICATES_MAX) {
            0 => {}
            more => drop(writeln!(out, "          and {more} more")),
        }
    }

    fn reasons_text(&self, out: &mut String) {
        out.push_str("\nWhy handshakes were full\n");
        let whole: u64 = self.full_by_reason.values().sum();
        if whole == 0 {
            out.push_str("  no full handshake was counted\n");
        }
        let mut reasons: Vec<_> = self.full_by_reason.iter().filter(|(_, n)| **n > 0).collect();
        reasons.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
        for (word, n) in reasons {
            let share = *n as f64 / whole as f64 * 100.0;
            let _ = writeln!(out, "  {:<16}{n:>10}{share:>7.1} %", word.replace('_', " "));
        }
        if whole > 0 && self.full_by_load > 0 {
            let _ = writeln!(out, "  {} of these were asked for by the run's own load", self.full_by_load);
        }
    }
}

fn finding_text(finding: &FindingSummary, out: &mut String) {
    let when = finding.when();
    let FindingSummary { id, severity, text, .. } = finding;
    let _ = writeln!(out, "  {severity:<9}{}\n           {id}, {when}", finding.sentence());
    for one in &text.evidence {
        let _ = writeln!(out, "           {}: {}", one.figure, one.value);
    }
    for one in &text.whom {
        let _ = writeln!(out, "           - {one}");
    }
    if text.whom_more > 0 {
        let _ = writeln!(out, "           - and {} more", text.whom_more);
    }
    for advice in &text.advice {
        let _ = writeln!(out, "           > {advice}");
    }
}
