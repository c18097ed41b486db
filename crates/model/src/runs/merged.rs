//! Runs of several hosts as one.
//!
//! Counters and CPU times add up, latencies are merged bucket by bucket, clients are identified by their addresses. What runs
//! have at a moment (connections, memory, the requested rate) adds up only where they take place at the same time; a host
//! counts once. Hosts have no clock in common but the wall's: the merged run's monotonic clock is `CLOCK_REALTIME`, as each host
//! had it when its last record was made.

use crate::insight::findings;
use crate::runs::Model;
use crate::runs::run::Run;

/// One of several runs that are taken together.
#[derive(Clone, Copy, Debug)]
pub struct RunMember<'a> {
    /// Its name, such as its host.
    pub name: &'a str,
    pub run: &'a Run,
    /// The run's model, which has the counts of unreadable data.
    pub model: &'a Model,
}

impl Model {
    /// A model of one run that is all of these together; it is empty without any.
    pub fn merged(parts: &[RunMember<'_>]) -> Self {
        let mut merged = Self::default();
        let runs: Vec<(&str, &Run)> = parts.iter().map(|part| (part.name, part.run)).collect();
        if let Some(mut run) = Run::merged(&runs) {
            run.findings = findings::merged(&runs);
            merged.add(run);
        }
        let mut models: Vec<&Self> = Vec::new();
        for part in parts {
            if !models.iter().any(|known| std::ptr::eq(*known, part.model)) {
                models.push(part.model);
            }
        }
        merged.malformed = models.iter().map(|model| model.malformed).sum();
        merged.skipped_bytes = models.iter().map(|model| model.skipped_bytes).sum();
        merged
    }
}

impl Run {
    /// Whether another run is taken in place of this one where runs of several hosts are taken together: a newer one of its
    /// host, or of its service on a host that others read.
    pub fn is_replaced_by(&self, other: &Self) -> bool {
        let (writer, others) = (self.writer(), other.writer());
        let is_same_host =
            writer.origin.machine == others.origin.machine && self.hostname() == other.hostname();
        let services = [writer, others].map(|writer| writer.service().filter(|_| writer.is_remote));
        let is_apart = matches!(services, [Some(own), Some(of_other)] if own != of_other);
        let order = |run: &Self| (run.writer().is_preferred(), run.began_realtime_us());
        is_same_host && !is_apart && order(other) > order(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::finished;
    use recorder::publish::Publisher;
    use records::delta::{ClientDelta, HttpDelta, LoadDelta, LoadState, ProxyDelta};
    use records::histogram::Sketch;
    use records::ids::RunId;
    use records::kinds::{HostRecord, RunRecord, Timestamps};
    use records::metrics::{
        ClientCounter, Counters, CpuGroup, HttpCounter, LoadCounter, ProxyCounter, ProxyLatency,
        RouteCounter, RouteLatency,
    };
    use records::setting::{Applies, Setting, Value};

    /// Ten seconds of a host that began `late_us` after the first, booted at another time, with so many exchanges a
    /// second.
    fn host(number: u64, late_us: u64, exchanges: u64) -> Model {
        let at = |second: u64| Timestamps {
            realtime_us: 1_700_000_000_000_000 + late_us + second * 1_000_000,
            monotonic_us: number * 777_000_000 + second * 1_000_000,
        };
        let workers = Setting {
            name: "proxy.workers".to_owned(),
            value: Value::Number(number as f64),
            unit: String::new(),
            applies: Applies::Live,
            range: None,
        };
        let run = RunRecord {
            host: format!("box{number}"),
            workers: number,
            settings: vec![workers],
            ..RunRecord::default()
        };
        let mut publisher = Publisher::new(RunId::from_bits(u128::from(number)), Vec::new(), 60, at(0));
        publisher.name_routes(vec!["/".to_owned()]);
        publisher.start(run, at(0));
        publisher.mark("here", at(1));
        for second in 1..=10 {
            let mut proxy = ProxyDelta::default();
            for _ in 0..exchanges {
                proxy.latencies[ProxyLatency::Exchange].record_ns(number * 1_000_000);
            }
            proxy.counters[ProxyCounter::Exchanges] = exchanges;
            let mut http = HttpDelta::default();
            (0..exchanges).for_each(|_| http.finish(&finished()));
            http.gauges.upstream_open = i64::from(second == 1);
            proxy.http = Some(Box::new(http));
            let mut counters = Counters::default();
            counters[ClientCounter::Exchanges] = exchanges;
            let client = std::net::IpAddr::from([127, 0, 0, 1]).into();
            let mut exchange = Sketch::default();
            exchange.record(std::time::Duration::from_millis(number));
            proxy.clients.push(ClientDelta { client, open_change: 0, counters, rtt_us: 0, exchange });
            let mut host = HostRecord::default();
            host.cpu[CpuGroup::Proxy] = second * 1_000;
            publisher.interval(Some(&proxy), None, Some(host), at(second));
        }
        publisher.stop(RunRecord::default(), None, None, None, at(10));
        let mut model = Model::new(1_000);
        publisher.into_sink().into_iter().for_each(|record| model.apply(record, None));
        model
    }

    #[test]
    fn runs_of_several_hosts_add_up() {
        let (a, b) = (host(1, 0, 100), host(2, 2_400_000, 50));
        let part = |name, model| RunMember { name, run: Model::current(model).unwrap(), model };
        let merged = Model::merged(&[part("box1", &a), part("box2", &b)]);
        let run = merged.current().unwrap();
        let series = run.proxy().unwrap();
        assert_eq!(series.totals()[ProxyCounter::Exchanges], 1_500);
        let exchange = &series.whole()[ProxyLatency::Exchange];
        assert_eq!(
            (exchange.count(), exchange.max_ns(), exchange.sum_ns()),
            (1_500, 2_000_000, 2_000_000_000)
        );
        assert_eq!(exchange.quantile_ns(0.66).unwrap() / 1_000_000, 1);
        let (http, route) = (run.http().unwrap(), run.routes().get("/").unwrap());
        assert_eq!(
            (http.totals()[HttpCounter::Requests], route.totals()[RouteCounter::Requests]),
            (1_500, 1_500)
        );
        assert_eq!(route.series().whole()[RouteLatency::Upstream].count(), 1_500);
        assert_eq!(
            (run.http_record().unwrap().statuses.of(200), run.http_record().unwrap().upstream_open),
            (1_500, 2)
        );
        let window = run.named_window(route, run.last_us(), 2_000_000);
        assert_eq!((window.rate(RouteCounter::Requests), run.requests().errors().len()), (Some(50.0), 0));
        assert!(!run.requests().slowest(0, u64::MAX).is_empty());
        let client = run.clients().iter().next().unwrap();
        assert_eq!(client.totals()[ClientCounter::Exchanges], 1_500);
        assert_eq!((client.exchange().count(), client.exchange().max_ns()), (20, 2_000_000));
        assert_eq!(run.host().unwrap().cpu[CpuGroup::Proxy], 20_000);
        assert_eq!(run.duration_us(), 12_400_000);
        assert!(run.stopped().is_some());
        assert_eq!(run.hostname(), "box1, box2");
        assert_eq!(run.began().unwrap().workers, 3);
        assert_eq!(run.setting("proxy.workers").unwrap().value, Value::Text("1 (box1), 2 (box2)".to_owned()));
        let reading = (a.current().unwrap().reading().read(), b.current().unwrap().reading().read());
        assert_eq!((run.reading().read(), run.reading().lost()), (reading.0 + reading.1, 0));
        let rates: Vec<f64> = series.timeline().filter_map(|it| it.rate(ProxyCounter::Exchanges)).collect();
        assert_eq!(rates, [vec![100.0; 2], vec![150.0; 8], vec![50.0; 2]].concat());
        let samples: u64 = series.timeline().map(|it| it.latency(ProxyLatency::Exchange).count()).sum();
        assert_eq!(samples, 1_500);
        let log: Vec<_> = run.log().map(|line| &*line.text).filter(|text| text.contains("mark")).collect();
        assert_eq!(log, ["box1: mark 1 here", "box2: mark 1 here"]);
    }

    /// A load of 800 requests a second for ten seconds on a host of two cores, that began so much later.
    fn load(number: u128, late_s: u64) -> Model {
        let at = |second: u64| Timestamps {
            realtime_us: 1_700_000_000_000_000 + (late_s + second) * 1_000_000,
            monotonic_us: (50 + late_s + second) * 1_000_000,
        };
        let run = RunRecord {
            host: "box".to_owned(),
            cores: 2,
            workers: 1,
            host_memory_bytes: 8_000_000_000,
            ..RunRecord::default()
        };
        let mut publisher = Publisher::new(RunId::from_bits(number), Vec::new(), 60, at(0));
        publisher.start(run, at(0));
        let mut ended = None;
        for second in 1..=10 {
            let mut delta = LoadDelta::default();
            delta.counters[LoadCounter::Scheduled] = 800;
            delta.counters[LoadCounter::Ok] = 800;
            let mut host = HostRecord { memory_bytes: 50_000_000, threads: 9, ..HostRecord::default() };
            host.cpu[CpuGroup::Load] = second * 500_000;
            let us = second * 1_000_000;
            let (due_us, sending_us, measured_us) = (us, us, us);
            let state = LoadState {
                rate: 800.0,
                connections: 4,
                threads: 1,
                due_us,
                sending_us,
                measured_us,
                ..LoadState::default()
            };
            publisher.interval(None, Some((&delta, state)), Some(host.clone()), at(second));
            ended = Some((state, host));
        }
        let (state, host) = ended.unwrap();
        publisher.stop(RunRecord::default(), None, Some((&LoadDelta::default(), state)), Some(host), at(10));
        let mut model = Model::new(1_000);
        publisher.into_sink().into_iter().for_each(|record| model.apply(record, None));
        model
    }

    /// Rates achieved and wanted, requests, memory and CPU seconds of a load and one so much later.
    fn both(late_s: u64) -> (Model, [u64; 2], [u64; 6]) {
        let (a, b) = (load(1, 0), load(2, late_s));
        let part = |name, model| RunMember { name, run: Model::current(model).unwrap(), model };
        let merged = Model::merged(&[part("a", &a), part("b", &b)]);
        let run = merged.current().unwrap();
        let summary = run.summary();
        let load = summary.load.unwrap();
        let process = summary.process.unwrap();
        let began = run.began().unwrap();
        let rates =
            [load.rate_per_s.achieved, load.rate_per_s.wanted.unwrap()].map(|rate| rate.round() as u64);
        let amounts = [
            load.requests.ok,
            run.load_record().unwrap().connections,
            process.memory_bytes,
            began.cores,
            began.host_memory_bytes,
            summary.cpu_s["load"] as u64,
        ];
        (merged, rates, amounts)
    }

    #[test]
    fn runs_one_after_the_other_do_not_add_up_rates_nor_the_host() {
        for late_s in [10, 60] {
            let (merged, rates, amounts) = both(late_s);
            assert_eq!(rates, [800, 800], "{late_s}");
            assert_eq!(amounts, [16_000, 4, 50_000_000, 2, 8_000_000_000, 10], "{late_s}");
            let run = merged.current().unwrap();
            assert_eq!((run.duration_us(), run.recorded_us()), ((late_s + 10) * 1_000_000, 20_000_000));
            let busy = run.summary().load.unwrap().generator.busy;
            assert!((busy - 0.5).abs() < 1e-9, "{busy}");
        }
    }

    #[test]
    fn runs_at_the_same_time_add_up_but_their_host() {
        let (_, rates, amounts) = both(0);
        assert_eq!(rates, [1_600, 1_600]);
        assert_eq!(amounts, [16_000, 8, 100_000_000, 2, 8_000_000_000, 10]);
        let (_, rates, _) = both(5);
        assert_eq!(rates, [1_067, 1_067], "half of the time both ran");
    }

    #[test]
    fn one_run_alone_keeps_its_figures() {
        let a = host(1, 0, 100);
        let run = a.current().unwrap();
        let merged = Model::merged(&[RunMember { name: "box1", run, model: &a }]);
        let (one, all) = (run.summary(), merged.current().unwrap().summary());
        let figures = |summary| {
            let mut value = serde_json::to_value(summary).unwrap();
            value.as_object_mut().unwrap().remove("run");
            value
        };
        assert_eq!(figures(one), figures(all));
        assert!(Model::merged(&[]).current().is_none());
    }
}
