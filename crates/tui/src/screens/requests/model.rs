//! Single requests: the slowest of the window, and those that failed.

use model::runs::RecordedRequest;
use records::kinds::RequestRecord;
use records::metrics::TimeResolution;

use crate::format;
use crate::panes::routes::model::cause;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};

/// A request that has a record.
#[derive(Clone, Debug)]
pub(crate) struct RequestRow {
    /// Method and path.
    pub(crate) target: String,
    /// Why it failed; empty if it did not.
    pub(crate) cause: String,
    /// When its interval ended.
    pub(crate) time: String,
    pub(crate) recorded: RecordedRequest,
    pub(crate) resolution: TimeResolution,
}

impl RequestRow {
    /// `time` is when its interval ended, as the screen writes it.
    pub(crate) fn of(recorded: RecordedRequest, time: String, resolution: TimeResolution) -> Self {
        Self { target: target(&recorded.request), cause: cause(&recorded), time, recorded, resolution }
    }

    pub(crate) fn sentence(&self) -> String {
        let request = &self.recorded.request;
        let or = |text: &str, other: &str| if text.is_empty() { other.to_owned() } else { text.to_owned() };
        let status = match request.status {
            0 => "no status".to_owned(),
            status => format!("status {status}"),
        };
        let cause = if self.cause.is_empty() { String::new() } else { format!(", {}", self.cause) };
        let kept = if request.reused { ", kept connection" } else { "" };
        let retried = if request.retried { ", sent once more" } else { "" };
        format!(
            "{} {}: {status}{cause}; {} by {}{kept}{retried}; connection {} of {}; body in {}, out {}",
            request.version,
            self.target,
            or(&request.route, "no route"),
            or(&request.upstream, "no upstream"),
            request.conn.0,
            request.client,
            format::bytes(request.body_in as f64),
            format::bytes(request.body_out as f64),
        )
    }

    /// Returns the cell of a time; a time of 0 is unknown.
    fn timed(&self, us: u64) -> CellValue<'static> {
        CellValue::Time((us > 0).then_some(us * 1_000), self.resolution)
    }
}

/// Returns method and path.
pub(crate) fn target(request: &RequestRecord) -> String {
    let path = if request.path.is_empty() { "(path not recorded)" } else { &*request.path };
    format!("{} {path}", request.method)
}

const FIGURE: Column<RequestRow> = Column::FIGURE;
const TIME: Column<RequestRow> = Column { unit: ColumnUnit::Latency, cells: (11, 11), ..FIGURE };
const TEXT: Column<RequestRow> = Column { unit: ColumnUnit::Text, emphasis: Emphasis::Quiet, ..FIGURE };

const COLUMNS: &[Column<RequestRow>] = &[
    Column {
        name: "request",
        alias: "path",
        heading: "request",
        meaning: "method and path, without the query",
        unit: ColumnUnit::Text,
        cells: (16, 60),
        value: |row| CellValue::text(&row.target),
        ..FIGURE
    },
    Column {
        name: "status",
        heading: "status",
        meaning: "the status that was sent; blank: none was",
        cells: (7, 7),
        rank: 1,
        emphasis: Emphasis::Figure,
        value: |row| CellValue::count(Some(row.recorded.request.status).filter(|&status| status > 0)),
        ..FIGURE
    },
    Column {
        name: "total",
        alias: "ms",
        heading: "total ms",
        meaning: "first byte of the request to the end, slow clients included",
        rank: 2,
        value: |row| row.timed(row.recorded.request.duration_us),
        ..TIME
    },
    Column {
        name: "cause",
        heading: "cause",
        meaning: "why it failed, in the words of the records",
        cells: (9, 17),
        rank: 3,
        emphasis: Emphasis::None,
        value: |row| CellValue::text(&row.cause),
        ..TEXT
    },
    Column {
        name: "upstream",
        heading: "upstream",
        meaning: "request head sent to response head received; blank: no response",
        rank: 4,
        value: |row| row.timed(row.recorded.request.upstream_us),
        ..TIME
    },
    Column {
        name: "ttfb",
        heading: "ttfb",
        meaning: "request head received to the first byte to the client; blank: no response",
        rank: 6,
        value: |row| row.timed(row.recorded.request.first_byte_us),
        ..TIME
    },
    Column {
        name: "queue",
        heading: "queue",
        meaning: "waiting for an upstream connection; blank: it did not wait",
        rank: 8,
        value: |row| row.timed(row.recorded.request.queue_us),
        ..TIME
    },
    Column {
        name: "client",
        heading: "client",
        meaning: "address of the client",
        cells: (13, 40),
        rank: 5,
        value: |row| CellValue::Client(row.recorded.request.client),
        ..TEXT
    },
    Column {
        name: "route",
        heading: "route",
        meaning: "the route that served it; blank: none",
        cells: (10, 24),
        rank: 7,
        value: |row| CellValue::text(&row.recorded.request.route),
        ..TEXT
    },
    Column {
        name: "time",
        heading: "time",
        meaning: "end of the interval in which it was over",
        cells: (10, 10),
        rank: 9,
        value: |row| CellValue::text(&row.time),
        ..TEXT
    },
    Column {
        name: "version",
        heading: "version",
        meaning: "its protocol",
        cells: (9, 9),
        rank: 20,
        is_usual: false,
        value: |row| CellValue::Text(row.recorded.request.version.to_string().into()),
        ..TEXT
    },
    Column {
        name: "to",
        heading: "upstream address",
        meaning: "where it was sent last",
        cells: (17, 30),
        rank: 20,
        is_usual: false,
        value: |row| CellValue::text(&row.recorded.request.upstream),
        ..TEXT
    },
    Column {
        name: "out",
        heading: "out",
        meaning: "bytes of the response's body",
        unit: ColumnUnit::Bytes,
        cells: (9, 9),
        rank: 20,
        is_usual: false,
        value: |row| CellValue::count(Some(row.recorded.request.body_out)),
        ..FIGURE
    },
];

impl Row for RequestRow {
    /// The end of its interval, its connection, its duration, and a hash of its target: streams of a connection may end
    /// together.
    type Id = (u64, u64, u64, NameId);

    fn columns() -> &'static [Column<Self>] {
        COLUMNS
    }

    fn id(&self) -> Self::Id {
        let request = &self.recorded.request;
        (self.recorded.mono_us, request.conn.0, request.duration_us, NameId::of(&self.target))
    }

    fn tie(&self) -> u64 {
        self.recorded.mono_us
    }
}

impl RequestRow {
    /// The column by which requests are ordered.
    pub(crate) const TOTAL: usize = 2;
}
