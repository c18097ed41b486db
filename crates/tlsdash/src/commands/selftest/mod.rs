//! `tlsdash selftest`: whether tlsdash works on this machine, and what the machine lacks.

mod machine;
mod runs;

use std::fmt;

use clap::Args;
use records::text::table::wrap;
use serde::Serialize;

use crate::service::environment;
use crate::summary::print_text;
use crate::value::{ParsedValue, PositiveDuration};

const EXAMPLES: &str = "Examples:
  tlsdash selftest
  tlsdash selftest --json --duration 20s";

#[derive(Args, Debug)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SelftestArgs {
    /// Print one JSON object at the end, such as an issue should have
    #[arg(long)]
    pub(crate) json: bool,
    /// Length of each of the two runs: in TCP mode and in HTTP mode
    #[arg(long, value_name = "TIME", default_value = "5s")]
    pub(crate) duration: ParsedValue<PositiveDuration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Status {
    Ok,
    /// It must work, and does not.
    Failed,
    /// The machine does not have or allow it, and tlsdash works without.
    Lacks,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Failed => "FAILED",
            Self::Lacks => "lacks",
        })
    }
}

/// The result of one check.
#[derive(Clone, Debug, Serialize)]
struct Check {
    name: &'static str,
    status: Status,
    detail: String,
    /// What helps; `None` if nothing is missing, or nobody knows.
    remedy: Option<String>,
}

impl Check {
    fn ok(name: &'static str, detail: impl Into<String>) -> Self {
        Self { name, status: Status::Ok, detail: detail.into(), remedy: None }
    }

    fn lacks(name: &'static str, detail: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { name, status: Status::Lacks, detail: detail.into(), remedy: Some(remedy.into()) }
    }

    fn of_work(name: &'static str, worked: anyhow::Result<String>) -> Self {
        match worked {
            Ok(detail) => Self::ok(name, detail),
            Err(error) => {
                Self { name, status: Status::Failed, detail: crate::error::line(&error), remedy: None }
            }
        }
    }
}

/// Lines for people, whatever the texts quote.
impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, status, detail, remedy } = self;
        let remedy = remedy.as_ref().map_or_else(String::new, |remedy| format!("; {remedy}"));
        let text = records::text::clean::line(&format!("{detail}{remedy}"));
        let indent = " ".repeat(25);
        let lines = wrap(&text, 80 - indent.len(), "");
        write!(f, "{status:<6}  {name:<15}  {}", lines.join(&format!("\n{indent}")))
    }
}

/// The object of `--json`.
#[derive(Serialize)]
struct SelftestReport {
    version: String,
    kernel: String,
    checks: Vec<Check>,
}

/// Makes all checks, and prints each once it is done, or all of them at the end.
///
/// # Errors
/// If a check failed; what the machine lacks is no failure.
pub(crate) fn run(args: &SelftestArgs) -> anyhow::Result<()> {
    let mut checks = Vec::new();
    let mut add = |check: Check| {
        if !args.json {
            print_text(&format!("{check}\n"))?;
        }
        checks.push(check);
        anyhow::Ok(())
    };
    machine::checks().try_for_each(&mut add)?;
    runs::checks(args.duration.0, &mut add)?;
    let count = |status| checks.iter().filter(|check| check.status == status).count();
    let [ok, failed, lacking] = [Status::Ok, Status::Failed, Status::Lacks].map(count);
    if args.json {
        let header = environment::header();
        let report = SelftestReport { version: header.version, kernel: header.kernel, checks };
        print_text(&(serde_json::to_string_pretty(&report)? + "\n"))?;
    } else {
        let verdict = if failed == 0 { "tlsdash works here" } else { "tlsdash does NOT work here" };
        print_text(&format!("{verdict}: {ok} ok, {failed} failed, {lacking} lacking\n"))?;
    }
    anyhow::ensure!(
        failed == 0,
        "selftest: {failed} of {} checks failed; an issue should have the output of `tlsdash selftest --json`",
        ok + failed + lacking
    );
    Ok(())
}
