//! Plans which records of an interval are written, within the budget.

use journal::Timestamps;

use super::http::HttpTotals;
use super::tls::TlsTotals;
use super::{PendingRecord, Publisher, RunTotals, Sink};
use records::delta::{LoadDelta, LoadState, ProxyDelta};
use records::kinds::{ConnectionRecord, HealthRecord, HostRecord};

/// Connection records that wait for room in the budget.
const CONNECTIONS_WAITING_MAX: usize = 256;
/// Connection errors, and failed requests, for which room is kept each interval, however many clients changed.
const ERRORS_RESERVED: usize = 4;
/// Shortest time between two reports that the budget drops errors, in microseconds.
const OVER_BUDGET_TOLD_US_MIN: u64 = 10_000_000;
/// Smallest step of the wall clock against the monotonic one that is reported, in microseconds.
const CLOCK_STEP_US_MIN: i64 = 100_000;

/// Changed parts whose record is deferred to a later interval.
#[derive(Clone, Copy, Default)]
pub(super) struct Deferred {
    clients: u64,
    usage: u64,
    routes: u64,
    upstreams: u64,
}

impl<S: Sink> Publisher<S> {
    /// Adds the counts of the interval that ends now.
    pub(super) fn tick(
        &mut self,
        proxy: Option<&ProxyDelta>,
        load: Option<(&LoadDelta, LoadState)>,
        host: Option<HostRecord>,
        now: Timestamps,
    ) {
        self.budget.refill(now.monotonic_us);
        self.note_clock(now);
        self.restore_pending();
        let start_us = self.ticked.monotonic_us;
        self.ticked = now;
        self.host = host;
        if let Some(delta) = proxy {
            let totals = self.proxy.get_or_insert_with(|| RunTotals::new(self.started_us));
            totals.add(&delta.counters, &delta.latencies);
            let leaving_max = self.budget.left() / 2;
            self.clients.add(&delta.clients, start_us, now.monotonic_us, leaving_max);
            self.queue_connections(&delta.connections);
            let tls = self.tls.get_or_insert_with(|| TlsTotals::new(self.started_us));
            tls.add(&delta.tls, start_us);
            self.upstreams.add(delta.upstreams.all(), start_us);
            self.mix.add(&delta.mix);
            delta.workers.iter().for_each(|worker| self.workers.add(worker));
            if let Some(delta) = &delta.http {
                let new = || HttpTotals::new(self.started_us, &self.route_names);
                let without_room = self.http.get_or_insert_with(new).add(delta, start_us);
                self.health.over_budget_total += without_room;
                self.mix.distributions.add_sizes(&delta.sizes);
            }
        }
        if let Some((delta, state)) = load {
            let totals = self.load.get_or_insert_with(|| RunTotals::new(self.started_us));
            totals.add(&delta.counters, &delta.latencies);
            self.load_events.add(&delta.events);
            self.load_state = state;
        }
    }

    /// Restores the records of the previous interval that the journal has not accepted: this interval carries their
    /// counters.
    fn restore_pending(&mut self) {
        for pending in std::mem::take(&mut self.pending_records) {
            match pending {
                PendingRecord::Connection(record) => {
                    self.connections.push_back(*record);
                    continue;
                }
                PendingRecord::Request(record) => {
                    self.http.iter_mut().for_each(|http| http.requests.put_back((*record).clone()));
                    continue;
                }
                PendingRecord::Client(due) => self.clients.refused(due),
                PendingRecord::Proxy { .. } | PendingRecord::Load => self.health.merged_total += 1,
                PendingRecord::Health
                | PendingRecord::Tls { .. }
                | PendingRecord::Usage(_)
                | PendingRecord::Certificate(_)
                | PendingRecord::Upstream(_)
                | PendingRecord::LastUpstream(_)
                | PendingRecord::Http { .. }
                | PendingRecord::Host
                | PendingRecord::Route(_)
                | PendingRecord::LastRoute(_)
                | PendingRecord::Stop(_) => {}
            }
            self.health.refused_total += 1;
        }
        if let Some(reason) = &self.refusal {
            self.health.error.clone_from(reason);
        }
    }

