//! Writes events and pending records in order, as the journal accepts them.

use std::sync::PoisonError;

use journal::Timestamps;

use super::{PendingRecord, Publisher, Refusal, Sink};
use records::codec::Coverage;
use records::kinds::{Body, HostRecord, ProxyRecord, Record, Stamp};
use records::metrics::{HttpLatency, LoadLatency, Metric, ProxyLatency, TlsLatency};

/// Latencies of the load that each record carries. Those of request phases are carried seldom: they would take more
/// room than the rest of the load, and the final record has them all.
const EACH_INTERVAL: &[LoadLatency] = &[LoadLatency::Response, LoadLatency::Service, LoadLatency::Lag];
/// Every n-th record of the load carries the latencies of request phases.
pub(super) const PHASES_EVERY: u64 = 60;

impl<S: Sink> Publisher<S> {
    pub(super) fn event(&mut self, body: Body, now: Timestamps) {
        let record = self.stamped(body, 0, now);
        if !self.events.push(record) {
            self.health.dropped_total += 1;
            "too many events waited for the journal".clone_into(&mut self.health.error);
        }
        self.retry();
    }

    /// A record without `seq`, which is assigned when it is offered.
    fn stamped(&self, body: Body, interval_us: u64, at: Timestamps) -> Record {
        let Timestamps { realtime_us, monotonic_us: mono_us } = at;
        Record { stamp: Stamp { run: self.run, seq: 0, mono_us, realtime_us, interval_us }, body }
    }

    pub(super) fn write_events(&mut self) {
        while let Some(mut record) = self.events.pop() {
            if !self.offer(&mut record) {
                return self.events.put_back(record);
            }
        }
    }

    pub(super) fn write_pending(&mut self) {
        while let Some(pending) = self.pending_records.pop_front() {
            // Whoever reads the end of the whole run has those of its services.
            if matches!(pending, PendingRecord::Stop(_)) && self.pending_of_services() > 0 {
                return self.pending_records.push_front(pending);
            }
            let Some(mut record) = self.record_of(&pending) else { continue };
            if !self.offer(&mut record) {
                return self.pending_records.push_front(pending);
            }
            self.note_written(pending, record);
        }
    }

    /// Offers roll-ups behind all other records, and within the same budget.
    pub(super) fn write_rollups(&mut self) {
        if self.events.len() + self.pending_records.len() > 0 {
            return;
        }
        let Some(rollups) = &mut self.rollups else { return };
        let mut sink = self.sink.lock().unwrap_or_else(PoisonError::into_inner);
        let budget = &mut self.budget;
        rollups.offer(|record, coverage| match sink.accept(record, coverage) {
            Ok(()) => {
                budget.spend();
                true
            }
            Err(refusal) => matches!(refusal, Refusal::Never(_)),
        });
    }

    /// Builds the record; `None` if it would be empty.
    fn record_of(&self, pending: &PendingRecord) -> Option<Record> {
        let now_us = self.ticked.monotonic_us;
        let (body, since_us) = match pending {
            PendingRecord::Health if self.health == self.written.health => return None,
            PendingRecord::Health => (Body::Health(self.health.clone()), now_us),
            PendingRecord::Proxy { clients_deferred, upstreams_deferred } => {
                let totals = self.proxy.as_ref()?;
                let record = totals.record(*clients_deferred, *upstreams_deferred);
                let record = ProxyRecord { mix: self.mix.clone(), ..record };
                (Body::Proxy(Box::new(record)), totals.sent_us.max(self.gap_end_us))
            }
            PendingRecord::Tls { usage_deferred } => {
                let tls = self.tls.as_ref()?;
                let since_us = tls.totals.sent_us.max(self.gap_end_us);
                (Body::Tls(Box::new(tls.record(*usage_deferred))), since_us)
            }
            PendingRecord::Usage(key) => {
                let (record, since_us) = self.tls.as_ref()?.usage.record(key)?;
                (Body::Usage(Box::new(record)), since_us)
            }
            PendingRecord::Certificate(record) => (Body::Certificate(record.clone()), now_us),
            PendingRecord::Upstream(index) => {
                let (record, since_us) = self.upstreams.record(*index)?;
                (Body::Upstream(Box::new(record)), since_us)
            }
            PendingRecord::LastUpstream(index) => {
                (Body::Upstream(Box::new(self.upstreams.final_record(*index)?)), now_us)
            }
            PendingRecord::Http { routes_deferred } => {
                let http = self.http.as_ref()?;
                let since_us = http.totals.sent_us.max(self.gap_end_us);
                (Body::Http(Box::new(http.record(*routes_deferred))), since_us)
            }
            PendingRecord::Route(index) => {
                let (record, since_us) = self.http.as_ref()?.routes.record(*index)?;
                (Body::Route(Box::new(record)), since_us)
            }
            PendingRecord::LastRoute(index) => {
                (Body::Route(Box::new(self.http.as_ref()?.routes.final_record(*index)?)), now_us)
            }
            PendingRecord::Request(record) => (Body::Request(record.clone()), now_us),
            PendingRecord::Load => {
                let totals = self.load.as_ref()?;
                (
                    Body::Load(Box::new(totals.record(
                        self.load_classes(),
                        self.load_state,
                        &self.load_events,
                    ))),
                    totals.sent_us.max(self.gap_end_us),
                )
            }
            PendingRecord::Host => {
                let host = HostRecord { workers: self.workers.clone(), ..self.host.clone()? };
                (Body::Host(host), self.host_sent_us)
            }
            PendingRecord::Client(due) => (Body::Client(due.record.clone()), due.since_us),
            PendingRecord::Connection(record) => (Body::Connection(record.clone()), now_us),
            PendingRecord::Stop(run) => (Body::Run(run.clone()), self.started_us),
        };
        Some(self.stamped(body, now_us.saturating_sub(since_us), self.ticked))
    }

