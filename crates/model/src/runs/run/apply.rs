//! How a record changes a run.

use super::Run;
use super::retention::{SeriesRetention, SeriesStart};
use crate::runs::run::events::log::LogLine;
use crate::runs::run::events::timeline::{Marker, TimelineEvent};
use records::codec::Writer;
use records::kinds::{Body, Level, Phase, Record, RunRecord, Stamp};

impl Run {
    /// Notes that a record was read; true if it is to be applied. One of another writer is counted as foreign, unless it
    /// is older than the run: then the run starts again with that writer.
    pub(in crate::runs) fn accept(
        &mut self,
        writer: &Writer,
        record: &Record,
        read_mono_us: Option<u64>,
    ) -> bool {
        if writer.origin == self.writer().origin {
            self.note(record, read_mono_us)
        } else if record.stamp.realtime_us >= self.began_realtime_us() {
            self.count_foreign(1, record.stamp.realtime_us);
            false
        } else {
            // The id belongs to the earlier writer, so the records applied until now were foreign.
            let foreign = self.reading.read().saturating_add(self.reading.foreign());
            let was_brief = self.is_brief();
            *self = Self::new(self.id(), writer.clone(), self.retention.history);
            if was_brief {
                self.abridge();
            }
            let is_new = self.note(record, read_mono_us);
            self.count_foreign(foreign, record.stamp.realtime_us);
            is_new
        }
    }

    /// Counts records that another process wrote under this run's id. The first adds a warning to the log.
    pub(in crate::runs) fn count_foreign(&mut self, records: u64, realtime_us: u64) {
        if self.reading.foreign() == 0 {
            let text = "another process writes records under the id of this run; they do not count";
            self.log.push(LogLine {
                // The monotonic clock of a foreign record is not trusted.
                mono_us: self.last_us(),
                realtime_us,
                level: Level::Warning,
                text: text.to_owned(),
            });
        }
        self.reading.count_foreign(records);
    }

    /// Records when a record of this run's writer was read live.
    pub(in crate::runs) fn record_arrival(&mut self, writer: &Writer, stamp: &Stamp, realtime_us: u64) {
        if writer.origin == self.writer().origin {
            self.reading.record_arrival(stamp, realtime_us);
        }
    }

    /// Counts messages of this run's unit that journald dropped.
    pub(in crate::runs) fn count_suppressed(&mut self, messages: u64) {
        self.reading.count_suppressed(messages);
    }

    /// Notes a record of the run's writer; false if it was read before.
    fn note(&mut self, record: &Record, read_mono_us: Option<u64>) -> bool {
        if !self.reading.note(&record.stamp, read_mono_us) {
            return false;
        }
        self.header.note(record.stamp);
        if let Body::Notice(notice) = &record.body {
            self.header.add_absent(&notice.absent);
        }
        if !self.is_brief() && !self.is_switch(record) {
            self.log.apply(record);
        }
        true
    }

    /// Whether all records of an interval have been read before this one: the first of the next, or the last of the run.
    /// An abridged run has no intervals to judge.
    pub(in crate::runs) fn completes_interval(&self, body: &Body) -> bool {
        let is_next = match body {
            Body::Proxy(_) => true,
            Body::Load(_) => self.proxy.series.is_none(),
            Body::Run(run) => run.phase == Phase::Stop,
            _ => false,
        };
        is_next && !self.is_brief()
    }

    /// Applies a record that was accepted.
    pub(in crate::runs) fn apply(&mut self, record: Record) {
        if self.is_brief() {
            self.apply_abridged(record);
        } else {
            self.apply_body(record);
        }
    }

    /// True for a change that the running experiment makes to its setting: the log has its beginning and its verdict.
    fn is_switch(&self, record: &Record) -> bool {
        let Body::Setting(setting) = &record.body else { return false };
        setting.by.is_empty() && self.compared_setting() == Some(setting.name.as_str())
    }

    fn apply_abridged(&mut self, record: Record) {
        match record.body {
            Body::Client(_)
            | Body::Connection(_)
            | Body::Usage(_)
            | Body::Route(_)
            | Body::Upstream(_)
            | Body::Request(_)
            | Body::Mark(_)
            | Body::Calibration(_)
            | Body::Experiment(_)
            | Body::Notice(_)
            | Body::Alert(_)
            | Body::Unknown => return,
            Body::Run(_)
            | Body::Proxy(_)
            | Body::Tls(_)
            | Body::Http(_)
            | Body::Load(_)
            | Body::Setting(_)
            | Body::Certificate(_)
            | Body::Host(_)
            | Body::Health(_) => {}
        }
        self.apply_body(record);
        self.abridge();
    }

