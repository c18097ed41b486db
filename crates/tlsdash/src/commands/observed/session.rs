//! The session over what another program terminates, and its options.

use std::path::PathBuf;

use clap::Args;
use recorder::host::ProcessObserver;
use recorder::observer::Observer;
use records::kinds::{NoticeRecord, RunRecord};

use super::server_certificates::{CertificateSource, ServerCertificates};
use crate::cli::appearance::{Appearance, AppearanceOptions};
use crate::cli::{Flags, RunOptions};
use crate::service;
use crate::session::workload::Workload;
use crate::session::{Channels, Session, SessionConfig};
use crate::value::{ParsedValue, PositiveDuration};

/// The options of every command that observes.
#[derive(Args, Debug)]
pub(crate) struct ObservingOptions {
    /// Record the certificate of this address: ADDRESS:PORT, or NAME@ADDRESS:PORT to ask for a server name; one
    /// handshake asks for it. May be repeated
    #[arg(long, value_name = "ADDR")]
    pub(super) certificate_of: Vec<CertificateSource>,
    /// End after this time and print a summary
    #[arg(long, value_name = "TIME")]
    duration: Option<ParsedValue<PositiveDuration>>,
    /// Configuration file in TOML; for the dashboard's colours and keys
    #[arg(long, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    #[command(flatten)]
    pub(super) run: RunOptions,
    #[command(flatten)]
    pub(super) appearance: AppearanceOptions,
}

impl ObservingOptions {
    /// Resolves the options before anything is started.
    ///
    /// # Errors
    /// When the configuration cannot be read, or two options exclude each other.
    pub(super) fn resolve(&self, flags: &Flags) -> anyhow::Result<SessionConfig> {
        let appearance = Appearance::with_file(self.config.as_deref(), flags)?;
        let duration = self.duration.as_ref().map(|duration| duration.0);
        SessionConfig::resolve(&self.run, duration, appearance)
    }
}

/// An observer that has been started, and what is said of it.
pub(super) struct Started {
    pub(super) observer: Observer,
    pub(super) header: RunRecord,
    pub(super) title: String,
    /// What a program without a dashboard does now, such as `observing nginx, log /var/log/nginx/access.log`.
    pub(super) does: String,
    pub(super) notices: Vec<NoticeRecord>,
}

/// Runs a session to its end. `start` begins to observe, once everything else is open.
pub(super) fn run(
    session: SessionConfig,
    certificates: &[CertificateSource],
    processes: Option<ProcessObserver>,
    start: impl FnOnce() -> anyhow::Result<Started>,
) -> anyhow::Result<()> {
    let ServerCertificates { settings, notices: of_certificates, late } =
        ServerCertificates::ask(certificates)?;
    let channels = Channels::new(&session)?;
    let journal = session.journal.open()?;
    let Started { observer, header, title, does, mut notices } = start()?;
    let header = RunRecord { settings, ..header };
    notices.extend(of_certificates);
    let workload = Workload {
        observer: Some(observer),
        late_certificates: Some(late),
        observed: processes,
        ..Workload::default()
    };
    let session =
        Session { config: session, channels, title, header, notices, workload, journal, handover: None };
    session.check()?;
    service::ready();
    session.say_what(&does);
    session.run()
}
