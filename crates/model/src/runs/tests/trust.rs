//! Whose records count, and which numbers are believed.

use super::client_record;
use crate::runs::*;
use crate::testing::client;
use records::codec::Origin;
use records::kinds::{Body, NoticeRecord, Phase, ProxyRecord, RunRecord, Stamp};
use records::metrics::{ClientCounter, ProxyCounter};

/// A process on this machine.
fn process(pid: u32) -> Writer {
    let origin = Origin { machine: Some(1), boot: Some(2), pid: Some(pid), uid: Some(1_000) };
    Writer { origin, hostname: "edge-1".into(), unit: "tlsdash.service".into(), is_remote: false }
}

fn record(seq: u64, second: u64, body: Body) -> Record {
    let stamp = Stamp {
        run: RunId::from_bits(1),
        seq,
        mono_us: 50_000_000 + second * 1_000_000,
        realtime_us: 1_000_000 * second + 1,
        interval_us: 1_000_000,
    };
    Record { stamp, body }
}

/// The records of a run of some seconds, with four more connections and 1,000 more bytes each.
fn honest(seconds: u64) -> Vec<Record> {
    let mut records = vec![record(1, 0, Body::Run(Box::default()))];
    for second in 1..=seconds {
        let mut proxy = ProxyRecord::default();
        proxy.counters[ProxyCounter::Accepted] = 4 * second;
        records.push(record(2 * second, second, Body::Proxy(Box::new(proxy))));
        let of_client = client_record(client(2), 1, 1_000 * second);
        records.push(record(2 * second + 1, second, Body::Client(of_client)));
    }
    records
}

/// A forger's records of a run.
fn forged(second: u64) -> Vec<Record> {
    let mut proxy = ProxyRecord::default();
    proxy.counters[ProxyCounter::Accepted] = u64::MAX;
    let stop = RunRecord { phase: Phase::Stop, proxy: Some(proxy.clone()), ..RunRecord::default() };
    vec![
        record(1, second, Body::Run(Box::default())),
        record(u64::MAX, second, Body::Proxy(Box::new(proxy))),
        record(7, second, Body::Client(client_record(client(66), 1, u64::MAX))),
        record(8, second, Body::Client(client_record(client(2), 9, u64::MAX))),
        record(9, second, Body::Run(Box::new(stop))),
    ]
}

fn read_of(model: &mut Model, writer: &Writer, records: Vec<Record>) {
    for record in records {
        model.apply_from(writer, record, None);
    }
}

fn assert_honest(model: &Model, seconds: u64) {
    let run = model.run(RunId::from_bits(1)).unwrap();
    assert_eq!(*run.writer(), process(10));
    assert_eq!(run.proxy().unwrap().totals()[ProxyCounter::Accepted], 4 * seconds);
    assert_eq!(run.clients().len(), 1);
    assert_eq!(run.client(client(2)).unwrap().totals()[ClientCounter::BytesIn], 1_000 * seconds);
    assert!(run.began().is_some() && run.stopped().is_none());
    assert_eq!((run.reading().read(), run.reading().lost()), (2 * seconds + 1, 0));
    assert_eq!(run.reading().foreign(), 5);
    let told = run.log().filter(|line| line.text.contains("another process"));
    assert_eq!(told.count(), 1);
}

#[test]
fn records_of_another_process_do_not_change_a_run() {
    let records = honest(5);
    // At any time after the run's id has become known, and by any other process.
    for at in 1..records.len() {
        for other in
            [process(11), Writer { origin: Origin { boot: Some(3), ..process(10).origin }, ..process(10) }]
        {
            let mut model = Model::default();
            for (i, record) in records.iter().enumerate() {
                if i == at {
                    let second = record.stamp.realtime_us / 1_000_000;
                    read_of(&mut model, &other, forged(second));
                }
                model.apply_from(&process(10), record.clone(), None);
            }
            assert_honest(&model, 5);
            assert_eq!(model.runs_and_parts().len(), 1);
        }
    }
}

