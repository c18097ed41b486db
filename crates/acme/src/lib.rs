//! Certificates from an authority by ACME (RFC 8555): the account, an order with its challenges, the files that they are
//! kept in, and when to renew.
//!
//! It knows no proxy. Whoever serves clients answers the challenges from [`ChallengeAnswers`].

#![forbid(unsafe_code)]

mod challenge;
mod config;
mod https_client;
mod leaf;
mod order;
mod renewal;
mod schedule;
mod store;

pub use challenge::{ChallengeAnswers, ChallengeKind, DnsHook, HookError, Responder};
pub use config::{AcmeConfig, AcmeConfigError, LETS_ENCRYPT};
pub use order::{AcmeClient, AcmeError};
pub use renewal::{Renewal, RenewalOutcome, RenewalReport, Renewer};
pub use store::{AcmeStore, StoreError, StoreLock};
pub use tls_client::Trust;
