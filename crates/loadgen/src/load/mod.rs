//! Starts a load, and the handle on a running one.

mod check;

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use check::ResolvedLoad;
pub use check::probe;
pub(crate) use check::resolve;
use mio::{Poll, Waker};
use records::delta::{Collector, LoadDelta};
use records::setting::{Setting, SettingError, Value};

use crate::clock::{Timer, nanos};
use crate::config::{LoadConfig, LoadStartError, system};
use crate::control::{LoadControl, LoadSpan, SourceTotals, descriptors};
use crate::plan::Plan;
use crate::protocol::{Protocol, http1, http2};
use crate::schedule::{ThreadLoadState, ThreadPart};
use crate::script::{CLIENT_CONNECTIONS_MAX, ScriptClient, ScriptPart};
use crate::tls::{ClientTls, SessionReset};
use crate::worker::client::{EvenSampler, LoadClient};
use crate::worker::{LoadWorker, SharedSetup, TIMER, WAKER, WorkerConfig};

/// A load that runs on its own threads, `load-0` and up, until its plan ends, it is stopped or it is dropped.
#[derive(Debug)]
pub struct Load {
    setup: Arc<SharedSetup>,
    collector: Collector<LoadDelta>,
    threads: Vec<JoinHandle<()>>,
    forgetting: SessionReset,
}

/// The event loop of a thread.
struct EventLoop {
    poll: Poll,
    timer: Timer,
    waker: Arc<Waker>,
}

impl EventLoop {
    fn new() -> Result<Self, LoadStartError> {
        let poll = Poll::new().map_err(system("set up a poll"))?;
        let waker = Waker::new(poll.registry(), WAKER).map_err(system("set up a waker"))?;
        let timer = Timer::new(poll.registry(), TIMER).map_err(system("set up a timer"))?;
        Ok(Self { poll, timer, waker: Arc::new(waker) })
    }

    fn run(self, start: WorkerConfig, protocol: Protocol) {
        match protocol {
            Protocol::Http1 => LoadWorker::<http1::Http1Session>::new(start, self.poll, self.timer, 1).run(),
            Protocol::Http2 { streams } => {
                LoadWorker::<http2::Http2Session>::new(start, self.poll, self.timer, streams).run();
            }
        }
    }
}

impl Load {
    /// Checks everything that can be checked, then starts the threads.
    pub fn start(config: LoadConfig) -> Result<Self, LoadStartError> {
        let checked = ResolvedLoad::new(&config)?;
        let LoadConfig { plan, script, request_timeout, paused, .. } = config;
        descriptors::allow(plan.connections, plan.threads)?;

        let mut loops = Vec::new();
        for _ in 0..plan.threads {
            loops.push(EventLoop::new()?);
        }
        let wakers: Vec<_> = loops.iter().map(|event_loop| Arc::clone(&event_loop.waker)).collect();
        let ResolvedLoad { original, requests, sequence, addresses, tls } = checked;
        let setup = Arc::new(SharedSetup {
            addresses,
            sequence,
            timeout_ns: nanos(request_timeout),
            lifetime_ns: plan.lifetime.map(nanos),
            early_data: plan.early_data,
            control: LoadControl::new(original, requests, &plan, paused, wakers.clone()),
        });
        let forgetting = SessionReset::default();
        let scripts = script.map(|script| ScriptPart::of_threads(&script, plan.threads));
        let mut load = Self { setup, collector: Collector::default(), threads: Vec::new(), forgetting };
        for ((thread, event_loop), waker) in (0..plan.threads).zip(loops).zip(wakers) {
            let reporter = load.collector.add_worker(move || drop(waker.wake()));
            let part = ThreadPart { thread, threads: plan.threads };
            let script = scripts.as_ref().map(|parts| Arc::clone(&parts[thread as usize]));
            let protocol = script.as_ref().map_or(plan.protocol, |part| part.protocol);
            let new = |connections, profile: usize| {
                let (_, tls) = tls.get(profile)?;
                Some(tls.client(connections, plan.early_data, load.forgetting.clone()))
            };
            let start = WorkerConfig {
                setup: Arc::clone(&load.setup),
                load: ThreadLoadState::new(&plan, script.as_deref(), part),
                clients: match &script {
                    None => clients(&plan, part, |connections| new(connections, 0)),
                    Some(part) => clients_of(part, plan.sources, new),
                },
                script,
                part,
                reporter,
            };
            let name = format!("load-{thread}");
            let spawned =
                std::thread::Builder::new().name(name).spawn(move || event_loop.run(start, protocol));
            load.threads.push(spawned.map_err(system("start a thread"))?);
        }
        Ok(load)
    }

