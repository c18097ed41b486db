//! Journals of many hosts in one folder, written by `systemd-journal-remote`.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::common::*;
use journal::{Start, Tail};

/// A receiver of one host's exported entries, which writes its own file.
struct RemoteReceiver {
    process: ChildProcess,
    host: String,
}

impl RemoteReceiver {
    fn start(folder: &Path, host: &str) -> Self {
        let process = Command::new("/lib/systemd/systemd-journal-remote")
            .arg(format!("--output={}", folder.join(format!("remote-{host}.journal")).display()))
            .arg("-")
            .stdin(Stdio::piped())
            .stderr(File::create(folder.join(format!("{host}.stderr"))).unwrap())
            .spawn()
            .expect("systemd-journal-remote cannot be run: install the Debian package of this name");
        Self { process: ChildProcess(process), host: host.to_owned() }
    }

    fn child(&mut self) -> &mut Child {
        &mut self.process.0
    }

    fn input(&mut self) -> &mut ChildStdin {
        self.child().stdin.as_mut().unwrap()
    }

    /// Sends entries in the export format, see journal-export-formats.
    fn send(&mut self, numbers: std::ops::Range<u64>) {
        let mut text = String::new();
        for number in numbers {
            let time = 1_700_000_000_000_000 + number;
            write!(text, "__REALTIME_TIMESTAMP={time}\n__MONOTONIC_TIMESTAMP={number}\n").unwrap();
            write!(text, "_BOOT_ID=00000000000000000000000000000007\n_HOSTNAME={}\n", self.host).unwrap();
            write!(text, "NUMBER={number}\nMESSAGE=entry {number}\n\n").unwrap();
        }
        self.input().write_all(text.as_bytes()).unwrap();
    }

    fn finish(mut self) {
        drop(self.child().stdin.take());
        assert!(self.child().wait().unwrap().success());
    }
}

/// Reads the current entries, and checks the order of each host's.
fn follow(tail: &mut Tail, next: &mut [u64]) {
    let progress = drain(tail, |entry| {
        let host: usize = entry.text("_HOSTNAME").unwrap().strip_prefix("host").unwrap().parse().unwrap();
        assert_eq!(entry.text("NUMBER"), Some(next[host].to_string().as_str()));
        assert_eq!((entry.monotonic_us(), entry.boot_id()), (next[host], 7));
        next[host] += 1;
    });
    assert_eq!(progress.skipped_bytes, 0);
}

#[test]
fn many_hosts_in_one_folder_are_followed_as_they_arrive() {
    const HOSTS: usize = 5;
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("remote");
    std::fs::create_dir(&folder).unwrap();
    let mut receivers: Vec<_> =
        (0..HOSTS).map(|host| RemoteReceiver::start(&folder, &format!("host{host}"))).collect();
    // Tails of the folder and of its parent.
    let mut tails = [&folder, dir.path()].map(|path| Tail::open(path, Start::Oldest).unwrap());
    let mut next = [[0; HOSTS]; 2];
    for round in 0..4 {
        for receiver in &mut receivers {
            receiver.send(round * 500..(round + 1) * 500);
        }
        for (tail, next) in tails.iter_mut().zip(&mut next) {
            wait_until("the entries of all hosts", || {
                follow(tail, next);
                *next == [(round + 1) * 500; HOSTS]
            });
        }
    }
    receivers.into_iter().for_each(RemoteReceiver::finish);
    let mut all = [0; HOSTS];
    follow(&mut Tail::open(&folder, Start::Oldest).unwrap(), &mut all);
    assert_eq!(all, [2000; HOSTS]);
}

#[test]
fn a_journal_remote_file_is_followed_through_rotations() {
    const ENTRIES: u64 = 20_000;
    let dir = tempfile::tempdir().unwrap();
    let mut receiver = RemoteReceiver::start(dir.path(), "host0");
    let mut tail = Tail::open(dir.path(), Start::Oldest).unwrap();
    let mut next = [0];
    std::thread::scope(|scope| {
        // Each entry has six new values: files fill up their hash tables.
        scope.spawn(move || {
            for number in (0..ENTRIES).step_by(100) {
                receiver.send(number..number + 100);
            }
            receiver.finish();
        });
        wait_until("all entries", || {
            follow(&mut tail, &mut next);
            next[0] == ENTRIES
        });
    });
    let path = dir.path().join("remote-host0.journal");
    assert_eq!(values(&path, Start::Oldest, "NUMBER"), numbers(0..ENTRIES));
}
