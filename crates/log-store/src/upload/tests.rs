//! The upload to a small receiver that misbehaves.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, Mutex};

use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};

use super::*;
use crate::testing::{Request, server};

/// What was received, and how it is answered; tests change it while it runs.
#[derive(Default)]
struct Receiver {
    /// The numbers of the entries that were taken.
    numbers: Vec<u64>,
    requests: usize,
    /// Larger requests are refused; `None` takes all.
    bytes_max: Option<usize>,
    /// Closes each connection once a request has come, in place of an answer.
    breaks: bool,
    /// Closes each connection behind an answer, which does not say so.
    closes: bool,
    status: Option<&'static str>,
}

fn receiver() -> (Arc<Mutex<Receiver>>, String) {
    let (receiver, address) = server(receive);
    (receiver, format!("http://{address}"))
}

fn receive(
    stream: &mut TcpStream,
    Request { head, content }: Request,
    receiver: &Mutex<Receiver>,
) -> Option<()> {
    assert!(head.starts_with("POST /upload HTTP/1.1"), "{head}");
    let head = head.to_lowercase();
    assert!(head.contains("content-type: application/vnd.fdo.journal\r\n"), "{head}");
    let mut receiver = receiver.lock().unwrap();
    receiver.requests += 1;
    let is_too_large = receiver.bytes_max.is_some_and(|max| content.len() > max);
    let status =
        if is_too_large { "413 Payload Too Large" } else { receiver.status.unwrap_or("202 Accepted") };
    if status.starts_with("202") {
        let text = String::from_utf8(content).ok()?;
        let numbers = text.lines().filter_map(|line| line.strip_prefix("NUMBER="));
        receiver.numbers.extend(numbers.map(|number| number.parse::<u64>().unwrap()));
    }
    if receiver.breaks {
        return None;
    }
    let closes = receiver.closes;
    drop(receiver);
    // The end comes with the answer: the next request would meet one that comes later.
    rustix::net::sockopt::set_tcp_cork(&*stream, closes).ok()?;
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\nOK.").ok()?;
    if closes {
        stream.shutdown(Shutdown::Write).ok()?;
        return None;
    }
    Some(())
}

/// A journal in a folder, and how its entries are numbered.
struct Journal {
    folder: tempfile::TempDir,
    next: u64,
    writer: Option<FileWriter>,
}

impl Journal {
    fn new() -> Self {
        let mut journal = Self { folder: tempfile::tempdir().unwrap(), next: 0, writer: None };
        journal.restart();
        journal
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("a.journal")
    }

    /// Archives the file and begins another, by another writer; only the newest archive is kept.
    fn restart(&mut self) {
        self.restart_with(Some(9 << 20));
    }

    fn restart_with(&mut self, archives_bytes_max: Option<u64>) {
        self.writer = None;
        let options = FileOptions { size_max: 0, archives_bytes_max, ..FileOptions::default() };
        self.writer = Some(FileWriter::create(&self.path(), options).unwrap());
    }

    fn write(&mut self, entries: u64) {
        for _ in 0..entries {
            self.append(0);
        }
        self.writer.as_mut().unwrap().flush().unwrap();
    }

    /// Appends an entry with so many more bytes.
    fn append(&mut self, bytes: usize) {
        let mut entry = EntryBuf::new();
        entry.push_display("NUMBER", self.next);
        // A value that is repeated is stored once.
        entry.push_display("MORE", format_args!("{}{}", self.next, "x".repeat(bytes)));
        self.next += 1;
        let writer = self.writer.as_mut().unwrap();
        writer.append(&entry, Timestamps::now()).unwrap();
    }

    fn upload(&self, url: &str) -> Uploader {
        let target = UploadTarget::new(url.parse().unwrap()).unwrap();
        Uploader::open(target, &self.path()).unwrap()
    }
}

fn send_all(uploader: &mut Uploader) {
    while uploader.step().unwrap() {}
}