    /// Records that every interval has.
    pub(super) fn records_each_interval(&self) -> usize {
        let sides = [
            self.proxy.is_some(),
            self.tls.is_some(),
            self.http.is_some(),
            self.load.is_some(),
            self.host.is_some(),
        ];
        sides.iter().filter(|is| **is).count()
    }

    /// Plans the records of the interval, within the budget.
    pub(super) fn plan_interval(&mut self) {
        // One is for health, which is written in any case.
        let spare = self.budget.left().saturating_sub(self.records_each_interval() + 1);
        let errors = self.connections.iter().filter(|record| record.outcome.is_error()).count();
        let failed_requests = self.http.as_ref().map_or(0, |http| http.requests.errors());
        let for_errors = errors.min(ERRORS_RESERVED) + failed_requests.min(ERRORS_RESERVED);
        let for_errors = for_errors.min(spare / 2);
        let upstreams = self.upstreams.due((spare - for_errors).div_ceil(2));
        let spare = spare - upstreams.len();
        let upstreams_deferred = self.upstreams.changed().len() - upstreams.len();
        // Clients keep half of the room that upstreams and routes leave.
        let routes = self.http.as_ref().map(|http| http.routes.due((spare - for_errors).div_ceil(2)));
        let routes = routes.unwrap_or_default();
        let spare = spare - routes.len();
        let changed = self.http.as_ref().map_or(0, |http| http.routes.changed().len());
        let routes_deferred = changed - routes.len();
        let now_us = self.ticked.monotonic_us;
        let usage = self.tls.as_ref().map(|tls| tls.usage.due((spare - for_errors).div_ceil(4), now_us));
        let usage = usage.unwrap_or_default();
        let spare = spare - usage.len();
        let changed = self.tls.as_ref().map_or(0, |tls| tls.usage.changed().count());
        let usage_deferred = changed - usage.len();
        let certificates = self.certificates.due((spare - for_errors).div_ceil(4), now_us);
        let spare = spare - certificates.len();
        let span_us = self.ticked.monotonic_us - self.planned_us;
        let due = self.clients.due(spare - for_errors, self.ticked.monotonic_us, span_us);
        let present = due.iter().filter(|due| !due.record.last).count();
        let deferred = self.clients.deferred().saturating_sub(present);
        let spare = spare.saturating_sub(due.len());
        self.plan_totals(Deferred {
            clients: deferred as u64,
            usage: usage_deferred as u64,
            routes: routes_deferred as u64,
            upstreams: upstreams_deferred as u64,
        });
        self.pending_records.extend(upstreams.into_iter().map(PendingRecord::Upstream));
        self.pending_records.extend(usage.into_iter().map(PendingRecord::Usage));
        let certificates = certificates.into_iter().map(Box::new);
        self.pending_records.extend(certificates.map(PendingRecord::Certificate));
        self.pending_records.extend(routes.into_iter().map(PendingRecord::Route));
        self.pending_records.extend(due.into_iter().map(PendingRecord::Client));
        let kept = failed_requests.min(ERRORS_RESERVED).min(spare / 2);
        let spare = spare - self.plan_connections(spare - kept);
        self.plan_requests(spare);
        if self.is_health_due() {
            self.pending_records.push_front(PendingRecord::Health);
        }
        self.planned_us = self.ticked.monotonic_us;
    }

