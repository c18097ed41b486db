//! How a run stood at a moment, and its later records as seen from there.

use foldhash::HashMap;

use crate::collect::delta::CLIENTS_MAX;
use crate::families::{ClientCounter, LoadCounter, LoadLatency, ProxyCounter, ProxyLatency};
use crate::metric::{Counters, Metric};
use crate::record::event_counts::Tally;
use crate::record::ids::{ClientId, RunId};
use crate::record::setting::{SETTINGS_MAX, Setting};
use crate::record::{
    Body, ClientRecord, HealthRecord, HostRecord, Latencies, LoadRecord, Phase, Record, RunRecord, Stamp,
};

/// How a run stood.
#[derive(Clone, Debug, Default)]
pub(super) struct Base {
    /// The last record before.
    last: Option<Stamp>,
    /// The end of the last interval before, if there was one; else the last record.
    ticked: Option<Stamp>,
    /// What it began with, its settings as they stood.
    began: Option<Box<RunRecord>>,
    proxy: Counters<ProxyCounter>,
    proxy_samples: Counters<ProxyLatency>,
    load: Counters<LoadCounter>,
    load_tally: Tally,
    /// Due, sending and measured.
    load_spans_us: [u64; 3],
    load_samples: Counters<LoadLatency>,
    host: HostRecord,
    health: HealthRecord,
    clients: HashMap<ClientId, (u64, Counters<ClientCounter>)>,
}

impl Base {
    /// Takes in a record from before.
    pub(super) fn note(&mut self, record: &Record) {
        self.last = Some(record.stamp);
        match &record.body {
            Body::Run(run) if run.phase == Phase::Start => {
                self.began = Some(run.clone());
                self.ticked = Some(record.stamp);
            }
            Body::Setting(setting) => self.note_setting(setting.after.as_ref()),
            Body::Proxy(proxy) => {
                self.ticked = Some(record.stamp);
                self.proxy = proxy.counters;
                self.proxy_samples = samples(&proxy.latencies);
            }
            Body::Load(load) => {
                self.ticked = Some(record.stamp);
                self.load_samples = samples(&load.latencies);
                self.load = load.counters;
                self.load_tally.clone_from(&load.tally);
                self.load_spans_us = [load.due_us, load.sending_us, load.measured_us];
            }
            Body::Host(host) => self.host = host.clone(),
            Body::Health(health) => self.health = health.clone(),
            Body::Client(client) => {
                if self.clients.len() < 2 * CLIENTS_MAX || self.clients.contains_key(&client.client) {
                    self.clients.insert(client.client, (client.epoch, client.counters));
                }
            }
            Body::Run(_) | Body::Connection(_) | Body::Mark(_) | Body::Experiment(_) | Body::Notice(_) => {}
        }
    }

    fn note_setting(&mut self, after: Option<&Setting>) {
        let Some((after, began)) = after.zip(self.began.as_mut()) else { return };
        match began.settings.iter().position(|known| known.name == after.name) {
            Some(at) => began.settings[at].clone_from(after),
            None if began.settings.len() < SETTINGS_MAX => began.settings.push(after.clone()),
            None => {}
        }
    }

    /// Clients that it knows.
    pub(super) fn clients(&self) -> usize {
        self.clients.len()
    }

    /// What it began with, its settings as they stood.
    pub(super) fn began(&self) -> Option<&RunRecord> {
        self.began.as_deref()
    }

    /// A first record for what follows; none where nothing was before, or the run's own first record was not read.
    pub(super) fn header(&self, run: RunId) -> Option<Record> {
        let ticked = self.ticked?;
        let began = self.began.clone()?;
        Some(Record { stamp: Stamp { run, seq: 1, interval_us: 0, ..ticked }, body: Body::Run(began) })
    }

    /// Makes a later record one of a run that began here.
    pub(super) fn rebase(&mut self, record: &mut Record) {
        let Some(last) = self.last else {
            if let Body::Run(run) = &record.body {
                self.began = Some(run.clone());
            }
            return;
        };
        let stamp = &mut record.stamp;
        stamp.seq = stamp.seq.saturating_sub(last.seq) + u64::from(self.began.is_some());
        match &mut record.body {
            Body::Run(run) => {
                // Histograms of a whole run cannot be counted from here; the last interval has the totals too.
                (run.proxy, run.load) = (None, None);
                let began_us = self.ticked.map_or(last.mono_us, |ticked| ticked.mono_us);
                stamp.interval_us = stamp.interval_us.min(stamp.mono_us.saturating_sub(began_us));
            }
            Body::Proxy(proxy) => {
                proxy.counters = proxy.counters.since(&self.proxy);
                count_from(&mut proxy.latencies, &self.proxy_samples);
            }
            Body::Load(load) => self.rebase_load(load),
            Body::Client(client) => self.rebase_client(client),
            Body::Host(host) => {
                host.cpu = host.cpu.since(&self.host.cpu);
                host.observed_cpu_us = host.observed_cpu_us.saturating_sub(self.host.observed_cpu_us);
            }
            Body::Health(health) => self.rebase_health(health),
            Body::Connection(_)
            | Body::Setting(_)
            | Body::Mark(_)
            | Body::Experiment(_)
            | Body::Notice(_) => {}
        }
    }

    fn rebase_load(&self, load: &mut LoadRecord) {
        load.counters = load.counters.since(&self.load);
        count_from(&mut load.latencies, &self.load_samples);
        load.tally = load.tally.since(&self.load_tally);
        let times = [&mut load.due_us, &mut load.sending_us, &mut load.measured_us];
        for (time_us, before_us) in times.into_iter().zip(self.load_spans_us) {
            *time_us = time_us.saturating_sub(before_us);
        }
    }

    fn rebase_client(&self, client: &mut ClientRecord) {
        let before = self.clients.get(&client.client).filter(|(epoch, _)| *epoch == client.epoch);
        if let Some((_, counters)) = before {
            client.counters = client.counters.since(counters);
        }
    }

    fn rebase_health(&self, health: &mut HealthRecord) {
        let before = &self.health;
        for (total, before) in [
            (&mut health.refused_total, before.refused_total),
            (&mut health.merged_total, before.merged_total),
            (&mut health.waits_total, before.waits_total),
            (&mut health.dropped_total, before.dropped_total),
            (&mut health.suppressed_total, before.suppressed_total),
            (&mut health.over_budget_total, before.over_budget_total),
        ] {
            *total = total.saturating_sub(before);
        }
    }
}

fn samples<M: Metric>(latencies: &Latencies<M>) -> Counters<M> {
    let mut counters = Counters::default();
    latencies.iter().for_each(|(class, latency)| counters[class] = latency.samples_total);
    counters
}

fn count_from<M: Metric>(latencies: &mut Latencies<M>, before: &Counters<M>) {
    for &class in M::ALL {
        let total = &mut latencies[class].samples_total;
        *total = total.saturating_sub(before[class]);
    }
}