#[test]
fn all_entries_arrive_through_restarts_of_the_program() {
    let (receiver, url) = receiver();
    let mut journal = Journal::new();
    journal.write(100);
    let mut first = journal.upload(&url);
    send_all(&mut first);
    first.save().unwrap();
    // These are written and not sent.
    journal.write(50);
    drop(first);
    journal.restart();
    journal.write(30);
    let mut second = journal.upload(&url);
    send_all(&mut second);
    assert_eq!(second.state(None), UploadState::default());
    assert_eq!(receiver.lock().unwrap().numbers, (0..100).chain(0..180).collect::<Vec<_>>());
    // A run that is killed before it has sent anything is sent by the next one, also if the journal had no entry yet.
    let mut journal = Journal::new();
    drop(journal.upload(&url));
    journal.write(5);
    journal.restart();
    receiver.lock().unwrap().numbers.clear();
    send_all(&mut journal.upload(&url));
    assert_eq!(receiver.lock().unwrap().numbers, [0, 1, 2, 3, 4]);
}

#[test]
fn what_was_not_confirmed_waits_and_is_sent_again() {
    let (receiver, url) = receiver();
    let mut journal = Journal::new();
    journal.write(10);
    receiver.lock().unwrap().breaks = true;
    let mut uploader = journal.upload(&url);
    let failure = uploader.step().unwrap_err();
    let state = uploader.state(Some(&failure));
    assert_eq!((state.waiting, state.lost_total, state.failure), (10, 0, Some(failure)));
    *receiver.lock().unwrap() = Receiver { status: Some("503 Service Unavailable"), ..Receiver::default() };
    let failure = uploader.step().unwrap_err();
    assert!(failure.starts_with("it answers 503 Service Unavailable: OK."), "{failure}");
    receiver.lock().unwrap().status = None;
    send_all(&mut uploader);
    assert_eq!(receiver.lock().unwrap().numbers, (0..10).collect::<Vec<_>>());
    // A receiver that is killed forgets what is not on its disk.
    *receiver.lock().unwrap() = Receiver { breaks: true, ..Receiver::default() };
    journal.write(5);
    uploader.step().unwrap_err();
    *receiver.lock().unwrap() = Receiver::default();
    send_all(&mut uploader);
    assert_eq!(receiver.lock().unwrap().numbers, (0..15).collect::<Vec<_>>());
    assert_eq!(uploader.state(None), UploadState::default());
    // One that is back before the next request is known by its new connection; what it takes first is sent again too.
    receiver.lock().unwrap().closes = true;
    journal.write(1);
    send_all(&mut uploader);
    receiver.lock().unwrap().numbers.clear();
    journal.write(1);
    send_all(&mut uploader);
    assert_eq!(receiver.lock().unwrap().numbers, [16].into_iter().chain(0..17).collect::<Vec<_>>());
    // That is not repeated at each request, if it ends all connections.
    for number in 17..20 {
        receiver.lock().unwrap().numbers.clear();
        journal.write(1);
        send_all(&mut uploader);
        assert_eq!(receiver.lock().unwrap().numbers, [number]);
    }
}

#[test]
fn a_receiver_that_takes_small_requests_only_gets_small_ones() {
    let (receiver, url) = receiver();
    receiver.lock().unwrap().bytes_max = Some(2_000);
    let mut journal = Journal::new();
    for bytes in [0, 0, 1_000, 5_000, 0, 0] {
        journal.append(bytes);
    }
    journal.write(0);
    let mut uploader = journal.upload(&url);
    send_all(&mut uploader);
    assert_eq!(receiver.lock().unwrap().numbers, [0, 1, 2, 4, 5]);
    assert_eq!(uploader.state(None), UploadState { lost_total: 1, ..UploadState::default() });
}

