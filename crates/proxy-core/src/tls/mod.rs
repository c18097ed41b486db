//! Everything that knows rustls. rustls 0.24 replaces the unbuffered interface that the engine is written on, so
//! no other module may name it.

mod certificate;
mod config;
mod engine;
mod session;

pub use certificate::{Certificate, CertificateError, CertificateWarning};
pub(crate) use config::TlsConfig;
pub use config::TlsConfigError;
pub(crate) use engine::{Engine, EngineError, PARTIAL_BYTES_MAX};
pub(crate) use session::Session;
