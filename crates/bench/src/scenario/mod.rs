//! A scenario: which targets are compared, in which cases.

mod case;
mod error;
mod launch;
mod matrix;
mod parse;
mod placement;
mod table;
mod target;
#[cfg(test)]
mod tests;
mod tls;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use case::CheckFlags;
pub use error::ScenarioError;
pub use launch::{Endpoint, Launch, LaunchError, PlaceholderValues};
pub(crate) use parse::read_template;
pub use placement::Placement;
pub(crate) use placement::core_count;
pub use tls::{BenchTlsConfig, KeyKind};

/// The fewest rounds that can show a difference at 5 %.
pub const ROUNDS_MIN: u32 = 6;
/// The most cells of a run: targets times cases times rounds.
pub const CELLS_MAX: usize = 10_000;

/// A checked scenario, with templates and matrices expanded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name: of the file, or `seed:002`.
    pub name: String,
    /// The subject of the comparison, in a line.
    pub title: String,
    /// Notes that a reader needs, such as differences from a published experiment.
    pub notes: Vec<String>,
    /// The name of the target that the others are compared with.
    pub baseline: String,
    /// How often each cell is measured.
    pub rounds: u32,
    /// The cores of target, generator and upstream; `None` is [`Placement::split`].
    pub cpus: Option<Placement>,
    /// The certificate and the TLS settings that all targets get.
    pub tls: BenchTlsConfig,
    /// The user's certificate, which all targets get; `None` for one that is made.
    #[serde(default)]
    pub certificate: Option<CertificatePaths>,
    /// The user's server behind all targets; `None` for one that is started.
    #[serde(default)]
    pub upstream: Option<Endpoint>,
    /// The targets, in the order of the file.
    pub targets: Vec<BenchTarget>,
    /// The cases, in the order of the file.
    pub cases: Vec<BenchCase>,
    pub assertions: Vec<BenchAssertion>,
    /// Published figures, shown beside the measured ones.
    pub published: Vec<PublishedFigure>,
}

/// PEM files with a certificate and its key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CertificatePaths {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// The absolute form of a path that the user gave, since generator and targets run in folders of their own. If this
/// process has no folder, the path stays as it is.
pub(crate) fn absolute(path: &str) -> String {
    std::path::absolute(path).map_or_else(|_| path.to_owned(), |path| path.display().to_string())
}

/// The absolute form of a program, unless it is looked for in `PATH`, or is a placeholder.
fn absolute_program(program: &str) -> String {
    let is_path = program.contains('/') && !program.starts_with('{');
    if is_path { absolute(program) } else { program.to_owned() }
}

impl Scenario {
    /// Why it has too many cells, in words; `None` if it does not.
    pub fn excess(&self) -> Option<String> {
        let cells = self.cells().count().saturating_mul(self.rounds as usize);
        let (targets, cases) = (self.targets.len(), self.cases.len());
        (cells > CELLS_MAX).then(|| {
            format!(
                "{targets} targets, {cases} cases and {} rounds are {cells} cells; at most {CELLS_MAX} are allowed",
                self.rounds
            )
        })
    }

    /// Keeps some of the cases, with their assertions and published figures. Returns the names of the others.
    pub(crate) fn retain_cases(&mut self, is_kept: impl Fn(&BenchCase) -> bool) -> Vec<String> {
        let (kept, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.cases).into_iter().partition(is_kept);
        self.cases = kept;
        let others: Vec<String> = others.into_iter().map(|case| case.name).collect();
        self.assertions.retain(|assertion| assertion.case.as_ref().is_none_or(|case| !others.contains(case)));
        self.published.retain(|figure| !others.contains(&figure.case));
        others
    }