#[test]
fn entries_that_leave_the_archives_before_they_are_sent_are_counted() {
    let (receiver, url) = receiver();
    receiver.lock().unwrap().status = Some("503 Service Unavailable");
    let mut journal = Journal::new();
    let mut uploader = journal.upload(&url);
    let archives = |journal: &Journal| {
        let names = std::fs::read_dir(journal.folder.path()).unwrap().map(|file| file.unwrap().file_name());
        names.filter(|name| name.to_string_lossy().contains('@')).collect::<Vec<_>>()
    };
    // Until the archive after the file that is being read was removed.
    let mut seen: Vec<std::ffi::OsString> = Vec::new();
    while seen.get(1).is_none_or(|second| archives(&journal).contains(second)) {
        (0..10).for_each(|_| journal.append(100_000));
        journal.write(1);
        for name in archives(&journal) {
            if !seen.contains(&name) {
                seen.push(name);
            }
        }
        uploader.step().unwrap_err();
    }
    assert!(uploader.state(None).waiting >= journal.next - 1);
    uploader.save().unwrap();
    receiver.lock().unwrap().status = None;
    let sent_and_lost = |uploader: &mut Uploader| {
        send_all(uploader);
        let lost = uploader.state(None).lost_total;
        (receiver.lock().unwrap().numbers.len() as u64 + lost, lost)
    };
    let (all, lost) = sent_and_lost(&mut uploader);
    assert_eq!(all, journal.next);
    assert!(lost > 20, "{lost}");
    // The same of another process, whose predecessor's files are gone: what was written until it saved is known.
    let mut journal = Journal::new();
    journal.write(100);
    journal.upload(&url).save().unwrap();
    journal.restart();
    for name in archives(&journal) {
        std::fs::remove_file(journal.folder.path().join(name)).unwrap();
    }
    journal.write(7);
    receiver.lock().unwrap().numbers.clear();
    assert_eq!(sent_and_lost(&mut journal.upload(&url)), (107, 100));
}

/// As if some time had passed since the last places were written.
fn past(uploader: &mut Uploader) {
    let long_ago = 2 * SETTLED_AFTER;
    uploader.marked_at = Instant::now().checked_sub(long_ago).unwrap();
    uploader.kept.marks.iter_mut().for_each(|(at_s, _)| *at_s -= long_ago.as_secs());
}

#[test]
fn a_loss_counts_once_and_a_confirmed_entry_never() {
    let (receiver, url) = receiver();
    let mut journal = Journal::new();
    journal.write(10);
    let json = r#"{"sent":{"1":50},"written":{"1":100},"marks":[]}"#;
    std::fs::write(places_file(&journal.path()), json).unwrap();
    let mut uploader = journal.upload(&url);
    for _ in 0..3 {
        receiver.lock().unwrap().status = Some("503 Service Unavailable");
        journal.write(1);
        uploader.step().unwrap_err();
        assert_eq!(uploader.state(None).lost_total, 50);
        receiver.lock().unwrap().status = None;
        send_all(&mut uploader);
        assert_eq!(uploader.state(None), UploadState { lost_total: 50, ..UploadState::default() });
        past(&mut uploader);
    }
    // These are confirmed, and gone when they would be sent again.
    let mut journal = Journal::new();
    let mut uploader = journal.upload(&url);
    for _ in 0..150 {
        journal.append(100_000);
        journal.write(0);
        send_all(&mut uploader);
    }
    receiver.lock().unwrap().breaks = true;
    journal.write(1);
    uploader.step().unwrap_err();
    receiver.lock().unwrap().breaks = false;
    send_all(&mut uploader);
    assert_eq!(uploader.state(None).lost_total, 0);
}

#[test]
fn what_is_no_place_has_all_sent_again_and_what_cannot_be_read_is_told() {
    let (receiver, url) = receiver();
    let mut journal = Journal::new();
    journal.write(10);
    let file = places_file(&journal.path());
    drop(journal.upload(&url));
    journal.restart();
    journal.write(5);
    std::fs::write(&file, "{").unwrap();
    send_all(&mut journal.upload(&url));
    assert_eq!(receiver.lock().unwrap().numbers, (0..15).collect::<Vec<_>>());
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    let target = UploadTarget::new(url.parse().unwrap()).unwrap();
    let refused = Uploader::open(target, &journal.path()).unwrap_err();
    assert!(refused.ends_with("a.upload is not a regular file"), "{refused}");
}

