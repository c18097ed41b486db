//! A whole log becomes the records of a run in the log's own time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::Cursor;
use std::time::Duration;

use journal::Timestamps;
use model::runs::Model;
use observe::{LogKind, LogReplay, ReplayError, ReplayedLog, log_span};
use recorder::observer::Intervals;
use recorder::publish::Publisher;
use records::ids::RunId;
use records::kinds::{Body, Record, RunRecord};
use records::metrics::{ClientCounter, ProxyCounter, ProxyLatency};

const BEGIN_MS: u64 = 1_700_000_000_000;

/// A connection of HAProxy in TCP mode that ended at this time.
fn line(number: u64, end_ms: u64, resumed: u8) -> String {
    let began = end_ms - 20;
    let (seconds, ms) = (began / 1_000, began % 1_000);
    format!(
        r#"{{"kind":"tcp","time":"{seconds}.{ms:03}","log":"t","line":"{number}","client":"10.0.0.{}","version":"TLSv1.3","cipher":"TLS_AES_128_GCM_SHA256","resumed":"{resumed}","name":"a.example","alpn":"-","handshake":"0","state":"--","in":"5","out":"7","took":"20","connect":"3"}}
"#,
        number % 2
    )
}

fn replay(log: &str) -> Result<ReplayedLog<Vec<Record>>, ReplayError> {
    let zero = Timestamps { realtime_us: 0, monotonic_us: 0 };
    let publisher = Publisher::new(RunId::from_bits(7), Vec::new(), 60, zero);
    let replay = LogReplay::new(Intervals::new(publisher, Duration::from_secs(1), RunRecord::default()));
    replay.run(&mut LogKind::Haproxy.parser(), &mut log.as_bytes())
}

#[test]
fn a_log_of_last_week_keeps_its_own_time_and_adds_up() {
    // Two seconds of lines, an hour of nothing, one more line; a line that is cut, and one that is missing.
    let begin_ms = BEGIN_MS;
    let mut log: String = (0..40).map(|n| line(n, begin_ms + 100 + n * 50, u8::from(n % 4 != 0))).collect();
    log.push_str("{\"kind\":\"tcp\",\"ti\n");
    log.push_str(&line(41, begin_ms + 3_600_000, 0));
    let ReplayedLog { sink: records, lines, bad, lost, .. } = replay(&log).unwrap();
    assert_eq!((lines, bad, lost), (42, 1, 1));
    let first = records.first().unwrap().stamp.realtime_us;
    let last = records.last().unwrap().stamp.realtime_us;
    assert_eq!((first, last - first), (begin_ms * 1_000, 3_601_000_000));
    assert!(records.len() < 40, "an hour of nothing is one interval: {}", records.len());
    let mut model = Model::new(100);
    for record in &records {
        model.apply(record.clone(), None);
    }
    let run = model.run(RunId::from_bits(7)).unwrap();
    let totals = run.proxy().unwrap().totals();
    assert_eq!(totals[ProxyCounter::Accepted], 41);
    assert_eq!((totals[ProxyCounter::HandshakesFull], totals[ProxyCounter::HandshakesResumed]), (11, 30));
    assert_eq!((totals[ProxyCounter::BytesIn], totals[ProxyCounter::BytesOut]), (205, 287));
    let counted = [ProxyCounter::LinesRead, ProxyCounter::LinesUnreadable, ProxyCounter::LinesLost];
    assert_eq!(counted.map(|counter| totals[counter]), [42, 1, 1]);
    let of_clients: u64 =
        run.clients().iter().map(|client| client.totals()[ClientCounter::Connections]).sum();
    assert_eq!(of_clients, 41);
    let is_log_notice =
        |record: &&Record| matches!(&record.body, Body::Notice(notice) if notice.topic.starts_with("log"));
    assert_eq!(records.iter().filter(is_log_notice).count(), 2, "one line is bad, and one is lost");
    let Body::Run(stop) = &records.last().unwrap().body else { panic!("{:?}", records.last()) };
    let whole = &stop.proxy.as_ref().unwrap().latencies[ProxyLatency::HandshakeFull].interval;
    assert_eq!((whole.count(), whole.max_ns()), (11, 1_000_000), "0 ms is at most 1 ms");
}

#[test]
fn dates_that_cannot_be_make_no_run_and_lines_in_the_wrong_order_are_told_of() {
    let (hour, year_ms) = (3_600_000, 366 * 24 * 3_600_000);
    let in_future = line(3, BEGIN_MS + 60 * year_ms, 0);
    let never_set = line(4, 20 * year_ms, 0);
    let log = [
        line(1, BEGIN_MS + hour, 0),
        in_future,
        never_set,
        line(2, BEGIN_MS + 2 * hour, 0),
        line(0, BEGIN_MS, 0),
    ];
    let ReplayedLog { sink: records, bad, notices, .. } = replay(&log.concat()).unwrap();
    let span_us = records.last().unwrap().stamp.realtime_us - records[0].stamp.realtime_us;
    assert_eq!((span_us, bad), (3_601_000_000, 2));
    let notice = notices.iter().find(|notice| notice.topic == "log-order").unwrap();
    let Body::Run(stop) = &records.last().unwrap().body else { panic!("{:?}", records.last()) };
    assert_eq!(stop.proxy.as_ref().unwrap().counters[ProxyCounter::LinesOutOfOrder], 1);
    assert!(notice.text.starts_with("1 lines are up to 120 minutes earlier"), "{}", notice.text);
}

#[test]
fn a_log_without_a_readable_line_is_refused_with_a_sample() {
    let error = replay("what is this\nno log\n").unwrap_err().to_string();
    assert!(
        error.contains("none of its 2 lines") && error.contains("no log: it is of no known format"),
        "{error}"
    );
}

#[test]
fn the_time_that_a_log_spans_is_told_by_its_ends() {
    let span = |log: &str| {
        let mut log = Cursor::new(log.as_bytes().to_vec());
        let span = log_span(LogKind::Haproxy, &mut log).unwrap();
        assert_eq!(log.position(), 0);
        span
    };
    let of = |lines: u64| (0..lines).map(|n| line(n, BEGIN_MS + n * 1_000, 0)).collect::<String>();
    assert_eq!(span(&of(3)), Duration::from_secs(2));
    // A megabyte, of which only the ends are read.
    assert_eq!(span(&of(4_000)), Duration::from_secs(3_999));
    assert_eq!(span("no log\n"), Duration::ZERO);
    assert_eq!(span(""), Duration::ZERO);
}
