//! A private journald for one test, in private mounts.

use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::recompress::number_at;
use super::{ChildProcess, Fields, drain, export, files, wait_until};
use journal::{Start, Tail};

/// Binds the test's folders over those that journald uses, and runs journald. The unified control group
/// hierarchy, which only root can mount, lets it tell services apart.
const START: &str = "mount -t cgroup2 none /sys/fs/cgroup 2>/dev/null; mount --bind \"$0/run-systemd\" /run/systemd && mount --bind \"$0/run-log\" /run/log \
    && mount --bind \"$0/var-log-journal\" /var/log/journal && mount --bind \"$0/etc\" /etc/systemd \
    && exec /lib/systemd/systemd-journald test";

/// The format of the files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournaldFormat {
    pub(crate) compact: bool,
    pub(crate) keyed_hash: bool,
    pub(crate) compressed: bool,
}

impl JournaldFormat {
    /// journald's default format.
    pub(crate) const USUAL: Self = Self { compact: true, keyed_hash: true, compressed: true };
}

pub(crate) struct Journald {
    process: ChildProcess,
    root: tempfile::TempDir,
    format: JournaldFormat,
    socket: UnixDatagram,
    /// A namespace's journald exits without such a connection.
    stdout: UnixStream,
}

impl Journald {
    pub(crate) fn start(format: JournaldFormat) -> Self {
        Self::start_with(format, "")
    }

    /// Starts journald with additional configuration lines.
    pub(crate) fn start_with(format: JournaldFormat, settings: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["run-systemd", "run-log", "var-log-journal", "etc"] {
            std::fs::create_dir(root.path().join(folder)).unwrap();
        }
        let config = format!(
            "[Journal]\nStorage=volatile\nRateLimitIntervalSec=0\nCompress={}\nRuntimeMaxUse=256M\nRuntimeKeepFree=1\n{settings}\n",
            if format.compressed { "yes" } else { "no" }
        );
        std::fs::write(root.path().join("etc/journald@test.conf"), config).unwrap();
        let (process, stdout) = run(root.path(), format);
        Self { process, root, format, socket: UnixDatagram::unbound().unwrap(), stdout }
    }

    /// Kills and restarts journald, which renames the unclosed file to `….journal~`.
    pub(crate) fn kill_and_start(&mut self) {
        self.kill();
        self.restart();
    }

    /// Kills journald; its socket stays.
    pub(crate) fn kill(&mut self) {
        self.process.0.kill().unwrap();
        self.process.0.wait().unwrap();
    }

    /// Starts journald after it was killed.
    pub(crate) fn restart(&mut self) {
        std::fs::remove_dir_all(self.root.path().join("run-systemd/journal.test")).unwrap();
        (self.process, self.stdout) = run(self.root.path(), self.format);
        wait_until("a file put aside", || !self.disposed_files().is_empty());
    }

    /// Suspends journald, so that it takes nothing from its queue.
    pub(crate) fn pause(&self) {
        self.signal(Signal::STOP);
        let stat = format!("/proc/{}/stat", self.process.0.id());
        wait_until("a stopped journald", || std::fs::read_to_string(&stat).unwrap().contains(") T "));
    }

    /// Resumes a suspended journald.
    pub(crate) fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process.0), signal).unwrap();
    }

    /// Returns the path of its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        socket(self.root.path(), "socket")
    }

    /// Returns the root of the control groups in this journald's view, if there is one.
    pub(crate) fn control_groups(&self) -> Option<PathBuf> {
        let root = PathBuf::from(format!("/proc/{}/root/sys/fs/cgroup", self.process.0.id()));
        root.join("cgroup.procs").exists().then_some(root)
    }

    /// Returns the entries with a field in all files, including `….journal~`, as journalctl exports them.
    pub(crate) fn entries_with(&self, field: &str) -> Vec<Fields> {
        // journalctl refuses a file that journald has created and not begun: whoever waits for entries looks again.
        let has_header = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|metadata| metadata.len() > 0);
        if !files(&self.folder()).iter().all(has_header) {
            return Vec::new();
        }
        let mut entries = export(&self.folder().join("*.journal*"), &[]);
        entries.retain(|entry| entry.iter().any(|(name, _)| name == field));
        entries
    }

    /// Returns the files that were found unclosed.
    pub(crate) fn disposed_files(&self) -> Vec<PathBuf> {
        let is_disposed = |path: &PathBuf| path.to_string_lossy().ends_with(".journal~");
        files(&self.folder()).into_iter().filter(is_disposed).collect()
    }

    /// Sends an entry by the native protocol.
    pub(crate) fn send(&self, fields: &[(&str, &[u8])]) {
        let mut datagram = Vec::new();
        for (name, value) in fields {
            datagram.extend_from_slice(name.as_bytes());
            datagram.push(b'\n');
            datagram.extend_from_slice(&(value.len() as u64).to_le_bytes());
            datagram.extend_from_slice(value);
            datagram.push(b'\n');
        }
        self.socket.send_to(&datagram, socket(self.root.path(), "socket")).unwrap();
    }

    /// Requests a rotation, and waits for it.
    pub(crate) fn rotate(&self) {
        let before = files(&self.folder()).len();
        self.signal(Signal::USR2);
        wait_until("a rotation", || {
            files(&self.folder()).len() > before && Tail::open(&self.live(), Start::File).is_ok()
        });
    }

    /// Requests a rotation, and does not wait for it.
    pub(crate) fn ask_to_rotate(&self) {
        self.signal(Signal::USR2);
    }

    /// Stops journald, which closes its files.
    pub(crate) fn stop(mut self) -> tempfile::TempDir {
        self.signal(Signal::TERM);
        self.process.0.wait().unwrap();
        self.root
    }

    pub(crate) fn live(&self) -> PathBuf {
        self.folder().join("system.journal")
    }

    pub(crate) fn folder(&self) -> PathBuf {
        folder(self.root.path()).expect("journald has made its folder")
    }
}

