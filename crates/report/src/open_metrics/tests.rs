use std::collections::BTreeSet;
use std::fmt::Debug;

use std::net::Ipv4Addr;

use model::runs::Model;
use records::histogram::{Histogram, Sketch};
use records::ids::{ClientId, RunId};
use records::kinds::{Body, ClientRecord, Record, RouteRecord, Stamp, UsageRecord};
use records::metrics::{
    ClientCounter, Counters, Dimension, HttpCounter, LoadCounter, Metric, ProxyCounter, RequestFailure,
    RouteCounter, TimeResolution, TlsCounter, labels,
};

use super::histograms::{BOUNDS_S, classic};
use super::{MetricsFormat, counters, histograms, open_metrics};

/// The members of a family that are in none of the lists.
fn missing<M: Metric + Debug>(listed: &[&[M]]) -> Vec<M> {
    M::ALL.iter().copied().filter(|metric| !listed.iter().any(|list| list.contains(metric))).collect()
}

fn second<A: Copy, M: Copy>(pairs: &[(A, M)]) -> Vec<M> {
    pairs.iter().map(|(_, metric)| *metric).collect()
}

#[test]
fn every_counter_has_a_metric() {
    // The three totals are sums of metrics with labels.
    let sums =
        [ProxyCounter::HandshakesFull, ProxyCounter::HandshakesResumed, ProxyCounter::HandshakesFailed];
    let versions: Vec<ProxyCounter> = labels::VERSIONS.iter().flat_map(|(_, kinds)| *kinds).collect();
    let lists = [
        &labels::GROUPS[..],
        &labels::CIPHERS,
        &labels::HANDSHAKE_FAILURES,
        &counters::CUTS,
        counters::PROXY,
    ];
    let mut listed: Vec<Vec<ProxyCounter>> = lists.iter().map(|list| second(list)).collect();
    listed.extend([sums.to_vec(), versions]);
    assert_eq!(missing(&listed.iter().map(Vec::as_slice).collect::<Vec<_>>()), []);

    let lists = [&labels::FULL_REASONS[..], &counters::BESIDE, counters::TLS].map(second);
    assert_eq!(missing::<TlsCounter>(&lists.each_ref().map(Vec::as_slice)), []);

    let sums = vec![HttpCounter::Requests];
    let failures = RequestFailure::ALL.iter().map(|(_, counter, _)| *counter).collect();
    let lists = [
        &counters::PROTOCOLS[..],
        &labels::STATUS_CLASSES,
        &labels::METHODS,
        &labels::FLOODS,
        counters::HTTP,
    ];
    let mut listed: Vec<Vec<HttpCounter>> = lists.iter().map(|list| second(list)).collect();
    listed.extend([sums, failures]);
    assert_eq!(missing(&listed.iter().map(Vec::as_slice).collect::<Vec<_>>()), []);

    let of_load = [LoadCounter::Failed, LoadCounter::HandshakesFull, LoadCounter::HandshakesResumed].to_vec();
    let failures = labels::REQUEST_FAILURES.iter().map(|(_, _, counter)| *counter).collect();
    let listed: [Vec<LoadCounter>; 4] =
        [second(counters::LOAD), second(&counters::LOAD_STATUSES), of_load, failures];
    assert_eq!(missing(&listed.each_ref().map(Vec::as_slice)), []);
}

#[test]
fn names_are_unique_and_well_formed() {
    let counters = second_names(counters::PROXY).chain(second_names(counters::TLS));
    let counters = counters.chain(second_names(counters::HTTP)).chain(second_names(counters::LOAD));
    let mut names: Vec<&str> = counters.collect();
    names.extend(histograms::PROXY.iter().map(|(name, ..)| *name));
    names.extend(histograms::LOAD.iter().map(|(name, _)| *name));
    for name in &names {
        assert!(
            name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'),
            "{name}"
        );
        assert!(!name.ends_with("_total"), "{name}: the suffix is added");
    }
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
}

fn second_names<'a, M>(pairs: &'a [(&'static str, M)]) -> impl Iterator<Item = &'static str> + 'a {
    pairs.iter().map(|(name, _)| *name)
}

#[test]
fn a_percentile_lies_in_the_bucket_that_holds_its_rank() {
    let mut histogram = Histogram::new();
    let mut ns = 900_u64;
    while ns < 70_000_000_000 {
        histogram.record_ns(ns);
        ns += ns / 3 + 17;
    }
    let found = classic(&histogram, TimeResolution::FINE);
    assert_eq!(found.buckets.iter().map(|(_, count)| count).sum::<u64>(), found.count);
    assert_eq!(found.buckets.len(), BOUNDS_S.len() + 1);
    for q in [0.1, 0.5, 0.9, 0.99] {
        let rank = (q * found.count as f64).ceil() as u64;
        let mut below = 0;
        let at = found.buckets.iter().position(|(_, count)| {
            below += count;
            below >= rank
        });
        let at = at.unwrap();
        let low = if at == 0 { 0.0 } else { found.buckets[at - 1].0 };
        let seconds = histogram.quantile_ns(q).unwrap() as f64 / 1e9;
        assert!(
            low < seconds && seconds <= found.buckets[at].0,
            "p{q}: {seconds} is not in {low}..{}",
            found.buckets[at].0
        );
    }
}

#[test]
fn ten_thousand_values_make_a_bounded_number_of_labels() {
    const VALUES: u32 = 10_000;
    let mut model = Model::new(1);
    let mut seq = 0;
    let mut apply = |body| {
        seq += 1;
        let stamp = Stamp { run: RunId::from_bits(1), seq, mono_us: seq, realtime_us: seq, interval_us: 0 };
        model.apply(Record { stamp, body }, None);
    };
    apply(Body::Run(Box::default()));
    for value in 0..VALUES {
        let mut counters = Counters::default();
        counters[RouteCounter::Requests] = u64::from(value);
        let route = format!("/route-{value}");
        apply(Body::Route(Box::new(RouteRecord { route, counters, ..RouteRecord::default() })));
        let mut counters = Counters::default();
        counters[ClientCounter::BytesOut] = u64::from(value);
        let client = ClientId::Addr(Ipv4Addr::from_bits(value).into());
        let exchange = Sketch::default();
        apply(Body::Client(ClientRecord {
            client,
            epoch: 1,
            last: false,
            open: 1,
            counters,
            rtt_us: 0,
            exchange,
        }));
        let (dimension, value) = (Dimension::Name, format!("host-{value}.example"));
        apply(Body::Usage(Box::new(UsageRecord { dimension, value, counters: Counters::default() })));
    }
    for clients_max in [0, 1_000] {
        let text = open_metrics(model.current().unwrap(), "1", clients_max, MetricsFormat::OpenMetrics);
        let values = |label: &str| -> BTreeSet<&str> {
            let start = format!("{label}=\"");
            text.split(&start).skip(1).filter_map(|rest| rest.split('"').next()).collect()
        };
        assert_eq!((values("route").len(), values("client").len()), (256, clients_max));
        assert!(!text.contains("example"), "names are no labels");
        assert!(text.len() < 2 << 20, "{} bytes", text.len());
    }
}
