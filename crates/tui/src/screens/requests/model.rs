//! Single requests: the slowest of the window, and those that failed.

use model::runs::RecordedRequest;
use records::kinds::RequestRecord;
use records::metrics::TimeResolution;

use crate::panes::tables::routes::model::cause;
use crate::table::{CellValue, Column, ColumnUnit, Emphasis, NameId, Row};
use crate::theme::format;

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

type RequestColumn = Column<RequestRow>;

const COLUMNS: &[RequestColumn] = &[
    RequestColumn::named("request", "request", "method and path, without the query")
        .alias("path")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.target))
        .fit(0, (16, 60)),
    RequestColumn::named("status", "status", "the status that was sent; blank: none was")
        .shows(ColumnUnit::Count, |row| {
            CellValue::count(Some(row.recorded.request.status).filter(|&status| status > 0))
        })
        .fit(1, (7, 7))
        .emphasis(Emphasis::Figure),
    RequestColumn::named("total", "total ms", "first byte of the request to the end, slow clients included")
        .alias("ms")
        .shows(ColumnUnit::Latency, |row| row.timed(row.recorded.request.duration_us))
        .fit(2, (11, 11)),
    RequestColumn::named("cause", "cause", "why it failed, in the words of the records")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.cause))
        .fit(3, (9, 17)),
    RequestColumn::named(
        "upstream",
        "upstream",
        "request head sent to response head received; blank: no response",
    )
    .shows(ColumnUnit::Latency, |row| row.timed(row.recorded.request.upstream_us))
    .fit(4, (11, 11)),
    RequestColumn::named(
        "ttfb",
        "ttfb",
        "request head received to the first byte to the client; blank: no response",
    )
    .shows(ColumnUnit::Latency, |row| row.timed(row.recorded.request.first_byte_us))
    .fit(6, (11, 11)),
    RequestColumn::named("queue", "queue", "waiting for an upstream connection; blank: it did not wait")
        .shows(ColumnUnit::Latency, |row| row.timed(row.recorded.request.queue_us))
        .fit(8, (11, 11)),
    RequestColumn::named("client", "client", "address of the client")
        .shows(ColumnUnit::Text, |row| CellValue::Client(row.recorded.request.client))
        .fit(5, (13, 40))
        .emphasis(Emphasis::Quiet),
    RequestColumn::named("route", "route", "the route that served it; blank: none")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.recorded.request.route))
        .fit(7, (10, 24))
        .emphasis(Emphasis::Quiet),
    RequestColumn::named("time", "time", "end of the interval in which it was over")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.time))
        .fit(9, (10, 10))
        .emphasis(Emphasis::Quiet),
    RequestColumn::named("version", "version", "its protocol")
        .shows(ColumnUnit::Text, |row| CellValue::Text(row.recorded.request.version.to_string().into()))
        .optional((9, 9))
        .emphasis(Emphasis::Quiet),
    RequestColumn::named("to", "upstream address", "where it was sent last")
        .shows(ColumnUnit::Text, |row| CellValue::text(&row.recorded.request.upstream))
        .optional((17, 30))
        .emphasis(Emphasis::Quiet),
    RequestColumn::named("out", "out", "bytes of the response's body")
        .shows(ColumnUnit::Bytes, |row| CellValue::count(Some(row.recorded.request.body_out)))
        .optional((9, 9)),
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
