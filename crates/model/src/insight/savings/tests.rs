use std::time::Duration;

use super::*;
use crate::runs::Model;
use records::histogram::Histograms;
use records::ids::RunId;
use records::kinds::{Body, CostTable, ProxyRecord, Record, RunRecord, Stamp, TlsRecord, UsageRecord};
use records::metrics::{Counters, Dimension, ProxyCounter, ProxyLatency, TlsLatency, UsageCounter};
use records::setting::{Applies, Setting, Value};
use records::values::Latencies;

const US: u64 = 1_000;

/// A second of a proxy: 600 full handshakes of 1,000 µs with RSA signatures of 700 µs, and 400 resumed ones of 100 µs; the
/// hybrid key exchange took 80 µs each time; 2,000 exchanges.
fn model(signature: &str, settings: Vec<Setting>) -> Model {
    model_with(signature, settings, 400)
}

fn model_with(signature: &str, settings: Vec<Setting>, resumed: u64) -> Model {
    let mut model = Model::default();
    let mut seq = 0;
    let mut write = |body: Body, interval_us: u64| {
        seq += 1;
        let stamp = Stamp {
            run: RunId::from_bits(1),
            seq,
            mono_us: 5_000_000 + interval_us,
            realtime_us: 1,
            interval_us,
        };
        model.apply(Record { stamp, body }, None);
    };
    write(Body::Run(Box::new(RunRecord { settings, ..RunRecord::default() })), 0);
    let mut proxy = ProxyRecord::default();
    for (counter, n) in [
        (ProxyCounter::HandshakesFull, 600),
        (ProxyCounter::HandshakesResumed, resumed),
        (ProxyCounter::Tls13Full, 600),
        (ProxyCounter::Tls13Resumed, resumed),
        (ProxyCounter::GroupMlkem, 600 + resumed),
        (ProxyCounter::Exchanges, 2_000),
    ] {
        proxy.counters[counter] = n;
    }
    let mut times = Histograms::default();
    record(&mut times[ProxyLatency::ComputeFull], 600, 1_000);
    record(&mut times[ProxyLatency::ComputeResumed], resumed, 100);
    proxy.latencies = Latencies::new(&times, &Counters::default());
    write(Body::Proxy(Box::new(proxy)), 1_000_000);
    let mut times = Histograms::default();
    record(&mut times[TlsLatency::KeyExchange], 600 + resumed, 80);
    record(&mut times[TlsLatency::Signature], 600, 700);
    let tls = TlsRecord { latencies: Latencies::new(&times, &Counters::default()), ..TlsRecord::default() };
    write(Body::Tls(Box::new(tls)), 1_000_000);
    let mut usage = UsageRecord {
        dimension: Dimension::Signature,
        value: signature.to_owned(),
        ..UsageRecord::default()
    };
    usage.counters[UsageCounter::HandshakesFull] = 600;
    write(Body::Usage(Box::new(usage)), 1_000_000);
    model
}

fn record(into: &mut records::histogram::Histogram, n: u64, us: u64) {
    (0..n).for_each(|_| into.record(Duration::from_micros(us)));
}

fn costs() -> HandshakeCosts {
    let table = |costs: &[(&str, u64)]| {
        let mut table = CostTable::default();
        for (name, us) in costs {
            table.insert(name, Cost::from([us * 900, us * US, us * 1_200]));
        }
        table
    };
    HandshakeCosts {
        took_us: 1_800_000,
        // Half of what the busy machine takes for the hybrid.
        key_exchange: table(&[("x25519", 25), ("X25519MLKEM768", 40)]),
        signature: table(&[("ECDSA P-256", 20), ("RSA-2048", 600)]),
        rest: table(&[("TLSv1.3 full", 200), ("TLSv1.3 resumed", 50)]),
    }
}

