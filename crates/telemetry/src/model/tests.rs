use journal::EntryBuf;
use proptest::prelude::*;

use super::*;
use crate::codec;
use crate::families::{CpuGroup, LoadCounter, ProxyCounter};
use crate::metric::Metric;
use crate::record::{Body, Stamp};
use crate::testing::bodies;

/// Takes every figure that a model gives.
fn look_at_everything(model: &Model) {
    for run in model.runs() {
        serde_json::to_string(&run.summary(Some("file:x"))).expect("a summary is plain data");
        for client in run.clients().iter() {
            let rate = run.client_rate(client);
            assert!(rate.is_none_or(|rate| rate.bytes_per_second().is_finite()));
        }
        for &group in CpuGroup::ALL {
            assert!(run.cpu(group, 5_000_000).is_none_or(|cpu| cpu.cores.is_finite()));
        }
        for span_us in [0, 1_000_000, u64::MAX] {
            if let Some(proxy) = run.proxy() {
                let window = proxy.window(span_us);
                assert!(window.rate(ProxyCounter::Accepted).is_none_or(f64::is_finite));
                window.counters.sum(ProxyCounter::ALL);
                proxy.intervals().for_each(|interval| assert!(interval.seconds().is_finite()));
            }
            if let Some(load) = run.load() {
                let window = load.window_until(u64::MAX, span_us);
                assert!(window.rate(LoadCounter::Sent).is_none_or(f64::is_finite));
            }
        }
        let reading = run.reading();
        let missing: u64 = reading.gaps().fold(0, |sum, gap| sum.saturating_add(gap.missing));
        assert!(missing <= reading.lost() && run.log().len() <= 1_000);
        assert!(reading.read() <= reading.made());
    }
}

fn hostile_number() -> impl Strategy<Value = u64> {
    let edges =
        [0, 1, 2, 1_000_000, u64::MAX / 2, i64::MAX as u64, i64::MAX as u64 + 1, u64::MAX - 1, u64::MAX];
    prop_oneof![0_u64..100, prop::sample::select(edges.to_vec()), any::<u64>()]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn whatever_a_journal_says_a_model_takes_it(
        rounds in prop::collection::vec((prop::collection::vec(hostile_number(), 16), any::<bool>(), 0_u128..3), 1..6),
    ) {
        let mut model = Model::new(4);
        let mut entry = EntryBuf::new();
        for (round, (numbers, flag, run)) in rounds.iter().enumerate() {
            for (i, body) in bodies(numbers, "text", *flag).into_iter().enumerate() {
                let number = |at: usize| numbers[(i + at) % numbers.len()];
                // Most come in order, for what is out of order is not looked at.
                let seq = if number(0) % 7 == 0 { number(1) } else { (round * 100 + i) as u64 };
                let stamp = Stamp {
                    run: RunId::from_bits(*run),
                    seq,
                    mono_us: number(2),
                    realtime_us: number(3),
                    interval_us: number(4),
                };
                codec::encode(&Record { stamp, body }, &mut entry);
                if let Ok(Some(record)) = codec::decode_from(&entry, number(3)) {
                    model.apply(record, flag.then(|| number(5)));
                }
            }
        }
        look_at_everything(&model);
    }
}
