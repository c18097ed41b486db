//! The only module that uses rustls: 0.24 replaces the unbuffered interface that the engine uses.
//!
//! ```text
//! files ──▶ certificates, authorities, ticket keys ─┐
//! settings (words) ─────────────────────────────────┴─▶ LiveTls ──▶ TlsConfig ──▶ Engine, one per connection
//! ```
//!
//! A [`TlsConfig`] never changes. A renewed certificate or a changed setting makes a new one, which the workers use
//! for new connections.

mod calibration;
mod cert_resolver;
mod certificate;
mod client_auth;
mod config;
mod description;
mod engine;
mod error;
mod evidence;
mod files;
mod harness;
mod live;
mod negotiated;
mod options;
mod provider;
mod refusal;
mod session;
mod session_cache;
mod settings;
#[cfg(test)]
mod testing;
mod tickets;
mod watch;

pub(crate) use ::client_hello::SingleChoices;
pub use calibration::{CALIBRATION_CPU, CalibrationError, calibrate};
pub use certificate::Certificate;
pub use client_auth::ClientCa;
pub(crate) use config::TlsConfig;
pub use config::TlsConfigError;
pub use description::{NoCertificate, describe_chain};
pub(crate) use engine::{Engine, EngineError, PARTIAL_BYTES_MAX};
pub use error::{TlsFileError, TlsFileWarning};
pub use harness::{HarnessOutcome, TlsHarness};
pub(crate) use live::LiveTls;
pub use live::{PresentedCertificates, RefreshError, TicketKeyError, Tls, TlsRefresh};
pub(crate) use negotiated::NegotiatedTls;
pub(crate) use provider::CryptoTime;
pub use settings::{CipherOrder, ClientAuth, Resumption, TicketSend, TlsSettings};
pub use tickets::TicketKeyFile;
pub use tickets::snapshot::{TicketKeySnapshot, TicketSnapshotError};
pub use watch::{FileChanges, TlsFiles};