#[test]
fn a_forger_whose_file_is_read_first_loses_the_run_to_its_owner() {
    let mut model = Model::default();
    read_of(&mut model, &process(11), forged(3));
    assert!(model.current().unwrap().stopped().is_some());
    read_of(&mut model, &process(10), honest(5));
    assert_honest(&model, 5);
}

#[test]
fn the_part_of_a_run_is_of_its_process_even_if_a_forger_comes_first() {
    let whole = RunId::from_bits(0xab << 8);
    let of = |run: RunId, records: Vec<Record>| -> Vec<Record> {
        records.into_iter().map(|record| Record { stamp: Stamp { run, ..record.stamp }, ..record }).collect()
    };
    let part = || {
        let mut records = of(whole.part(1), honest(5));
        let run = RunRecord { service: ":443 nginx".into(), ..RunRecord::default() };
        records[0].body = Body::Run(Box::new(run));
        records
    };
    for is_whole_known in [true, false] {
        let mut model = Model::default();
        let (first, second) = (of(whole, honest(5)), part());
        if is_whole_known {
            read_of(&mut model, &process(10), first.clone());
        }
        read_of(&mut model, &process(11), part());
        if !is_whole_known {
            read_of(&mut model, &process(10), first);
            assert_eq!(model.services(whole).count(), 0, "the forger's is none of it");
            continue;
        }
        read_of(&mut model, &process(10), second);
        let found: Vec<&Run> = model.services(whole).collect();
        assert_eq!((found.len(), found[0].writer()), (1, &process(10)));
        assert_eq!(found[0].proxy().unwrap().totals()[ProxyCounter::Accepted], 20);
        assert_eq!(model.run(whole).unwrap().reading().foreign(), 11);
    }
    let of_parts = |model: &Model| model.runs().count();
    let mut model = Model::default();
    read_of(&mut model, &process(10), of(whole, honest(2)));
    read_of(&mut model, &process(10), part());
    assert_eq!(
        (of_parts(&model), model.current().map(Run::id)),
        (1, Some(whole)),
        "a part is no run to choose"
    );
}

#[test]
fn the_log_holds_notices_of_this_run_only() {
    let mut model = Model::default();
    let notice = |level, text: &str| Body::Notice(NoticeRecord::new(level, "upstream", text));
    let records = vec![
        record(1, 0, Body::Run(Box::default())),
        record(2, 1, notice(Level::Warning, "gone")),
        record(3, 2, notice(Level::Notice, "back\u{1b}[2J")),
    ];
    read_of(&mut model, &process(10), records);
    read_of(&mut model, &process(11), vec![record(4, 3, notice(Level::Warning, "forged"))]);
    let run = model.current().unwrap();
    let told: Vec<_> = run.log().skip(1).map(|line| (line.level, line.text.as_str())).collect();
    assert_eq!(told[..2], [(Level::Warning, "gone"), (Level::Notice, "back\\u{1b}[2J")]);
    assert!(told.len() == 3 && told[2].1.contains("another process"), "{told:?}");
}

#[test]
fn a_number_that_was_damaged_does_not_make_repetitions_of_the_rest() {
    for damaged in [40, 1_000_000, u64::MAX - 1, u64::MAX] {
        for at in 0..11 {
            let mut model = Model::default();
            for (i, mut record) in honest(5).into_iter().enumerate() {
                if i == at {
                    record.stamp.seq = damaged;
                }
                model.apply(record, None);
            }
            let reading = model.current().unwrap().reading();
            // Nothing comes after the last record that could put it right.
            let lost = if at == 10 { damaged - 11 } else { 0 };
            assert_eq!(
                (reading.read(), reading.lost(), reading.repeated()),
                (11, lost, 0),
                "{damaged} at {at}"
            );
            assert_eq!(reading.gaps_total(), u64::from(at == 10));
        }
    }
}

