//! The program as a user runs it, and what stands around it.

#![allow(dead_code, reason = "each test uses its part")]
#![allow(clippy::print_stdout, reason = "the harness shows it if the test fails")]

pub(crate) mod host;
pub(crate) mod journald;
#[path = "../../../journal/tests/common/not_run.rs"]
pub(crate) mod not_run;
#[path = "../../../acme/tests/it/pebble.rs"]
pub(crate) mod pebble;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// Longest that anything here is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The program with a state directory of its own.
pub(crate) fn tlsdash(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tlsdash"));
    command.env("STATE_DIRECTORY", folder).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
pub(crate) fn run(folder: &Path, args: &[&str]) -> Output {
    tlsdash(folder).args(args).output().expect("the program starts")
}

/// An outside program; says which package is missing if it is not there.
pub(crate) fn outside(program: &str, package: &str) -> Command {
    let found = Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    let found = found.or_else(|_| Command::new(program).arg("version").stdout(Stdio::null()).status());
    assert!(found.is_ok(), "this test needs {program}: install Debian's package {package} (.ci/setup does)");
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Whether a program is there. If not, says that the test has not run.
pub(crate) fn is_there(program: &str, version: &str, test: &str) -> bool {
    let asked = Command::new(program).arg(version).stdout(Stdio::null()).stderr(Stdio::null()).status();
    let is_there = asked.is_ok_and(|status| status.success());
    if !is_there {
        not_run::say_not_run(test, &format!("{program} is not installed"));
    }
    is_there
}

/// Makes a certificate for `name` with an ECDSA P-256 key, valid for `days`. openssl also gets `more`.
pub(crate) fn make_certificate(cert: &Path, key: &Path, name: &str, days: u32, more: &[&str]) {
    let made = outside("openssl", "openssl")
        .args(["req", "-x509", "-nodes", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"])
        .args(["-days", &days.to_string(), "-subj", &format!("/CN={name}")])
        .args(["-addext", &format!("subjectAltName=DNS:{name}")])
        .args(more)
        .args([Path::new("-out"), cert, Path::new("-keyout"), key])
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
}

/// The program with a disk of so many KiB at `disk`, in a mount namespace of its own: root may make one, others where user
/// namespaces may. A file `ballast` takes `ballast_kib` of it. While the program runs, [`inside`] finds the files there.
pub(crate) fn on_small_disk(disk: &Path, size_kib: u32, ballast_kib: u32) -> Command {
    std::fs::create_dir_all(disk).unwrap();
    let mut command = outside("unshare", "util-linux");
    if !rustix::process::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    let script = format!(
        "mount -t tmpfs -o size={size_kib}k tmpfs \"$0\" && \
         dd if=/dev/zero of=\"$0/ballast\" bs=1024 count={ballast_kib} 2>/dev/null && exec \"$@\""
    );
    command.args(["--mount", "sh", "-c", &script]).arg(disk).arg(env!("CARGO_BIN_EXE_tlsdash"));
    command
}

/// A path as the process sees it.
pub(crate) fn inside(pid: u32, path: &Path) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("root").join(path.strip_prefix("/").unwrap())
}

/// Waits until `what` holds.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "not within {PATIENCE:?}: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Sends a signal to a process that the test has started.
pub(crate) fn send(signal: Signal, pid: u32) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw).expect("a process id");
    kill_process(pid, signal).expect("the process can be signalled");
}

/// A running program, ended with the test.
pub(crate) struct TlsdashProcess {
    child: Child,
    lines: Receiver<String>,
    said: Vec<String>,
    /// Reads what it prints, all the time: what nobody reads would hold it up in the end.
    printed: Option<JoinHandle<std::io::Result<String>>>,
}

impl TlsdashProcess {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (told, lines) = channel();
        std::thread::spawn(move || stderr.lines().map_while(Result::ok).try_for_each(|line| told.send(line)));
        let mut stdout = child.stdout.take().unwrap();
        let printed = std::thread::spawn(move || {
            let mut text = String::new();
            stdout.read_to_string(&mut text).map(|_| text)
        });
        Self { child, lines, said: Vec::new(), printed: Some(printed) }
    }

    /// The first line on standard error that holds `text`.
    pub(crate) fn line_with(&mut self, text: &str) -> String {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(line) = self.said.iter().find(|line| line.contains(text)) {
                return line.clone();
            }
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => self.said.push(line),
                Err(error) => panic!("never said {text:?} ({error}); said {:?}", self.said),
            }
        }
    }

    /// Where a headless proxy listens.
    pub(crate) fn address(&mut self) -> SocketAddr {
        let line = self.line_with("listening on ");
        let rest = line.split("listening on ").nth(1).unwrap();
        rest.split(',').next().unwrap().parse().expect("an address")
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        send(signal, self.pid());
    }

    pub(crate) fn memory_bytes(&self) -> u64 {
        let statm = std::fs::read_to_string(format!("/proc/{}/statm", self.pid())).unwrap();
        statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
    }

    /// Ends it with SIGTERM; its exit code and what it printed.
    pub(crate) fn end(self) -> (i32, String) {
        self.signal(Signal::TERM);
        self.wait()
    }

    /// The same, with all that it said on standard error.
    pub(crate) fn end_and_tell(self) -> (i32, String, String) {
        self.signal(Signal::TERM);
        self.wait_and_tell()
    }

    /// Waits for its end; its exit code and what it printed.
    pub(crate) fn wait(self) -> (i32, String) {
        let (code, printed, _) = self.wait_and_tell();
        (code, printed)
    }

    /// Waits for its end; its exit code, what it printed, and what it said on standard error.
    pub(crate) fn wait_and_tell(mut self) -> (i32, String, String) {
        let mut status = None;
        until("the program ends", || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        let code = status.unwrap().code().unwrap_or(-1);
        // Shown by the test's harness if the test fails.
        self.said.extend(self.lines.iter());
        self.said.iter().for_each(|line| println!("{line}"));
        (code, self.printed.take().unwrap().join().unwrap().unwrap(), self.said.join("\n"))
    }
}

