//! Findings about several hosts that serve the same names: what no host shows by itself.
//!
//! They follow from the findings, clients and certificates of the hosts at the end of the records read.

use std::collections::{BTreeMap, BTreeSet};

use super::rules::certificates::{Expiry, when};
use super::rules::tickets;
use crate::insight::shares::{out_of, percent, share};
use crate::runs::findings::{Finding, FindingText, Severity};
use crate::runs::{ClientStats, Model, Run};
use records::delta::OTHER_VALUE;
use records::ids::ClientId;
use records::kinds::CertificateRecord;
use records::metrics::{ClientCounter, Counters, Dimension, ProxyLatency, UsageCounter};
use records::setting::Value;
use records::text::quantity::{counted, day};

/// Tickets that two hosts or more have refused a client from which on it moves between them. A restart costs it two at
/// most: that of the host that serves it meanwhile, and that of the restarted host afterwards.
const REFUSED_MIN: u64 = 3;
/// Share of the refused tickets that such clients offered. Restarts, forgotten keys and lost ones concern all clients, and
/// each of them once.
const MOVING_MIN: f64 = 0.5;
/// Addresses of such clients from which on they are clients. Fewer may be those of a balancer with many clients behind
/// each, of which a restart costs every one a ticket: then no ticket may be older than the hosts' keys.
const ADDRESSES_MIN: usize = 10;
/// The usual lifetime of tickets, in microseconds.
const LIFETIME_US: u64 = 43_200_000_000;
/// Microseconds before such a finding in which what it counts may have begun.
const COUNTED_US: u64 = 600_000_000;
/// Part of a certificate's lifetime that is left when its renewal is due, as ACME clients have it.
const DUE_PART: u64 = 3;
const DAY_S: u64 = 86_400;

/// The findings of a run, without what is said of several hosts, and those about all hosts of its model, by its clock.
pub fn findings_among_hosts(model: &Model, run: &Run) -> Vec<Finding> {
    let runs: Vec<_> = model.runs().map(|run| (run.hostname(), run)).collect();
    let together = findings(&runs);
    let shift_us = run.realtime_shift_us();
    let own = run.findings().into_iter().filter(|own| {
        let own = own.clone().shifted(shift_us);
        !together.iter().any(|all| all.explains(run.hostname(), &own))
    });
    own.chain(together.iter().map(|all| all.finding.clone().shifted(-shift_us))).collect()
}

/// A finding about several hosts.
pub(crate) struct FleetFinding<'a> {
    pub(crate) finding: Finding,
    /// The host's findings about refused tickets that it says all about: name and beginning.
    explained: Vec<(&'a str, u64)>,
}

impl FleetFinding<'_> {
    /// Whether it says all that a finding of a host does, whose times are `CLOCK_REALTIME` too.
    pub(crate) fn explains(&self, host: &str, finding: &Finding) -> bool {
        finding.id == tickets::KEYS_UNKNOWN.id && self.explained.contains(&(host, finding.since_us))
    }
}

/// The findings about hosts with these names together. Their times are `CLOCK_REALTIME` in microseconds.
pub(crate) fn findings<'a>(runs: &[(&'a str, &'a Run)]) -> Vec<FleetFinding<'a>> {
    if runs.iter().all(|(_, run)| run.hostname() == runs[0].1.hostname()) {
        return Vec::new();
    }
    let is_newest = |run: &Run| {
        let is_later = |other: &Run| {
            other.hostname() == run.hostname()
                && other.writer().is_same_account(run.writer())
                && other.began_realtime_us() > run.began_realtime_us()
        };
        !runs.iter().any(|(_, other)| is_later(other))
    };
    let mut hosts: Vec<_> = runs.iter().copied().filter(|(_, run)| is_newest(run)).collect();
    hosts.sort_unstable_by_key(|(name, _)| *name);
    let mut all = keys_not_shared(&hosts);
    all.extend(outdated(&hosts).map(|finding| FleetFinding { finding, explained: Vec::new() }));
    all
}

/// A host that refuses tickets.
struct RefusingHost<'a> {
    name: &'a str,
    run: &'a Run,
    /// From when on it may have refused them, by its own clock.
    from_us: u64,
    since_us: u64,
    /// When it no longer refused them, or its last record was made.
    until_us: u64,
    is_open: bool,
    /// The server names for which it refuses them, or else those of its certificates.
    names: BTreeSet<&'a str>,
}

