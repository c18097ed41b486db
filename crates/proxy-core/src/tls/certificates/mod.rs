//! What the terminator presents and trusts: read from files, described, chosen for a client, and watched for renewal.

pub(in crate::tls) mod authorities;
pub(in crate::tls) mod cert_resolver;
pub(in crate::tls) mod certificate;
pub(in crate::tls) mod chain;
pub(in crate::tls) mod client_auth;
pub(in crate::tls) mod description;
pub(in crate::tls) mod error;
pub(in crate::tls) mod files;
pub(in crate::tls) mod identity;
mod ocsp;
pub(in crate::tls) mod revocation;
pub(in crate::tls) mod served;
pub(in crate::tls) mod watch;
