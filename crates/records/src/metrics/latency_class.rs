//! The classes of latencies of all sides.

use super::{HttpLatency, LoadLatency, Metric, MetricNames, ProxyLatency, TlsLatency};

/// A class of latencies of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatencyClass {
    /// Timed by the proxy.
    Proxy(ProxyLatency),
    /// A part of the proxy's handshakes.
    Tls(TlsLatency),
    /// Timed by the proxy in HTTP mode.
    Http(HttpLatency),
    /// Timed by the load generator.
    Load(LoadLatency),
}

impl From<ProxyLatency> for LatencyClass {
    fn from(class: ProxyLatency) -> Self {
        Self::Proxy(class)
    }
}

impl From<TlsLatency> for LatencyClass {
    fn from(class: TlsLatency) -> Self {
        Self::Tls(class)
    }
}

impl From<HttpLatency> for LatencyClass {
    fn from(class: HttpLatency) -> Self {
        Self::Http(class)
    }
}

impl From<LoadLatency> for LatencyClass {
    fn from(class: LoadLatency) -> Self {
        Self::Load(class)
    }
}

impl HttpLatency {
    /// Whether it times requests of one protocol alone.
    pub fn is_of_one_protocol(self) -> bool {
        match self {
            Self::FirstByte1 | Self::FirstByte2 | Self::Request1 | Self::Request2 => true,
            Self::Queue | Self::Upstream | Self::FirstByte | Self::Request => false,
        }
    }
}

impl LatencyClass {
    /// Every class: the proxy's, then the parts of its handshakes, those of HTTP mode, and the load's.
    pub fn all() -> impl Iterator<Item = Self> {
        let proxy = ProxyLatency::ALL.iter().copied().map(Self::Proxy);
        let tls = TlsLatency::ALL.iter().copied().map(Self::Tls);
        let http = HttpLatency::ALL.iter().copied().map(Self::Http);
        proxy.chain(tls).chain(http).chain(LoadLatency::ALL.iter().copied().map(Self::Load))
    }

    /// `proxy` or `load`.
    pub fn side(self) -> &'static str {
        match self {
            Self::Proxy(_) | Self::Tls(_) | Self::Http(_) => "proxy",
            Self::Load(_) => "load",
        }
    }

    /// Its name in figures, JSON and CSV, such as `handshake_full`.
    pub fn key(self) -> &'static str {
        self.names().figure
    }

    /// Its label on the screen and in plots, such as `full handshake`.
    pub fn title(self) -> &'static str {
        self.names().title
    }

    pub fn meaning(self) -> &'static str {
        match self {
            Self::Proxy(class) => &class.field().meaning,
            Self::Tls(class) => &class.field().meaning,
            Self::Http(class) => &class.field().meaning,
            Self::Load(class) => &class.field().meaning,
        }
    }

    /// Its names, and the moments between which it times.
    pub fn names(self) -> &'static MetricNames {
        match self {
            Self::Proxy(class) => class.names(),
            Self::Tls(class) => class.names(),
            Self::Http(class) => class.names(),
            Self::Load(class) => class.names(),
        }
    }
}
