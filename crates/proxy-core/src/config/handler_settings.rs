//! The settings that a handler adds to those of the proxy.

use std::fmt;

use records::setting::{Setting, SettingError, Value};

use crate::accept::descriptors::UpstreamSockets;
use crate::upstream::target::Upstream;

/// Settings of a [`Handler`](crate::handler::Handler).
pub trait HandlerSettings: fmt::Debug + Send + Sync {
    fn list(&self) -> Vec<Setting>;

    /// Changes a setting and returns its former state; `None` if there is no such setting.
    fn set(&self, name: &str, value: &Value) -> Option<Result<Setting, SettingError>>;

    /// The upstreams of each destination, by its index.
    fn destinations(&self) -> Vec<Vec<Upstream>>;

    /// How many destinations come before those of the configuration's routes.
    fn own_destinations(&self) -> usize;

    /// Takes over other upstreams of each destination. What it lists has them from now on.
    fn set_destinations(&self, destinations: Vec<Vec<Upstream>>);

    /// The number of descriptors that its upstream connections use.
    fn upstream_sockets(&self) -> UpstreamSockets;

    /// Sets the number of workers that share the limits. They read the settings again afterwards.
    fn set_workers(&self, _workers: usize) {}

    /// Names of the proxy's settings that the handler does not use, without `proxy.`.
    fn unused_settings(&self) -> &'static [&'static str] {
        &[]
    }
}
