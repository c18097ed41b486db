use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use journal::{FileOptions, FileWriter, Tail};

use super::*;
use crate::history::slice_tests::recorded as simulated;
use crate::runs::Run;
use recorder::publish::RecordWriter;
use records::metrics::{ClientCounter, CpuGroup, LoadCounter, ProxyCounter, ProxyLatency};

const SECONDS: u64 = 60;
/// The run's monotonic clock at its beginning, in seconds.
const BEGAN_S: u64 = 50;

fn us(second: u64) -> u64 {
    (BEGAN_S + second) * 1_000_000
}

/// A recorded run, among entries of others.
fn recording(folder: &Path) -> (PathBuf, Vec<Record>) {
    let path = folder.join("a.journal");
    let records = simulated(SECONDS);
    let mut writer = RecordWriter::new(FileWriter::create(&path, FileOptions::default()).unwrap());
    for record in &records {
        let stamp = record.stamp;
        for run in [RunId::from_bits(77), stamp.run] {
            writer
                .append(&Record { stamp: records::kinds::Stamp { run, ..stamp }, ..record.clone() })
                .unwrap();
        }
    }
    writer.close().unwrap();
    (path, records)
}

fn reader(path: &Path) -> (HistoryReader, Receiver<HistoryReply>) {
    let (send, told) = channel();
    let path = path.to_owned();
    let open = move |start, _| Ok(Box::new(Tail::open(&path, start)?) as Box<dyn EntrySource>);
    (HistoryReader::start(open, TimeRange::ALL, move |news| send.send(news).is_ok()).unwrap(), told)
}

fn reply(news: &Receiver<HistoryReply>) -> HistoryReply {
    loop {
        match news.recv_timeout(Duration::from_secs(60)).unwrap() {
            HistoryReply::Progress { .. } => {}
            other => return other,
        }
    }
}

fn reached(news: &Receiver<HistoryReply>) -> Model {
    match reply(news) {
        HistoryReply::Reached { model, .. } => *model,
        other => panic!("{other:?}"),
    }
}

/// The records up to a moment, applied directly.
fn direct(records: &[Record], until_us: u64) -> Model {
    let mut model = Model::default();
    for record in records.iter().filter(|record| record.stamp.mono_us <= until_us) {
        model.apply(record.clone(), None);
    }
    model
}

/// Figures of the run that later records repeat.
fn seen(run: &Run) -> (Vec<u64>, String, Vec<String>) {
    let (proxy, load) = (run.proxy().unwrap(), run.load().unwrap());
    let client = run.clients().iter().next().unwrap();
    let window = proxy.window(5_000_000);
    let figures = vec![
        proxy.totals()[ProxyCounter::Exchanges],
        load.totals()[LoadCounter::Ok],
        client.totals()[ClientCounter::Exchanges],
        client.history().last().unwrap().counters[ClientCounter::Exchanges],
        window.latency(ProxyLatency::Exchange).count(),
        window.latency(ProxyLatency::Exchange).max_ns(),
        run.host().unwrap().cpu[CpuGroup::Proxy],
        run.duration_us(),
        run.last_us(),
        u64::from(run.stopped().is_some()),
        run.markers().len() as u64,
        run.reading().lost(),
    ];
    let log = run.log().map(|line| line.text.clone()).collect();
    (figures, run.setting("proxy.workers").unwrap().value.to_string(), log)
}

fn seek(full: &Run, ticket: u64, model: Model, since_us: u64, until_us: u64) -> HistoryRequest {
    let (run, origin) = (full.id(), full.writer().origin);
    HistoryRequest::Seek(Box::new(SeekRequest {
        ticket,
        run,
        origin,
        model,
        since_us,
        until_us,
        last_seq: full.reading().last_seq(),
    }))
}

/// A model that has read the whole journal.
fn full(path: &Path) -> Model {
    let mut tail = Tail::open(path, Start::Oldest).unwrap();
    let mut model = Model::default();
    while tail
        .poll(|entry| {
            let record = records::codec::decode(entry).unwrap().unwrap();
            model.apply_from(&Writer::of_entry(entry), record, None);
        })
        .unwrap()
        .more
    {}
    model
}

