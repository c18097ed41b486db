//! The writer when it is killed, and when there is no space left.

use std::cell::Cell;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::journald::mount_namespace_args;
use crate::common::verify::assert_valid_or_unfinished_links;
use crate::common::*;
use journal::{FileOptions, FileWriter, Start, Timestamps};
use rustix::process::{Resource, Rlimit};

#[test]
fn a_killed_writers_file_is_readable_to_its_last_flush() {
    if let Some(path) = child_path() {
        let mut writer = write_numbers(&path, 0..1234);
        writer.append(&numbered(9999), Timestamps::now()).unwrap();
        std::process::abort();
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    let status = child_command("killed_writer::a_killed_writers_file_is_readable_to_its_last_flush", &path)
        .status()
        .unwrap();
    assert!(!status.success());
    assert_eq!(values(&path, Start::File, "NUMBER"), numbers(0..1234));
    assert_eq!(export(&path, &["SAME=value"]).len(), 1234);
    verify(&path);
    // The killed writer's lock is gone, and none of its entries are overwritten.
    let writer = write_numbers(&path, 1234..1240);
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..1240));
    drop(writer);
}

#[test]
fn a_writer_killed_at_any_moment_keeps_all_flushed_entries() {
    const TEST: &str = "killed_writer::a_writer_killed_at_any_moment_keeps_all_flushed_entries";
    if let Some(path) = child_path() {
        let seed = std::env::var("JOURNAL_TEST_SEED").unwrap().parse().unwrap();
        write_and_report(&path, &mut Random(seed));
    }
    for seed in 0..30 {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.journal");
        let mut random = Random(seed);
        let mut command = child_command(TEST, &path);
        let child = command.env("JOURNAL_TEST_SEED", seed.to_string()).stderr(Stdio::piped()).spawn();
        let mut writer = ChildProcess(child.unwrap());
        let mut reports = BufReader::new(writer.0.stderr.take().unwrap()).lines();
        let mut flushed = 0;
        for _ in 0..=random.below(250) {
            flushed = reports.next().unwrap().unwrap().parse().unwrap();
        }
        let moment = Instant::now() + Duration::from_micros(random.below(2000));
        while Instant::now() < moment {
            std::hint::spin_loop();
        }
        drop(writer);
        // The last line may be incomplete.
        flushed = reports.map_while(|line| line.unwrap().parse().ok()).last().unwrap_or(flushed);
        let read = values(&path, Start::Oldest, "NUMBER");
        assert!(read.len() as u64 >= flushed, "seed {seed}: {} of {flushed}", read.len());
        assert_eq!(read, numbers(0..read.len() as u64), "seed {seed}");
        for file in files(dir.path()) {
            assert_valid_or_unfinished_links(&file);
        }
        // The next writer continues.
        drop(write_numbers(&path, read.len() as u64..read.len() as u64 + 5));
        assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..read.len() as u64 + 5), "seed {seed}");
    }
}

/// Writes entries forever, and reports the count after each flush.
fn write_and_report(path: &Path, random: &mut Random) -> ! {
    let mut writer = FileWriter::create(path, small()).unwrap();
    let mut reports = std::io::stderr();
    let mut number = 0;
    loop {
        for _ in 0..=random.below(60) {
            writer.append(&numbered(number), Timestamps::now()).unwrap();
            number += 1;
        }
        writer.flush().unwrap();
        writeln!(reports, "{number}").unwrap();
    }
}

/// Limits the size of files that this process writes.
fn limit_file_size(bytes: Option<u64>) {
    let limit = Rlimit { current: bytes, maximum: None };
    rustix::process::setrlimit(Resource::Fsize, limit).unwrap();
}

