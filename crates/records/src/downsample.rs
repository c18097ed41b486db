//! Downsamples recordings: merges the records of several intervals into one.
//!
//! Every record carries totals, so totals stay the same. Latencies are merged bucket by bucket, so the percentiles of
//! longer times stay the same. Events (marks, changes, errors) are kept; of requests without an error, the slowest of a
//! period. A hole in the sequence stays a hole.

use std::cmp::Reverse;
use std::time::Duration;

use foldhash::{HashMap, HashSet};

use crate::codec::{Origin, Writer};
use crate::ids::{ClientId, RunId};
use crate::kinds::{Body, ClientRecord, NamedRecord as _, Phase, Record, Stamp};
use crate::metrics::ClientCounter;

/// Requests without an error that are kept of a period: the slowest.
const REQUESTS_MAX: usize = 8;
/// Records that wait for the end of a period; more end it early.
const WAITING_MAX: usize = 4_096;
/// Clients of a period of roll-ups that are merged.
const CLIENTS_MERGED_MAX: usize = 1_024;
/// Clients with most bytes that enter the roll-ups of a run in each period, and those that are in them at most. A client that
/// is in them stays: its totals must not grow old.
const CLIENTS_NEW_MAX: usize = 10;
const CLIENTS_KEPT_MAX: usize = 100;

/// Downsamples the records of runs, as they come.
#[derive(Debug)]
pub struct Downsampler {
    period_us: u64,
    is_rollup: bool,
    runs: HashMap<(Origin, RunId), RunBuffer>,
}

/// The records of one run that are not given yet.
#[derive(Debug, Default)]
struct RunBuffer {
    is_rollup: bool,
    /// Whether it has roll-ups. A run that ends within the first period needs none.
    has_rollups: bool,
    /// The last sequence number read, and the last one assigned.
    read_seq: u64,
    emitted_seq: u64,
    /// From when on periods are counted: those of roll-ups from the beginning of the run.
    origin_us: u64,
    /// The period of the records that wait, counted in lengths of a period.
    period: u64,
    waiting: Vec<Record>,
    /// The slowest requests of the period, without errors.
    requests: Vec<Record>,
    /// Index of each client's record among them.
    clients: HashMap<ClientKey, usize>,
    /// The clients that are in its roll-ups.
    kept: HashSet<ClientKey>,
    proxy: SeriesProgress,
    tls: SeriesProgress,
    http: SeriesProgress,
    load: SeriesProgress,
}

/// A client, and which of its stays in the table of clients.
type ClientKey = (ClientId, u64);

/// The progress in the series of proxy, HTTP or load.
#[derive(Clone, Copy, Debug, Default)]
struct SeriesProgress {
    /// End of its last interval, if there is one.
    end_us: Option<u64>,
    /// True if the next interval follows a gap: it must not be merged.
    is_alone: bool,
}

impl Downsampler {
    /// Merges the records of each period of this length.
    pub fn new(period: Duration) -> Self {
        Self { period_us: (period.as_micros() as u64).max(1), is_rollup: false, runs: HashMap::default() }
    }

    /// Makes roll-ups over this time: without single connections and requests, and with the busiest clients only.
    pub fn rollup(period: Duration) -> Self {
        Self { is_rollup: true, ..Self::new(period) }
    }

    /// Adds a record, and adds to `out` the records that it completes.
    pub fn take(&mut self, writer: &Writer, record: Record, out: &mut Vec<Record>) {
        let key = (writer.origin, record.stamp.run);
        let fresh = || RunBuffer { is_rollup: self.is_rollup, ..RunBuffer::default() };
        let run = self.runs.entry(key).or_insert_with(fresh);
        run.take(record, self.period_us, out);
    }

    /// Whether records of a run wait.
    pub fn waits(&self, writer: &Writer, run: RunId) -> bool {
        self.runs
            .get(&(writer.origin, run))
            .is_some_and(|run| !run.waiting.is_empty() || !run.requests.is_empty())
    }

    /// Adds the records of a writer's runs that still wait.
    pub fn finish(&mut self, writer: &Writer, out: &mut Vec<Record>) {
        for ((origin, _), run) in &mut self.runs {
            if *origin == writer.origin {
                run.flush(out);
            }
        }
    }
}

