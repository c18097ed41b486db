//! The handle on a running load, and everything that is checked before there is one.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mio::{Poll, Waker};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use telemetry::{Collector, LoadDelta, Setting, SettingError, Value};

use crate::client::{Client, Diffusion};
use crate::clock::{Timer, nanos};
use crate::config::{LoadConfig, SourceTotals, StartError, Template};
use crate::control::Control;
use crate::pacer::{Pacer, Part};
use crate::plan::Plan;
use crate::request::Prepared;
use crate::target::Target;
use crate::tls::TlsSetup;
use crate::worker::{Setup, Start, TIMER, WAKER, Worker};

/// Descriptors left for the rest of the process.
const DESCRIPTORS_SPARE: u64 = 64;
/// Descriptors of a thread besides its connections: poll, waker and timer.
const DESCRIPTORS_PER_THREAD: u64 = 3;

/// A load that runs on its own threads, `load-0` and up, until its plan ends, it is stopped or it is dropped.
#[derive(Debug)]
pub struct Load {
    setup: Arc<Setup>,
    collector: Collector<LoadDelta>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Checks everything that can be checked, then starts the threads.
    pub fn start(config: LoadConfig) -> Result<Self, StartError> {
        let LoadConfig { target, requests, plan, trust, request_timeout, paused } = config;
        // A plan that was put together by a program is held to the rules of one that was written.
        let plan: Plan = plan.to_string().parse()?;
        if request_timeout.is_zero() {
            return Err(StartError::Timeout);
        }
        let requests = prepare(&requests, &target)?;
        let tls = if target.is_tls() { Some(TlsSetup::new(&trust, target.host())?) } else { None };
        let addresses = resolve(&target, plan.sources)?;
        allow_descriptors(&plan)?;

        let mut polls = Vec::new();
        let mut wakers = Vec::new();
        for _ in 0..plan.threads {
            let poll = Poll::new().map_err(system("set up a poll"))?;
            wakers.push(Arc::new(Waker::new(poll.registry(), WAKER).map_err(system("set up a waker"))?));
            let timer = Timer::new(poll.registry(), TIMER).map_err(system("set up a timer"))?;
            polls.push((poll, timer));
        }
        let setup = Arc::new(Setup {
            addresses,
            requests,
            timeout_ns: nanos(request_timeout),
            keepalive: plan.keepalive,
            control: Control::new(&target, &plan, paused, wakers.clone()),
        });
        let mut load = Self { setup, collector: Collector::default(), threads: Vec::new() };
        for ((thread, (poll, timer)), waker) in (0..plan.threads).zip(polls).zip(wakers) {
            // Waking fails only when the thread's poll is gone with it.
            let reporter = load.collector.add_worker(move || drop(waker.wake()));
            let part = Part { thread, threads: plan.threads };
            let worker = Worker::new(Start {
                setup: Arc::clone(&load.setup),
                poll,
                timer,
                pacer: Pacer::new(plan.rate, plan.requests.map(|requests| part.of(requests)), part),
                duration_ns: plan.duration.map(nanos),
                clients: clients(&plan, part, tls.as_ref()),
                connections: part.of(plan.connections.into()) as usize,
                first_template: thread as usize % load.setup.requests.len(),
                reporter,
            });
            let spawned = std::thread::Builder::new().name(format!("load-{thread}")).spawn(|| worker.run());
            load.threads.push(spawned.map_err(system("start a thread"))?);
        }
        Ok(load)
    }

    /// The settings as they stand.
    pub fn settings(&self) -> Vec<Setting> {
        self.setup.control.settings()
    }

    /// Changes a setting, and gives it as it was before. `load.running` and `load.rate` act at once,
    /// `load.resume` on new connections.
    ///
    /// # Errors
    /// If there is no such setting, it cannot change while the load runs, or the value is not one for it.
    pub fn set(&self, name: &str, value: &Value) -> Result<Setting, SettingError> {
        self.setup.control.set(name, value)
    }