#[test]
fn writing_fails_cleanly_at_a_size_limit_and_continues_afterwards() {
    const TEST: &str = "killed_writer::writing_fails_cleanly_at_a_size_limit_and_continues_afterwards";
    if let Some(path) = child_path() {
        limit_file_size(Some(1 << 20));
        let error = FileWriter::create(&path, FileOptions::default()).unwrap_err();
        assert!(error.is_full(), "{error}");
        assert!(files(path.parent().unwrap()).is_empty(), "the failure left something behind");

        limit_file_size(Some(10 << 20));
        let mut writer = FileWriter::create(&path, FileOptions::default()).unwrap();
        let mut taken = 0;
        let mut append = |writer: &mut FileWriter| {
            let mut entry = numbered(taken);
            entry.push("LARGE", taken.to_string().repeat(50_000).as_bytes());
            writer.append(&entry, Timestamps::now()).inspect(|()| taken += 1)
        };
        let mut flushed = 0;
        let error = loop {
            append(&mut writer).unwrap();
            match writer.flush() {
                Ok(()) => flushed += 1,
                Err(error) => break error,
            }
        };
        assert!(error.is_full(), "{error}");
        assert!(error.to_string().starts_with(&format!("cannot write to {}: ", path.display())), "{error}");
        assert_eq!(values(&path, Start::File, "NUMBER"), numbers(0..flushed));
        verify(&path);
        // Entries are buffered, but within a bound.
        let refused = (0..100).position(|_| append(&mut writer).is_err());
        assert!(refused.is_some_and(|kept| kept < 30), "{refused:?}");

        limit_file_size(None);
        append(&mut writer).unwrap();
        writer.close().unwrap();
        assert_eq!(values(&path, Start::File, "NUMBER"), numbers(0..taken));
        std::process::exit(0);
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.journal");
    assert!(child_command(TEST, &path).status().unwrap().success());
    verify(&path);
}

/// Mounts a small file system at the first argument, and runs the command in the others.
const MOUNT: &str = "mount -t tmpfs -o size=20m tmpfs \"$0\" && exec \"$@\"";

#[test]
fn writing_fails_cleanly_on_a_full_disk_and_continues_afterwards() {
    const TEST: &str = "killed_writer::writing_fails_cleanly_on_a_full_disk_and_continues_afterwards";
    if let Some(path) = child_path() {
        // First the file cannot grow, then the next file cannot be created.
        fill_the_disk(&path.with_file_name("one.journal"), FileOptions::default());
        fill_the_disk(&path.with_file_name("many.journal"), small());
        std::process::exit(0);
    }
    let dir = tempfile::tempdir().unwrap();
    let part = child_command(TEST, &dir.path().join("a.journal"));
    let output = Command::new("unshare")
        .args(mount_namespace_args())
        .args(["--propagation", "private", "sh", "-c", MOUNT])
        .arg(dir.path())
        .arg(part.get_program())
        .args(part.get_args())
        .envs(part.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .output()
        .expect("unshare cannot be run: install the Debian package util-linux");
    assert!(
        output.status.success(),
        "this test needs root or user namespaces that may mount a tmpfs\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Writes until the disk is full, frees space, and continues; then removes everything.
fn fill_the_disk(path: &Path, options: FileOptions) {
    let folder = path.parent().unwrap();
    let ballast = folder.join("ballast");
    fs::write(&ballast, vec![1; 7 << 20]).unwrap();
    let mut writer = FileWriter::create(path, options).unwrap();
    let (taken, flushed) = (Cell::new(0), Cell::new(0));
    let write = |writer: &mut FileWriter| {
        let mut entry = numbered(taken.get());
        entry.push("LARGE", taken.get().to_string().repeat(50_000).as_bytes());
        writer.append(&entry, Timestamps::now()).inspect(|()| taken.set(taken.get() + 1))?;
        writer.flush().inspect(|()| flushed.set(taken.get()))
    };
    let check = || {
        assert_eq!(values(path, Start::Oldest, "NUMBER"), numbers(0..flushed.get()));
        for file in files(folder).iter().filter(|file| **file != ballast) {
            verify(file);
        }
    };
    while write(&mut writer).is_ok() {}
    for _ in 0..3 {
        let error = write(&mut writer).unwrap_err();
        assert!(error.is_full(), "{error}");
    }
    check();
    fs::remove_file(&ballast).unwrap();
    for _ in 0..3 {
        write(&mut writer).unwrap();
    }
    writer.close().unwrap();
    assert_eq!(flushed, taken);
    check();
    for file in files(folder) {
        fs::remove_file(file).unwrap();
    }
}
