//! One run, as far as it has been read.

mod brief;
pub(in crate::model) mod clients;
pub(in crate::model) mod experiment;
pub(in crate::model) mod failures;
mod joined;
mod merged;
pub(in crate::model) mod reading;
mod size;
pub(in crate::model) mod timeline;

use std::collections::VecDeque;

use crate::families::{CpuGroup, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use crate::metric::Counters;
use crate::model::run::clients::{Client, ClientRate, Clients};
use crate::model::run::experiment::{Experiment, Experiments};
use crate::model::run::failures::Failures;
use crate::model::run::reading::Reading;
use crate::model::run::timeline::{Deed, Marker, Markers};
use crate::model::series::Track;
use crate::record::ids::{ClientId, RunId};
use crate::record::message;
use crate::record::origin::Writer;
use crate::record::setting::{SETTINGS_MAX, Setting};
use crate::record::{
    Body, HealthRecord, HostRecord, Level, LoadRecord, Phase, ProxyRecord, Record, RunRecord, SettingRecord,
    Stamp,
};

/// Log lines that are kept, the latest.
const LOG_MAX: usize = 1_000;
/// How long a client whose record was put off keeps its last rate, in microseconds (see the budget's promise).
pub const DEFERRED_US_MAX: u64 = 10_000_000;

/// One line of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogLine {
    /// `CLOCK_MONOTONIC`, in microseconds.
    pub mono_us: u64,
    /// `CLOCK_REALTIME`, in microseconds.
    pub realtime_us: u64,
    /// How serious it is.
    pub level: Level,
    /// The record as a sentence.
    pub text: String,
}

/// CPU that a group of threads used.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuUse {
    /// Cores kept busy on average: 1.0 is one whole core.
    pub cores: f64,
    /// Time it was averaged over, in microseconds.
    pub span_us: u64,
}

/// One run, as far as it has been read.
#[derive(Debug)]
pub struct Run {
    id: RunId,
    writer: Writer,
    began: Option<(Stamp, Box<RunRecord>)>,
    stopped: Option<(Stamp, Box<RunRecord>)>,
    first: Option<Stamp>,
    last: Option<Stamp>,
    settings: Vec<Setting>,
    proxy: Option<Track<ProxyCounter, ProxyLatency>>,
    proxy_open: u64,
    clients_deferred: u64,
    load: Option<Track<LoadCounter, LoadLatency>>,
    load_record: Option<LoadRecord>,
    clients: Clients,
    hosts: VecDeque<(u64, HostRecord)>,
    experiments: Experiments,
    health: HealthRecord,
    log: VecDeque<LogLine>,
    markers: Markers,
    failures: Failures,
    reading: Reading,
    history: usize,
    /// True if reading began in its middle with what was known of it.
    is_joined: bool,
    /// True if it had to make room: only totals and its last interval are kept.
    is_brief: bool,
}

impl Run {
    pub(super) fn new(id: RunId, writer: Writer, history: usize) -> Self {
        Self {
            id,
            writer,
            began: None,
            stopped: None,
            first: None,
            last: None,
            settings: Vec::new(),
            proxy: None,
            proxy_open: 0,
            clients_deferred: 0,
            load: None,
            load_record: None,
            clients: Clients::new(history),
            hosts: VecDeque::new(),
            experiments: Experiments::default(),
            health: HealthRecord::default(),
            log: VecDeque::new(),
            markers: Markers::default(),
            failures: Failures::default(),
            reading: Reading::default(),
            history,
            is_joined: false,
            is_brief: false,
        }
    }

    /// Takes in a record if the run is its writer's.
    pub(super) fn apply_from(&mut self, writer: &Writer, record: Record, read_mono_us: Option<u64>) {
        if writer.origin == self.writer.origin {
            self.apply(record, read_mono_us);
        } else if record.stamp.realtime_us >= self.began_realtime_us() {
            self.note_foreign(1, record.stamp.realtime_us);
        } else {
            // What was taken in before was written later, and by somebody else.
            let foreign = self.reading.read().saturating_add(self.reading.foreign());
            let was_brief = self.is_brief;
            *self = Self::new(self.id, writer.clone(), self.history);
            if was_brief {
                self.abridge();
            }
            let realtime_us = record.stamp.realtime_us;
            self.apply(record, read_mono_us);
            self.note_foreign(foreign, realtime_us);
        }
    }

    /// Counts records that another process wrote under this run's id, and says so once.
    pub(super) fn note_foreign(&mut self, records: u64, realtime_us: u64) {
        if self.reading.foreign() == 0 {
            let text = "another process writes records under the id of this run; they do not count";
            self.push_log(LogLine {
                // Of what it says nothing is believed, nor its clock.
                mono_us: self.last_us(),
                realtime_us,
                level: Level::Warning,
                text: text.to_owned(),
            });
        }
        self.reading.note_foreign(records);
    }