    /// Adds to `into` what all threads counted since the last call; waits up to `patience` for their answers.
    pub fn collect(&mut self, into: &mut LoadDelta, patience: Duration) {
        self.collector.collect(into, patience);
    }

    /// Asks the load to end: no more requests fall due, and those that have may still be sent and answered for up
    /// to 2 s. What is not answered then counts as unfinished, what is not sent as never sent.
    pub fn stop(&self) {
        self.setup.control.stop();
    }

    /// True once all threads have ended; one more [`Load::collect`] then gets the rest.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// What was done from each source address, in ascending order; complete once the load has finished.
    pub fn sources(&self) -> Vec<SourceTotals> {
        let sources = self.setup.control.sources();
        sources.into_iter().map(|(address, totals)| totals.at(address)).collect()
    }
}

impl Drop for Load {
    /// Ends the threads at once, and waits for them.
    fn drop(&mut self) {
        self.setup.control.abandon();
        for thread in self.threads.drain(..) {
            // A thread that panicked has said so already.
            let _ = thread.join();
        }
    }
}

fn prepare(templates: &[Template], target: &Target) -> Result<Vec<Prepared>, StartError> {
    if templates.is_empty() {
        return Ok(vec![Prepared::new(&Template::get(target.path()), target)?]);
    }
    templates.iter().map(|template| Prepared::new(template, target)).collect()
}

fn resolve(target: &Target, sources: Option<u32>) -> Result<Vec<SocketAddr>, StartError> {
    let host = || target.host().to_owned();
    let found = (target.host(), target.port()).to_socket_addrs();
    let mut addresses: Vec<_> = found.map_err(|error| StartError::Resolve { host: host(), error })?.collect();
    if let Some(sources) = sources {
        addresses.retain(|address| matches!(address.ip(), IpAddr::V4(v4) if v4.is_loopback()));
        if addresses.is_empty() {
            return Err(StartError::Sources { sources, host: host() });
        }
    }
    if addresses.is_empty() {
        let error = io::Error::new(io::ErrorKind::NotFound, "it has no address");
        return Err(StartError::Resolve { host: host(), error });
    }
    Ok(addresses)
}

/// Raises the soft limit on descriptors as far as the plan needs.
fn allow_descriptors(plan: &Plan) -> Result<(), StartError> {
    let open = std::fs::read_dir("/proc/self/fd").map_or(DESCRIPTORS_SPARE, |files| files.count() as u64);
    let threads = u64::from(plan.threads) * DESCRIPTORS_PER_THREAD;
    let needed = u64::from(plan.connections) + threads + open + DESCRIPTORS_SPARE;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let connections = plan.connections;
    if let Some(limit) = maximum.filter(|maximum| *maximum < needed) {
        return Err(StartError::Descriptors { connections, needed, limit });
    }
    setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum })
        .map_err(|error| system("raise the limit on file descriptors")(error.into()))
}

/// The virtual clients of one thread. With fewer sources than threads an address has a client on several.
fn clients(plan: &Plan, part: Part, tls: Option<&TlsSetup>) -> Vec<Client> {
    let sources = plan.sources.unwrap_or(1);
    let all = sources.max(part.threads);
    let mine = (part.thread..all).step_by(part.threads as usize);
    // They take their turns, so that none has more connections at once than this.
    let connections = (part.of(plan.connections.into()) as usize).div_ceil(mine.len().max(1));
    mine.map(|client| Client {
        bind: plan.sources.map(|_| source(client % sources)),
        tls: tls.map(|tls| tls.client(connections)),
        resume: Diffusion::new(client, all),
        address: None,
        totals: crate::client::Totals::default(),
    })
    .collect()
}

/// 127.0.0.2 and up.
fn source(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::LOCALHOST) + 1 + index)
}

fn system(what: &'static str) -> impl Fn(io::Error) -> StartError {
    move |error| StartError::System { what, error }
}
