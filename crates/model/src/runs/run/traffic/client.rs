//! One client of a run.

use std::collections::VecDeque;
use std::ops::RangeBounds;

use records::histogram::Sketch;
use records::ids::ClientId;
use records::kinds::heap_size::HeapSize;
use records::kinds::{ClientRecord, ConnectionRecord, Stamp};
use records::metrics::{ClientCounter, Counters};

use super::recent::RecentSteps;

/// Records with latencies kept of each client: with five seconds each they cover the same time.
const SKETCHES_MAX: usize = 12;

/// A client's activity in the time that one record covers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClientRate {
    /// End of the time, `CLOCK_MONOTONIC` in microseconds.
    pub end_us: u64,
    /// Its length in microseconds, never 0.
    pub span_us: u64,
    pub counters: Counters<ClientCounter>,
}

impl ClientRate {
    /// Events, or bytes, a second.
    pub fn per_second(&self, metric: ClientCounter) -> f64 {
        self.counters[metric] as f64 * 1e6 / self.span_us as f64
    }

    /// Plaintext bytes a second, both ways.
    pub fn bytes_per_second(&self) -> f64 {
        self.per_second(ClientCounter::BytesIn) + self.per_second(ClientCounter::BytesOut)
    }
}

#[derive(Clone, Debug)]
pub struct ClientStats {
    pub id: ClientId,
    /// Connections open when its last record was made.
    pub open: u64,
    /// Round-trip time to it at the end of its latest handshake, in microseconds; 0 if not known.
    pub rtt_us: u64,
    /// `CLOCK_MONOTONIC` of its last record, in microseconds.
    pub last_us: u64,
    pub(in crate::runs) epoch: u64,
    /// Totals of the epochs before this one.
    pub(in crate::runs) earlier: Counters<ClientCounter>,
    /// Totals of this epoch.
    pub(in crate::runs) present: Counters<ClientCounter>,
    /// Records of the run that were known to be lost when its last record was read.
    lost_before: u64,
    history: VecDeque<ClientRate>,
    pub(in crate::runs) recent: RecentSteps,
    /// Latencies of its exchanges, all that were read.
    pub(in crate::runs) exchange: Sketch,
    /// The latest of them, each with the moment of its record, oldest first.
    sketches: VecDeque<(u64, Sketch)>,
    /// The latest recorded connection that ended well, and the latest that failed.
    pub(in crate::runs) connections: [Option<Box<ConnectionRecord>>; 2],
    /// When they were recorded, `CLOCK_MONOTONIC` in microseconds.
    pub(in crate::runs) connections_us: [u64; 2],
}

impl ClientStats {
    pub(in crate::runs) fn new(id: ClientId) -> Self {
        Self {
            id,
            open: 0,
            rtt_us: 0,
            last_us: 0,
            epoch: 0,
            earlier: Counters::default(),
            present: Counters::default(),
            lost_before: 0,
            history: VecDeque::new(),
            recent: RecentSteps::default(),
            exchange: Sketch::default(),
            sketches: VecDeque::new(),
            connections: [None, None],
            connections_us: [0; 2],
        }
    }

    /// Continues in an epoch that it was in before.
    pub(in crate::runs) fn resume(&mut self, epoch: u64, present: Counters<ClientCounter>, last_us: u64) {
        (self.epoch, self.present, self.last_us) = (epoch, present, last_us);
    }

    /// Copies the client without rates, latest latencies and connections.
    pub(in crate::runs) fn without_rates(&self) -> Self {
        let Self {
            id,
            open,
            rtt_us,
            last_us,
            epoch,
            earlier,
            present,
            lost_before: _,
            history: _,
            recent: _,
            exchange,
            sketches: _,
            connections: _,
            connections_us: _,
        } = self;
        Self {
            id: *id,
            open: *open,
            rtt_us: *rtt_us,
            last_us: *last_us,
            epoch: *epoch,
            earlier: *earlier,
            present: *present,
            lost_before: 0,
            history: VecDeque::new(),
            recent: RecentSteps::default(),
            exchange: exchange.clone(),
            sketches: VecDeque::new(),
            connections: [None, None],
            connections_us: [0; 2],
        }
    }

    /// Adds a record, and returns the counts and their time; `None` if unknown.
    pub(in crate::runs) fn apply(
        &mut self,
        stamp: &Stamp,
        record: &ClientRecord,
        known: Coverage,
    ) -> Option<ClientRate> {
        let is_first = self.epoch == 0;
        if record.epoch != self.epoch {
            self.earlier.add(&self.present);
            self.present = Counters::default();
            self.epoch = record.epoch;
        }
        let counters = record.counters.since(&self.present);
        let since_last_us = stamp.mono_us.saturating_sub(self.last_us);
        let may_cover_more = known.lost > self.lost_before;
        self.present = record.counters;
        self.open = record.open;
        self.rtt_us = record.rtt_us;
        self.last_us = stamp.mono_us;
        self.lost_before = known.lost;
        let span_us = match is_first {
            true if !known.from_start || known.lost_lately => return None,
            // A lost record may have been of this client, so the longer time is the right one.
            false if may_cover_more => since_last_us.max(stamp.interval_us),
            _ => stamp.interval_us,
        };
        // A record that covers no time repeats known counts.
        (span_us > 0 && stamp.interval_us > 0).then_some(ClientRate {
            end_us: stamp.mono_us,
            span_us,
            counters,
        })
    }

