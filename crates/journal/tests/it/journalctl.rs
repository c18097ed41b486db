//! Reads the writer's files with journalctl.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::common::*;
use journal::{EntryBuf, FileOptions, FileWriter, Start, Tail, Timestamps};
use proptest::prelude::*;

#[test]
fn verify_passes_while_the_file_grows_and_after_it_is_closed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    verify(&path);
    for number in 0..3000 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
        if [0, 1, 2, 3, 4, 5, 70, 71, 1500, 2999].contains(&number) {
            writer.flush().unwrap();
            verify(&path);
            assert_eq!(export(&path, &[]).len() as u64, number + 1);
        }
    }
    let used = writer.size_bytes();
    writer.close().unwrap();
    verify(&path);
    assert_eq!(std::fs::metadata(&path).unwrap().len(), used);
    let header = journalctl(&path, &["--header"]);
    let header = String::from_utf8_lossy(&header);
    assert!(header.contains("State: OFFLINE"), "{header}");
}

#[test]
fn decreasing_or_invalid_times_keep_the_file_valid() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    for (realtime_us, monotonic_us) in [(5_000_000, 900), (4_000_000, 800), (0, 0), (u64::MAX, u64::MAX)] {
        writer.append(&numbered(1), Timestamps { realtime_us, monotonic_us }).unwrap();
    }
    writer.close().unwrap();
    verify(&path);
}

#[test]
fn journalctl_matches_find_the_written_entries() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    for number in 0..500 {
        let mut entry = numbered(number);
        entry.push_display("CLIENT", number % 5);
        writer.append(&entry, Timestamps::now()).unwrap();
        // Some values are repeated within a batch, some in a later one.
        if number % 7 == 0 {
            writer.flush().unwrap();
        }
    }
    writer.flush().unwrap();
    let mut clients: Vec<_> =
        String::from_utf8(journalctl(&path, &["-F", "CLIENT"])).unwrap().lines().map(str::to_owned).collect();
    clients.sort();
    assert_eq!(clients, numbers(0..5));
    assert_eq!(export(&path, &["SAME=value"]).len(), 500);
    assert_eq!(export(&path, &["CLIENT=3"]).len(), 100);
    assert_eq!(export(&path, &["CLIENT=3", "NUMBER=8"]).len(), 1);
    assert_eq!(export(&path, &["CLIENT=3", "NUMBER=9"]).len(), 0);
    assert_eq!(export(&path, &["NUMBER=499"]).len(), 1);
    assert_eq!(export(&path, &["_COMM=journalctl"]).len(), 0);
    assert_eq!(export(&path, &[&format!("_PID={}", std::process::id())]).len(), 500);
    assert_eq!(export(&path, &["-n", "2", "SAME=value"]).len(), 2);
    assert_eq!(export(&path, &["-b"]).len(), 500);
}

#[test]
fn journalctl_json_shows_text_and_binary_values() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions { common: EntryBuf::new(), ..small() }).unwrap();
    let mut entry = EntryBuf::new();
    entry.push("TEXT", "grüße\nzwei \"Zeilen\"".as_bytes());
    entry.push("BYTES", b"a\0\x01\xff=b");
    entry.push("TWICE", b"1");
    entry.push("TWICE", b"2");
    entry.push("TWICE", b"1");
    entry.push("NOTHING", b"");
    writer.append(&entry, Timestamps { realtime_us: 1_700_000_000_000_000, monotonic_us: 42 }).unwrap();
    writer.close().unwrap();
    let json = String::from_utf8(journalctl(&path, &["-o", "json"])).unwrap();
    for part in [
        r#""TEXT":"grüße\nzwei \"Zeilen\"""#,
        r#""BYTES":[97,0,1,255,61,98]"#,
        r#""TWICE":["1","2"]"#,
        r#""NOTHING":"""#,
        r#""__REALTIME_TIMESTAMP":"1700000000000000""#,
        r#""__MONOTONIC_TIMESTAMP":"42""#,
    ] {
        assert!(json.contains(part), "{part} is not in {json}");
    }
}

#[test]
fn a_following_journalctl_prints_entries_as_they_are_flushed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
    writer.append(&numbered(0), Timestamps::now()).unwrap();
    writer.flush().unwrap();
    let mut follower = journalctl_command(&path, &["-f", "-n", "all", "-o", "cat", "--output-fields=NUMBER"])
        .stdout(Stdio::piped())
        .spawn()
        .map(ChildProcess)
        .expect("journalctl cannot be run: install the Debian package systemd");
    let output = BufReader::new(follower.0.stdout.take().unwrap());
    let (sender, lines) = std::sync::mpsc::channel();
    let reader =
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|l| sender.send(l)));
    let next = || lines.recv_timeout(std::time::Duration::from_secs(20)).expect("journalctl -f stays silent");
    assert_eq!(next(), "0");
    for number in 1..20 {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
        writer.flush().unwrap();
        assert_eq!(next(), number.to_string());
    }
    drop(follower);
    drop(lines);
    drop(reader.join());
}

fn any_entry() -> impl Strategy<Value = Vec<(String, Vec<u8>)>> {
    let name = "[A-Z][A-Z0-9_]{0,8}";
    let value = prop_oneof![
        // Few values, so that many are repeated.
        "[ab]{0,2}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..200),
    ];
    prop::collection::vec((name, value), 1..20)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn tail_and_journalctl_read_exactly_the_written_entries(
        entries in prop::collection::vec(any_entry(), 1..60),
        flush_every in 1_usize..20,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let common = journal::process_fields();
        let mut writer = FileWriter::create(&path, small()).unwrap();
        let mut tail = Tail::open(&path, Start::File).unwrap();
        let mut read = Vec::new();
        let mut written = Vec::new();
        let mut entry = EntryBuf::new();
        for (index, fields) in entries.iter().enumerate() {
            entry.clear();
            for (name, value) in fields {
                entry.push(name, value);
            }
            writer.append(&entry, Timestamps::now()).unwrap();
            written.push(fields_of(&entry, &common));
            if index % flush_every == 0 {
                writer.flush().unwrap();
                drain(&mut tail, |entry| read.push(fields_read(entry)));
                prop_assert_eq!(read.len(), index + 1);
            }
        }
        writer.close().unwrap();
        drain(&mut tail, |entry| read.push(fields_read(entry)));

        prop_assert_eq!(&export(&path, &[]), &written);
        verify(&path);
        prop_assert_eq!(&read, &written);
    }
}
