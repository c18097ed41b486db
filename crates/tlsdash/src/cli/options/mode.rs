//! The proxy's modes.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// What the proxy does with the plaintext.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ProxyMode {
    /// Forwards bytes, whatever the protocol.
    #[default]
    Tcp,
    /// Speaks HTTP/2 and HTTP/1.1, and routes requests.
    Http,
}