#[test]
fn runs_that_wait_are_counted_and_sent_though_the_clock_was_set_back() {
    let (receiver, url) = receiver();
    receiver.lock().unwrap().status = Some("503 Service Unavailable");
    let mut journal = Journal::new();
    let now_us = Timestamps::now().realtime_us;
    for (run, back_us) in [0, 3_600_000_000, 1_800_000_000].into_iter().enumerate() {
        if run > 0 {
            journal.restart_with(FileOptions::default().archives_bytes_max);
        }
        let mut uploader = journal.upload(&url);
        for _ in 0..10 {
            let mut entry = EntryBuf::new();
            entry.push_display("NUMBER", journal.next);
            journal.next += 1;
            let realtime_us = now_us - back_us + journal.next;
            let at = Timestamps { realtime_us, ..Timestamps::now() };
            journal.writer.as_mut().unwrap().append(&entry, at).unwrap();
        }
        journal.write(0);
        uploader.step().unwrap_err();
        assert_eq!(uploader.state(None).waiting, 10 * (run as u64 + 1));
        if run == 2 {
            receiver.lock().unwrap().status = None;
            send_all(&mut uploader);
        }
    }
    let mut numbers = receiver.lock().unwrap().numbers.clone();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..30).collect::<Vec<_>>());
}

#[test]
fn what_a_run_has_confirmed_last_is_sent_again_by_the_next_and_by_no_further_one() {
    let (receiver, url) = receiver();
    let mut journal = Journal::new();
    for expected in [0..10, 0..20, 10..30, 20..40] {
        receiver.lock().unwrap().numbers.clear();
        journal.write(10);
        let mut uploader = journal.upload(&url);
        send_all(&mut uploader);
        uploader.save().unwrap();
        assert_eq!(receiver.lock().unwrap().numbers, expected.collect::<Vec<_>>());
        journal.restart();
    }
}

#[test]
fn requests_grow_again_after_a_receiver_took_small_ones_only() {
    let (receiver, url) = receiver();
    let mut journal = Journal::new();
    journal.write(64);
    let mut uploader = journal.upload(&url);
    receiver.lock().unwrap().bytes_max = Some(200);
    for _ in 0..4 {
        uploader.step().unwrap();
    }
    *receiver.lock().unwrap() = Receiver::default();
    journal.write(6_400);
    send_all(&mut uploader);
    let requests = receiver.lock().unwrap().requests;
    assert!(requests < 300, "{requests} requests for 6,464 entries");
}

#[test]
fn entries_whose_files_go_while_they_wait_are_counted() {
    let (receiver, url) = receiver();
    receiver.lock().unwrap().status = Some("503 Service Unavailable");
    let mut journal = Journal::new();
    let mut first = journal.upload(&url);
    journal.write(100);
    first.step().unwrap_err();
    journal.restart();
    let mut second = journal.upload(&url);
    journal.write(10);
    second.step().unwrap_err();
    for file in std::fs::read_dir(journal.folder.path()).unwrap().map(|file| file.unwrap().path()) {
        if file.to_string_lossy().contains('@') {
            std::fs::remove_file(file).unwrap();
        }
    }
    // As after an hour of failures: the removed file was never opened.
    second.tail = Tail::resume(&journal.path(), second.kept.sent.clone()).unwrap();
    second.unsent.clear();
    second.unsent_entries.clear();
    second.step().unwrap_err();
    receiver.lock().unwrap().status = None;
    send_all(&mut second);
    assert_eq!(second.state(None), UploadState { lost_total: 100, ..UploadState::default() });
    assert_eq!(receiver.lock().unwrap().numbers, (100..110).collect::<Vec<_>>());
}

#[test]
fn a_place_settles_only_if_the_receiver_stays_the_same() {
    let (receiver, url) = receiver();
    let mut journal = Journal::new();
    let mut uploader = journal.upload(&url);
    for number in 0..3 {
        journal.write(1);
        send_all(&mut uploader);
        uploader.save().unwrap();
        past(&mut uploader);
        let sent: u64 = uploader.kept.sent.values().sum();
        assert_eq!(sent, number, "what was confirmed before the last one");
    }
    receiver.lock().unwrap().closes = true;
    journal.write(1);
    send_all(&mut uploader);
    receiver.lock().unwrap().numbers.clear();
    journal.write(1);
    send_all(&mut uploader);
    // A new connection, long after: it has the last places that are settled, and what follows again.
    assert_eq!(receiver.lock().unwrap().numbers, [4, 3, 4]);
}
