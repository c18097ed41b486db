//! Findings about resources that the kernel or the hypervisor withholds.

use super::rule::{FindingContext, HysteresisLimit, Rule};
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{FindingText, HostCounts, Severity};
use records::histogram::SparseHistogram;
use records::metrics::{HostCounter, ProxyCounter, ProxyLatency};
use records::setting::Value;
use records::text::quantity::{counted, grouped};

pub(super) const ACCEPT_ERRORS: Rule =
    Rule { id: "accept-errors", judge: accept_errors, text: accept_errors_text };
pub(super) const BACKLOG_OVERFLOW: Rule =
    Rule { id: "backlog-overflow", judge: overflow, text: overflow_text };
pub(super) const DESCRIPTORS: Rule = Rule { id: "descriptors", judge: descriptors, text: descriptors_text };
pub(super) const CPU_THROTTLED: Rule = Rule { id: "cpu-throttled", judge: throttled, text: throttled_text };
pub(super) const WORKERS_UNEVEN: Rule = Rule { id: "workers-uneven", judge: uneven, text: uneven_text };
pub(super) const CPU_STOLEN: Rule = Rule { id: "cpu-stolen", judge: stolen, text: stolen_text };
pub(super) const OBSERVED_ENDED: Rule =
    Rule { id: "observed-ended", judge: observed_ended, text: observed_ended_text };

const RAISE: &str = "raise the bound (LimitNOFILE= of the service, or ulimit -n), or lower --connections-max";

fn accept_errors(context: &FindingContext<'_>) -> Option<Severity> {
    (context.minute().proxy[ProxyCounter::AcceptErrors] > 0).then_some(Severity::Critical)
}

fn accept_errors_text(context: &FindingContext<'_>) -> FindingText {
    let n = context.minute().proxy[ProxyCounter::AcceptErrors];
    let (open, max) = open_descriptors(context);
    let times = counted(n, "time");
    let text = FindingText::new(format!("Accepting connections failed {times} in the last minute"))
        .figure("failed attempts, last minute", n)
        .figure("open descriptors", format!("{open}, at most {max}"))
        .about("proxy.connections-max");
    if share(open, max) >= DESCRIPTORS_FULL.open {
        text.advise(RAISE)
    } else {
        text.advise("the notices name the error; connections wait in the backlog until it is over")
    }
}

/// Whether the observed process had threads, and has none.
fn observed_ended(context: &FindingContext<'_>) -> Option<Severity> {
    let host = context.run.host()?;
    (host.observed_threads_max > 0 && host.observed_threads == 0).then_some(Severity::Warning)
}

fn observed_ended_text(context: &FindingContext<'_>) -> FindingText {
    let pid = context.run.host().map_or(0, |host| host.observed_pid);
    FindingText::new(format!("The observed process {pid} has ended"))
        .figure("threads of all observed processes", 0)
        .advise("observe anew: processes are those of the start, also of a unit")
}

fn overflow(context: &FindingContext<'_>) -> Option<Severity> {
    let host = &context.minute().host;
    if dropped(host) == 0 {
        return None;
    }
    // The kernel counts all sockets of the machine: without a sign that these are ours, they may be a stranger's.
    let is_ours = own_drops(host) > 0 || connect_p99_ns(context).is_some_and(|ns| ns >= SYN_RESENT_NS);
    Some(if is_ours { Severity::Warning } else { Severity::Info })
}

/// Each overflow is a drop too, where the kernel counts both.
fn dropped(host: &HostCounts) -> u64 {
    host.withheld[HostCounter::ListenOverflows].max(host.withheld[HostCounter::ListenDrops])
}

/// Drops of the sockets that the proxy itself listens on.
fn own_drops(host: &HostCounts) -> u64 {
    host.withheld[HostCounter::OwnListenDrops]
}

/// Shorter than the wait before a SYN is sent again (1 s, RFC 6298 section 2), by the error of times in a histogram.
const SYN_RESENT_NS: u64 = 990_000_000;

/// The 99th percentile of connecting to upstreams in the last minute, in nanoseconds.
fn connect_p99_ns(context: &FindingContext<'_>) -> Option<u64> {
    let proxy = context.run.proxy()?;
    let from_us = proxy.last_us().saturating_sub(60_000_000);
    let minute = proxy.intervals().filter(|interval| interval.start_us >= from_us);
    SparseHistogram::merged(minute.map(|interval| interval.latency(ProxyLatency::Connect))).quantile_ns(0.99)
}