impl Drop for TlsdashProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An HTTP/1.0 upstream on a unix socket: reads a request's head, answers with `body`, closes. Runs as long as
/// the test does.
pub(crate) fn upstream(folder: &Path, body: &'static [u8]) -> PathBuf {
    let path = folder.join("app.sock");
    let listener = UnixListener::bind(&path).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            std::thread::spawn(move || answer(stream, body));
        }
    });
    path
}

/// Reads a request's head and answers with `body`.
pub(crate) fn answer(mut stream: impl Read + Write, body: &[u8]) {
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let _ = stream.write_all(response(body).as_slice());
}

/// What [`upstream`] answers.
pub(crate) fn response(body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

/// What the service manager is told until `last` is; each message as one string.
pub(crate) fn told(socket: &UnixDatagram, last: &str) -> Vec<String> {
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut messages = Vec::new();
    let begun = Instant::now();
    while !messages.iter().any(|message: &String| message.contains(last)) {
        let mut buffer = [0; 1000];
        // Those of the watchdog never end.
        assert!(begun.elapsed() < PATIENCE, "never told {last}: {messages:?}");
        let n = socket.recv(&mut buffer).unwrap_or_else(|_| panic!("never told {last}: {messages:?}"));
        messages.push(String::from_utf8(buffer[..n].to_vec()).unwrap());
    }
    messages
}

/// A headless proxy on a free port with its journal, and whatever else `args` say.
pub(crate) fn proxy(folder: &Path, upstream: &Path, args: &[&str]) -> TlsdashProcess {
    let mut command = tlsdash(folder);
    command
        .args(["--headless", "--listen", "127.0.0.1:0", "--format", "json"])
        .arg("--upstream")
        .arg(format!("unix:{}", upstream.display()))
        .arg("--journal")
        .arg(format!("file:{}", journal(folder).display()))
        .args(args);
    TlsdashProcess::start(command)
}

pub(crate) fn journal(folder: &Path) -> PathBuf {
    folder.join("x.journal")
}

/// The entries that journalctl finds.
pub(crate) fn journalctl(file: &Path, matches: &[&str]) -> Vec<Value> {
    let output = outside("journalctl", "systemd")
        .arg(format!("--file={}", file.display()))
        .args(["-o", "json", "--all", "--no-pager"])
        .args(matches)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// A number that stands as text in an entry of journalctl; a counter that is 0 does not.
pub(crate) fn number(entry: &Value, field: &str) -> u64 {
    if entry.get(field).is_none() && field.ends_with("_TOTAL") {
        return 0;
    }
    entry[field].as_str().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{field} in {entry}"))
}

/// The entry that each client wrote last.
pub(crate) fn last_of_each_client(file: &Path) -> Vec<Value> {
    journalctl(file, &["TLSDASH_KIND=client", "TLSDASH_CLIENT_LAST=1"])
}

pub(crate) fn connects(address: SocketAddr) -> bool {
    TcpStream::connect(address).is_ok()
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