    fn apply_body(&mut self, record: Record) {
        let stamp = record.stamp;
        match record.body {
            Body::Run(run) => self.apply_run(stamp, run),
            Body::Proxy(proxy) => {
                let recorded_until_us = self.clients_recorded_until_us();
                self.clients.end_interval(self.reading.lost(), recorded_until_us);
                let gap_from_us = self.proxy.apply(&stamp, &proxy, self.series_start());
                self.reading.record_gap(gap_from_us, &stamp);
            }
            Body::Tls(tls) => {
                let gap_from_us = self.tls.apply(&stamp, *tls, self.series_start());
                self.reading.record_gap(gap_from_us, &stamp);
            }
            Body::Usage(usage) => self.usage.apply(&stamp, *usage),
            Body::Certificate(certificate) => self.certificates.apply(*certificate),
            Body::Http(http) => {
                self.http_gauges.push(stamp.mono_us, http.gauges(), self.retention.history);
                let gap_from_us = self.http.apply(&stamp, *http, self.series_start());
                self.reading.record_gap(gap_from_us, &stamp);
            }
            Body::Route(route) => {
                self.routes.apply(&stamp, *route, self.series_start(), self.reading.lost());
            }
            Body::Upstream(upstream) => {
                self.upstreams.apply(&stamp, *upstream, self.series_start(), self.reading.lost());
            }
            Body::Request(request) => self.requests.apply(&stamp, request),
            Body::Load(load) => {
                let gap_from_us = self.load.apply(&stamp, *load, self.series_start());
                self.reading.record_gap(gap_from_us, &stamp);
            }
            Body::Client(client) => {
                let from_start = self.series_start().start_us.is_some();
                self.clients.apply(&stamp, &client, from_start, self.reading.lost());
            }
            Body::Setting(setting) => {
                let Some(after) = setting.after else { return };
                self.settings.apply(after.clone());
                self.push_marker(
                    &stamp,
                    TimelineEvent::Change { before: setting.before, after: Box::new(after), by: setting.by },
                );
            }
            Body::Host(host) => {
                let load_measures = self.load.record.as_ref().is_some_and(|load| load.measured_us > 0);
                self.hosts.apply(&stamp, host, load_measures, self.retention.history.max(2));
            }
            Body::Health(health) => self.health = health,
            Body::Notice(_) | Body::Unknown => {}
            Body::Experiment(experiment) => self.experiments.apply(&stamp, *experiment),
            Body::Calibration(costs) => self.calibration = Some((stamp, costs)),
            Body::Mark(mark) => {
                self.push_marker(&stamp, TimelineEvent::Mark { number: mark.number, text: mark.text });
            }
            Body::Alert(alert) => {
                let (number, state) = (alert.number, alert.state);
                let event = TimelineEvent::Alert { number, state, name: alert.name().to_owned() };
                self.push_marker(&stamp, event);
                self.alerts.apply(&stamp, *alert);
            }
            Body::Connection(connection) => {
                self.failures.note(&connection);
                self.clients.record_connection(stamp.mono_us, connection);
            }
        }
    }

    fn apply_run(&mut self, stamp: Stamp, run: Box<RunRecord>) {
        match run.phase {
            Phase::Start => self.settings.begin(&run.settings),
            Phase::Stop => {
                let start = self.series_start();
                run.proxy.iter().for_each(|proxy| self.proxy.finish(proxy, start));
                run.tls.iter().for_each(|tls| self.tls.finish(tls, start));
                run.http.iter().for_each(|http| self.http.finish(http, start));
                run.load.iter().for_each(|load| self.load.finish(load, start));
            }
        }
        self.header.apply(stamp, run);
    }

    /// Where new series start: at the run's first record, if it was read.
    fn series_start(&self) -> SeriesStart {
        let SeriesRetention { history, is_joined, is_brief: _ } = self.retention;
        let began = self.header.began.as_ref().filter(|_| !is_joined);
        SeriesStart { start_us: began.map(|(stamp, _)| stamp.mono_us), history }
    }

    fn push_marker(&mut self, stamp: &Stamp, event: TimelineEvent) {
        self.markers.push(Marker { mono_us: stamp.mono_us, realtime_us: stamp.realtime_us, event });
    }
}
