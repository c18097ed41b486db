//! What another program terminates: by its log, or by packets.

pub(crate) mod observe;
mod replayed;
mod server_certificates;
mod session;
pub(crate) mod wire;
