//! A running terminator: its process and all descendants.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::param::clock_ticks_per_second;
use rustix::process::{Pid, Resource, Signal, getrlimit, kill_process, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{InstalledPeer, Setup};
use crate::Result;

/// The time limit until it listens, and from SIGTERM to its exit.
const TIMEOUT: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(20);

/// A running terminator, stopped on drop.
#[derive(Debug)]
pub struct Running {
    child: Child,
    addr: SocketAddr,
}

/// The resource usage of its processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// The CPU time so far, ended threads included.
    pub cpu: Duration,
    /// The resident memory; pages shared by two processes count twice.
    pub resident_kib: u64,
}

impl Running {
    /// Starts it, on the core `core` if one is given, and waits until it listens.
    ///
    /// # Errors
    /// If it does not listen in time.
    pub fn start(peer: &InstalledPeer, setup: &Setup<'_>, core: Option<usize>) -> Result<Self> {
        let mut command = setup.command(peer, core)?;
        let stderr = setup.folder.join("stderr");
        let output = File::create(&stderr)?;
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        let child = command.spawn().map_err(|error| format!("cannot start {command:?}: {error}"))?;
        let mut running = Self { child, addr: setup.listen };
        let deadline = Instant::now() + TIMEOUT;
        // A connection would leave traces in the measurement.
        while !is_listening(running.addr)? {
            let status = running.child.try_wait()?;
            if status.is_some() || Instant::now() > deadline {
                let stderr = fs::read_to_string(&stderr).unwrap_or_default();
                return Err(format!("{} does not listen: {}", peer.kind, stderr.trim()).into());
            }
            std::thread::sleep(POLL);
        }
        Ok(running)
    }

    /// Returns the address on which it listens.
    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Returns its current usage.
    ///
    /// # Errors
    /// If `/proc` cannot be read.
    pub fn usage(&self) -> Result<ProcessUsage> {
        let mut usage = ProcessUsage::default();
        for pid in family(self.child.id())? {
            // A process that has ended uses nothing.
            usage.cpu += cpu(pid).unwrap_or_default();
            usage.resident_kib += resident_kib(pid).unwrap_or_default();
        }
        Ok(usage)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Children exit with their parent only after SIGTERM, not after SIGKILL.
        terminate(self.child.id());
        let deadline = Instant::now() + TIMEOUT;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline {
            std::thread::sleep(POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns a process and its descendants.
fn family(pid: u32) -> Result<Vec<u32>> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some(parent) = stat(pid).and_then(|fields| fields.get(1)?.parse().ok()) {
            children.entry(parent).or_default().push(pid);
        }
    }
    let mut all = vec![pid];
    let mut next = 0;
    while let Some(pid) = all.get(next) {
        all.extend(children.remove(pid).unwrap_or_default());
        next += 1;
    }
    Ok(all)
}

/// Raises the limit on file descriptors for thousands of connections, here and in the terminators, which
/// inherit it.
///
/// # Errors
/// If the kernel refuses.
pub fn allow_all_descriptors() -> Result<()> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    Ok(setrlimit(Resource::Nofile, limit)?)
}

/// Terminates all child processes when a signal ends this program.
///
/// # Errors
/// If signals cannot be waited for.
pub fn terminate_children_on_signal() -> Result<()> {
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::spawn(move || {
        let Some(signal) = signals.forever().next() else { return };
        for pid in family(std::process::id()).unwrap_or_default().into_iter().skip(1) {
            terminate(pid);
        }
        std::process::exit(128 + signal);
    });
    Ok(())
}

fn terminate(pid: u32) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        // It may already have ended.
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Returns whether a process listens on a port of this machine, by `proc_net_tcp(5)`.
fn is_listening(addr: SocketAddr) -> Result<bool> {
    const LISTEN: &str = "0A";
    let port = format!(":{:04X}", addr.port());
    let sockets = fs::read_to_string("/proc/net/tcp")?;
    Ok(sockets.lines().any(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next().unwrap_or_default(), fields.nth(1));
        local.ends_with(&port) && state == Some(LISTEN)
    }))
}

/// Returns the fields of `/proc/PID/stat` from the third on; the second, the name, may contain any character.
fn stat(pid: u32) -> Option<Vec<String>> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Returns user and system time: the fields 14 and 15 in `proc(5)`.
fn cpu(pid: u32) -> Option<Duration> {
    let fields = stat(pid)?;
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64))
}

/// The exact value where `/proc` shows it: a process that may not be dumped, such as tlsdash, hides it from
/// all but root.
fn resident_kib(pid: u32) -> Option<u64> {
    resident_kib_exact(pid).or_else(|| {
        let statm = fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
        let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
        Some(pages * rustix::param::page_size() as u64 / 1024)
    })
}

fn resident_kib_exact(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    let rss = text.lines().find_map(|line| line.strip_prefix("Rss:"))?;
    rss.split_whitespace().next()?.parse().ok()
}