    /// Counts messages that journald dropped of the unit that this run is in.
    pub(super) fn note_suppressed(&mut self, messages: u64) {
        self.reading.note_suppressed(messages);
    }

    fn apply(&mut self, record: Record, read_mono_us: Option<u64>) {
        if !self.reading.note(&record.stamp, read_mono_us) {
            return;
        }
        let stamp = record.stamp;
        self.first.get_or_insert(stamp);
        self.last = Some(stamp);
        if self.is_brief {
            return self.apply_briefly(record);
        }
        self.note_log(&record);
        match record.body {
            Body::Run(run) => self.apply_run(stamp, run),
            Body::Proxy(proxy) => self.apply_proxy(&stamp, &proxy),
            Body::Load(load) => self.apply_load(&stamp, *load),
            Body::Client(client) => {
                let from_start = self.start_us().is_some();
                self.clients.apply(&stamp, &client, from_start, self.reading.lost());
            }
            Body::Setting(setting) => self.apply_setting(&stamp, setting),
            Body::Host(host) => self.apply_host(&stamp, host),
            Body::Health(health) => self.health = health,
            Body::Notice(_) => {}
            Body::Experiment(experiment) => self.experiments.apply(&stamp, *experiment),
            Body::Mark(mark) => self.mark(&stamp, Deed::Mark { number: mark.number, text: mark.text }),
            Body::Connection(connection) => {
                self.failures.note(&connection);
                self.clients.note_connection(connection);
            }
        }
    }

    fn apply_run(&mut self, stamp: Stamp, run: Box<RunRecord>) {
        match run.phase {
            Phase::Start => {
                self.settings.clone_from(&run.settings);
                self.began = Some((stamp, run));
            }
            Phase::Stop => {
                let (start_us, history) = (self.start_us(), self.history);
                if let Some(proxy) = &run.proxy {
                    let track = self.proxy.get_or_insert_with(|| Track::new(start_us, history));
                    track.finish(&proxy.counters, &proxy.latencies);
                    self.proxy_open = proxy.open;
                }
                if let Some(load) = &run.load {
                    let track = self.load.get_or_insert_with(|| Track::new(start_us, history));
                    track.finish(&load.counters, &load.latencies);
                    self.load_record = Some(load.clone());
                }
                self.stopped = Some((stamp, run));
            }
        }
    }

    /// When everything stood at nothing, if that was read.
    fn start_us(&self) -> Option<u64> {
        self.began.as_ref().filter(|_| !self.is_joined).map(|(stamp, _)| stamp.mono_us)
    }

    fn apply_proxy(&mut self, stamp: &Stamp, proxy: &ProxyRecord) {
        let (start_us, history) = (self.start_us(), self.history);
        self.clients.end_interval(self.reading.lost());
        let track = self.proxy.get_or_insert_with(|| Track::new(start_us, history));
        if let Some(from_us) = track.apply(stamp, &proxy.counters, &proxy.latencies) {
            self.reading.note_gap(from_us, stamp);
        }
        self.proxy_open = proxy.open;
        self.clients_deferred = proxy.clients_deferred;
    }

    fn apply_load(&mut self, stamp: &Stamp, mut load: LoadRecord) {
        let (start_us, history) = (self.start_us(), self.history);
        let track = self.load.get_or_insert_with(|| Track::new(start_us, history));
        if let Some(from_us) = track.apply(stamp, &load.counters, &load.latencies) {
            self.reading.note_gap(from_us, stamp);
        }
        load.latencies = crate::record::Latencies::default();
        self.load_record = Some(load);
    }

    fn mark(&mut self, stamp: &Stamp, deed: Deed) {
        self.markers.push(Marker { mono_us: stamp.mono_us, realtime_us: stamp.realtime_us, deed });
    }

    fn apply_setting(&mut self, stamp: &Stamp, setting: SettingRecord) {
        let Some(after) = setting.after else { return };
        self.mark(stamp, Deed::Change { before: setting.before, after: Box::new(after.clone()) });
        match self.settings.iter().position(|known| known.name == after.name) {
            Some(at) => self.settings[at] = after,
            None if self.settings.len() < SETTINGS_MAX => self.settings.push(after),
            None => {}
        }
    }

    fn apply_host(&mut self, stamp: &Stamp, host: HostRecord) {
        if self.hosts.len() >= self.history.max(2) {
            self.hosts.pop_front();
        }
        self.hosts.push_back((stamp.mono_us, host));
    }