impl RunBuffer {
    fn take(&mut self, record: Record, period_us: u64, out: &mut Vec<Record>) {
        let Stamp { seq, mono_us, interval_us, .. } = record.stamp;
        if seq <= self.read_seq {
            // Read again, or out of order: a reader would not count it.
            return;
        }
        let missing = seq - self.read_seq - 1;
        if missing > 0 {
            self.flush(out);
            self.emitted_seq += missing;
            self.proxy.is_alone = self.read_seq > 0;
            self.tls.is_alone = self.read_seq > 0;
            self.http.is_alone = self.read_seq > 0;
            self.load.is_alone = self.read_seq > 0;
        }
        if self.is_rollup && self.read_seq == 0 {
            self.origin_us = mono_us;
        }
        self.read_seq = seq;
        if self.waiting.len() >= WAITING_MAX {
            self.flush(out);
        }
        let merged = if self.is_rollup { self.take_in_rollup(record, out) } else { Some(record) };
        let Some(record) = merged else { return };
        match &record.body {
            // Its latencies are of the whole run.
            body if is_of_whole_run(body) => {
                self.flush(out);
                self.emit(record, out);
            }
            Body::Proxy(_)
            | Body::Tls(_)
            | Body::Usage(_)
            | Body::Certificate(_)
            | Body::Http(_)
            | Body::Route(_)
            | Body::Upstream(_)
            | Body::Load(_)
            | Body::Host(_)
            | Body::Client(_) => {
                // Ticks come some milliseconds late, so the middle of an interval decides its period.
                let middle_us = mono_us - (interval_us / 2).min(mono_us);
                let period = middle_us.saturating_sub(self.origin_us) / period_us;
                let is_after_gap = self.note_gap(&record);
                if is_after_gap || (period != self.period && is_series(&record.body)) {
                    self.flush(out);
                    self.period = period;
                }
                self.wait(record);
                if self.is_due() {
                    self.flush(out);
                }
            }
            // Happened within a period, and does not end it.
            Body::Request(request) if !request.is_error() => self.keep_slowest(record),
            Body::Health(_) => self.wait(record),
            Body::Connection(_) | Body::Request(_) | Body::Notice(_) => self.waiting.push(record),
            Body::Run(_)
            | Body::Setting(_)
            | Body::Mark(_)
            | Body::Calibration(_)
            | Body::Experiment(_)
            | Body::Alert(_)
            | Body::Unknown => {
                self.flush(out);
                self.emit(record, out);
            }
        }
    }

    /// Takes a record that roll-ups leave out or do not merge; returns the others.
    fn take_in_rollup(&mut self, record: Record, out: &mut Vec<Record>) -> Option<Record> {
        match &record.body {
            Body::Connection(_) | Body::Request(_) => {}
            Body::Client(client)
                if self.clients.len() >= CLIENTS_MERGED_MAX
                    && !self.clients.contains_key(&client_key(client)) => {}
            Body::Run(run) if run.phase == Phase::Stop => {
                self.waiting.push(record);
                if self.has_rollups {
                    self.flush(out);
                } else {
                    self.waiting.clear();
                }
            }
            body if is_of_whole_run(body) || is_event(body) => self.waiting.push(record),
            _ => return Some(record),
        }
        None
    }

    /// True for a record of a series that leaves a gap after its predecessor.
    fn note_gap(&mut self, record: &Record) -> bool {
        let series = match &record.body {
            Body::Proxy(_) => &mut self.proxy,
            Body::Tls(_) => &mut self.tls,
            Body::Http(_) => &mut self.http,
            Body::Load(_) => &mut self.load,
            _ => return false,
        };
        let before_us = series.end_us.replace(record.stamp.mono_us);
        let is_after_gap = before_us.is_some_and(|end_us| record.stamp.is_after_gap(end_us));
        series.is_alone |= is_after_gap;
        is_after_gap
    }

    /// True if the latest record must not be merged with later ones.
    fn is_due(&mut self) -> bool {
        match self.waiting.last().map(|record| &record.body) {
            Some(Body::Proxy(_)) => std::mem::take(&mut self.proxy.is_alone),
            Some(Body::Tls(_)) => std::mem::take(&mut self.tls.is_alone),
            Some(Body::Http(_)) => std::mem::take(&mut self.http.is_alone),
            Some(Body::Load(_)) => std::mem::take(&mut self.load.is_alone),
            _ => false,
        }
    }

    /// Merges a record with the pending record of its kind, if there is one.
    fn wait(&mut self, record: Record) {
        let before = match &record.body {
            Body::Client(client) => self.clients.get(&client_key(client)).copied(),
            Body::Route(route) => self.waiting.iter().position(
                |waiting| matches!(&waiting.body, Body::Route(known) if known.route == route.route),
            ),
            Body::Upstream(upstream) => self.waiting.iter().position(
                |waiting| matches!(&waiting.body, Body::Upstream(known) if known.upstream == upstream.upstream),
            ),
            Body::Usage(usage) => self.waiting.iter().position(|waiting| {
                matches!(&waiting.body, Body::Usage(known)
                    if (known.dimension, &known.value) == (usage.dimension, &usage.value))
            }),
            Body::Certificate(certificate) => self.waiting.iter().position(|waiting| {
                matches!(&waiting.body, Body::Certificate(known) if known.key() == certificate.key())
            }),
            body => self.waiting.iter().position(|waiting| waiting.body.kind().word == body.kind().word),
        };
        if let Some(at) = before {
            let merged = merge(&self.waiting[at], record);
            self.waiting[at] = merged;
            return;
        }
        if let Body::Client(client) = &record.body {
            self.clients.insert(client_key(client), self.waiting.len());
        }
        self.waiting.push(record);
    }

