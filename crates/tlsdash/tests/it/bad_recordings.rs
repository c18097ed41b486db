//! What is no recording, or was cut or overwritten: what can be read is reported on, what cannot is said, nothing panics.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use crate::common::{outside, run, stderr, tlsdash};
use journal::{EntryBuf, FileOptions, FileWriter, Timestamps};
use serde_json::Value;

/// The commands that read a recording, before its name and after it.
const READERS: [(&[&str], &[&str]); 4] = [
    (&["watch", "--headless", "--format", "json"], &[]),
    (&["report", "--json", "-"], &[]),
    (&["check", "--assert", "lost == 0"], &[]),
    (
        &["compare", "--metric", "exchange.p50", "--block", "300ms", "--discard", "0s", "--format", "json"],
        &["whole.journal"],
    ),
];

/// A run of three seconds, ten intervals a second.
fn recorded(folder: &Path) -> Vec<u8> {
    let file = folder.join("whole.journal");
    let args =
        ["demo", "--headless", "--duration", "3s", "--interval", "100ms", "--journal", "off", "--record"];
    let made =
        run(folder, &[&args[..], &[file.to_str().unwrap(), "--load", "rate=200,connections=4"]].concat());
    assert!(made.status.success(), "{}", stderr(&made));
    fs::read(file).unwrap()
}

/// What each reader makes of `bytes`.
fn read(folder: &Path, what: &str, bytes: &[u8]) -> [Output; 4] {
    let file = folder.join("damaged.journal");
    fs::write(&file, bytes).unwrap();
    read_file(folder, what, &file)
}

/// What each reader makes of a file; whatever it is, it ends in order and in words.
fn read_file(folder: &Path, what: &str, file: &Path) -> [Output; 4] {
    READERS.map(|(before, after)| {
        let after: Vec<String> = after.iter().map(|name| folder.join(name).display().to_string()).collect();
        let mut args: Vec<&str> = before.to_vec();
        args.push(file.to_str().unwrap());
        args.extend(after.iter().map(String::as_str));
        let output = run(folder, &args);
        let said = stderr(&output);
        let command = before[0];
        assert!(!said.contains("panicked"), "{what}, {command}: {said}");
        let is_check = command == "check";
        assert!(
            matches!(output.status.code(), Some(0 | 1)) || is_check && output.status.code() == Some(99),
            "{what}, {command}: {:?} {said}",
            output.status
        );
        assert!(said.lines().all(|line| line.starts_with("tlsdash: ")), "{what}, {command}: {said}");
        let errors = said.lines().filter(|line| !line.contains("warning: ")).count();
        assert_eq!(errors, usize::from(!output.status.success()), "{what}, {command}: {said}");
        output
    })
}

/// Where the hash tables end and records begin, which is 8 bytes each in the header.
fn records_begin(whole: &[u8]) -> usize {
    let number = |at: usize| u64::from_le_bytes(whole[at..at + 8].try_into().unwrap()) as usize;
    (number(104) + number(112)).max(number(120) + number(128))
}

/// So far into the records.
fn place(whole: &[u8], share: f64) -> usize {
    let begin = records_begin(whole);
    begin + ((whole.len() - begin) as f64 * share) as usize
}

/// Whether a report says that something is not as it was written.
fn admits(report: &Output) -> bool {
    let Ok(report) = serde_json::from_slice::<Value>(&report.stdout) else { return true };
    let (summary, journal) = (&report["summary"], &report["summary"]["journal"]);
    let counts = ["lost", "before", "malformed", "skipped_bytes", "foreign"]
        .map(|name| journal[name].as_u64().unwrap_or(0));
    summary["ended"] == false || counts.iter().any(|count| *count > 0)
}

/// Each reader refuses the file with one line that names it and has all of `parts`.
fn assert_refused(folder: &Path, file: &Path, parts: &[&str]) {
    for output in read_file(folder, "refused", file) {
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
        assert!(output.stdout.is_empty(), "{said}");
        for part in parts.iter().copied().chain([file.to_str().unwrap()]) {
            assert!(said.contains(part), "{part:?} is not in {said}");
        }
    }
}

#[test]
fn a_file_that_is_no_recording_is_one_line_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("empty.journal"), "").unwrap();
    fs::write(at("text.journal"), "not a journal, but longer than a header\n".repeat(30)).unwrap();
    fs::create_dir(at("folder")).unwrap();
    let mut foreign = FileWriter::create(&at("foreign.journal"), FileOptions::default()).unwrap();
    let mut entry = EntryBuf::new();
    entry.push("MESSAGE", b"something else");
    foreign.append(&entry, Timestamps::now()).unwrap();
    foreign.close().unwrap();
    for (name, parts) in [
        ("absent.journal", &["no such file"][..]),
        ("empty.journal", &["cannot read"]),
        ("text.journal", &["not a journal"]),
        ("folder", &["holds no records of a run of tlsdash"]),
        ("foreign.journal", &["holds no records of a run of tlsdash"]),
    ] {
        assert_refused(folder.path(), &at(name), parts);
    }
}