    /// The classes of the load's latencies that its next record carries.
    fn load_classes(&self) -> &'static [LoadLatency] {
        if self.load_records % PHASES_EVERY == PHASES_EVERY - 1 { LoadLatency::ALL } else { EACH_INTERVAL }
    }

    /// Notes that a record is in the journal, or never will be: counters are cumulative, so the next record carries
    /// them.
    fn note_written(&mut self, pending: PendingRecord, record: Record) {
        let now_us = self.ticked.monotonic_us;
        match (pending, record.body) {
            (_, Body::Health(health)) => {
                self.written.health = health;
                self.health_sent_us = Some(now_us);
            }
            (_, Body::Proxy(proxy)) => {
                self.written.proxy = proxy.without_intervals();
                self.mix.clear();
                self.written.ticked = Some(record.stamp);
                self.proxy.iter_mut().for_each(|totals| totals.sent(ProxyLatency::ALL, now_us));
            }
            (_, Body::Tls(tls)) => {
                self.written.tls = tls.without_intervals();
                self.written.ticked = Some(record.stamp);
                self.tls.iter_mut().for_each(|tls| tls.totals.sent(TlsLatency::ALL, now_us));
            }
            (PendingRecord::Usage(key), Body::Usage(usage)) => {
                self.written.add_usage(&usage);
                self.tls.iter_mut().for_each(|tls| tls.usage.sent(&key, now_us));
            }
            (_, Body::Certificate(certificate)) => {
                self.written.add_certificate(&certificate);
                self.certificates.sent(&certificate, now_us);
            }
            (_, Body::Http(http)) => {
                self.written.http = http.without_intervals();
                self.written.ticked = Some(record.stamp);
                self.http.iter_mut().for_each(|http| http.totals.sent(HttpLatency::ALL, now_us));
            }
            (PendingRecord::Route(index), Body::Route(route)) => {
                self.written.routes.note(&route);
                self.http.iter_mut().for_each(|http| http.routes.sent(index));
            }
            (PendingRecord::Upstream(index), Body::Upstream(upstream)) => {
                self.written.upstreams.note(&upstream);
                self.upstreams.sent(index);
            }
            (_, Body::Load(load)) => {
                self.written.load = load.without_intervals();
                self.written.ticked = Some(record.stamp);
                let classes = self.load_classes();
                self.load_records += 1;
                self.load.iter_mut().for_each(|totals| totals.sent(classes, now_us));
            }
            (_, Body::Host(host)) => {
                self.written.host = host;
                self.host_sent_us = now_us;
                self.workers.end_interval();
            }
            (PendingRecord::Client(due), _) => self.clients.sent(&due.record, now_us),
            _ => {}
        }
    }

    /// Assigns `seq` and offers the record. False if it must be offered again: then `seq` is not used up.
    fn offer(&mut self, record: &mut Record) -> bool {
        record.stamp.seq = self.seq + 1;
        let accepted = self.sink().accept(record, Coverage::default());
        match accepted {
            Ok(()) => {
                self.rollups.iter_mut().for_each(|rollups| rollups.take(record));
                self.budget.spend();
                self.seq += 1;
                self.written.ticked.get_or_insert(record.stamp);
                self.written.last = Some(record.stamp);
                self.refusal = None;
                true
            }
            Err(Refusal::Never(reason)) => {
                self.health.dropped_total += 1;
                self.health.error = reason;
                true
            }
            Err(Refusal::Later(reason)) => {
                self.health.waits_total += u64::from(self.refusal.is_none());
                self.refusal = Some(reason);
                false
            }
        }
    }
}