    pub(super) fn plan_totals(&mut self, deferred: Deferred) {
        let proxy = PendingRecord::Proxy {
            clients_deferred: deferred.clients,
            upstreams_deferred: deferred.upstreams,
        };
        let tls = PendingRecord::Tls { usage_deferred: deferred.usage };
        let http = PendingRecord::Http { routes_deferred: deferred.routes };
        self.pending_records.extend(self.proxy.is_some().then_some(proxy));
        self.pending_records.extend(self.tls.is_some().then_some(tls));
        self.pending_records.extend(self.http.is_some().then_some(http));
        self.pending_records.extend(self.load.is_some().then_some(PendingRecord::Load));
        self.pending_records.extend(self.host.is_some().then_some(PendingRecord::Host));
    }

    /// Usage that no record has carried yet.
    pub(super) fn plan_last_usage(&mut self) {
        let Some(tls) = &self.tls else { return };
        self.pending_records.extend(tls.usage.changed().cloned().map(PendingRecord::Usage));
    }

    /// The last interval of every upstream and route, then its last record.
    pub(super) fn plan_last_named(&mut self) {
        self.pending_records.extend(self.upstreams.changed().into_iter().map(PendingRecord::Upstream));
        self.pending_records.extend(self.upstreams.known().into_iter().map(PendingRecord::LastUpstream));
        let Some(http) = &self.http else { return };
        self.pending_records.extend(http.routes.changed().into_iter().map(PendingRecord::Route));
        self.pending_records.extend(http.routes.known().into_iter().map(PendingRecord::LastRoute));
    }

    /// Plans records of connections. Returns their number.
    pub(super) fn plan_connections(&mut self, room: usize) -> usize {
        let planned_before = self.pending_records.len();
        let mut waiting = std::mem::take(&mut self.connections).into_iter();
        self.pending_records
            .extend(waiting.by_ref().take(room).map(|record| PendingRecord::Connection(Box::new(record))));
        waiting.for_each(|record| self.drop_connection(&record));
        self.pending_records.len() - planned_before
    }

    /// Plans records of requests. Errors without room are counted.
    pub(super) fn plan_requests(&mut self, room: usize) {
        let Some(http) = &mut self.http else { return };
        let (records, without_room) = http.requests.take(room);
        self.health.over_budget_total += without_room;
        let pending = records.into_iter().map(|record| PendingRecord::Request(Box::new(record)));
        self.pending_records.extend(pending);
    }

    /// Errors come before samples. Errors without room are counted; samples without room are just dropped.
    fn queue_connections(&mut self, records: &[ConnectionRecord]) {
        let (errors, samples): (Vec<_>, Vec<_>) = records.iter().partition(|r| r.outcome.is_error());
        for record in errors.into_iter().chain(samples) {
            if self.connections.len() < CONNECTIONS_WAITING_MAX {
                self.connections.push_back(record.clone());
            } else {
                self.drop_connection(record);
            }
        }
    }

    fn drop_connection(&mut self, record: &ConnectionRecord) {
        self.health.over_budget_total += u64::from(record.outcome.is_error());
    }

    /// True if there is something new to report. Waits alone are not; a budget that stays short, and records that wait
    /// for an upload, are not reported each interval.
    fn is_health_due(&self) -> bool {
        let sent = &self.written.health;
        let but_waits = HealthRecord { waits_total: sent.waits_total, ..self.health.clone() };
        let but_budget = HealthRecord {
            over_budget_total: sent.over_budget_total,
            upload_waiting: sent.upload_waiting,
            ..but_waits.clone()
        };
        let told_lately = self
            .health_sent_us
            .is_some_and(|sent_us| self.ticked.monotonic_us - sent_us < OVER_BUDGET_TOLD_US_MIN);
        but_budget != *sent || (but_waits != *sent && !told_lately)
    }

    fn note_clock(&mut self, now: Timestamps) {
        let offset_us = |at: Timestamps| at.realtime_us as i64 - at.monotonic_us as i64;
        let step_us = offset_us(now) - offset_us(self.ticked);
        if step_us.abs() >= CLOCK_STEP_US_MIN {
            self.health.clock_step_us += step_us;
            self.health.clock_steps_total += 1;
        }
    }
}
