//! The upload to a small receiver that misbehaves.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};

use super::*;

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

type Shared = Arc<Mutex<Receiver>>;

fn receiver() -> (Shared, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let shared = Shared::default();
    let receiver = Arc::clone(&shared);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let receiver = Arc::clone(&receiver);
            std::thread::spawn(move || serve(stream.unwrap(), &receiver));
        }
    });
    (shared, url)
}

fn serve(mut stream: TcpStream, receiver: &Shared) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if reader.read_line(&mut head).ok()? == 0 {
                return None;
            }
        }
        assert!(head.starts_with("POST /upload HTTP/1.1"), "{head}");
        let head = head.to_lowercase();
        assert!(head.contains("content-type: application/vnd.fdo.journal\r\n"), "{head}");
        let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?.parse().ok()?;
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let mut receiver = receiver.lock().unwrap();
        receiver.requests += 1;
        let is_too_large = receiver.bytes_max.is_some_and(|max| length > max);
        let status =
            if is_too_large { "413 Payload Too Large" } else { receiver.status.unwrap_or("202 Accepted") };
        if status.starts_with("202") {
            let text = String::from_utf8(body).ok()?;
            let numbers = text.lines().filter_map(|line| line.strip_prefix("NUMBER="));
            receiver.numbers.extend(numbers.map(|number| number.parse::<u64>().unwrap()));
        }
        if receiver.breaks {
            return None;
        }
        let closes = receiver.closes;
        drop(receiver);
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 3\r\n\r\nOK.").ok()?;
        if closes {
            return None;
        }
    }
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
        self.writer = None;
        let options =
            FileOptions { size_max: 0, archives_bytes_max: Some(9 << 20), ..FileOptions::default() };
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
fn all_entries_arrive_once_through_restarts_of_the_program() {
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
    assert_eq!(receiver.lock().unwrap().numbers, (0..180).collect::<Vec<_>>());
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
