//! Following a journal file from another thread.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use journal::{EntryBuf, EntrySource, FileOptions, FileWriter, Start, Tail, Timestamps};
use model::history::{BATCH_BYTES_MAX, Batch, Follower, RunFilter, Update, WriterFilter};
use model::runs::Model;
use records::codec::{Origin, encode};
use records::histogram::Histogram;
use records::ids::RunId;
use records::kinds::{Body, MarkRecord, ProxyRecord, Record, Stamp};
use records::metrics::ProxyLatency;
use records::values::Latency;

fn journal() -> (tempfile::TempDir, PathBuf, FileWriter) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.journal");
    let writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    (folder, path, writer)
}

fn mark(seq: u64) -> EntryBuf {
    mark_of(1, seq)
}

fn mark_of(run: u128, seq: u64) -> EntryBuf {
    record(run, seq, Body::Mark(MarkRecord { number: seq, text: String::new() }))
}

fn record(run: u128, seq: u64, body: Body) -> EntryBuf {
    let stamp = Stamp { run: RunId::from_bits(run), seq, mono_us: seq, realtime_us: seq, interval_us: 0 };
    let mut entry = EntryBuf::new();
    encode(&Record { stamp, body }, &mut entry);
    entry
}

fn write(writer: &mut FileWriter, entries: impl IntoIterator<Item = EntryBuf>) {
    for entry in entries {
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.flush().unwrap();
}

fn follow(path: &Path) -> (Follower, Receiver<Update>) {
    follow_only(path, RunFilter::default())
}

fn follow_only(path: &Path, filter: RunFilter) -> (Follower, Receiver<Update>) {
    let (send, updates) = channel();
    let path = path.to_owned();
    let open = move || Ok(Box::new(Tail::open(&path, Start::File)?) as Box<dyn EntrySource>);
    (Follower::start(open, filter, move |update| send.send(update).is_ok()).unwrap(), updates)
}

/// All that one reading of what is there delivers.
fn read_only(path: &Path, filter: RunFilter) -> Vec<Update> {
    let (follower, updates) = follow_only(path, filter);
    follower.finish().unwrap();
    updates.iter().collect()
}

#[test]
fn records_written_before_the_end_are_delivered_first() {
    let (_folder, path, mut writer) = journal();
    write(&mut writer, (1..=5_000).map(mark));
    let (follower, updates) = follow(&path);
    write(&mut writer, (5_001..=10_000).map(mark));
    follower.finish().unwrap();
    let mut seqs = Vec::new();
    let mut caught_up = 0;
    for update in updates {
        match update {
            Update::Batch(batch) => seqs.extend(batch.records.iter().map(|record| record.stamp.seq)),
            Update::CaughtUp => caught_up += 1,
            Update::Recording(_) | Update::Ignored(..) => {}
            Update::Notice(_, text) => panic!("{text}"),
        }
    }
    assert!(seqs.into_iter().eq(1..=10_000));
    assert_eq!(caught_up, 1);
}

#[test]
fn a_follower_ends_when_nobody_listens_and_does_not_ask_again() {
    let (_folder, path, mut writer) = journal();
    write(&mut writer, (1..=3_000).map(mark));
    let (asked, count) = channel();
    let deliver = move |_| {
        asked.send(()).unwrap();
        false
    };
    let open = move || Ok(Box::new(Tail::open(&path, Start::File)?) as Box<dyn EntrySource>);
    let follower = Follower::start(open, RunFilter::default(), deliver).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !follower.is_finished() {
        assert!(Instant::now() < deadline, "it goes on");
        std::thread::yield_now();
    }
    assert_eq!(count.iter().count(), 1);
}

/// The entry with another value of a field.
fn with(entry: &EntryBuf, field: &str, value: &[u8]) -> EntryBuf {
    let mut changed = EntryBuf::new();
    for (name, old) in entry.iter() {
        changed.push(name, if name == field { value } else { old });
    }
    changed
}

fn notices(updates: &[Update]) -> Vec<&str> {
    updates
        .iter()
        .filter_map(|update| if let Update::Notice(_, text) = update { Some(&**text) } else { None })
        .collect()
}

#[test]
fn a_journal_of_a_later_schema_is_told_once_and_not_as_damage() {
    let (_folder, path, mut writer) = journal();
    write(&mut writer, (1..=3).map(|seq| with(&mark(seq), "TLSDASH_SCHEMA", b"2")));
    let updates = read_only(&path, RunFilter::default());
    assert_eq!(notices(&updates), ["the journal was written by a newer tlsdash (schema 2); update this one"]);
}

#[test]
fn of_a_later_version_all_that_is_known_is_read_and_nothing_is_lost() {
    let (_folder, path, mut writer) = journal();
    let start = record(1, 5, Body::Run(Box::default()));
    let mut more = mark(2);
    more.push("TLSDASH_LATER", b"1");
    let kind = |seq| with(&mark(seq), "TLSDASH_KIND", b"weather");
    write(&mut writer, [mark(1), more, kind(3), kind(4), with(&start, "TLSDASH_PHASE", b"pause"), mark(6)]);
    let updates = read_only(&path, RunFilter::default());
    assert_eq!(
        notices(&updates),
        ["the journal has records that only a newer tlsdash knows; update this one"]
    );
    let model = model_of(batches_of(updates));
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.read(), reading.lost(), model.malformed()), (6, 0, 3));
}

