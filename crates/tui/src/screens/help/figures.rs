//! The figures that are not plain from their labels, by the panes that have them.

use crate::panes::PaneId;

/// Figures with what they mean.
pub(super) struct FigureGroup {
    pub(super) heading: &'static str,
    /// The panes whose help begins with them.
    pub(super) panes: &'static [PaneId],
    pub(super) is_of_http: bool,
    pub(super) figures: &'static [(&'static str, &'static str)],
}

pub(super) const FIGURES: [FigureGroup; 7] = [
    FigureGroup {
        heading: "latencies:",
        panes: &[PaneId::Latency, PaneId::Timeline],
        is_of_http: false,
        figures: &[
            ("(1.23)", "fewer than ten samples lie above this percentile"),
            (
                "p99 95 % CI",
                "its confidence interval, for independent samples; ≥ 5.26: too few samples for an upper end",
            ),
            ("vs mark 1", "p99 against that window; *: intervals do not overlap; ?: may be chance"),
            ("over time", "fuller: more samples of a column; blank: no records"),
        ],
    },
    FigureGroup {
        heading: "HTTP:",
        panes: &[PaneId::Http, PaneId::Routes],
        is_of_http: true,
        figures: &[
            ("sort, filter, details", "act on the focused list, else on the clients"),
            ("requests, req/s", "requests that were over, answered or given up"),
            ("p99 … ttfb", "header: p99 of the time to the first byte to the client"),
            ("failed", "requests that failed, whatever status was sent; an upstream's own 5xx is none"),
            ("2xx 3xx 4xx 5xx, none", "requests of the window by status; none: no status was sent"),
            ("in flight", "requests that are not over at the last record"),
            ("queued", "of these, those that wait for an upstream connection"),
            ("pool", "upstream connections of all routes, and of these the idle ones"),
            ("retried", "sent once more, as the upstream had closed the kept connection"),
            ("route", "host and path prefix; other: all routes after the 50th"),
            ("p50 ms, p99 ms", "of a route: upstream, head sent to response head received"),
            ("in, out", "of a route: bytes of request and response bodies"),
            ("slowest, failed requests", "of those with a record: failures and 5xx, the slowest, a sample"),
            ("cause", "why a request failed, in the words of its record; status-500: by the upstream"),
        ],
    },
    FigureGroup {
        heading: "handshakes:",
        panes: &[PaneId::Handshakes],
        is_of_http: false,
        figures: &[
            ("reasons", "why handshakes failed, of those with a record"),
            ("retransmitted", "handshakes since the start with resent segments"),
            ("resumed", "share of the window's completed handshakes that resumed a session; of 200: so many"),
            ("mostly", "the most frequent of each; its share if not all"),
            ("full, resumed … ms", "where the mean handshake's time goes; n: those timed"),
            ("network, client", "round trips (estimated), and the client beyond them"),
            ("loop delay, compute", "data had come and the worker was busy; inside TLS"),
        ],
    },
    FigureGroup {
        heading: "clients:",
        panes: &[PaneId::Clients],
        is_of_http: false,
        figures: &[
            ("out▼", "the order; a row moves once its figure has changed by a tenth"),
            ("why", "why its latest failed connection with a record failed"),
            ("full", "share of full handshakes in the window"),
            ("total", "bytes both ways since it came"),
            ("p99 ms", "of its exchanges, to an eighth"),
            ("RTT ms, resent", "by the kernel, at its handshakes"),
        ],
    },
    FigureGroup {
        heading: "usage:",
        panes: &[PaneId::Usage],
        is_of_http: false,
        figures: &[
            ("usage", "handshakes since the start by version, group, name, …"),
            ("share", "of all handshakes that the table has"),
            ("CPU share", "of all handshake CPU, not of a core"),
            ("only choice", "handshakes that would fail without this value"),
            ("bytes", "of connections that are over"),
        ],
    },
    FigureGroup {
        heading: "the run and its records:",
        panes: &[PaneId::System],
        is_of_http: false,
        figures: &[
            ("cert 89 days", "until the first certificate expires; amber, red as it gets urgent"),
            ("window", "the latest time, over which rates and latencies are"),
            ("mean of the whole run", "rates and CPU of an ended run, idle time included"),
            ("in, out", "plaintext from clients, and to clients; kB = 1000 B"),
            ("failed", "of the proxy: connections that served nothing"),
            ("+01:20", "a moment: 1 min 20 s after the start of the run"),
            ("journal lag", "from making a record to reading it here"),
            ("gaps, lost", "holes in the records read, and records missing"),
            ("docs/figures.md", "defines every figure"),
        ],
    },
    FigureGroup {
        heading: "alerts:",
        panes: &[PaneId::Findings, PaneId::Log],
        is_of_http: false,
        figures: &[
            ("[ALERT], 1.23!", "alerts that fire, and a figure that one is about"),
            (
                "alert.1",
                "FIGURE OP VALUE [for TIME] [over WINDOW], or off; such as response.p99 > 5ms for 30s over 1m",
            ),
        ],
    },
];