    fn note_log(&mut self, record: &Record) {
        let level = match message::priority(&record.body) {
            0..=4 => Level::Warning,
            5 => Level::Notice,
            6 => Level::Info,
            _ => return,
        };
        // The sample of connections that ended well is data, not news.
        if level == Level::Info {
            return;
        }
        let Stamp { mono_us, realtime_us, .. } = record.stamp;
        self.push_log(LogLine { mono_us, realtime_us, level, text: message::sentence(record) });
    }

    fn push_log(&mut self, line: LogLine) {
        if self.log.len() == LOG_MAX {
            self.log.pop_front();
        }
        self.log.push_back(line);
    }

    /// Its id.
    pub fn id(&self) -> RunId {
        self.id
    }

    /// The process that writes it.
    pub fn writer(&self) -> &Writer {
        &self.writer
    }

    /// The host that it runs on: as the journal says, else as the run does; empty if neither was read.
    pub fn hostname(&self) -> &str {
        match (&*self.writer.hostname, self.began()) {
            ("", Some(began)) => &began.host,
            (hostname, _) => hostname,
        }
    }

    /// What it began with; `None` if its first record was not read.
    pub fn began(&self) -> Option<&RunRecord> {
        self.began.as_ref().map(|(_, run)| &**run)
    }

    /// Its final record; `None` while it runs, or if it was killed.
    pub fn stopped(&self) -> Option<&RunRecord> {
        self.stopped.as_ref().map(|(_, run)| &**run)
    }

    /// `CLOCK_MONOTONIC` of its first record read, in microseconds.
    pub fn began_us(&self) -> u64 {
        self.first.map_or(0, |stamp| stamp.mono_us)
    }

    /// The moment of the monotonic clock from which on its series are kept, in microseconds: that of its first record
    /// until there are so many that the oldest are let go.
    pub fn kept_from_us(&self) -> u64 {
        let proxy = self.proxy.as_ref().and_then(|track| Some(track.timeline().next()?.start_us));
        let load = self.load.as_ref().and_then(|track| Some(track.timeline().next()?.start_us));
        [proxy, load].into_iter().flatten().min().unwrap_or_else(|| self.began_us())
    }

    /// True if only its totals and its last interval are kept, since there are too many runs.
    pub fn is_brief(&self) -> bool {
        self.is_brief
    }

    /// True if reading began in its middle, with what was known of it from before: then latencies of the whole run are
    /// those since.
    pub fn is_joined(&self) -> bool {
        self.is_joined
    }

    /// `CLOCK_REALTIME` of its first record read, in microseconds.
    pub fn began_realtime_us(&self) -> u64 {
        self.first.map_or(0, |stamp| stamp.realtime_us)
    }

    /// `CLOCK_REALTIME` of its last record read, in microseconds.
    pub fn last_realtime_us(&self) -> u64 {
        self.last.map_or(0, |stamp| stamp.realtime_us)
    }

    /// `CLOCK_MONOTONIC` of its last record read, in microseconds.
    pub fn last_us(&self) -> u64 {
        self.last.map_or(0, |stamp| stamp.mono_us)
    }

    /// From its first record read to its last, in microseconds of the monotonic clock. The final record covers the
    /// whole run, also where its beginning was not read.
    pub fn duration_us(&self) -> u64 {
        let read_us = self.first.map_or(0, |first| self.last_us().saturating_sub(first.mono_us));
        self.stopped.as_ref().map_or(read_us, |(stamp, _)| stamp.interval_us.max(read_us))
    }

    /// Every setting as it stands.
    pub fn settings(&self) -> &[Setting] {
        &self.settings
    }

    /// The setting of this name.
    pub fn setting(&self, name: &str) -> Option<&Setting> {
        self.settings.iter().find(|setting| setting.name == name)
    }

    /// How a setting of this name stood at a moment of the monotonic clock, in words; `None` if there is none.
    pub fn setting_at(&self, us: u64, name: &str) -> Option<String> {
        self.setting(name).map(|setting| self.markers.value_at(us, setting))
    }

    /// Marks and changes of settings, oldest first, the latest thousand.
    pub fn markers(&self) -> impl DoubleEndedIterator<Item = &Marker> + ExactSizeIterator {
        self.markers.iter()
    }

    /// The moment of the monotonic clock at one of `CLOCK_REALTIME`, by the last record's clocks; both in microseconds.
    pub fn mono_at(&self, realtime_us: u64) -> u64 {
        let (last_realtime_us, last_us) = (self.last_realtime_us(), self.last_us());
        if realtime_us > last_realtime_us {
            last_us.saturating_add(realtime_us - last_realtime_us)
        } else {
            last_us.saturating_sub(last_realtime_us - realtime_us)
        }
    }