/// The entry of journald that says it dropped messages of this process, or of a unit.
fn dropped(count: u64, pid: u32, unit: &str, transport: &str) -> EntryBuf {
    let mut entry = EntryBuf::new();
    entry.push("MESSAGE_ID", b"a596d6fe7bfa4994828e72309e95d61e");
    entry.push_display("N_DROPPED", count);
    entry.push_display("OBJECT_PID", pid);
    entry.push("OBJECT_SYSTEMD_UNIT", unit.as_bytes());
    entry.push_trusted("_TRANSPORT", transport.as_bytes());
    entry
}

/// A journal of which each entry says itself who wrote it, as journald's do.
fn journal_of_many() -> (tempfile::TempDir, PathBuf, FileWriter) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.journal");
    let options = FileOptions { common: EntryBuf::new(), ..FileOptions::default() };
    let writer = FileWriter::create(&path, options).unwrap();
    (folder, path, writer)
}

fn by(entry: &EntryBuf, unit: &str, changed: &[(&str, &str)]) -> EntryBuf {
    let mut all = entry.clone();
    for (name, value) in journal::process_fields().iter().filter(|(name, _)| *name != "_TRANSPORT") {
        match changed.iter().find(|(other, _)| *other == name) {
            Some((_, value)) => all.push_trusted(name, value.as_bytes()),
            None => all.push_trusted(name, value),
        }
    }
    all.push_trusted("_SYSTEMD_UNIT", unit.as_bytes());
    all
}

fn batches(updates: &Receiver<Update>) -> Vec<Batch> {
    batches_of(updates.iter())
}

fn batches_of(updates: impl IntoIterator<Item = Update>) -> Vec<Batch> {
    let batch = |update| if let Update::Batch(batch) = update { Some(batch) } else { None };
    updates.into_iter().filter_map(batch).collect()
}

/// Runs and accounts that were told of as ignored.
fn ignored(updates: &[Update]) -> Vec<(RunId, String)> {
    let ignored = |update: &Update| match update {
        Update::Ignored(run, writer) => Some((*run, writer.account())),
        _ => None,
    };
    updates.iter().filter_map(ignored).collect()
}

fn model_of(batches: Vec<Batch>) -> Model {
    let mut model = Model::default();
    for batch in batches {
        model.apply_batch(batch);
    }
    model
}

#[test]
fn records_of_another_writer_are_not_records_of_the_run() {
    let (_folder, path, mut writer) = journal_of_many();
    let mut alien = EntryBuf::new();
    alien.push("MESSAGE", b"of something else");
    let unit = "tlsdash.service";
    write(&mut writer, [by(&mark(1), unit, &[]), by(&alien, unit, &[("_PID", "1")])]);
    write(&mut writer, [by(&mark(u64::MAX), unit, &[("_PID", "1")]), by(&mark(2), unit, &[])]);
    let (follower, updates) = follow(&path);
    follower.finish().unwrap();
    let batches = batches(&updates);
    assert_eq!(batches.iter().map(|batch| batch.records.len()).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(batches[0].writer.origin.pid, Some(std::process::id()));
    assert_eq!((batches[1].writer.origin.pid, &*batches[1].writer.unit), (Some(1), unit));
    let model = model_of(batches);
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.read(), reading.lost(), reading.foreign()), (2, 0, 1));
}

