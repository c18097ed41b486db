//! The reader before a small store of canned answers.

use std::collections::BTreeMap;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::testing::{Request, server};

/// 2026-11-28T06:00:00Z
const BEGIN: u64 = 1_795_845_600;
const RUN: &str = "00000000000000000000000000000001";
const PATIENCE: Duration = Duration::from_secs(20);

/// What the store holds and how it answers; tests change it while it runs.
#[derive(Default)]
struct Store {
    /// The lines of entries by second.
    entries: BTreeMap<u64, Vec<String>>,
    /// An answer in place of its own ones, as it is sent.
    fixed: Option<Vec<u8>>,
    /// Leaves out this many lines of answers with entries.
    withheld: usize,
    is_gzip: bool,
    /// Sends nothing behind the head of an answer.
    stalls: bool,
    /// The heads and queries that it was sent.
    requests: Vec<(String, String)>,
}

impl Store {
    fn add(&mut self, second: u64, seq: u64) {
        let time = time(BEGIN + second).replace('Z', &format!(".{seq:06}Z"));
        let line = format!(r#"{{"TLSDASH_KIND":"x","TLSDASH_SEQ":"{seq}","_time":"{time}","_msg":"m"}}"#);
        self.entries.entry(BEGIN + second).or_default().insert(0, line);
    }

    /// A record of a run.
    fn add_record(&mut self, second: u64, run: &str, seq: u64) {
        self.add(second, seq);
        let lines = self.entries.get_mut(&(BEGIN + second)).unwrap();
        lines[0] = lines[0].replace('{', &format!(r#"{{"TLSDASH_RUN":"{run}","#));
    }

    fn queries(&self, part: &str) -> usize {
        self.requests.iter().filter(|(_, query)| query.contains(part)).count()
    }

    /// Answers as VictoriaLogs does the three queries of the reader.
    fn answer(&self, query: &str) -> Vec<u8> {
        let bound = |begin: &str| {
            let rest = &query[query.find(begin)? + begin.len()..];
            let at = rest.find('Z')? + 1;
            Some(rest[..at].parse::<jiff::Timestamp>().unwrap().as_second() as u64)
        };
        let from = bound("_time:[").or_else(|| bound("_time:>=")).unwrap_or(0);
        let to = bound("Z,").unwrap_or(u64::MAX);
        let seconds = self.entries.range(from..to);
        if query.contains("by (TLSDASH_RUN)") {
            let intervals: usize = seconds.map(|(_, lines)| lines.len()).sum();
            let line = format!(
                r#"{{"TLSDASH_RUN":"{RUN}","from":"{}","to":"{}","intervals":"{intervals}","minutes":"0","hours":"0"}}"#,
                time(BEGIN),
                time(BEGIN + HOUR)
            );
            return line.into_bytes();
        }
        if query.starts_with(DROPPED) {
            return Vec::new();
        }
        let bucket = if query.contains("_time:1h)") { HOUR } else { 1 };
        if !query.contains("| stats") {
            // Latest first.
            let lines: Vec<&str> =
                seconds.rev().flat_map(|(_, lines)| lines.iter().flat_map(|line| [&**line, "\n"])).collect();
            return lines[self.withheld.min(lines.len())..].concat().into_bytes();
        }
        let mut counts = Counts::new();
        for (second, lines) in seconds {
            *counts.entry(second - second % bucket).or_default() += lines.len() as u64;
        }
        let line = |(at, n): (&u64, &u64)| format!("{{\"_time\":\"{}\",\"n\":\"{n}\"}}\n", time(*at));
        // In no order, as VictoriaLogs.
        counts.iter().rev().map(line).collect::<String>().into_bytes()
    }
}

/// Starts a store; it ends with the tests.
fn store() -> (Arc<Mutex<Store>>, String) {
    let (store, address) = server(answer);
    (store, format!("logs+http://{address}"))
}

fn answer(stream: &mut TcpStream, Request { head, content }: Request, store: &Mutex<Store>) -> Option<()> {
    let body = String::from_utf8(content).ok()?.replace('+', " ");
    let query = body.strip_prefix("query=")?.strip_suffix("&allow_partial_response=0")?;
    let query = percent_encoding::percent_decode_str(query).decode_utf8().ok()?;
    let mut store = store.lock().unwrap();
    store.requests.push((head.to_lowercase(), query.clone().into_owned()));
    if store.stalls {
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n").ok()?;
        drop(store);
        std::thread::sleep(PATIENCE);
        return None;
    }
    if let Some(fixed) = &store.fixed {
        stream.write_all(fixed).ok()?;
        return None;
    }
    let mut content = store.answer(&query);
    let mut encoding = "";
    if store.is_gzip {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&content).ok()?;
        (content, encoding) = (encoder.finish().ok()?, "Content-Encoding: gzip\r\n");
    }
    drop(store);
    let length = content.len();
    let mut answer = format!("HTTP/1.1 200 OK\r\n{encoding}Content-Length: {length}\r\n\r\n").into_bytes();
    answer.extend(content);
    stream.write_all(&answer).ok()
}

fn open(url: &str) -> StoreReader {
    let mut reader = StoreReader::open(&url.parse().unwrap(), Start::Oldest, "").unwrap();
    let retry = Duration::from_millis(20);
    let longer = Duration::from_millis(200);
    reader.pace = Pace { recent: retry, all: longer, retry, hole: longer };
    reader
}

/// The numbers of the entries that can be read now.
fn drain(reader: &mut StoreReader) -> Result<Vec<u64>, String> {
    let mut read = Vec::new();
    loop {
        let polled = reader.poll(&mut |entry| read.push(entry.text("TLSDASH_SEQ").unwrap().parse().unwrap()));
        if !polled.map_err(|error| error.to_string())?.more {
            return Ok(read);
        }
    }
}

/// Reads until these have been read, in whatever order, and nothing else.
fn expect(reader: &mut StoreReader, wanted: &[u64]) {
    let (mut read, deadline) = (Vec::new(), Instant::now() + PATIENCE);
    while read.len() < wanted.len() {
        assert!(Instant::now() < deadline, "read {read:?}, not {wanted:?}");
        read.extend(drain(reader).unwrap());
    }
    assert_eq!(read, wanted);
}

fn refused(fixed: &[u8]) -> String {
    let (store, url) = store();
    store.lock().unwrap().fixed = Some(fixed.to_vec());
    let error = drain(&mut open(&url)).unwrap_err();
    let reason = error.strip_prefix(&format!("cannot read {url}: "));
    reason.unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn everything_is_read_in_order_and_in_bounded_queries() {
    let (store, url) = store();
    let mut all = 0..14_000;
    for (seq, second) in all.by_ref().zip((0..5).chain(3 * HOUR..5 * HOUR).cycle()) {
        store.lock().unwrap().add(second, seq);
    }
    store.lock().unwrap().is_gzip = true;
    let read = drain(&mut open(&url)).unwrap();
    assert_eq!(read.len(), 14_000);
    let store = store.lock().unwrap();
    let second_of =
        |seq: &u64| (0..5).chain(3 * HOUR..5 * HOUR).nth(*seq as usize % (5 + 2 * HOUR as usize)).unwrap();
    assert!(read.is_sorted_by_key(|seq| (second_of(seq), *seq)));
    let windows = store.requests.iter().filter(|(_, query)| !query.contains("| stats")).count();
    assert_eq!((store.queries("_time:1h)"), store.queries("_time:1s)"), windows), (1, 2, 4));
}

#[test]
fn a_range_with_many_records_is_read_in_one_go_too() {
    let (store, url) = store();
    for seq in 1..=100 {
        store.lock().unwrap().add_record(seq, RUN, seq);
    }
    for records in [1, 1_000] {
        let mut reader = StoreReader::open_range(&url.parse().unwrap(), "", (0, u64::MAX), records).unwrap();
        assert_eq!(drain(&mut reader).unwrap(), (1..=100).collect::<Vec<_>>());
        assert!(reader.note().is_none(), "all were read one by one");
        let by_id = store.lock().unwrap().queries(&format!("TLSDASH_RUN:in({RUN})"));
        assert_eq!(by_id > 0, records == 1);
        store.lock().unwrap().requests.clear();
    }
}

#[test]
fn a_recent_second_is_read_once_its_count_stands_still() {
    let (store, url) = store();
    store.lock().unwrap().add(0, 1);
    let mut reader = open(&url);
    reader.pace.all = PATIENCE;
    assert_eq!(drain(&mut reader), Ok(vec![1]));
    store.lock().unwrap().add(7, 2);
    reader.count_recent().unwrap();
    assert!(reader.queue.is_empty(), "it may be half written");
    store.lock().unwrap().add(7, 3);
    reader.count_recent().unwrap();
    assert!(reader.queue.is_empty(), "it was half written");
    reader.count_recent().unwrap();
    assert_eq!(reader.queue.len(), 1);
    expect(&mut reader, &[2, 3]);
    store.lock().unwrap().add(7, 4);
    expect(&mut reader, &[2, 3, 4]);
}

#[test]
fn what_was_uploaded_late_is_found() {
    let (store, url) = store();
    store.lock().unwrap().add(5 * HOUR, 1);
    let mut reader = open(&url);
    assert_eq!(drain(&mut reader), Ok(vec![1]));
    store.lock().unwrap().add(4, 2);
    expect(&mut reader, &[2]);
    store.lock().unwrap().entries.clear();
    store.lock().unwrap().add(5, 3);
    store.lock().unwrap().add(6, 4);
    expect(&mut reader, &[3, 4]);
}

#[test]
fn a_run_is_read_by_its_numbers_though_its_clock_steps_back() {
    let (store, url) = store();
    for seq in 1..=400 {
        // From the 201st on 60 s earlier.
        let second = if seq <= 200 { 100 + seq } else { 40 + seq };
        store.lock().unwrap().add_record(second, "a", seq);
    }
    assert_eq!(drain(&mut open(&url)).unwrap(), (1..=400).collect::<Vec<u64>>());
}

#[test]
fn what_comes_after_later_records_is_waited_for() {
    let (store, url) = store();
    store.lock().unwrap().add_record(0, "a", 1);
    let mut reader = open(&url);
    reader.pace.hole = PATIENCE;
    assert_eq!(drain(&mut reader), Ok(vec![1]));
    for (second, seq) in [(1, 2), (2, 4), (3, 5)] {
        store.lock().unwrap().add_record(second, "a", seq);
    }
    expect(&mut reader, &[2]);
    std::thread::sleep(Duration::from_millis(100));
    assert_eq!(drain(&mut reader), Ok(vec![]));
    store.lock().unwrap().add_record(1, "a", 3);
    // The second is read again; copies are left out by whoever takes them.
    expect(&mut reader, &[2, 3, 4, 5]);
    reader.pace.hole = Duration::from_millis(50);
    store.lock().unwrap().add_record(4, "a", 7);
    expect(&mut reader, &[7]);
}

#[test]
fn a_late_upload_is_found_in_an_hour_that_has_shrunk() {
    let (store, url) = store();
    for second in 0..5 {
        store.lock().unwrap().add(second, second);
    }
    store.lock().unwrap().add(5 * HOUR, 9);
    let mut reader = open(&url);
    assert_eq!(drain(&mut reader).unwrap().len(), 6);
    store.lock().unwrap().entries.retain(|second, _| *second > BEGIN + 2);
    store.lock().unwrap().add(20, 11);
    expect(&mut reader, &[11]);
    store.lock().unwrap().add(1, 12);
    expect(&mut reader, &[12]);
}

#[test]
fn a_backlog_beyond_the_recent_minutes_is_read() {
    let (store, url) = store();
    store.lock().unwrap().add(0, 1);
    let mut reader = open(&url);
    assert_eq!(drain(&mut reader), Ok(vec![1]));
    for second in 10_000..20_000 {
        store.lock().unwrap().add(second, second);
    }
    expect(&mut reader, &(10_000..20_000).collect::<Vec<u64>>());
    let store = store.lock().unwrap();
    let recent = store.requests.iter().filter(|(_, query)| !query.contains("_time:["));
    assert!(recent.count() < store.queries("_time:1h)") + 1, "no census of seconds is without an end");
}

#[test]
fn the_minutes_around_the_end_of_an_hour_are_read_after_an_outage() {
    let (store, url) = store();
    store.lock().unwrap().add(3_000, 3_000);
    let mut reader = open(&url);
    let mut read = drain(&mut reader).unwrap();
    store.lock().unwrap().fixed =
        Some(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_vec());
    let deadline = Instant::now() + PATIENCE;
    while drain(&mut reader).is_ok() {
        assert!(Instant::now() < deadline);
    }
    for second in 3_001..4_400 {
        store.lock().unwrap().add(second, second);
    }
    store.lock().unwrap().fixed = None;
    while read.len() < 1_400 {
        assert!(Instant::now() < deadline, "{} were read", read.len());
        read.extend(drain(&mut reader).unwrap_or_default());
    }
    read.sort_unstable();
    assert_eq!(read, (3_000..4_400).collect::<Vec<u64>>());
}

#[test]
fn an_answer_that_stands_still_is_given_up() {
    let (store, url) = store();
    store.lock().unwrap().stalls = true;
    let mut reader = open(&url);
    reader.client.set_response_timeout(Duration::from_millis(200));
    let error = drain(&mut reader).unwrap_err();
    assert!(error.contains("ended early") || error.contains("no answer in time"), "{error}");
}

#[test]
fn fewer_entries_than_were_counted_are_an_error() {
    let (store, url) = store();
    store.lock().unwrap().add(0, 1);
    store.lock().unwrap().withheld = 2;
    let mut reader = open(&url);
    reader.pace.retry = Duration::from_millis(500);
    let error = drain(&mut reader).unwrap_err();
    assert!(error.ends_with("it counts 1 entries from 2026-11-28T06:00:00Z on, and returns 0"), "{error}");
    assert_eq!(drain(&mut reader).unwrap_err(), error, "it is not asked again at once");
    assert_eq!(store.lock().unwrap().requests.len(), 7);
    store.lock().unwrap().withheld = 0;
    let deadline = Instant::now() + PATIENCE;
    while drain(&mut reader) != Ok(vec![1]) {
        assert!(Instant::now() < deadline);
    }
}

#[test]
fn a_store_that_refuses_is_quoted() {
    let answer = |status: &str, text: &str| {
        refused(format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{text}", text.len()).as_bytes())
    };
    let login = answer("401 Unauthorized", "who\nare you?");
    assert!(login.starts_with("it answers 401 Unauthorized: who"), "{login}");
    assert!(login.ends_with("; name a token with ?token-file=PATH, or TLSDASH_LOGS_TOKEN"), "{login}");
    assert!(answer("403 Forbidden", "").starts_with("it answers 403 Forbidden; name a token"));
    assert_eq!(answer("502 Bad Gateway", "node 2 is down"), "it answers 502 Bad Gateway: node 2 is down");
    let moved = refused(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n");
    assert!(moved.contains("302 Found; redirects are not followed"), "{moved}");
}

#[test]
fn answers_that_are_cut_or_no_records_are_errors() {
    let garbage = refused(b"HTTP/1.1 200 OK\r\nContent-Length: 14\r\n\r\n<html>hi</html");
    assert_eq!(garbage, "an unexpected line in its answer: <html>hi</html");
    let line = r#"{"_time":"2026-11-28T06:00:00Z","n":"1"}"#;
    let cut = refused(format!("HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{line}\n").as_bytes());
    assert!(cut.starts_with("the answer ended early"), "{cut}");
    let chunked =
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{line}\n\r\n", line.len() + 1);
    let cut = refused(chunked.as_bytes());
    assert!(cut.starts_with("the answer ended early"), "{cut}");
    let header = format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    assert!(!refused(header.as_bytes()).is_empty());
    assert!(!refused(b"").is_empty());
}

#[test]
fn a_store_that_does_not_answer_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("logs+http://{}", listener.local_addr().unwrap());
    let mut reader = open(&url);
    reader.client.set_response_timeout(Duration::from_millis(50));
    let error = drain(&mut reader).unwrap_err();
    assert!(error.contains("no answer in time"), "{error}");
    drop(listener);
    let refused = drain(&mut open(&url)).unwrap_err();
    assert!(refused.ends_with("connection refused; does a store run there?"), "{refused}");
}

#[test]
fn a_long_line_and_a_repeated_field_are_read() {
    let (store, url) = store();
    let long = "x".repeat(64 << 10);
    let line = format!(r#"{{"A":"1","A":"{long}","_time":"2026-11-28T06:00:00Z"}}"#);
    store.lock().unwrap().entries.insert(BEGIN, vec![line]);
    let (mut reader, mut lengths) = (open(&url), Vec::new());
    while reader.poll(&mut |entry| lengths.extend(entry.values("A").map(<[u8]>::len))).unwrap().more {}
    assert_eq!(lengths, [1, 64 << 10]);
}

#[test]
fn filter_tenant_and_secrets_are_sent_and_not_shown() {
    let (store, url) = store();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("secret");
    std::fs::write(&file, "geheim\n").unwrap();
    let sent = |parameters: &str| {
        let url = format!("{url}/vl?query=a:b%20or%20c&{parameters}");
        let mut reader =
            StoreReader::open(&url.parse().unwrap(), Start::Since(BEGIN * 1_000_000), "4ec").unwrap();
        assert!(!format!("{reader:?}").contains("geheim"));
        drain(&mut reader).unwrap();
        store.lock().unwrap().requests.pop().unwrap()
    };
    let (head, query) = sent(&format!("tenant=3:4&token-file={}", file.display()));
    assert!(head.starts_with("post /vl/select/logsql/query "), "{head}");
    for line in ["accountid: 3", "projectid: 4", "authorization: bearer geheim"] {
        assert!(head.contains(line), "{head}");
    }
    let filter = "(TLSDASH_KIND:* TLSDASH_RUN:=\"4ec\"* or N_DROPPED:* _TRANSPORT:=driver) _time:>=2026-11-28T06:00:00Z (a:b or c)";
    assert!(query.starts_with(filter), "{query}");
    let (head, _) = sent(&format!("user=me&password-file={}", file.display()));
    // me:geheim, in lower case.
    assert!(head.contains("authorization: basic bwu6z2voZwlt".to_lowercase().as_str()), "{head}");
    let missing = url + "?token-file=/nowhere/t";
    let error = StoreReader::open(&missing.parse().unwrap(), Start::Oldest, "").unwrap_err().to_string();
    assert!(error.contains("cannot read /nowhere/t: "), "{error}");
}
