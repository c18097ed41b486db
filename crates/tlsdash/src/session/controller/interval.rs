//! The end of an interval: the controller gathers the counters of proxy, load and host, and publishes them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use journal::Timestamps;
use proxy_core::Proxy;
use recorder::observer::Observer;
use records::kinds::{HostRecord, Level, NoticeRecord};

use super::{PATIENCE, RunController, ShutdownStage};

/// A busy machine may lengthen an interval by this much. A longer delay makes a gap, if it is also longer than
/// half an interval.
const LATE_MAX: Duration = Duration::from_millis(250);

impl RunController {
    /// Collects the counts since the last call into the two deltas. Waits at most `patience` in all.
    pub(super) fn gather(&mut self, patience: Duration) {
        records::delta::Delta::clear(&mut self.proxy_delta);
        records::delta::Delta::clear(&mut self.load_delta);
        let deadline = Instant::now() + patience;
        if let Some(proxy) = &mut self.workload.proxy {
            proxy.collect(&mut self.proxy_delta, patience);
            let mut certificates = proxy.certificates();
            if let Some(order) = &self.workload.acme {
                order.describe(&mut certificates);
            }
            self.publisher.set_certificates(certificates);
        }
        if let Some(observer) = &mut self.workload.observer {
            observer.collect(&mut self.proxy_delta, patience);
        }
        if let Some(load) = &mut self.workload.load {
            load.collect(&mut self.load_delta, deadline.saturating_duration_since(Instant::now()));
        }
    }

    /// Ends the interval that began at `began_us`, publishes it, and returns its end.
    pub(super) fn tick(&mut self, began_us: u64, stage: ShutdownStage) -> u64 {
        let interval = self.setup.interval;
        // A busy worker alone never makes an interval late by half of it.
        self.gather(PATIENCE.min(interval / 4));
        // Before the processes are read, which can take milliseconds.
        let now = Timestamps::now();
        let host = self.sample_host();
        // The process was stopped (SIGSTOP) or starved, perhaps while it published the interval before, so it did not
        // measure all of this one.
        let length = Duration::from_micros(now.monotonic_us.saturating_sub(began_us));
        let is_whole = length <= interval + LATE_MAX.max(interval / 2);
        if !is_whole {
            self.publisher.note_gap(now.monotonic_us.saturating_sub(interval.as_micros() as u64));
        }
        let cpu = host.cpu;
        self.report_upload();
        let proxy = self.workload.counts_traffic().then_some(&self.proxy_delta);
        let load = self.workload.load_state().map(|state| (&self.load_delta, state));
        self.publisher.set_suppressed(self.suppressed_total.load(Ordering::Relaxed));
        self.publisher.interval(proxy, load, Some(host.clone()), now);
        self.report_refusals();
        self.report_journal_loss();
        self.report_proxy_notices();
        // The end of a run must not cause an alert.
        if stage == ShutdownStage::Running && !self.setup.alerts.is_empty() {
            self.observe_alerts(now, is_whole, &host);
        }
        self.advance_experiment(now, &cpu);
        now.monotonic_us
    }

    /// Reports the notices that the proxy, or the observer of a log, has queued.
    pub(super) fn report_proxy_notices(&mut self) {
        let of_proxy = self.workload.proxy.as_ref().map(Proxy::take_notices).unwrap_or_default();
        let of_log = self.workload.observer.as_ref().map(Observer::take_notices).unwrap_or_default();
        for notice in of_proxy.into_iter().chain(of_log) {
            self.report(notice);
        }
    }

    pub(super) fn sample_host(&mut self) -> HostRecord {
        let mut host = self.host.sample();
        if let Some(observed) = &mut self.workload.observed {
            observed.sample(&mut host);
        }
        host
    }

    /// Reports that somebody removed, moved or truncated the journal's file.
    fn report_journal_loss(&mut self) {
        let Some(loss) = self.publisher.sink().take_loss() else { return };
        let text = format!("{loss}; the journal goes on in a new file");
        if loss.entries_lost() > 0 {
            self.publisher.record_lost(loss.entries_lost(), &text);
        }
        self.report(NoticeRecord::new(Level::Warning, "journal", &text));
    }

    /// Reports that an upload fails, goes on, or has lost records.
    fn report_upload(&mut self) {
        let Some(upload) = &mut self.setup.upload else { return };
        let (state, news) = upload.poll();
        let failure = state.failure.as_deref().unwrap_or_default();
        self.publisher.set_upload(state.waiting, state.lost_total, failure);
        for notice in news {
            self.report(notice);
        }
    }

    /// Shows once that the journal refuses records, and once that it accepts them again. Neither can be a record.
    pub(super) fn report_refusals(&mut self) {
        let health = self.publisher.health();
        let is_refusing = health.refused_total > self.refused_total || self.publisher.stalled().is_some();
        self.refused_total = health.refused_total;
        if is_refusing && !self.is_refusing {
            let text = format!("the journal takes no records: {}", health.error);
            self.console.say(Level::Warning, &text);
        }
        if self.is_refusing && !is_refusing {
            self.console.say(Level::Notice, "the journal takes records again");
        }
        self.is_refusing = is_refusing;
    }
}