fn overflow_text(context: &FindingContext<'_>) -> FindingText {
    let host = &context.minute().host;
    let what = counted(dropped(host), "connection");
    let dropped = format!("The kernel dropped {what} before they could be accepted, in the last minute");
    let connect_ns = connect_p99_ns(context).filter(|ns| *ns >= SYN_RESENT_NS);
    let own = own_drops(host);
    let whose = match connect_ns {
        _ if own > 0 => format!("{} of them were for this proxy", grouped(own)),
        Some(_) => "most likely those to the upstream, whose backlog was full".to_owned(),
        None => "none that it tells of were for this proxy".to_owned(),
    };
    let text = FindingText::new(format!("{dropped}; {whose}"))
        .figure("of this proxy's own listening sockets, last minute", own)
        .figure("backlog full (ListenOverflows), last minute", host.withheld[HostCounter::ListenOverflows])
        .figure("dropped in all (ListenDrops), last minute", host.withheld[HostCounter::ListenDrops])
        .figure("counted over", "all listening sockets of the network namespace");
    if own > 0 {
        return text
            .advise(
                "the workers accept too slowly: give them more CPU, or start more of them; each one's backlog is \
                 4096, or net.core.somaxconn if that is less",
            )
            .about("proxy.workers");
    }
    let Some(connect_ns) = connect_ns else {
        return text.advise("ss -ltn tells whose backlog is full: its Recv-Q is about its Send-Q");
    };
    let upstream = context.run.began().map_or("", |began| began.upstream.as_str());
    // Which of several it was is unknown, and the header of a log names its terminator here.
    let is_one = context.run.other_terminator().is_none() && !upstream.is_empty() && !upstream.contains(' ');
    text.figure("connecting to the upstream, 99th percentile, last minute", format!("{:.2} s", connect_ns as f64 / 1e9))
        .figure("the kernel sends a dropped SYN again after", "1 s")
        .advise(
            "raise the upstream's backlog, which is the argument of its listen(), and net.core.somaxconn, which bounds \
             it; or let the upstream accept sooner",
        )
        .about("proxy.upstream")
        .whom(is_one.then(|| upstream.to_owned()))
}

/// The share of the descriptors from which on there are hardly any left.
const DESCRIPTORS_FULL: HysteresisLimit = HysteresisLimit { open: 0.95, close: 0.9 };

/// Open descriptors, and the most that there may be.
fn open_descriptors(context: &FindingContext<'_>) -> (u64, u64) {
    context.run.host().map_or((0, 0), |host| (host.descriptors, host.descriptors_max))
}

fn descriptors(context: &FindingContext<'_>) -> Option<Severity> {
    let near = (Severity::Warning, HysteresisLimit { open: 0.8, close: 0.7 });
    context.graded(open_descriptors(context), 1.0, &[near, (Severity::Critical, DESCRIPTORS_FULL)])
}

fn descriptors_text(context: &FindingContext<'_>) -> FindingText {
    let (open, max) = open_descriptors(context);
    FindingText::new(format!(
        "{} of the descriptors that the process may have are open",
        percent(share(open, max))
    ))
    .figure("open descriptors", out_of(open, max))
    .figure("open connections", context.run.proxy_open())
    .advise(RAISE)
    .about("proxy.connections-max")
}

/// The least withheld time in a minute that is reported, in microseconds.
const WITHHELD_US_MIN: f64 = 500_000.0;

fn throttled(context: &FindingContext<'_>) -> Option<Severity> {
    let limits =
        [(Severity::Warning, HysteresisLimit::at(0.05)), (Severity::Critical, HysteresisLimit::at(0.5))];
    let minute = context.minute();
    context.graded(
        (minute.host.withheld[HostCounter::CpuThrottled], minute.span_us),
        WITHHELD_US_MIN,
        &limits,
    )
}

fn throttled_text(context: &FindingContext<'_>) -> FindingText {
    let minute = context.minute();
    let seconds = minute.host.withheld[HostCounter::CpuThrottled] as f64 / 1e6;
    let title = format!(
        "The CPU bound of the cgroup kept threads from running for {seconds:.1} s in the last minute"
    );
    FindingText::new(title)
        .figure(
            "throttled, summed over the cores, last minute",
            format!("{seconds:.1} s in {:.1} s", minute.span_us as f64 / 1e6),
        )
        .advise("raise CPUQuota= of the service, or the CPU limit of the container")
}