impl<'a> RefusingHost<'a> {
    /// The host with its latest finding about refused tickets; `None` without one.
    fn of(&(name, run): &(&'a str, &'a Run)) -> Option<Self> {
        let finding = run.findings.all.iter().rev().find(|finding| finding.id == tickets::KEYS_UNKNOWN.id)?;
        let realtime_us = |us: u64| us.saturating_add_signed(run.realtime_shift_us());
        let until_us = realtime_us(finding.closed_us.unwrap_or_else(|| run.last_us()));
        let (since_us, is_open) = (realtime_us(finding.since_us), finding.closed_us.is_none());
        let from_us = finding.since_us.saturating_sub(COUNTED_US);
        Some(Self { name, run, from_us, since_us, until_us, is_open, names: names(run) })
    }

    fn counts(&self) -> (u64, u64) {
        self.run.tls().map_or((0, 0), |series| tickets::refused(series.totals()))
    }

    /// Whether it has had its keys for longer than a ticket is valid.
    fn outlives_tickets(&self) -> bool {
        let lifetime_us = match self.run.setting("proxy.ticket-lifetime").map(|setting| &setting.value) {
            Some(Value::Number(seconds)) => (seconds * 1e6) as u64,
            _ => LIFETIME_US,
        };
        let age_us = self.run.before_us().saturating_add(self.run.duration_us());
        self.run.other_terminator().is_none() && age_us > lifetime_us
    }

    /// Tickets that it has refused a client of late, as far as the client's records are kept. Packets do not say so of each
    /// client: these are its full handshakes with an offer, or on its first visit.
    fn refused(&self, client: &ClientStats) -> u64 {
        let before = client.totals_at(self.from_us).unwrap_or_default();
        let lately = client.totals().since(&before);
        if self.run.other_terminator().is_none() {
            return lately[ClientCounter::FullUnknownKey];
        }
        let full = lately[ClientCounter::HandshakesFull];
        full.saturating_sub(lately[ClientCounter::FullNoTicket]).saturating_sub(1)
    }

    /// CPU time of its full handshakes with refused tickets beyond resumed ones, and of all handshakes, in nanoseconds;
    /// `None` if that is not known.
    fn cost_ns(&self) -> Option<[f64; 2]> {
        let whole = self.run.proxy()?.whole();
        let [full, resumed] =
            [ProxyLatency::ComputeFull, ProxyLatency::ComputeResumed].map(|class| &whole[class]);
        let more_ns = (full.mean_ns()? - resumed.mean_ns()?).max(0.0);
        Some([self.counts().0 as f64 * more_ns, full.sum_ns() as f64 + resumed.sum_ns() as f64])
    }
}

/// The server names for which a run has refused sessions; without any, the names of its certificates.
fn names(run: &Run) -> BTreeSet<&str> {
    let other = [UsageCounter::FullNoTicket, UsageCounter::FullExpired, UsageCounter::FullMismatch];
    let is_refused = |(name, counters): &(&str, &Counters<UsageCounter>)| {
        ![OTHER_VALUE, "none"].contains(name) && counters[UsageCounter::HandshakesFull] > counters.sum(&other)
    };
    let asked: BTreeSet<_> =
        run.usage().of(Dimension::Name).filter(is_refused).map(|(name, _)| name).collect();
    if !asked.is_empty() {
        return asked;
    }
    run.certificates().served().flat_map(|record| record.names.split_whitespace()).collect()
}

/// Hosts that refuse each other's tickets, a finding for the hosts that serve a name.
fn keys_not_shared<'a>(hosts: &[(&'a str, &'a Run)]) -> Vec<FleetFinding<'a>> {
    let mut groups: Vec<Vec<RefusingHost<'_>>> = Vec::new();
    for host in hosts.iter().filter_map(RefusingHost::of) {
        let shares_names =
            |group: &Vec<RefusingHost<'_>>| group.iter().any(|other| !other.names.is_disjoint(&host.names));
        let (same, others) = groups.into_iter().partition(shares_names);
        groups = others;
        groups.push(same.into_iter().flatten().chain([host]).collect());
    }
    groups.into_iter().filter_map(not_shared).collect()
}