#[test]
fn a_run_read_up_to_a_moment_equals_the_run_at_that_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (path, records) = recording(folder.path());
    let known = full(&path);
    let known = known.run(records[0].stamp.run).unwrap();
    let (reader, news) = reader(&path);
    for (ticket, second) in [(1, 3), (2, 5), (3, 30), (4, SECONDS)] {
        reader.request(seek(known, ticket, Model::default(), 0, us(second)));
        let model = reached(&news);
        let straight = direct(&records, us(second));
        assert_eq!(model.runs_and_parts().len(), 1, "other runs are left out");
        assert_eq!(seen(model.current().unwrap()), seen(straight.current().unwrap()), "{second}");
    }
    let from_us = us(20);
    let joined = Model::joining(known, from_us);
    let since_us = known.realtime_at(from_us);
    reader.request(seek(known, 5, joined, since_us, us(30)));
    let model = reached(&news);
    let run = model.current().unwrap();
    assert_eq!(seen(run), seen(direct(&records, us(30)).current().unwrap()));
    assert!(run.is_joined() && run.kept_from_us() >= us(19) && run.proxy().unwrap().intervals().len() <= 11);
}

#[test]
fn a_joined_model_has_the_settings_of_its_time() {
    let folder = tempfile::tempdir().unwrap();
    let (path, records) = recording(folder.path());
    let known = full(&path);
    let known = known.run(records[0].stamp.run).unwrap();
    let at = |second| {
        let model = Model::joining(known, us(second));
        let run = model.current().unwrap();
        let clients = run.clients().len();
        (run.setting("proxy.workers").unwrap().value.to_string(), run.log().len(), clients)
    };
    assert_eq!((at(2), at(10)), (("1".into(), 1, 0), ("2".into(), 2, 0)));
    assert_eq!(at(SECONDS).2, 1, "its last record was read before");
}

#[test]
fn following_records_are_delivered_up_to_the_requested_moment() {
    let folder = tempfile::tempdir().unwrap();
    let (path, records) = recording(folder.path());
    let known = full(&path);
    let known = known.run(records[0].stamp.run).unwrap();
    let last_seq = known.reading().last_seq();
    let (reader, news) = reader(&path);
    reader.request(seek(known, 9, Model::default(), 0, us(10)));
    let mut model = reached(&news);
    for second in [11, 20, SECONDS, SECONDS + 100] {
        reader.request(HistoryRequest::Continue { ticket: 9, until_us: us(second), last_seq });
        loop {
            let HistoryReply::Records { ticket: 9, records, until_us } = reply(&news) else {
                panic!("{second}")
            };
            assert!(records.len() <= RECORDS_MAX);
            for (writer, record) in records {
                model.apply_from(&writer, record, None);
            }
            if until_us.is_some() {
                break;
            }
        }
        let straight = direct(&records, us(second));
        assert_eq!(seen(model.current().unwrap()), seen(straight.current().unwrap()), "{second}");
    }
    reader.request(HistoryRequest::Continue { ticket: 8, until_us: us(1), last_seq });
    reader.request(seek(known, 10, Model::default(), 0, us(1)));
    assert!(matches!(reply(&news), HistoryReply::Reached { ticket: 10, .. }), "nothing of another ticket");
}

#[test]
fn a_missing_journal_is_reported_and_the_thread_ends() {
    let folder = tempfile::tempdir().unwrap();
    let (path, records) = recording(folder.path());
    let known = full(&path);
    let known = known.run(records[0].stamp.run).unwrap();
    let (reader, news) = reader(&path);
    std::fs::remove_file(&path).unwrap();
    reader.request(seek(known, 1, Model::default(), 0, us(10)));
    let HistoryReply::Failed { ticket: 1, why } = reply(&news) else { panic!("it is gone") };
    assert!(why.contains("a.journal"), "{why}");
    drop(reader);
    assert!(
        news.recv_timeout(Duration::from_secs(60))
            .is_err_and(|error| { error == std::sync::mpsc::RecvTimeoutError::Disconnected })
    );
}