    fn keep_slowest(&mut self, record: Record) {
        self.requests.push(record);
        if self.requests.len() > REQUESTS_MAX {
            let duration_us = |record: &Record| match &record.body {
                Body::Request(request) => request.duration_us,
                _ => 0,
            };
            self.requests.sort_by_key(|record| Reverse(duration_us(record)));
            self.requests.truncate(REQUESTS_MAX);
        }
    }

    fn flush(&mut self, out: &mut Vec<Record>) {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.clients.clear();
        waiting.append(&mut self.requests);
        if self.is_rollup {
            self.keep_clients(&mut waiting);
        }
        // The series of a roll-up come first: with them, what is made of it begins the next period.
        let rank = |record: &Record| match &record.body {
            _ if !self.is_rollup => 0,
            Body::Run(run) if run.phase == Phase::Start => 0,
            body => 1 + u8::from(!is_series(body)),
        };
        waiting.sort_by_key(|record| (rank(record), record.stamp.mono_us, record.stamp.seq));
        self.has_rollups |= self.is_rollup && !waiting.is_empty();
        for record in waiting {
            self.emit(record, out);
        }
    }

    /// Leaves out clients that are not in the roll-ups of the run.
    fn keep_clients(&mut self, waiting: &mut Vec<Record>) {
        let mut others = Vec::new();
        for record in &*waiting {
            if let Body::Client(client) = &record.body
                && !self.kept.contains(&client_key(client))
            {
                let bytes = client.counters.sum(&[ClientCounter::BytesIn, ClientCounter::BytesOut]);
                others.push((bytes, client_key(client)));
            }
        }
        others.sort_unstable_by_key(|(bytes, _)| Reverse(*bytes));
        let room = CLIENTS_KEPT_MAX.saturating_sub(self.kept.len()).min(CLIENTS_NEW_MAX);
        self.kept.extend(others.into_iter().take(room).map(|(_, key)| key));
        waiting.retain(|record| match &record.body {
            Body::Client(client) => self.kept.contains(&client_key(client)),
            _ => true,
        });
    }

    fn emit(&mut self, mut record: Record, out: &mut Vec<Record>) {
        self.emitted_seq += 1;
        record.stamp.seq = self.emitted_seq;
        out.push(record);
    }
}

fn client_key(client: &ClientRecord) -> ClientKey {
    (client.client, client.epoch)
}

/// True for the last record of a named part.
fn is_of_whole_run(body: &Body) -> bool {
    match body {
        Body::Route(route) => route.last,
        Body::Upstream(upstream) => upstream.last,
        _ => false,
    }
}

/// True for what happened once, and changes what follows.
fn is_event(body: &Body) -> bool {
    matches!(
        body,
        Body::Run(_)
            | Body::Setting(_)
            | Body::Mark(_)
            | Body::Calibration(_)
            | Body::Experiment(_)
            | Body::Alert(_)
    )
}

fn is_series(body: &Body) -> bool {
    matches!(body, Body::Proxy(_) | Body::Tls(_) | Body::Http(_) | Body::Load(_))
}

/// Two records of a kind as one: the totals of the later one, over the time of both.
fn merge(a: &Record, b: Record) -> Record {
    let began_us = a.stamp.mono_us.saturating_sub(a.stamp.interval_us);
    let covers_time = a.stamp.interval_us > 0 || b.stamp.interval_us > 0;
    let interval_us = if covers_time { b.stamp.mono_us.saturating_sub(began_us) } else { 0 };
    let mut body = b.body;
    match (&a.body, &mut body) {
        (Body::Proxy(a), Body::Proxy(b)) => b.downsample(a),
        (Body::Tls(a), Body::Tls(b)) => b.downsample(a),
        (Body::Http(a), Body::Http(b)) => b.downsample(a),
        (Body::Route(a), Body::Route(b)) => b.downsample(&**a),
        (Body::Upstream(a), Body::Upstream(b)) => b.downsample(&**a),
        (Body::Load(a), Body::Load(b)) => b.downsample(a),
        (Body::Client(a), Body::Client(b)) => b.downsample(a),
        (Body::Host(a), Body::Host(b)) => b.downsample(a),
        // Other kinds keep the later record. They are listed, so that the compiler asks for a decision on a new kind.
        (
            _,
            Body::Run(_)
            | Body::Connection(_)
            | Body::Request(_)
            | Body::Setting(_)
            | Body::Mark(_)
            | Body::Calibration(_)
            | Body::Experiment(_)
            | Body::Health(_)
            | Body::Notice(_)
            | Body::Alert(_)
            | Body::Unknown
            // A record of another kind adds nothing.
            | Body::Usage(_)
            | Body::Certificate(_)
            | Body::Proxy(_)
            | Body::Tls(_)
            | Body::Http(_)
            | Body::Route(_)
            | Body::Upstream(_)
            | Body::Load(_)
            | Body::Client(_)
            | Body::Host(_),
        ) => {}
    }
    Record { stamp: Stamp { interval_us, ..b.stamp }, body }
}