    pub(in crate::runs) fn remember(&mut self, rate: ClientRate, history: usize) {
        self.recent.add(&rate);
        make_place(&mut self.history, history);
        self.history.push_back(rate);
    }

    pub(in crate::runs) fn time(&mut self, us: u64, sketch: &Sketch, history: usize) {
        if sketch.is_empty() {
            return;
        }
        self.exchange.add(sketch);
        make_place(&mut self.sketches, SKETCHES_MAX.min(history));
        self.sketches.push_back((us, sketch.clone()));
    }

    /// Keeps only the latest rate and latencies.
    pub(in crate::runs) fn condense(&mut self) {
        self.history.drain(..self.history.len().saturating_sub(1));
        self.history.shrink_to_fit();
        self.sketches.drain(..self.sketches.len().saturating_sub(1));
        self.sketches.shrink_to_fit();
    }

    /// Latencies of its exchanges since the beginning, as far as they were read.
    pub fn exchange(&self) -> &Sketch {
        &self.exchange
    }

    /// These latencies up to a moment; `None` if later records have latencies, too.
    pub fn exchange_until(&self, us: u64) -> Option<&Sketch> {
        self.sketches.back().is_none_or(|(last_us, _)| *last_us <= us).then_some(&self.exchange)
    }

    /// The latencies in its records after `from_us` and up to `until_us`, which may reach back some seconds
    /// before them; of the latest 12 such records only.
    pub fn exchange_between(&self, from_us: u64, until_us: u64) -> Sketch {
        let within = |(us, _): &&(u64, Sketch)| from_us < *us && *us <= until_us;
        let mut sum = Sketch::default();
        self.sketches.iter().filter(within).for_each(|(_, sketch)| sum.add(sketch));
        sum
    }

    /// Totals over all its epochs.
    pub fn totals(&self) -> Counters<ClientCounter> {
        let mut totals = self.earlier;
        totals.add(&self.present);
        totals
    }

    /// Totals at its last record up to a moment; `None` if the kept records do not reach back that far.
    pub fn totals_at(&self, us: u64) -> Option<Counters<ClientCounter>> {
        let mut later = Counters::default();
        self.history.iter().filter(|rate| rate.end_us > us).for_each(|rate| later.add(&rate.counters));
        let then = self.totals().since(&later);
        let begins = |rate: &ClientRate| rate.end_us.saturating_sub(rate.span_us);
        let is_kept = self.last_us <= us || self.history.front().is_some_and(|rate| begins(rate) <= us);
        // Records that count everything reach back to its beginning.
        (is_kept || then.is_zero()).then_some(then)
    }

    /// The latest sampled connection that ended well, with the time of its record (`CLOCK_MONOTONIC`, microseconds).
    pub fn connection(&self) -> Option<(u64, &ConnectionRecord)> {
        Some((self.connections_us[0], self.connections[0].as_deref()?))
    }

    /// The latest failed connection, with the time of its record. Every failed connection has a record while there is
    /// room.
    pub fn failed_connection(&self) -> Option<(u64, &ConnectionRecord)> {
        Some((self.connections_us[1], self.connections[1].as_deref()?))
    }

    /// The latest records' rates, oldest first.
    pub fn history(&self) -> impl DoubleEndedIterator<Item = &ClientRate> + ExactSizeIterator {
        self.history.iter()
    }

    /// What its kept records within a time (`CLOCK_MONOTONIC`, microseconds) count.
    pub fn count_within(&self, counter: ClientCounter, time: &impl RangeBounds<u64>) -> u64 {
        let later = self.history.iter().rev().skip_while(|rate| !time.contains(&rate.end_us));
        let within = later.take_while(|rate| time.contains(&rate.end_us));
        within.fold(0, |sum, rate| sum.saturating_add(rate.counters[counter]))
    }
}

/// Removes the oldest until there is room for one more.
fn make_place<T>(kept: &mut VecDeque<T>, max: usize) {
    let too_many = (kept.len() + 1).saturating_sub(max);
    kept.drain(..too_many);
    if too_many > 1 {
        kept.shrink_to(max);
    }
}

impl HeapSize for ClientStats {
    fn heap_bytes(&self) -> usize {
        self.history.capacity() * size_of::<ClientRate>()
            + self.recent.heap_bytes()
            + self.exchange.heap_bytes()
            + self.sketches.capacity() * size_of::<(u64, Sketch)>()
            + self.sketches.iter().map(|(_, sketch)| sketch.heap_bytes()).sum::<usize>()
            + self.connections.iter().map(HeapSize::heap_bytes).sum::<usize>()
    }
}

/// The state of a run when a client's record is read.
#[derive(Clone, Copy, Debug)]
pub(in crate::runs) struct Coverage {
    /// The run's beginning, with all counters at zero, was read.
    pub(in crate::runs) from_start: bool,
    /// Records lost since the start.
    pub(in crate::runs) lost: u64,
    /// True if records were lost in this interval or the previous one.
    pub(in crate::runs) lost_lately: bool,
}
