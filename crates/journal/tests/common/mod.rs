//! Shared support for the tests of this crate.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(clippy::unwrap_used, reason = "this is test code, though outside of test functions")]

pub(crate) mod journald;
pub(crate) mod not_run;
pub(crate) mod recompress;
pub(crate) mod verify;

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use journal::{Entry, EntryBuf, FileOptions, FileWriter, PollProgress, Start, Tail, Timestamps};

/// The fields of an entry, sorted.
pub(crate) type Fields = Vec<(String, Vec<u8>)>;

/// Returns the most bytes that a reader may skip: those of the file, and those that its header counts beyond it.
pub(crate) fn skipped_bytes_max(file: &[u8]) -> u64 {
    let number =
        |at: usize| file.get(at..at + 8).map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
    let counted = number(88).saturating_add(number(96));
    (file.len() as u64).max(counted.min(file.len() as u64 + u64::from(u32::MAX)))
}

/// Returns options for a file that rotates soon.
pub(crate) fn small() -> FileOptions {
    FileOptions { size_max: 4 << 20, ..FileOptions::default() }
}

/// Creates a journal file.
pub(crate) fn create(path: &Path, options: &FileOptions) -> FileWriter {
    FileWriter::create(path, options.clone()).unwrap()
}

/// A process that is killed when the test ends.
pub(crate) struct ChildProcess(pub(crate) Child);

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Returns a command that runs journalctl on a file.
pub(crate) fn journalctl_command(path: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("journalctl");
    command.arg(format!("--file={}", path.display())).arg("--quiet").args(arguments).stdin(Stdio::null());
    command
}

/// Runs journalctl on a file and returns its output.
pub(crate) fn journalctl(path: &Path, arguments: &[&str]) -> Vec<u8> {
    let output = journalctl_command(path, arguments)
        .output()
        .expect("journalctl cannot be run: install the Debian package systemd");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "journalctl {arguments:?}: {errors}");
    output.stdout
}

/// Checks the structure of a file with journalctl.
pub(crate) fn verify(path: &Path) {
    journalctl(path, &["--verify"]);
}

/// Returns the fields of all entries as journalctl exports them, without its own `__` fields.
pub(crate) fn export(path: &Path, matches: &[&str]) -> Vec<Fields> {
    let output = journalctl(path, &[&["-o", "export"], matches].concat());
    let mut rest = output.as_slice();
    let mut entries = Vec::new();
    let mut fields = Fields::new();
    while let Some(line_len) = rest.iter().position(|byte| *byte == b'\n') {
        let (line, after) = (&rest[..line_len], &rest[line_len + 1..]);
        rest = after;
        if line.is_empty() {
            fields.sort();
            entries.push(std::mem::take(&mut fields));
        } else if let Some(equals) = line.iter().position(|byte| *byte == b'=') {
            if !line.starts_with(b"__") {
                fields.push((text(&line[..equals]), line[equals + 1..].to_vec()));
            }
        } else {
            // A binary value: its size in eight bytes, then the value and a newline.
            let size = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
            fields.push((text(line), rest[8..8 + size].to_vec()));
            rest = &rest[8 + size + 1..];
        }
    }
    entries
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Returns the fields of an entry and the common fields, sorted, as an exact reader finds them.
pub(crate) fn fields_of(entry: &EntryBuf, common: &EntryBuf) -> Fields {
    let mut fields: Fields =
        entry.iter().chain(common.iter()).map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
    fields.sort();
    fields.dedup();
    fields
}

/// Returns the fields of an entry that was read, sorted.
pub(crate) fn fields_read(entry: &Entry) -> Fields {
    let mut fields: Fields = entry.iter().map(|(name, value)| (name.to_owned(), value.to_vec())).collect();
    fields.sort();
    fields
}

/// Polls until there is nothing more now, and returns the total progress.
pub(crate) fn drain(tail: &mut Tail, mut each: impl FnMut(&Entry)) -> PollProgress {
    let mut total = tail.poll(&mut each).unwrap();
    while total.more {
        let progress = tail.poll(&mut each).unwrap();
        total.entries += progress.entries;
        total.rotations += progress.rotations;
        total.skipped_bytes += progress.skipped_bytes;
        total.more = progress.more;
        total.writer = progress.writer;
    }
    total
}

/// Reads the values of one field of all entries, from the given start.
pub(crate) fn values(path: &Path, start: Start, name: &str) -> Vec<String> {
    let mut values = Vec::new();
    let mut tail = Tail::open(path, start).unwrap();
    drain(&mut tail, |entry| values.push(entry.text(name).unwrap_or_default().to_owned()));
    values
}

/// Lists the files of a folder, sorted by name.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files
}

/// Calls `done` until it returns true.
pub(crate) fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !done() {
        assert!(Instant::now() < deadline, "still waiting for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns numbers as the text of fields.
pub(crate) fn numbers(range: std::ops::Range<u64>) -> Vec<String> {
    range.map(|number| number.to_string()).collect()
}

/// Returns an entry with a number, and a value that all such entries share.
pub(crate) fn numbered(number: u64) -> EntryBuf {
    let mut entry = EntryBuf::new();
    entry.push_display("NUMBER", number);
    entry.push("SAME", b"value");
    entry
}

/// Creates a file and writes numbered entries.
pub(crate) fn write_numbers(path: &Path, range: std::ops::Range<u64>) -> FileWriter {
    let mut writer = FileWriter::create(path, small()).unwrap();
    for number in range {
        writer.append(&numbered(number), Timestamps::now()).unwrap();
    }
    writer.flush().unwrap();
    writer
}

/// Returns a command that runs one test of this program in a child process.
pub(crate) fn child_command(test: &str, path: &Path) -> Command {
    // The program inherits the signal that the shell ignores, so exceeding the file size limit is an error,
    // like a full disk.
    let mut command = Command::new("sh");
    command
        .args(["-c", "trap '' XFSZ; ulimit -c 0; exec \"$@\"", "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("JOURNAL_TEST_CHILD", path);
    command
}

/// Runs a test that measures its process in a child process. False in the parent, where it has passed then.
pub(crate) fn is_alone(test: &str) -> bool {
    let is_child = child_path().is_some();
    assert!(is_child || child_command(test, Path::new("")).status().unwrap().success());
    is_child
}

/// Returns the path that a test works on, if it runs in a child process.
pub(crate) fn child_path() -> Option<PathBuf> {
    std::env::var_os("JOURNAL_TEST_CHILD").map(Into::into)
}

/// Random numbers from a seed, so that failures are reproducible.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}