    pub fn settings(&self) -> Vec<Setting> {
        self.setup.control.settings()
    }

    /// Changes a setting, and returns the old one. A setting says when a change takes effect.
    ///
    /// # Errors
    /// If the setting does not exist, cannot change while the load runs, or does not accept the value.
    pub fn set(&self, name: &str, value: &Value) -> Result<Setting, SettingError> {
        self.setup.control.set(name, value)
    }

    /// Adds to `into` the counts of all threads since the last call; waits up to `patience` for their answers.
    pub fn collect(&mut self, into: &mut LoadDelta, patience: Duration) {
        self.collector.collect(into, patience);
    }

    /// Makes every client forget the sessions and tickets that it could resume: its next connection is a full handshake.
    pub fn forget_sessions(&self) {
        self.forgetting.ask();
    }

    /// Asks the load to end: no more requests fall due, and due requests may still be sent and answered for up to 2 s.
    /// After that, requests without an answer count as unfinished, and requests that were not sent as never sent.
    pub fn stop(&self) {
        self.setup.control.stop();
    }

    /// How long the load has run and measured, as of the last [`Load::collect`].
    pub fn measured(&self) -> MeasuredTime {
        let LoadSpan { ran, sent_ns, done_ns } = self.setup.control.span();
        // Moments after the end of the run count too.
        let at = |moment_ns: u64| (ran.for_ns + moment_ns).saturating_sub(ran.until_ns);
        let scheduled_ns = if self.setup.control.is_open_loop() { ran.for_ns } else { 0 };
        MeasuredTime {
            scheduled: Duration::from_nanos(scheduled_ns),
            sending: Duration::from_nanos(at(sent_ns)),
            whole: Duration::from_nanos(ran.for_ns.max(at(done_ns))),
        }
    }

    /// True once all threads have ended; one more [`Load::collect`] then gets the rest.
    pub fn is_finished(&self) -> bool {
        self.threads.iter().all(JoinHandle::is_finished)
    }

    /// Totals by source address, in ascending order; complete once the load has finished.
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
            // A thread that panicked has already reported it.
            let _ = thread.join();
        }
    }
}

/// How long a load has run after its warm-up. Pauses are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MeasuredTime {
    /// Length of the schedule up to now; zero in a closed loop. A schedule with a number of requests ends when one
    /// more would be due.
    pub scheduled: Duration,
    /// From the start to the last request sent.
    pub sending: Duration,
    /// From the start to the end of the schedule, or to the last answer if that came later; in a closed loop, to the
    /// end of the last request.
    pub whole: Duration,
}

/// The virtual clients of one thread; `tls` makes that of a client with so many connections at a time. With fewer sources
/// than threads, several threads have a client for an address.
fn clients(plan: &Plan, part: ThreadPart, tls: impl Fn(usize) -> Option<ClientTls>) -> Vec<LoadClient> {
    let sources = plan.sources.unwrap_or(1);
    let all = sources.max(part.threads);
    let mine = (part.thread..all).step_by(part.threads as usize);
    // Clients take turns, so none has more connections than this at a time.
    let connections = (part.of(plan.connections.into()) as usize).div_ceil(mine.len().max(1));
    let bind = |client| plan.sources.map(|_| source(client % sources));
    mine.map(|client| LoadClient::new(bind(client), tls(connections), EvenSampler::new(client, all)))
        .collect()
}

/// The clients of a part of a script; `tls` makes that of a client with so many connections and this profile.
fn clients_of(
    part: &ScriptPart,
    sources: Option<u32>,
    tls: impl Fn(usize, usize) -> Option<ClientTls>,
) -> Vec<LoadClient> {
    let all = part.script.clients.len() as u32;
    let of = |&client: &u32| {
        let ScriptClient { source: address, profile } = part.script.clients[client as usize];
        let bind = sources.map(|sources| source(address % sources));
        let tls = tls(CLIENT_CONNECTIONS_MAX, profile as usize);
        LoadClient::new(bind, tls, EvenSampler::new(client, all))
    };
    part.clients.iter().map(of).collect()
}

/// 127.0.0.2 and up.
fn source(index: u32) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::LOCALHOST) + 1 + index)
}
