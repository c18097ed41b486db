//! Captures of which a part cannot be used.

use std::io::Cursor;
use std::time::Duration;

use recorder::observer::Intervals;
use recorder::publish::Publisher;
use records::ids::RunId;
use records::kinds::{Body, Record, RunRecord, Stamp};
use wire::capture::CaptureReader;
use wire::{CaptureReplay, ReplayError, ReplayedCapture, WireCounter, WireOptions};

use crate::recorded::CAPTURES;

/// Lengths of the headers of a pcap file and of its frames, in bytes.
const FILE_HEADER_BYTES: usize = 24;
const FRAME_HEADER_BYTES: usize = 16;

fn replay(file: Vec<u8>) -> Result<ReplayedCapture<Vec<Record>>, ReplayError> {
    let run = RunId::from_bits(7);
    let start = Stamp { run, seq: 0, mono_us: 0, realtime_us: 0, interval_us: 0 }.timestamps();
    let publisher = Publisher::new(run, Vec::new(), 60, start);
    let intervals = Intervals::new(publisher, Duration::from_secs(1), RunRecord::default());
    let mut capture = CaptureReader::new(Cursor::new(file)).unwrap();
    CaptureReplay::new(intervals, WireCounter::new(WireOptions::default())).run(&mut capture)
}

/// The capture with TLS 1.3, with frames of at most this length. `seconds` changes the time of each, by its place.
fn capture(snap_bytes: usize, mut seconds: impl FnMut(usize, u32) -> u32) -> Vec<u8> {
    let whole = std::fs::read(CAPTURES[1].path()).unwrap();
    let (header, mut rest) = whole.split_at(FILE_HEADER_BYTES);
    let mut file = header.to_vec();
    for place in 0.. {
        if rest.is_empty() {
            break;
        }
        let word = |at: usize| u32::from_le_bytes(*rest[at..].first_chunk().unwrap());
        let (captured, wire) = (word(8) as usize, word(12));
        let kept = captured.min(snap_bytes);
        file.extend([seconds(place, word(0)), word(4), kept as u32, wire].map(u32::to_le_bytes).concat());
        file.extend(&rest[FRAME_HEADER_BYTES..][..kept]);
        rest = &rest[FRAME_HEADER_BYTES + captured..];
    }
    file
}

#[test]
fn packets_with_an_impossible_time_are_lost_and_nothing_else_is() {
    let whole = replay(capture(usize::MAX, |_, seconds| seconds)).unwrap();
    // The last two packets, which close a connection.
    let last = CAPTURES[1].pieces().len() - 1;
    let changed = |place, seconds| match last - place {
        0 => u32::MAX,
        1 => 0,
        _ => seconds,
    };
    let replayed = replay(capture(usize::MAX, changed)).unwrap();
    assert_eq!((replayed.packets, replayed.dropped), (whole.packets, 2));
    assert_eq!((replayed.connections, replayed.unjudged), (whole.connections, 0));
    let ended_us = |run: &ReplayedCapture<Vec<Record>>| run.sink.last().unwrap().stamp.realtime_us;
    assert_eq!(ended_us(&replayed), ended_us(&whole));
    let is_notice = |record: &&Record| matches!(&record.body, Body::Notice(notice) if notice.text.starts_with("2 packets"));
    assert_eq!(replayed.sink.iter().filter(is_notice).count(), 1);
}

#[test]
fn a_capture_without_connections_says_what_is_wrong_with_its_packets() {
    let error = |file| replay(file).err().unwrap().to_string();
    let snapped = error(capture(96, |_, seconds| seconds));
    assert!(snapped.contains("tcpdump -s 0") && !snapped.contains("before 2000"), "{snapped}");
    let misdated = error(capture(usize::MAX, |_, _| 1));
    assert!(misdated.contains("before 2000") && !misdated.contains("tcpdump"), "{misdated}");
}
