//! What every TLS client of tlsdash shares, whether it loads a server or connects to an upstream: whom it trusts, how it
//! verifies, why it refuses, in words, and which sessions it can resume.

#![forbid(unsafe_code)]

mod https;
mod refusal;
mod sessions;
mod trust;
mod verify;

pub use https::{IdentityError, authorities, check_identity, io_reason, provider};
pub use refusal::{TrustFlags, advice, reason};
pub use sessions::{SessionReset, SessionStore};
pub use trust::{KnownCertificates, Trust};
pub use verify::{TrustError, verifier};
