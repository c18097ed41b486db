//! Following a journal file from another thread.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps};
use telemetry::{Batch, Body, Follower, MarkRecord, Model, Record, RunId, Stamp, Update, encode};

fn journal() -> (tempfile::TempDir, PathBuf, FileWriter) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.journal");
    let writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    (folder, path, writer)
}

fn mark(seq: u64) -> EntryBuf {
    let stamp = Stamp { run: RunId::from_bits(1), seq, mono_us: seq, realtime_us: seq, interval_us: 0 };
    let mut entry = EntryBuf::new();
    encode(&Record { stamp, body: Body::Mark(MarkRecord { number: seq, text: String::new() }) }, &mut entry);
    entry
}

fn write(writer: &mut FileWriter, entries: impl IntoIterator<Item = EntryBuf>) {
    for entry in entries {
        writer.append(&entry, Timestamps::now()).unwrap();
    }
    writer.flush().unwrap();
}

fn follow(path: &Path) -> (Follower, Receiver<Update>) {
    let (send, updates) = channel();
    let path = path.to_owned();
    let open = move || Tail::open(&path, Start::File);
    (Follower::start(open, move |update| send.send(update).is_ok()).unwrap(), updates)
}

#[test]
fn what_was_written_before_the_end_is_delivered_before_it() {
    let (_folder, path, mut writer) = journal();
    write(&mut writer, (1..=5_000).map(mark));
    let (follower, updates) = follow(&path);
    write(&mut writer, (5_001..=10_000).map(mark));
    follower.finish();
    let mut seqs = Vec::new();
    let mut caught_up = 0;
    for update in updates {
        match update {
            Update::Batch(batch) => seqs.extend(batch.records.iter().map(|record| record.stamp.seq)),
            Update::CaughtUp => caught_up += 1,
            Update::Recording(_) => {}
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
    let follower = Follower::start(move || Tail::open(&path, Start::File), deliver).unwrap();
    let deadline = Instant::now() + Duration::from_secs(10);
    while !follower.is_finished() {
        assert!(Instant::now() < deadline, "it goes on");
        std::thread::yield_now();
    }
    assert_eq!(count.iter().count(), 1);
}

#[test]
fn a_journal_of_a_later_version_is_told_once_and_not_as_damage() {
    let (_folder, path, mut writer) = journal();
    let later = |seq| {
        let mut entry = EntryBuf::new();
        for (name, value) in mark(seq).iter() {
            entry.push(name, if name == "TLSDASH_SCHEMA" { b"2" } else { value });
        }
        entry
    };
    write(&mut writer, (1..=3).map(later));
    let (follower, updates) = follow(&path);
    follower.finish();
    let notices: Vec<_> = updates
        .iter()
        .filter_map(|update| if let Update::Notice(_, text) = update { Some(text) } else { None })
        .collect();
    assert_eq!(notices, ["the journal was written by a newer tlsdash (schema 2); update this one"]);
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
    let batch = |update| if let Update::Batch(batch) = update { Some(batch) } else { None };
    updates.iter().filter_map(batch).collect()
}

fn model_of(batches: Vec<Batch>) -> Model {
    let mut model = Model::default();
    for batch in batches {
        model.apply_batch(batch);
    }
    model
}

#[test]
fn records_come_with_their_writer_and_those_of_others_are_no_records_of_the_run() {
    let (_folder, path, mut writer) = journal_of_many();
    let mut alien = EntryBuf::new();
    alien.push("MESSAGE", b"of something else");
    let unit = "tlsdash.service";
    write(&mut writer, [by(&mark(1), unit, &[]), by(&alien, unit, &[("_PID", "1")])]);
    write(&mut writer, [by(&mark(u64::MAX), unit, &[("_PID", "1")]), by(&mark(2), unit, &[])]);
    let (follower, updates) = follow(&path);
    follower.finish();
    let batches = batches(&updates);
    assert_eq!(batches.iter().map(|batch| batch.records.len()).collect::<Vec<_>>(), [1, 1, 1]);
    assert_eq!(batches[0].writer.origin.pid, Some(std::process::id()));
    assert_eq!((batches[1].writer.origin.pid, &*batches[1].writer.unit), (Some(1), unit));
    let model = model_of(batches);
    let reading = model.current().unwrap().reading();
    assert_eq!((reading.read(), reading.lost(), reading.foreign()), (2, 0, 1));
}

#[test]
fn what_journald_dropped_of_this_process_is_told_to_it_and_to_the_model() {
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
    follower.finish();
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
    follower.finish();
    let live: Vec<_> = batches(&updates).iter().map(|batch| batch.read_mono_us.is_some()).collect();
    assert_eq!(live, [true, false, false]);
}