/// Returns text that compresses well and differs from the next.
fn long(number: u64, bytes: usize) -> Vec<u8> {
    format!("a line of text that is number {number}, repeated; ")
        .into_bytes()
        .into_iter()
        .cycle()
        .take(bytes)
        .collect()
}

/// Sends entries with short, long, binary, repeated and empty values.
pub(crate) fn send_varied(journald: &Journald, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let text = number.to_string();
        let (kib, large) = (long(number, 1500), long(number % 5, 70_000));
        let binary: Vec<u8> = (0..2000).map(|i| (i * number % 251) as u8).collect();
        let mut fields: Vec<(&str, &[u8])> = vec![("NUMBER", text.as_bytes()), ("SAME", b"value")];
        match number % 6 {
            0 => fields.push(("LONG", &kib)),
            1 => fields.extend([("LONG", &*large), ("EMPTY", b"")]),
            2 => fields.push(("BINARY", &binary)),
            3 => fields.extend([("TWICE", &*kib), ("TWICE", &*large), ("TWICE", &*kib)]),
            4 => fields.push(("BINARY", b"\0\x01=\n\xff")),
            _ => fields.push(("MESSAGE", b"short")),
        }
        journald.send(&fields);
    }
}

/// Returns the folder of the files below the root of a journald.
pub(crate) fn folder(root: &Path) -> Option<PathBuf> {
    let journals = root.join("run-log/journal");
    journals.exists().then(|| files(&journals).into_iter().next())?
}

fn socket(root: &Path, name: &str) -> PathBuf {
    root.join("run-systemd/journal.test").join(name)
}

/// Returns the arguments of unshare for private mounts.
pub(crate) fn mount_namespace_args() -> &'static [&'static str] {
    if rustix::process::geteuid().is_root() { &["-m"] } else { &["--user", "--map-root-user", "-m"] }
}

fn run(root: &Path, format: JournaldFormat) -> (ChildProcess, UnixStream) {
    let flag = |on: bool| if on { "1" } else { "0" };
    let stderr = root.join("stderr");
    let process = Command::new("unshare")
        .args(mount_namespace_args())
        .args(["--propagation", "private", "sh", "-c", START])
        .arg(root)
        .env("SYSTEMD_JOURNAL_COMPACT", flag(format.compact))
        .env("SYSTEMD_JOURNAL_KEYED_HASH", flag(format.keyed_hash))
        .stdin(Stdio::null())
        .stderr(std::fs::File::create(&stderr).unwrap())
        .spawn();
    let mut process =
        ChildProcess(process.expect("unshare cannot be run: install the Debian package util-linux"));
    // The file gets its name before it is a journal, and the socket before it listens.
    let is_journal = |folder: PathBuf| Tail::open(&folder.join("system.journal"), Start::File).is_ok();
    let mut stdout = None;
    wait_until("a private journald", || {
        assert!(
            process.0.try_wait().unwrap().is_none(),
            "no private journald can be started: this test needs the Debian package systemd, and root or user \
             namespaces that may mount (and the folders /run/systemd, /run/log, /var/log/journal, /etc/systemd)\n{}",
            std::fs::read_to_string(&stderr).unwrap()
        );
        stdout = stdout.take().or_else(|| UnixStream::connect(socket(root, "stdout")).ok());
        stdout.is_some() && folder(root).is_some_and(is_journal)
    });
    (process, stdout.unwrap())
}

/// Returns whether an entry read by the tail equals the exported one, as far as it is preserved: one value of
/// a repeated field is enough, and bytes that are not UTF-8 may be replaced.
pub(crate) fn is_same(read: &Fields, exported: &Fields) -> bool {
    let lossy = |value: &[u8]| String::from_utf8_lossy(value).into_owned().into_bytes();
    let is_there = |(name, value): &(String, Vec<u8>)| {
        exported.iter().any(|(other, bytes)| name == other && (value == bytes || *value == lossy(bytes)))
    };
    read.iter().all(is_there) && exported.iter().all(|(name, _)| read.iter().any(|(other, _)| name == other))
}

/// Lets a journald write varied entries, and returns its file without the allocated rest.
pub(crate) fn written(format: JournaldFormat, entries: u64) -> Vec<u8> {
    let journald = Journald::start(format);
    let mut tail = Tail::open(&journald.live(), Start::File).unwrap();
    let mut read = 0;
    for number in 0..entries {
        send_varied(&journald, number..number + 1);
        wait_until("an entry", || {
            drain(&mut tail, |entry| read += u64::from(entry.text("NUMBER").is_some()));
            // journald's queue is short.
            read + 5 > number || read == entries
        });
    }
    wait_until("all entries", || {
        drain(&mut tail, |entry| read += u64::from(entry.text("NUMBER").is_some()));
        read == entries
    });
    let root = journald.stop();
    let mut bytes = std::fs::read(folder(root.path()).unwrap().join("system.journal")).unwrap();
    let last = number_at(&bytes, 136);
    let end = (last + number_at(&bytes, last + 8)).next_multiple_of(8);
    bytes.truncate(end);
    let arena = (end - number_at(&bytes, 88)) as u64;
    bytes[96..104].copy_from_slice(&arena.to_le_bytes());
    bytes
}