/// Stolen CPU time, and the CPU time of all CPUs of the machine, in the last minute. For records without the number of
/// CPUs, the cores that the process may use count.
fn stolen_of(context: &FindingContext<'_>) -> (u64, u64) {
    let minute = context.minute();
    let machine = context.run.host().map_or(0, |host| host.machine_cpus);
    let cores = context.run.began().map_or(1, |began| began.cores);
    let cpus = if machine > 0 { machine } else { cores.max(1) };
    (minute.host.withheld[HostCounter::CpuStolen], minute.span_us.saturating_mul(cpus))
}

fn stolen(context: &FindingContext<'_>) -> Option<Severity> {
    let limits =
        [(Severity::Warning, HysteresisLimit::at(0.05)), (Severity::Critical, HysteresisLimit::at(0.3))];
    context.graded(stolen_of(context), WITHHELD_US_MIN, &limits)
}

fn stolen_text(context: &FindingContext<'_>) -> FindingText {
    let (stolen_us, whole_us) = stolen_of(context);
    let seconds = |us: u64| us as f64 / 1e6;
    FindingText::new(format!(
        "The hypervisor gives {} of the CPU time to others",
        percent(share(stolen_us, whole_us))
    ))
    .figure("stolen, last minute", format!("{:.1} s of {:.1} s", seconds(stolen_us), seconds(whole_us)))
    .advise("latencies include this waiting: move to a less busy host, or one with cores of its own")
}

/// The distribution of the proxy's CPU time over its workers in the last minute.
struct CpuSpread {
    workers: u64,
    /// CPU time of the busiest worker, and of all, in microseconds.
    busiest_us: u64,
    all_us: u64,
    span_us: u64,
}

impl CpuSpread {
    fn of(context: &FindingContext<'_>) -> Option<Self> {
        let workers = match context.run.setting("proxy.workers")?.value {
            Value::Number(workers) => workers as u64,
            Value::Flag(_) | Value::Text(_) => return None,
        };
        let minute = context.minute();
        let (busiest_us, all_us) = (minute.host.peak_worker_cpu_us, minute.host.proxy_cpu_us);
        Some(Self { workers, busiest_us, all_us, span_us: minute.span_us })
    }

    /// 0 if all workers do the same, 1 if one does everything.
    fn unevenness(&self) -> f64 {
        let even = 1.0 / self.workers.max(2) as f64;
        (share(self.busiest_us, self.all_us) - even) / (1.0 - even)
    }

    /// Cores that the busiest worker keeps busy.
    fn busiest_cores(&self) -> f64 {
        share(self.busiest_us, self.span_us)
    }
}

/// The shortest time that is evaluated: shorter imbalances do not matter.
const UNEVEN_SPAN_US_MIN: u64 = 30_000_000;
const UNEVEN: HysteresisLimit = HysteresisLimit { open: 0.6, close: 0.4 };
/// A less busy worker delays no client.
const BUSY_CORES: HysteresisLimit = HysteresisLimit::at(0.5);

fn uneven(context: &FindingContext<'_>) -> Option<Severity> {
    let spread = CpuSpread::of(context)?;
    let severity = Severity::Warning;
    let is_so = spread.workers > 1
        && spread.span_us >= UNEVEN_SPAN_US_MIN
        && context.passes(severity, spread.unevenness(), UNEVEN)
        && context.passes(severity, spread.busiest_cores(), BUSY_CORES);
    is_so.then_some(severity)
}

fn uneven_text(context: &FindingContext<'_>) -> FindingText {
    let Some(spread) = CpuSpread::of(context) else {
        return FindingText::new("The busiest worker does most of the work");
    };
    let CpuSpread { workers, busiest_us, all_us, .. } = spread;
    let title = format!(
        "The busiest of {workers} workers uses {} of the proxy's CPU",
        percent(share(busiest_us, all_us))
    );
    FindingText::new(title)
        .figure("the busiest worker, last minute", format!("{} of a core", percent(spread.busiest_cores())))
        .figure("an even share of the proxy's CPU", percent(1.0 / workers.max(1) as f64))
        .figure("open connections", context.run.proxy_open())
        .advise("a connection stays with the worker that accepted it: have clients open more of them, or close long ones now and then")
        .about("proxy.workers")
}