#[test]
fn drops_by_journald_reach_the_process_and_the_model() {
    let (_folder, path, mut writer) = journal_of_many();
    let (own, unit) = (std::process::id(), "tlsdash.service");
    write(&mut writer, [by(&mark(1), unit, &[]), by(&dropped(7, own, "", "driver"), "", &[])]);
    write(&mut writer, [by(&dropped(30, 1, unit, "driver"), "", &[])]);
    let other_boot = [("_BOOT_ID", "0123456789abcdef0123456789abcdef")];
    write(&mut writer, [by(&dropped(100, own, unit, "driver"), "", &other_boot)]);
    write(&mut writer, [by(&dropped(1_000, 1, "other.service", "driver"), "", &[])]);
    write(&mut writer, [by(&dropped(10_000, own, unit, "journal"), "", &[])]);
    let (follower, updates) = follow(&path);
    let told = follower.suppressed_total();
    follower.finish().unwrap();
    assert_eq!(told.load(std::sync::atomic::Ordering::Relaxed), 37);
    let model = model_of(batches(&updates));
    assert_eq!(model.current().unwrap().reading().suppressed(), 37);
}

#[test]
fn the_lag_of_another_boot_is_not_known() {
    let (_folder, path, mut writer) = journal_of_many();
    let (follower, updates) = follow(&path);
    assert_eq!(updates.recv(), Ok(Update::CaughtUp));
    write(&mut writer, [by(&mark(1), "", &[])]);
    write(&mut writer, [by(&mark(2), "", &[("_BOOT_ID", "0123456789abcdef0123456789abcdef")])]);
    write(&mut writer, [mark(3)]);
    follower.finish().unwrap();
    let live: Vec<_> = batches(&updates).iter().map(|batch| batch.read_mono_us.is_some()).collect();
    assert_eq!(live, [true, false, false]);
}

/// An entry that claims to be a record and is none.
fn malformed(run: u128) -> EntryBuf {
    let mut entry = mark_of(run, 1);
    entry.push("TLSDASH_SCHEMA", b"999");
    entry
}

#[test]
fn a_process_reads_its_own_run_and_decodes_nothing_else() {
    let (_folder, path, mut writer) = journal_of_many();
    let unit = "tlsdash.service";
    let forger = [("_PID", "1"), ("_UID", "1000")];
    // Before, between and after its own: other runs, its own run by others, and what cannot be decoded.
    for seq in 1..=300 {
        write(&mut writer, [by(&mark_of(0x200, seq), unit, &forger), by(&mark_of(0x300, seq), unit, &[])]);
        write(&mut writer, [by(&malformed(0x200), unit, &forger), by(&malformed(1), unit, &forger)]);
        write(&mut writer, [by(&mark(seq), unit, &[]), by(&mark(seq + 1), unit, &forger)]);
    }
    let updates = read_only(&path, RunFilter::own(RunId::from_bits(1), Origin::own()));
    assert_eq!(ignored(&updates), [], "they are nobody's business here");
    assert!(
        !updates.iter().any(|update| matches!(update, Update::Notice(..))),
        "nor what schema they are of"
    );
    let batches = batches_of(updates);
    assert!(batches.iter().all(|batch| batch.malformed == 0));
    let model = model_of(batches);
    assert_eq!(model.runs_and_parts().len(), 1);
    let run = model.current().unwrap();
    assert_eq!((run.reading().read(), run.reading().lost(), run.reading().foreign()), (300, 0, 600));
    assert_eq!(run.log().filter(|line| line.text.contains("another process")).count(), 1);
}

/// Runs of many accounts of a host, the trusted ones first, and records of which nobody knows the unit.
fn journal_of_a_host() -> (tempfile::TempDir, PathBuf, RunFilter) {
    let (folder, path, mut writer) = journal_of_many();
    let entries: [(u128, &str, &str); 9] = [
        (1, "0", ""),
        (2, "4242", "session-1.scope"),
        (3, "998", "tlsdash.service"),
        (4, "998", "tlsdash@web.service"),
        // A user's own service and login; jobs and scripts of users within services; a name that is not the unit's.
        (11, "1000", "user@1000.service"),
        (12, "1000", "session-7.scope"),
        (13, "1000", "cron.service"),
        (14, "33", "apache2.service"),
        (15, "1000", "tlsdashed.service"),
    ];
    for seq in 1..=3 {
        for (run, uid, unit) in entries {
            write(&mut writer, [by(&mark_of(run, seq), unit, &[("_UID", uid), ("_PID", &run.to_string())])]);
        }
    }
    // Of a process whose unit journald could tell before, and of another one.
    for run in [3, 16] {
        let mut entry = EntryBuf::new();
        let with_unit = by(&mark_of(run, 4), "", &[("_UID", "998"), ("_PID", &run.to_string())]);
        for (name, value) in with_unit.iter().filter(|(name, _)| *name != "_SYSTEMD_UNIT") {
            if name.starts_with('_') { entry.push_trusted(name, value) } else { entry.push(name, value) }
        }
        write(&mut writer, [entry]);
    }
    write(&mut writer, [by(&malformed(11), "user@1000.service", &[("_UID", "1000")])]);
    let reader = Origin { uid: Some(4_242), ..Origin::own() };
    (folder, path, RunFilter { writers: WriterFilter::Trusted(reader), ..RunFilter::default() })
}

