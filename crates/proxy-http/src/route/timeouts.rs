//! Timeouts that a route has of its own.

use std::time::Duration;

/// The timeouts of a route. For those that are `None`, the proxy's setting of the same name holds, as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteTimeouts {
    /// For reaching an upstream.
    pub connect: Option<Duration>,
    /// For waiting for an upstream connection.
    pub queue: Option<Duration>,
    /// From a request sent to the head of its response.
    pub response: Option<Duration>,
    /// How long the body of a request may make no progress.
    pub body: Option<Duration>,
}

impl RouteTimeouts {
    /// The names of the settings that they take the place of.
    pub const NAMES: [&'static str; 4] =
        ["connect-timeout", "queue-timeout", "response-timeout", "body-timeout"];

    /// The timeout that takes the place of this setting; `None` if a route has none such.
    pub fn of(&mut self, name: &str) -> Option<&mut Option<Duration>> {
        let Self { connect, queue, response, body } = self;
        let place = Self::NAMES.iter().position(|other| *other == name)?;
        [connect, queue, response, body].into_iter().nth(place)
    }

    /// The timeouts that the route sets, each with the setting's name.
    pub fn given(&self) -> impl Iterator<Item = (&'static str, Duration)> + use<> {
        let Self { connect, queue, response, body } = *self;
        let all = Self::NAMES.into_iter().zip([connect, queue, response, body]);
        all.filter_map(|(name, timeout)| Some((name, timeout?)))
    }
}