/// The finding about hosts that serve a name and refuse tickets at the same time, if clients move between them.
fn not_shared(mut group: Vec<RefusingHost<'_>>) -> Option<FleetFinding<'_>> {
    let last_since_us = group.iter().map(|host| host.since_us).max()?;
    group.retain(|host| host.until_us > last_since_us);
    if group.iter().all(|host| host.run.hostname() == group[0].run.hostname()) {
        return None;
    }
    let mut begins: Vec<u64> = group.iter().map(|host| host.since_us).collect();
    let mut ends: Vec<_> = group.iter().map(|host| (host.is_open, host.until_us)).collect();
    begins.sort_unstable();
    ends.sort_unstable_by(|a, b| b.cmp(a));
    // From when two of them refused tickets until fewer did.
    let (since_us, (is_open, until_us)) = (begins[1], ends[1]);
    let (mut moving, mut of_moving, mut of_all) = (0, 0_u64, 0_u64);
    for (hosts, n) in refused_clients(&group).into_values() {
        of_all = of_all.saturating_add(n);
        if hosts > 1 && n >= REFUSED_MIN {
            (moving, of_moving) = (moving + 1, of_moving.saturating_add(n));
        }
    }
    let are_known = moving >= ADDRESSES_MIN || group.iter().all(RefusingHost::outlives_tickets);
    if share(of_moving, of_all) < MOVING_MIN || !are_known {
        return None;
    }
    let closed_us = (!is_open).then_some(until_us);
    let (id, severity, text) = ("ticket-keys-not-shared", Severity::Warning, not_shared_text(&group, moving));
    let finding = Finding { id, run: None, severity, since_us, closed_us, text };
    Some(FleetFinding { finding, explained: group.iter().map(|host| (host.name, host.since_us)).collect() })
}

/// The clients with refused tickets: how many of the hosts refuse them, and how many tickets.
fn refused_clients(group: &[RefusingHost<'_>]) -> BTreeMap<ClientId, (usize, u64)> {
    let mut clients: BTreeMap<ClientId, (usize, u64)> = BTreeMap::new();
    for host in group {
        let named = host.run.clients().iter().filter(|client| client.id != ClientId::Other);
        let refused = named.map(|client| (client.id, host.refused(client))).filter(|(_, n)| *n > 0);
        for (id, n) in refused {
            let (hosts, all) = clients.entry(id).or_default();
            (*hosts, *all) = (*hosts + 1, all.saturating_add(n));
        }
    }
    clients
}

fn not_shared_text(group: &[RefusingHost<'_>], moving: usize) -> FindingText {
    let counts = group.iter().map(RefusingHost::counts);
    let (refused, offers) =
        counts.fold((0_u64, 0_u64), |sum, (n, of)| (sum.0.saturating_add(n), sum.1.saturating_add(of)));
    let title = format!(
        "{} refuse each other's session tickets: {} of those offered",
        counted(group.len() as u64, "host"),
        percent(share(refused, offers))
    );
    let costs = group.iter().filter_map(RefusingHost::cost_ns);
    let [cost_ns, all_ns] = costs.fold([0.0; 2], |sum, cost| [sum[0] + cost[0], sum[1] + cost[1]]);
    let text = FindingText::new(title)
        .figure("tickets refused, whole run", out_of(refused, offers))
        .figure("client addresses that several hosts refuse", moving);
    let text = if cost_ns > 0.0 {
        let cost = format!("{:.3} s, {} of handshake CPU", cost_ns / 1e9, percent(cost_ns / all_ns));
        text.figure("CPU time that resuming would have saved", cost)
    } else {
        text
    };
    let text = if group.iter().any(|host| host.run.other_terminator().is_none()) {
        text.advise(if group.iter().any(|host| host.run.setting("proxy.ticket-keys").is_some()) {
            "give all of them the same file of keys, --ticket-keys FILE; setting proxy.ticket-keys names the keys of each"
        } else {
            "share keys among them: the same --ticket-keys FILE on each"
        })
    } else {
        text.advise("give all of them the same keys: ssl_session_ticket_key FILE (nginx), tls-ticket-keys FILE (HAProxy)")
    };
    let whom = |host: &RefusingHost<'_>| {
        let is_shared =
            |name: &&&str| group.iter().any(|other| other.name != host.name && other.names.contains(**name));
        let mut names = host.names.iter().filter(is_shared);
        let name = names.next().unwrap_or(&"no name");
        let more = match names.count() {
            0 => String::new(),
            more => format!(" and {}", counted(more as u64, "more name")),
        };
        let (refused, offers) = host.counts();
        format!("{name}{more}: {} refused {} tickets", host.name, out_of(refused, offers))
    };
    text.about("proxy.ticket-keys").whom(group.iter().map(whom))
}

/// A certificate that a host serves from a file.
#[derive(Clone, Copy)]
struct HostCertificate<'a> {
    host: &'a str,
    run: &'a Run,
    record: &'a CertificateRecord,
}

impl HostCertificate<'_> {
    fn expiry(&self) -> Expiry {
        Expiry::at(self.record, self.now())
    }

    /// What its renewal has in common with it: first name and kind of key.
    fn kind(&self) -> (&str, &str) {
        (self.record.name(), &self.record.key)
    }

    /// The host's last moment, in seconds since 1970.
    fn now(&self) -> u64 {
        self.run.last_realtime_us() / 1_000_000
    }

    /// Whether another one of its kind is its renewal. A host that renews by itself does so later, and a certificate for each
    /// host may be of another day: then the renewal is due, or the other host has replaced this very certificate.
    fn is_renewed_by(&self, other: &Self) -> bool {
        let (old, new) = (self.record, other.record);
        let is_elsewhere = self.run.hostname() != other.run.hostname();
        let is_newer =
            new.not_after >= old.not_after.saturating_add(DAY_S) && new.not_before >= old.not_before;
        let lifetime = old.not_after.saturating_sub(old.not_before);
        let is_due = old.not_after.saturating_sub(self.now()) <= lifetime / DUE_PART;
        let has_replaced = || {
            let all = other.run.certificates().all().iter().map(|known| &known.record);
            all.into_iter().any(|record| record.is_replaced && record.fingerprint == old.fingerprint)
        };
        is_elsewhere && is_newer && old.renewal_at <= self.now() && (is_due || has_replaced())
    }
}

