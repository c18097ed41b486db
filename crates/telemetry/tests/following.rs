//! Following a journal file from another thread.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use journal::{EntryBuf, FileOptions, FileWriter, Start, Timestamps};
use telemetry::{Body, Follower, MarkRecord, Record, RunId, Stamp, Update, encode};

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
    (Follower::start(path, Start::File, move |update| send.send(update).is_ok()).unwrap(), updates)
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
    let follower = Follower::start(&path, Start::File, deliver).unwrap();
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
