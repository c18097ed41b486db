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
mod certificates;
mod client;
mod clock;
mod config_error;
mod engine;
mod harness;
mod provider;
mod resumption;
mod server;
mod settings;
#[cfg(test)]
mod testing;

pub(crate) use ::hello::SingleChoices;
pub use calibration::{CALIBRATION_CPU, CalibrationError, calibrate};
pub use certificates::authorities::Authorities;
pub use certificates::certificate::Certificate;
pub use certificates::description::{NoCertificate, describe_chain};
pub use certificates::error::{TlsFileError, TlsFileWarning};
pub use certificates::revocation::RevocationLists;
pub use certificates::served::PresentedCertificates;
pub use certificates::watch::{FileChanges, TlsFiles};
pub(crate) use client::config::{TlsPeer, UpstreamTlsConfig};
pub use client::config::{UpstreamName, UpstreamNameError, UpstreamTls};
pub(crate) use client::engine::ClientEngine;
pub use client::error::{UpstreamTlsError, UpstreamTlsFailure};
pub use config_error::TlsConfigError;
pub(crate) use engine::{EngineError, PARTIAL_BYTES_MAX};
pub use harness::{HarnessOutcome, TlsHarness};
pub(crate) use provider::CryptoTime;
pub use resumption::tickets::TicketKeyFile;
pub use resumption::tickets::snapshot::{TicketKeySnapshot, TicketSnapshotError};
pub use server::acme_challenges::AcmeChallenges;
pub(crate) use server::client_tls::ClientTls;
pub(crate) use server::config::TlsConfig;
pub(crate) use server::engine::Engine;
pub(crate) use server::live::LiveTls;
pub use server::live::{TicketKeyError, Tls};
pub(crate) use server::negotiated::NegotiatedTls;
pub(crate) use server::passed_tls::{PassedTls, PassedVerdict};
pub use server::refresh::{RefreshError, TlsRefresh};
pub use settings::{
    CipherOrder, ClientAuth, ClientAuthPolicy, CrlExpired, Resumption, ServerNames, TicketSend, TlsSettings,
};