#[test]
fn only_trusted_runs_are_read_and_others_reported_once() {
    let (_folder, path, filter) = journal_of_a_host();
    let updates = read_only(&path, filter.clone());
    let id = RunId::from_bits;
    let expected = [
        (11, "uid 1000"),
        (12, "uid 1000"),
        (13, "cron.service (uid 1000)"),
        (14, "apache2.service (uid 33)"),
        (15, "tlsdashed.service (uid 1000)"),
        (16, "uid 998"),
    ];
    assert_eq!(ignored(&updates), expected.map(|(run, account)| (id(run), account.to_owned())));
    let model = model_of(batches_of(updates));
    let read: Vec<_> = model.runs_and_parts().iter().map(|run| (run.id(), run.reading().read())).collect();
    assert_eq!(read, [(id(1), 3), (id(2), 3), (id(3), 4), (id(4), 3)]);
    assert_eq!(model.malformed(), 0);
    let one = RunFilter { id_prefix: id(12).to_string(), ..filter };
    assert_eq!(ignored(&read_only(&path, one)), [(id(12), "uid 1000".to_owned())]);
}

#[test]
fn on_another_machine_users_are_others_and_none_is_ignored() {
    let (_folder, path, filter) = journal_of_a_host();
    let elsewhere = WriterFilter::Trusted(Origin { machine: Some(99), uid: Some(4_242), ..Origin::own() });
    let updates = read_only(&path, RunFilter { writers: elsewhere, ..filter });
    assert_eq!((ignored(&updates).len(), model_of(batches_of(updates)).runs_and_parts().len()), (0, 10));
}

#[test]
fn a_named_user_or_unit_is_read_alone() {
    let (_folder, path, _) = journal_of_a_host();
    for (uid, unit, runs) in [
        (Some(1_000), None, &[11, 12, 13, 15][..]),
        (None, Some("cron.service"), &[13]),
        (Some(33), Some("cron.service"), &[]),
        (Some(998), Some("tlsdash.service"), &[3]),
        (Some(0), None, &[1]),
    ] {
        let writers = WriterFilter::Named { uid, unit: unit.map(str::to_owned) };
        let model = model_of(batches_of(read_only(&path, RunFilter { writers, ..RunFilter::default() })));
        let read: Vec<_> = model.runs_and_parts().iter().map(model::runs::Run::id).collect();
        assert_eq!(
            read,
            runs.iter().map(|&run| RunId::from_bits(run)).collect::<Vec<_>>(),
            "{uid:?} {unit:?}"
        );
    }
}

#[test]
fn the_number_of_ignored_runs_is_exact() {
    let (_folder, path, mut writer) = journal_of_many();
    let forged = |run| by(&mark_of(run, 1), "session-7.scope", &[("_UID", "1000")]);
    write(&mut writer, (1..=3_000).map(forged));
    write(&mut writer, (1..=3_000).map(forged));
    let writers = WriterFilter::Trusted(Origin { uid: Some(0), ..Origin::own() });
    assert_eq!(ignored(&read_only(&path, RunFilter { writers, ..RunFilter::default() })).len(), 1_024);
}

#[test]
fn records_that_are_short_and_hold_much_travel_in_small_batches() {
    let (_folder, path, mut writer) = journal();
    let mut full = Histogram::new();
    (0..60_000_000).step_by(1_000).for_each(|us| full.record_ns(us * 1_000));
    let mut proxy = ProxyRecord::default();
    for class in [ProxyLatency::Exchange, ProxyLatency::Lifetime, ProxyLatency::Connect] {
        proxy.latencies[class] = Latency { samples_total: 1, interval: full.to_sparse() };
    }
    write(&mut writer, (1..=100).map(|seq| record(1, seq, Body::Proxy(Box::new(proxy.clone())))));
    let batches = batches_of(read_only(&path, RunFilter::default()));
    let one = 3 * full.to_sparse().buckets().len() * 8;
    let most = batches.iter().map(|batch| batch.records.len()).max().unwrap();
    assert!(most > 1 && most <= BATCH_BYTES_MAX / one + 1, "{most} records of {one} bytes");
    assert_eq!(batches.iter().map(|batch| batch.records.len()).sum::<usize>(), 100);
}