    /// Compares with another baseline. Cases that are not for it are dropped; a note names them.
    pub(crate) fn replace_baseline(&mut self, baseline: &str) -> Option<String> {
        baseline.clone_into(&mut self.baseline);
        let dropped =
            self.retain_cases(|case| case.only.is_empty() || case.only.iter().any(|name| name == baseline));
        let is_any = !dropped.is_empty();
        is_any.then(|| format!("without the cases {}, which are not for {baseline}", dropped.join(", ")))
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchTarget {
    /// Its name in tables.
    pub name: String,
    /// The line of the scenario that begins it, from 1.
    pub line: usize,
    /// The key of its certificate.
    pub certificate: KeyKind,
    /// Its workers; 0 is one for each core that it may use.
    pub workers: u32,
    /// Its limit on open descriptors (`ulimit -n`); `None` leaves it as it is.
    pub descriptors: Option<u64>,
    /// How long each of its servers may take until it listens; `None` for the usual time.
    pub start_timeout: Option<Duration>,
    pub server: Server,
}

/// How a target is started or reached.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Server {
    /// Commands that this program starts. The first serves the clients, and each has the next as its upstream; the last
    /// one has the scenario's.
    Commands(Vec<CommandServer>),
    /// A server that runs already.
    Address(ExternalServer),
}

/// A server that this program starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct CommandServer {
    /// Its template; empty for a target that the scenario defines itself.
    pub template: String,
    /// The program and its arguments, with the placeholders of [`PlaceholderValues`].
    pub command: Vec<String>,
    /// A command that runs once in a run, before the target starts first, such as a compiler; empty if there is none.
    pub prepare: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// Variables of this program's environment that must name files; it gets them too.
    pub needs: Vec<String>,
    /// Files that are written into its folder, with the same placeholders.
    pub files: BTreeMap<String, String>,
    /// The Debian package of the program.
    pub package: Option<String>,
    /// Whether it terminates TLS.
    pub tls: bool,
    /// Whether it speaks HTTP/2.
    pub http2: bool,
    /// Whether `POST /echo` is answered with its body, by the target or by its upstream.
    pub echo: bool,
    pub upstream: UpstreamKind,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UpstreamKind {
    #[default]
    Unix,
    /// A TCP port of the loopback address.
    Tcp,
    /// Nothing: it answers itself.
    None,
}

/// A server that runs already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ExternalServer {
    /// Its URL without a path, such as `https://127.0.0.1:8443`.
    pub url: String,
    /// The main process, for CPU and memory; without it or a unit these are unknown.
    pub pid: Option<u32>,
    /// The systemd unit whose main process it is.
    pub unit: Option<String>,
    /// The authorities that signed its certificate, in PEM; without it the certificate is not verified.
    pub ca: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Question {
    /// CPU time per request at one rate that all targets sustain.
    #[default]
    Cost,
    /// The most requests per second within a bound on latency.
    Capacity,
    /// The case's own load, as it is written.
    Load,
}

/// A case: a load that every target gets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchCase {
    /// Its name in tables; of a matrix it has the values behind it, such as `body-bytes=10`.
    pub name: String,
    /// The line of the scenario that begins it, from 1.
    pub line: usize,
    pub question: Question,
    /// The names of the targets that it is for; empty for all.
    pub only: Vec<String>,
    pub path: String,
    /// The flags of `tlsdash load`, each as `--flag=value` or `--flag`; without URL, certificate, cipher, group, output,
    /// `--duration` and `--warmup`.
    pub flags: Vec<String>,
    /// The length of the load with its warm-up; `None` until the requests are answered or the stages of the rate end.
    pub duration: Option<Duration>,
    /// The part at its start that is not measured.
    pub warmup: Duration,
    /// How long a turn of a target is in a cost case; `None` measures one target after the other.
    pub turns: Option<Duration>,
    /// The latency bound of a capacity case: a percentile and its limit, such as `p99 < 10ms`.
    pub bound: Option<LatencyBound>,
    /// How long `--quick` runs it; `None` leaves it out.
    pub quick: Option<Duration>,
    /// Whether verdicts are given on it: it belongs to the list of primary comparisons.
    pub primary: bool,
}

/// A limit of a percentile of the response time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyBound {
    /// The percentile, such as 99.0 for p99.
    pub percentile: f64,
    pub limit_us: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BenchAssertion {
    /// The line of the scenario that states it, from 1.
    pub line: usize,
    pub target: String,
    /// The case it is about; `None` for every case.
    pub case: Option<String>,
    /// A condition such as `ratio < 0.8` or a figure of the catalogue, such as `response.p99 < 5ms`.
    pub condition: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    pub target: String,
    pub case: String,
    /// The figure's name in the catalogue, such as `response.p99`.
    pub figure: String,
    /// Its value in the figure's unit.
    pub value: f64,
}
