//! What kernel and hypervisor withhold.

use super::sight::{Limit, Sight};
use super::{Rule, Severity, Told};
use crate::insight::{counted, percent, share};
use crate::metrics::ProxyCounter;

pub(super) const ACCEPT_ERRORS: Rule =
    Rule { id: "accept-errors", judge: accept_errors, tell: tell_accept_errors };
pub(super) const BACKLOG_OVERFLOW: Rule =
    Rule { id: "backlog-overflow", judge: overflow, tell: tell_overflow };
pub(super) const DESCRIPTORS: Rule = Rule { id: "descriptors", judge: descriptors, tell: tell_descriptors };
pub(super) const CPU_THROTTLED: Rule = Rule { id: "cpu-throttled", judge: throttled, tell: tell_throttled };
pub(super) const CPU_STOLEN: Rule = Rule { id: "cpu-stolen", judge: stolen, tell: tell_stolen };

const RAISE: &str = "raise the bound (LimitNOFILE= of the service, or ulimit -n), or lower --connections-max";

fn accept_errors(sight: &Sight<'_>) -> Option<Severity> {
    (sight.minute().proxy[ProxyCounter::AcceptErrors] > 0).then_some(Severity::Critical)
}

fn tell_accept_errors(sight: &Sight<'_>) -> Told {
    let n = sight.minute().proxy[ProxyCounter::AcceptErrors];
    let (open, max) = open_descriptors(sight);
    let times = counted(n, "time");
    Told::new(format!(
        "Accepting connections failed {times} in the last minute, mostly for lack of descriptors"
    ))
    .figure("failed attempts, last minute", n)
    .figure("open descriptors", format!("{open}, at most {max}"))
    .advise(RAISE)
    .about("proxy.connections-max")
}

fn overflow(sight: &Sight<'_>) -> Option<Severity> {
    let host = sight.minute().host;
    (host.listen_overflows.max(host.listen_drops) > 0).then_some(Severity::Warning)
}

fn tell_overflow(sight: &Sight<'_>) -> Told {
    let host = sight.minute().host;
    let n = host.listen_overflows.max(host.listen_drops);
    let what = counted(n, "connection");
    Told::new(format!("The kernel dropped {what} before they could be accepted, in the last minute"))
        .figure("backlog full (ListenOverflows), last minute", host.listen_overflows)
        .figure("dropped in all (ListenDrops), last minute", host.listen_drops)
        .figure("counted over", "all listening sockets of the network namespace")
        .advise("raise net.core.somaxconn and the backlog, or give the proxy more workers (--workers)")
        .about("proxy.workers")
}

/// Open descriptors, and the most that there may be.
fn open_descriptors(sight: &Sight<'_>) -> (u64, u64) {
    sight.run.host().map_or((0, 0), |host| (host.descriptors, host.descriptors_max))
}

fn descriptors(sight: &Sight<'_>) -> Option<Severity> {
    let near = (Severity::Warning, Limit { open: 0.8, close: 0.7 });
    let full = (Severity::Critical, Limit { open: 0.95, close: 0.9 });
    sight.graded(open_descriptors(sight), 1.0, &[near, full])
}

fn tell_descriptors(sight: &Sight<'_>) -> Told {
    let (open, max) = open_descriptors(sight);
    Told::new(format!("{} of the descriptors that the process may have are open", percent(share(open, max))))
        .figure("open descriptors", format!("{open} of {max}"))
        .figure("open connections", sight.run.proxy_open())
        .advise(RAISE)
        .about("proxy.connections-max")
}

/// Below this much withheld in a minute, nothing is said, in microseconds.
const WITHHELD_US_MIN: f64 = 500_000.0;

fn throttled(sight: &Sight<'_>) -> Option<Severity> {
    let limits = [(Severity::Warning, Limit::at(0.05)), (Severity::Critical, Limit::at(0.5))];
    let minute = sight.minute();
    sight.graded((minute.host.cpu_throttled_us, minute.span_us), WITHHELD_US_MIN, &limits)
}

fn tell_throttled(sight: &Sight<'_>) -> Told {
    let minute = sight.minute();
    let seconds = minute.host.cpu_throttled_us as f64 / 1e6;
    let title = format!(
        "The CPU bound of the cgroup kept threads from running for {seconds:.1} s of the last minute"
    );
    Told::new(title)
        .figure("throttled, last minute", format!("{seconds:.1} s of {:.1} s", minute.span_us as f64 / 1e6))
        .advise("raise CPUQuota= of the service, or the CPU limit of the container")
}

/// CPU time of the cores that the process may use, in the last minute.
fn stolen_of(sight: &Sight<'_>) -> (u64, u64) {
    let minute = sight.minute();
    let cores = sight.run.began().map_or(1, |began| began.cores.max(1));
    (minute.host.cpu_stolen_us, minute.span_us.saturating_mul(cores))
}

fn stolen(sight: &Sight<'_>) -> Option<Severity> {
    let limits = [(Severity::Warning, Limit::at(0.05)), (Severity::Critical, Limit::at(0.3))];
    sight.graded(stolen_of(sight), WITHHELD_US_MIN, &limits)
}

fn tell_stolen(sight: &Sight<'_>) -> Told {
    let (stolen_us, whole_us) = stolen_of(sight);
    let seconds = |us: u64| us as f64 / 1e6;
    Told::new(format!(
        "The hypervisor gives {} of the CPU time to others",
        percent(share(stolen_us, whole_us))
    ))
    .figure("stolen, last minute", format!("{:.1} s of {:.1} s", seconds(stolen_us), seconds(whole_us)))
    .advise("latencies include this waiting: move to a less busy host, or one with cores of its own")
}