fn saving(model: &Model, change: SavingChange) -> Option<Saving> {
    let run = &model.runs_and_parts()[0];
    savings(run, &costs(), u64::MAX).into_iter().find(|saving| saving.change == change)
}

fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.01, "{found} is not {expected}");
}

#[test]
fn resumption_saves_the_difference_of_full_and_resumed_costs() {
    let saving = saving(&model("rsa_pss_rsae_sha256", Vec::new()), SavingChange::ResumeMore).unwrap();
    // 400 of 1,000 more, 900 µs each.
    assert_near(saving.cores.mid, 0.36);
    assert_near(saving.share.mid, 0.36 / 0.64);
    assert!(matches!(saving.how, HowTo::Otherwise(_)), "the load is not ours: {saving:?}");
}

#[test]
fn resumption_without_a_resumed_handshake_is_estimated_from_the_parts_of_full_ones() {
    let saving = saving(&model_with("rsa_pss_rsae_sha256", Vec::new(), 0), SavingChange::ResumeMore).unwrap();
    // The signature, and 150 µs of the rest, which took 1.1 times as long as alone. With the key exchange, which the
    // machine slowed too, 135 µs remain, more than the 90 of a calibration alone.
    assert_near(saving.cores.mid, 0.8 * 600.0 * 865e-6);
    assert!(saving.cores.low < 0.8 * 600.0 * 840e-6, "{saving:?}");
    assert!(saving.cores.high > 0.8 * 600.0 * 890e-6, "{saving:?}");
}

#[test]
fn an_ecdsa_certificate_saves_the_difference_of_the_signatures() {
    let saved = saving(&model("rsa_pss_rsae_sha256", Vec::new()), SavingChange::EcdsaCertificate).unwrap();
    assert_near(saved.cores.mid, 600.0 * 680e-6);
    assert!(saved.cores.low < saved.cores.mid && saved.cores.mid < saved.cores.high, "{saved:?}");
    let none = saving(&model("ecdsa_secp256r1_sha256", Vec::new()), SavingChange::EcdsaCertificate);
    assert_eq!(none, None, "there is none to replace");
}

#[test]
fn a_group_costs_as_much_more_as_the_measured_one_than_on_its_own() {
    let groups = Setting {
        name: "proxy.groups".into(),
        value: Value::Text("x25519,secp256r1,x25519mlkem768".into()),
        unit: String::new(),
        applies: Applies::NewConnections,
        range: None,
    };
    let saving = saving(&model("rsa_pss_rsae_sha256", vec![groups]), SavingChange::ClassicalGroup).unwrap();
    // Twice as much: 80 instead of 40 µs, so that X25519 takes 50 instead of 25.
    assert_near(saving.cores.mid, 1_000.0 * 30e-6);
    let HowTo::Setting { name, value, experiment } = saving.how else { panic!("{saving:?}") };
    assert_eq!((name.as_str(), value.as_deref()), ("proxy.groups", Some("x25519,secp256r1")));
    let words = "proxy.groups=x25519,secp256r1,x25519mlkem768..x25519,secp256r1";
    assert_eq!(experiment.as_deref(), Some(words));
}

#[test]
fn kept_connections_save_the_handshakes_of_the_others() {
    let saving = saving(&model("rsa_pss_rsae_sha256", Vec::new()), SavingChange::KeepConnections).unwrap();
    // 2,000 requests on 200 connections instead of 1,000.
    assert_near(saving.share.mid, 0.8);
    assert_near(saving.cores.mid, 0.8 * 0.64);
}

#[test]
fn nothing_is_estimated_from_a_handful_of_handshakes() {
    let mut model = Model::default();
    let stamp = Stamp { run: RunId::from_bits(1), seq: 1, mono_us: 1, realtime_us: 1, interval_us: 0 };
    model.apply(Record { stamp, body: Body::Run(Box::default()) }, None);
    assert!(savings(&model.runs_and_parts()[0], &costs(), u64::MAX).is_empty());
}