/// A file of a folder, whose entries say themselves who wrote them, at these times.
fn file_in(folder: &Path, name: &str) -> FileWriter {
    let options = FileOptions { common: EntryBuf::new(), ..FileOptions::default() };
    FileWriter::create(&folder.join(name), options).unwrap()
}

#[test]
fn copies_of_a_journal_that_grow_beside_it_are_read_once() {
    let folder = tempfile::tempdir().unwrap();
    let unit = "tlsdash.service";
    let at = |seq: u64| Timestamps { realtime_us: seq, monotonic_us: seq };
    let write = |writer: &mut FileWriter, seqs: std::ops::RangeInclusive<u64>| {
        for seq in seqs {
            writer.append(&by(&mark(seq), unit, &[]), at(seq)).unwrap();
            if seq % 100 == 0 {
                let notice = by(&dropped(seq, std::process::id(), unit, "driver"), "", &[]);
                writer.append(&notice, at(seq)).unwrap();
            }
        }
        writer.flush().unwrap();
    };
    let [mut original, mut copy, mut again] =
        ["own.journal", "remote-a.journal", "remote-b.journal"].map(|name| file_in(folder.path(), name));
    write(&mut original, 1..=500);
    write(&mut copy, 1..=300);
    let (follower, updates) = follow(folder.path());
    let mut received = Vec::new();
    let mut await_record = |last: u64| {
        let is_last = |update: &Update| {
            let Update::Batch(batch) = update else { return false };
            batch.records.iter().any(|record| record.stamp.seq == last)
        };
        while !received.last().is_some_and(is_last) {
            received.push(updates.recv_timeout(Duration::from_secs(10)).unwrap());
        }
    };
    await_record(500);
    // The copy overtakes, and a sender that starts again sends all once more, into another file.
    write(&mut copy, 301..=800);
    await_record(800);
    write(&mut original, 501..=900);
    await_record(900);
    write(&mut again, 1..=901);
    await_record(901);
    follower.finish().unwrap();
    received.extend(updates.iter());
    let batches = batches_of(received);
    let seqs = batches.iter().flat_map(|batch| batch.records.iter().map(|record| record.stamp.seq));
    assert!(seqs.eq(1..=901));
    let model = model_of(batches);
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.read(), reading.lost(), reading.repeated()), (901, 0, 0));
    assert_eq!(reading.suppressed(), (100..=900).step_by(100).sum::<u64>());
}

#[test]
fn a_received_file_that_is_cut_and_replaced_while_watched_loses_nothing_that_comes_again() {
    let folder = tempfile::tempdir().unwrap();
    let received = folder.path().join("remote-a.journal");
    let mut writer = file_in(folder.path(), "remote-a.journal");
    write(&mut writer, (1..=500).map(|seq| by(&mark(seq), "tlsdash.service", &[])));
    let (follower, updates) = follow(folder.path());
    let mut batches: Vec<Batch> = Vec::new();
    let mut await_that = |holds: &dyn Fn(&[Batch]) -> bool| {
        while !holds(&batches) {
            let update = updates.recv_timeout(Duration::from_secs(10)).unwrap();
            batches.extend(batches_of([update]));
        }
    };
    let last = |batches: &[Batch]| batches.last()?.records.last().map(|record| record.stamp.seq);
    await_that(&|batches| last(batches) == Some(500));
    // The disk was full, or somebody cut it.
    drop(writer);
    let len = std::fs::metadata(&received).unwrap().len();
    std::fs::OpenOptions::new().write(true).open(&received).unwrap().set_len(len / 2).unwrap();
    await_that(&|batches| batches.iter().any(|batch| batch.skipped_bytes > 0));
    // The receiver puts the damaged file aside, and the sender begins again.
    std::fs::rename(&received, folder.path().join("remote-a@0001-0002.journal~")).unwrap();
    let mut writer = file_in(folder.path(), "remote-a.journal");
    write(&mut writer, (1..=700).map(|seq| by(&mark(seq), "tlsdash.service", &[])));
    await_that(&|batches| last(batches) == Some(700));
    follower.finish().unwrap();
    batches.extend(batches_of(updates.iter()));
    let seqs = batches.iter().flat_map(|batch| batch.records.iter().map(|record| record.stamp.seq));
    assert!(seqs.eq(1..=700));
    let model = model_of(batches);
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.read(), reading.lost()), (700, 0));
    assert!(model.skipped_bytes() > 0, "what was cut is said");
}