#[test]
fn records_that_are_read_twice_count_once() {
    let mut model = Model::default();
    for record in honest(5).into_iter().chain(honest(5)).filter(|record| record.stamp.seq != 6) {
        model.apply(record, None);
    }
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.read(), reading.lost(), reading.repeated()), (10, 1, 10));
}

#[test]
fn records_dropped_by_journald_count_for_the_units_current_run() {
    let mut model = Model::default();
    let notice =
        SuppressedMessages { boot: Some(2), pid: Some(10), unit: "tlsdash.service".into(), dropped: 7 };
    model.count_suppressed(&notice);
    read_of(&mut model, &process(10), honest(1));
    let mut later = record(1, 2, Body::Run(Box::default()));
    later.stamp.run = RunId::from_bits(2);
    model.apply_from(&process(12), later, None);
    let counts = |model: &Model| {
        let run = |id| model.run(RunId::from_bits(id)).unwrap().reading().suppressed();
        (run(1), run(2))
    };
    model.count_suppressed(&notice);
    assert_eq!(counts(&model), (7, 0), "the process that is named");
    model.count_suppressed(&SuppressedMessages { pid: Some(99), ..notice.clone() });
    assert_eq!(counts(&model), (7, 7), "else the newest of the unit");
    model.count_suppressed(&SuppressedMessages { boot: Some(3), ..notice.clone() });
    model.count_suppressed(&SuppressedMessages { pid: Some(99), unit: "other.service".into(), ..notice });
    assert_eq!(counts(&model), (7, 7), "others");
}

#[test]
fn a_run_says_on_which_host_it_is() {
    let mut model = Model::default();
    let began = RunRecord { host: "own-word".into(), ..RunRecord::default() };
    let start = record(1, 0, Body::Run(Box::new(began)));
    model.apply(start.clone(), None);
    assert_eq!(model.current().unwrap().hostname(), "own-word");
    let mut model = Model::default();
    model.apply_from(&process(10), start, None);
    assert_eq!(model.current().unwrap().hostname(), "edge-1");
}

/// A run of another account that begins `second` seconds after the first.
fn begin(model: &mut Model, run: u128, second: u64, writer: &Writer) {
    let mut start = record(1, second, Body::Run(Box::default()));
    start.stamp.run = RunId::from_bits(run);
    model.apply_from(writer, start, None);
}

#[test]
fn a_held_run_is_not_replaced_by_one_of_another_account() {
    let user = |uid, unit: &str| Writer {
        origin: Origin { uid: Some(uid), ..process(20).origin },
        unit: unit.to_owned(),
        ..process(20)
    };
    let mut model = Model::default();
    let shown = |model: &Model| model.current().unwrap().id();
    begin(&mut model, 1, 0, &process(10));
    begin(&mut model, 2, 5, &user(0, "session-1.scope"));
    assert_eq!(shown(&model), RunId::from_bits(2), "the newest, as long as none is chosen");
    model.hold(Some(RunId::from_bits(1)));
    begin(&mut model, 3, 10, &user(1_000, "tlsdashed.service"));
    begin(&mut model, 4, 11, &user(0, "cron.service"));
    assert_eq!(shown(&model), RunId::from_bits(1));
    begin(&mut model, 5, 12, &process(11));
    assert_eq!(shown(&model), RunId::from_bits(5), "the unit was started again");
}

#[test]
fn a_remote_service_is_preferred_to_a_remote_users_run() {
    let of = |unit: &str| Writer { is_remote: true, unit: unit.to_owned(), ..process(10) };
    let mut model = Model::default();
    begin(&mut model, 1, 0, &of("edge.service"));
    begin(&mut model, 2, 5, &of("user@1000.service"));
    begin(&mut model, 3, 6, &of("session-9.scope"));
    assert_eq!(model.current().unwrap().id(), RunId::from_bits(1));
    // Nothing is known of entries that journald did not write.
    begin(&mut model, 4, 7, &of(""));
    assert_eq!(model.current().unwrap().id(), RunId::from_bits(4));
}