/// Certificates that a host serves and another one has renewed.
fn outdated(hosts: &[(&str, &Run)]) -> Option<Finding> {
    let mut all: Vec<HostCertificate<'_>> = Vec::new();
    for &(host, run) in hosts {
        let of_files = run.certificates().served().filter(|record| !record.file.is_empty());
        all.extend(of_files.map(|record| HostCertificate { host, run, record }));
    }
    let mut newest: BTreeMap<_, &HostCertificate<'_>> = BTreeMap::new();
    for one in &all {
        let newest = newest.entry(one.kind()).or_insert(one);
        if one.record.not_after > newest.record.not_after {
            *newest = one;
        }
    }
    let with_newest = all.iter().map(|old| (old, newest[&old.kind()]));
    let mut outdated: Vec<_> = with_newest.filter(|(old, new)| old.is_renewed_by(new)).collect();
    outdated.sort_by_key(|(old, _)| old.record.not_after);
    let (first, _) = outdated.first()?;
    let Expiry { days, severity } = first.expiry();
    let title = match days {
        ..0 => "A renewed certificate has not reached all hosts: the old one has expired".to_owned(),
        days => {
            format!("A renewed certificate has not reached all hosts: the old one expires {}", when(days))
        }
    };
    let line = |(old, new): &(&HostCertificate<'_>, &HostCertificate<'_>)| {
        let [ends, renewed] = [old, new].map(|one| day(one.record.not_after));
        format!("{}: until {ends} at {}, until {renewed} at {}", old.record.name(), old.host, new.host)
    };
    let since_s = outdated.iter().map(|(_, new)| new.record.since).min().unwrap_or(0);
    let text = FindingText::new(title)
        .figure("days left", days)
        .figure("certificates that are outdated on a host", outdated.len())
        .advise("copy the renewed files there; the proxy reads them again by itself")
        .about("proxy.certificate")
        .whom(outdated.iter().map(line));
    let (id, severity) = ("certificate-outdated", severity.unwrap_or(Severity::Info));
    Some(Finding {
        id,
        run: None,
        severity,
        since_us: since_s.saturating_mul(1_000_000),
        closed_us: None,
        text,
    })
}