    /// `CLOCK_REALTIME` at a moment of the monotonic clock, by the last record's clocks; both in microseconds.
    pub fn realtime_at(&self, us: u64) -> u64 {
        let (realtime_us, last_us) = (self.last_realtime_us(), self.last_us());
        if us > last_us {
            realtime_us.saturating_add(us - last_us)
        } else {
            realtime_us.saturating_sub(last_us - us)
        }
    }

    /// Connections that failed, by what their records say: those that had one.
    pub fn failures(&self) -> &Failures {
        &self.failures
    }

    /// The proxy's series; `None` in a run without one.
    pub fn proxy(&self) -> Option<&Track<ProxyCounter, ProxyLatency>> {
        self.proxy.as_ref()
    }

    /// Connections of the proxy open when its last record was made.
    pub fn proxy_open(&self) -> u64 {
        self.proxy_open
    }

    /// The load's series; `None` in a run without one.
    pub fn load(&self) -> Option<&Track<LoadCounter, LoadLatency>> {
        self.load.as_ref()
    }

    /// The load's last record, its latencies left out while the run lasts.
    pub fn load_record(&self) -> Option<&LoadRecord> {
        self.load_record.as_ref()
    }

    /// The proxy's clients.
    pub fn clients(&self) -> &Clients {
        &self.clients
    }

    /// Clients that changed and whose record the last interval put off.
    pub fn clients_deferred(&self) -> u64 {
        self.clients_deferred
    }

    /// What a client does now; `None` if that is not known. A silent client does nothing, unless its record may have
    /// been put off or lost: then its last rate stands for up to 10 s.
    pub fn client_rate(&self, client: &Client) -> Option<ClientRate> {
        let latest = client.history().next_back().copied();
        let now_us = self.proxy.as_ref().map_or(0, Track::last_us);
        let may_be_missing = self.client_records_may_be_missing();
        match latest {
            Some(rate) if rate.end_us >= now_us => Some(rate),
            // Its first record came without what it could be compared with.
            None if client.last_us >= now_us => None,
            rate if may_be_missing => rate.filter(|rate| now_us - rate.end_us <= DEFERRED_US_MAX),
            _ => Some(ClientRate { end_us: now_us, span_us: 1, counters: Counters::default() }),
        }
    }

    /// True if records of clients that did something may have been put off, or lost, in the interval that is being read:
    /// then nothing is known of a silent client.
    pub fn client_records_may_be_missing(&self) -> bool {
        self.clients_deferred > 0 || self.clients.lost_some_now(self.reading.lost())
    }

    /// The client of this id.
    pub fn client(&self, id: ClientId) -> Option<&Client> {
        self.clients.get(id)
    }

    /// The latest record of what the process used.
    pub fn host(&self) -> Option<&HostRecord> {
        self.hosts.back().map(|(_, host)| host)
    }

    /// The record of what the process used that was the latest at a moment of the monotonic clock.
    pub fn host_at(&self, us: u64) -> Option<&HostRecord> {
        let after = self.hosts.partition_point(|(at_us, _)| *at_us <= us);
        self.hosts.get(after.checked_sub(1)?).map(|(_, host)| host)
    }

    /// CPU of a group of threads over about `span_us` microseconds up to the last record, or over the last interval if
    /// that is longer; `None` before there are two records.
    pub fn cpu(&self, group: CpuGroup, span_us: u64) -> Option<CpuUse> {
        self.cpu_until(u64::MAX, group, span_us)
    }

    /// The same up to a moment of the monotonic clock.
    pub fn cpu_until(&self, until_us: u64, group: CpuGroup, span_us: u64) -> Option<CpuUse> {
        let mut earlier = self.hosts.iter().rev().skip_while(|(us, _)| *us > until_us);
        let (end_us, end) = earlier.next()?;
        let from_us = end_us.saturating_sub(span_us);
        let start = earlier.clone().take_while(|(us, _)| *us >= from_us).last();
        let (start_us, start) = start.or_else(|| earlier.next())?;
        let span_us = end_us.checked_sub(*start_us).filter(|&span| span > 0)?;
        let used_us = end.cpu[group].saturating_sub(start.cpu[group]);
        Some(CpuUse { cores: used_us as f64 / span_us as f64, span_us })
    }

    /// Its experiments, oldest first.
    pub fn experiments(&self) -> impl DoubleEndedIterator<Item = &Experiment> + ExactSizeIterator {
        self.experiments.iter()
    }

    /// What the writer knows of its losses.
    pub fn health(&self) -> &HealthRecord {
        &self.health
    }

    /// The latest log lines, oldest first.
    pub fn log(&self) -> impl DoubleEndedIterator<Item = &LogLine> + ExactSizeIterator {
        self.log.iter()
    }

    /// How the reading of this run has gone.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }
}