#[test]
fn a_recording_of_a_newer_tlsdash_says_so_and_one_of_an_older_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded(folder.path());
    let with_schema = |schema: u8| {
        let (from, mut to) = (*b"TLSDASH_SCHEMA=1", *b"TLSDASH_SCHEMA=1");
        to[from.len() - 1] = schema;
        let mut bytes = whole.clone();
        let at = bytes.windows(from.len()).position(|window| *window == from).unwrap();
        bytes[at..at + to.len()].copy_from_slice(&to);
        bytes
    };
    let newer = folder.path().join("newer.journal");
    fs::write(&newer, with_schema(b'9')).unwrap();
    assert_refused(folder.path(), &newer, &["written by a newer tlsdash (schema 9); update this one"]);
    for output in read(folder.path(), "older", &with_schema(b'0')) {
        assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    }
}

#[test]
fn a_file_that_may_not_be_read_or_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    recorded(folder.path());
    let file = folder.path().join("whole.journal");
    let file = file.to_str().unwrap();
    for args in [
        &["report", file, "--html", "/nowhere/x.html"][..],
        &["report", file, "--json", "/dev/full"],
        &["check", file, "--assert", "lost == 0", "--junit", "/dev/full"],
        &["compact", file, "/nowhere/x.journal"],
    ] {
        let output = run(folder.path(), args);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{args:?}: {said}");
        let reason = if args.contains(&"/dev/full") { "No space left" } else { "No such file" };
        let place = args.last().unwrap().trim_end_matches("/x.journal");
        assert!(said.contains(reason) && said.contains(place), "{args:?}: {said}");
    }
    // Root may read everything, so the program gives that up where the tests run as root.
    fs::set_permissions(file, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = outside("setpriv", "util-linux");
        command.args([
            "--reuid=65534",
            "--clear-groups",
            "--bounding-set=-all",
            env!("CARGO_BIN_EXE_tlsdash"),
        ]);
        command
    } else {
        tlsdash(folder.path())
    };
    let output = command.args(["report", file, "--md", "-"]).output().unwrap();
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(1), 1), "{said}");
    assert!(said.contains(file) && said.contains("ermission"), "{said}");
}

#[test]
fn the_name_of_a_recording_is_printable_in_every_form() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded(folder.path());
    let file = folder.path().join("\u{1b}]0;title\u{7}\u{1b}[2J\u{202e}<b>.journal");
    fs::write(&file, whole).unwrap();
    let file = file.to_str().unwrap();
    for args in [
        &["watch", "--headless", file][..],
        &["watch", "--headless", "--format", "json", file],
        &["report", "--html", "-", file],
        &["report", "--md", "-", file],
        &["compare", "--html", "-", file, "whole.journal"],
        &["compare", file, "whole.journal"],
    ] {
        let output = tlsdash(folder.path()).args(args).current_dir(folder.path()).output().unwrap();
        let printed = String::from_utf8(output.stdout.clone()).unwrap();
        assert!(output.status.success() && printed.contains("journal"), "{args:?}: {}", stderr(&output));
        let is_printable = |c: char| c == '\n' || (!c.is_control() && c != '\u{202e}');
        assert!(printed.chars().all(is_printable), "{args:?}: {printed:?}");
    }
}

#[test]
fn a_recording_that_was_cut_is_read_up_to_there() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded(folder.path());
    let in_tables = [1, 100, 271, 300, 4_096, records_begin(&whole) / 2, records_begin(&whole)];
    let in_records = [0.01, 0.1, 0.5, 0.9, 0.99].map(|share| place(&whole, share));
    for kept in in_tables.into_iter().chain(in_records) {
        let what = format!("{kept} of {} bytes", whole.len());
        let [watched, reported, checked, _] = read(folder.path(), &what, &whole[..kept]);
        assert!(admits(&reported), "{what}: {}", String::from_utf8_lossy(&reported.stdout));
        assert_eq!(watched.status.code(), reported.status.code(), "{what}");
        assert!(!stderr(&checked).is_empty(), "{what}: it says so");
    }
}

#[test]
fn overwritten_bytes_are_skipped_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded(folder.path());
    for (share, bytes) in [(0.1, 0xff), (0.3, 0x00), (0.5, 0xff), (0.7, 0x41), (0.95, 0x00)] {
        let at = place(&whole, share);
        let mut damaged = whole.clone();
        let end = (at + 10_000).min(damaged.len());
        damaged[at..end].fill(bytes);
        let what = format!("{bytes:#x} from {at} of {}", whole.len());
        let [_, reported, checked, _] = read(folder.path(), &what, &damaged);
        assert!(admits(&reported), "{what}: {}", String::from_utf8_lossy(&reported.stdout));
        assert!(!stderr(&checked).is_empty(), "{what}: it says so");
    }
}

#[test]
fn flipped_bytes_lose_only_their_own_entries() {
    let folder = tempfile::tempdir().unwrap();
    let whole = recorded(folder.path());
    // The header and the tables too; the places are the same in each run.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    for flips in [1, 10, 100, 1_000, 10_000] {
        let mut damaged = whole.clone();
        for _ in 0..flips {
            let at = random() % damaged.len();
            damaged[at] ^= 1 << (random() % 8);
        }
        read(folder.path(), &format!("{flips} flips"), &damaged);
    }
    for at in 0..272 {
        if at % 16 == 0 {
            let mut damaged = whole.clone();
            damaged[at..at + 8].fill(0xff);
            read(folder.path(), &format!("the header from {at}"), &damaged);
        }
    }
}
