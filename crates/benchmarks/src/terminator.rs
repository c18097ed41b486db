//! The program under measurement as a process: on one core, or under callgrind.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{fs, io};

use rustix::process::{Pid, Signal, kill_process};

use crate::Result;
use crate::callgrind::{self, Thread};
use crate::load::{BenchmarkUpstream, ServeMode, Shape};

/// The time limit from SIGTERM to the exit, in which callgrind writes its counts.
const TIMEOUT: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(20);
/// Code that only workers run: it identifies a worker's thread in callgrind's output.
const WORKER: &str = "proxy_core::connection::";
/// The source paths of the code that counts and times.
const COUNTING: [&str; 3] = ["proxy-core/src/stats/", "crates/records/src/", "/hdrhistogram-"];

/// The headless proxy with one worker.
#[derive(Debug)]
pub struct Terminator {
    child: Child,
    addr: SocketAddr,
    /// Reads its output, so that it never blocks.
    listener: Option<JoinHandle<()>>,
}

/// Where records go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Nowhere.
    Off,
    /// Into a file.
    On,
}

impl Terminator {
    /// Starts `program` for requests of `shape` with all its threads on the core `core`, and a record interval of a second.
    ///
    /// # Errors
    /// If it does not start.
    pub fn natively(
        program: &Path,
        upstream: &BenchmarkUpstream,
        shape: &Shape,
        journal: Journal,
        core: usize,
    ) -> Result<Self> {
        let mut command = Command::new("taskset");
        command.args(["-c", &core.to_string()]).arg(program);
        Self::start(command, upstream, shape, journal, "1s")
    }

    /// Starts `program` under callgrind, which writes to `out` at the end. The interval is so long that none
    /// ends.
    ///
    /// # Errors
    /// If it does not start.
    pub fn under_callgrind(
        program: &Path,
        upstream: &BenchmarkUpstream,
        shape: &Shape,
        out: &Path,
    ) -> Result<Self> {
        let mut command = callgrind::command(out)?;
        command.arg(program);
        Self::start(command, upstream, shape, Journal::Off, "60s")
    }

    fn start(
        mut command: Command,
        upstream: &BenchmarkUpstream,
        shape: &Shape,
        journal: Journal,
        interval: &str,
    ) -> Result<Self> {
        command.args(["--headless", "--workers", "1", "--listen", "127.0.0.1:0", "--interval", interval]);
        let socket = upstream.socket().display();
        command.arg(format!("--upstream=unix:{socket}"));
        // An older program, with which this one is compared, knows no other mode than TCP's, nor the option.
        if let ServeMode::Http { .. } = shape.mode {
            command.args(["--mode", "http"]);
        }
        command.args(shape.routes().map(|path| format!("--route={path}=unix:{socket}")));
        command.arg("--journal");
        match journal {
            Journal::Off => command.arg("off"),
            Journal::On => command.arg(format!("file:{}", upstream.folder().join("on.journal").display())),
        };
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut stderr = BufReader::new(child.stderr.take().ok_or("its stderr is not piped")?);
        let Some(addr) = listening(&mut stderr)? else {
            let status = child.wait()?;
            return Err(format!("{command:?} did not start to listen: {status}").into());
        };
        let listener = std::thread::spawn(move || drop(io::copy(&mut stderr, &mut io::sink())));
        Ok(Self { child, addr, listener: Some(listener) })
    }

    /// Returns the address on which it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns the CPU time that its threads have used, by thread name.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn cpu(&self) -> Result<BTreeMap<String, Duration>> {
        let mut cpu = BTreeMap::new();
        for task in fs::read_dir(format!("/proc/{}/task", self.child.id()))? {
            let task = task?.path();
            let name = fs::read_to_string(task.join("comm"))?.trim_end().to_owned();
            let schedstat = fs::read_to_string(task.join("schedstat"))?;
            // The first number is the time on the CPU, in nanoseconds (Documentation/scheduler/sched-stats.rst).
            let nanos = schedstat.split(' ').next().unwrap_or_default().parse()?;
            *cpu.entry(name).or_default() += Duration::from_nanos(nanos);
        }
        Ok(cpu)
    }

    /// Stops it with SIGTERM.
    ///
    /// # Errors
    /// If it fails, or does not exit.
    pub fn end(mut self) -> Result<()> {
        let pid = Pid::from_raw(i32::try_from(self.child.id())?).ok_or("it has no process id")?;
        kill_process(pid, Signal::TERM)?;
        let deadline = Instant::now() + TIMEOUT;
        loop {
            match self.child.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => return Err(format!("the program under measurement failed: {status}").into()),
                None if Instant::now() > deadline => return Err("it does not end".into()),
                None => std::thread::sleep(POLL),
            }
        }
    }
}

impl Drop for Terminator {
    fn drop(&mut self) {
        // It has exited, or an error makes waiting pointless.
        let _ = self.child.kill();
        let _ = self.child.wait();
        if let Some(listener) = self.listener.take() {
            let _ = listener.join();
        }
    }
}

/// Returns the address that it reports; `None` if it exits before.
fn listening(stderr: &mut impl BufRead) -> Result<Option<SocketAddr>> {
    for line in stderr.lines() {
        if let Some((_, rest)) = line?.split_once("listening on ") {
            let addr = rest.split(',').next().unwrap_or_default();
            return Ok(Some(addr.parse().map_err(|error| format!("{addr}: {error}"))?));
        }
    }
    Ok(None)
}

/// The worker's instructions for a request.
#[derive(Clone, Copy, Debug)]
pub struct PerRequest {
    /// All instructions.
    pub total: f64,
    /// Instructions outside the cryptographic library.
    pub without_cryptography: f64,
    /// Instructions that count and time for the records, without reading the clock.
    pub counting: f64,
}

impl PerRequest {
    /// Counts `requests` requests of `shape` to `program` under callgrind.
    ///
    /// Counts two runs of different length, which differ by requests alone: start and end cost the same in
    /// both.
    ///
    /// # Errors
    /// If a run fails.
    pub fn count(program: &Path, shape: &Shape, requests: u64) -> Result<Self> {
        let short = worker(program, shape, requests)?;
        let long = worker(program, shape, 2 * requests)?;
        let each = |of: fn(&Thread) -> u64| of(&long).saturating_sub(of(&short)) as f64 / requests as f64;
        Ok(Self {
            total: each(Thread::total),
            without_cryptography: each(Thread::without_cryptography),
            counting: each(|thread| thread.in_files(&COUNTING)),
        })
    }
}

fn worker(program: &Path, shape: &Shape, requests: u64) -> Result<Thread> {
    let upstream = BenchmarkUpstream::start()?;
    let out = upstream.folder().join("callgrind");
    let terminator = Terminator::under_callgrind(program, &upstream, shape, &out)?;
    shape.run(terminator.addr(), requests)?;
    terminator.end()?;
    let worker = Thread::read_all(&out)?.into_iter().find(|thread| thread.ran(WORKER));
    Ok(worker.ok_or("callgrind's counts name no worker: was the program stripped?")?)
}
