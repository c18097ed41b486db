//! The savings of a change: estimates of handshake CPU time, from measurements of a run and a calibration of its
//! machine.
//!
//! The run has measured the cost of the present configuration. A calibrated cost is used only for its replacement.

mod mix;

use std::fmt;
use std::ops::{Mul, Sub};

use crate::runs::Run;
pub use mix::{DurationStats, HandshakeMix};
use records::kinds::{Cost, FULL, HYBRID, HandshakeCosts, RESUMED};

/// Share of handshakes that resume, after the change.
const RESUMED_TARGET: f64 = 0.8;
/// Requests on each connection, after the change.
const REQUESTS_TARGET: f64 = 10.0;
/// Handshakes that an estimate needs.
const HANDSHAKES_MIN: u64 = 30;
/// Share of a full handshake's rest by which the rest of a resumed one may differ from its calibrated share of it: a busy
/// machine need not slow both alike.
const REST_ERROR: f64 = 0.1;
/// How much more a signature may take on a busy machine than alone.
const BUSY_SIGNATURE: f64 = 1.5;
/// Standard errors on either side of a mean in which it lies in 95 of 100 cases.
const STANDARD_ERRORS: f64 = 1.96;

/// A number with the interval in which it is expected.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UncertainValue {
    /// The least that is plausible.
    pub low: f64,
    /// The most likely.
    pub mid: f64,
    /// The most that is plausible.
    pub high: f64,
}

/// A change that would save CPU time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SavingChange {
    /// An ECDSA P-256 certificate instead of an RSA one.
    EcdsaCertificate,
    /// X25519 instead of X25519MLKEM768, which gives up the protection from a later quantum computer.
    ClassicalGroup,
    /// 80 % of handshakes resumed.
    ResumeMore,
    /// 10 requests on each connection.
    KeepConnections,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HowTo {
    /// By a setting that changes while the program runs.
    Setting {
        /// Its dotted name.
        name: String,
        /// Its value after the change, where the change sets it to one.
        value: Option<String>,
        /// An experiment that checks the estimate, in the words of `--ab`; `None` where the load is not ours.
        experiment: Option<String>,
    },
    /// A restart of the program, or a change of the clients.
    Otherwise(&'static str),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Saving {
    pub change: SavingChange,
    /// CPU time saved, in cores: CPU seconds a second.
    pub cores: UncertainValue,
    /// CPU time saved, as a share of the CPU time of all handshakes.
    pub share: UncertainValue,
    pub how: HowTo,
}

/// The savings of each change, if the traffic stays as it was over the last `span_us` microseconds. A change that does
/// not apply, or with too little data, is omitted.
pub fn savings(run: &Run, costs: &HandshakeCosts, span_us: u64) -> Vec<Saving> {
    let Some(mix) = HandshakeMix::of(run, span_us) else { return Vec::new() };
    if mix.handshakes() < HANDSHAKES_MIN {
        return Vec::new();
    }
    let changes = [
        SavingChange::EcdsaCertificate,
        SavingChange::ClassicalGroup,
        SavingChange::ResumeMore,
        SavingChange::KeepConnections,
    ];
    let saving = |change: SavingChange| {
        let saved_ns = change.saved_ns(&mix, costs)?;
        let all_ns = mix.full.sum_ns() + mix.resumed.sum_ns();
        (saved_ns.mid > 0.0 && all_ns > 0.0).then(|| Saving {
            change,
            cores: saved_ns * (1e-9 / mix.seconds),
            share: saved_ns * (1.0 / all_ns),
            how: change.how(run),
        })
    };
    changes.into_iter().filter_map(saving).collect()
}

impl SavingChange {
    /// CPU time that it would have saved, in nanoseconds; `None` if it does not apply, or too little is known.
    pub fn saved_ns(self, mix: &HandshakeMix, costs: &HandshakeCosts) -> Option<UncertainValue> {
        match self {
            Self::EcdsaCertificate => ecdsa_saves_ns(mix, costs),
            Self::ClassicalGroup => group_saves_ns(mix, costs),
            Self::ResumeMore => resuming_saves_ns(mix, costs),
            Self::KeepConnections => keeping_saves_ns(mix),
        }
    }

    fn how(self, run: &Run) -> HowTo {
        match self {
            Self::EcdsaCertificate => HowTo::Otherwise(
                "restart with an ECDSA certificate beside the RSA one (--cert and --key, each twice); if it has one, these clients cannot use it",
            ),
            Self::ClassicalGroup => group_setting(run),
            Self::ResumeMore => load_setting(run).unwrap_or(HowTo::Otherwise(
                "see why handshakes are full: ticket-lifetime, tickets and clients' caches decide",
            )),
            Self::KeepConnections => HowTo::Otherwise(if run.http().is_some() {
                "let clients keep their connections: raise keep-alive-timeout, requests-per-connection, and the clients' own"
            } else {
                "let clients keep their connections: raise idle-timeout, and the clients' keep-alive"
            }),
        }
    }
}

impl fmt::Display for SavingChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::EcdsaCertificate => "ECDSA certificate instead of RSA",
            Self::ClassicalGroup => "X25519 instead of X25519MLKEM768",
            Self::ResumeMore => "80 % of handshakes resumed",
            Self::KeepConnections => "10 requests per connection",
        })
    }
}

/// All RSA signatures cost as much as ECDSA ones.
fn ecdsa_saves_ns(mix: &HandshakeMix, costs: &HandshakeCosts) -> Option<UncertainValue> {
    let rsa = mix.rsa_share()?;
    if rsa == 0.0 || mix.signature.n == 0 {
        return None;
    }
    let signatures = mix.signature.n as f64;
    let UncertainValue { low, mid, high } = costs.signature.of("ECDSA P-256")?.into();
    let ecdsa = UncertainValue { low, mid, high: high * BUSY_SIGNATURE };
    // The other signatures are far cheaper than RSA's, so their mix does not matter.
    let rsa_ns = mix.signature.sum() - ecdsa * (signatures * (1.0 - rsa));
    Some(rsa_ns - ecdsa * (signatures * rsa))
}

/// All hybrid key exchanges cost as much as their classical part alone.
fn group_saves_ns(mix: &HandshakeMix, costs: &HandshakeCosts) -> Option<UncertainValue> {
    let hybrids = mix.exchanges_by_group.iter().find(|(name, _)| *name == HYBRID).map_or(0, |(_, n)| *n);
    if hybrids == 0 {
        return None;
    }
    let cost = |name: &str| costs.key_exchange.of(name);
    // Under load an operation costs more than alone. All groups are scaled to the measured cost.
    let scale = mix.key_exchange_scale(|group| cost(group).map(|cost| cost.median_ns as f64));
    let (from, to) = (UncertainValue::from(cost(HYBRID)?), UncertainValue::from(cost(CLASSICAL)?));
    Some((from - to + longer_messages(costs)) * (hybrids as f64 * scale))
}

/// The cost of the hybrid's longer messages besides the key exchange.
fn longer_messages(costs: &HandshakeCosts) -> UncertainValue {
    let rest = |name: &str| costs.rest.of(name).map(UncertainValue::from);
    let (hybrid, classical) = (rest(&format!("TLSv1.3 {FULL} {HYBRID}")), rest(&format!("TLSv1.3 {FULL}")));
    let Some((hybrid, classical)) = hybrid.zip(classical) else { return UncertainValue::default() };
    let UncertainValue { low, mid, high } = hybrid - classical;
    // Longer messages cannot cost less: such a difference is the machine's disturbance.
    UncertainValue { low: low.max(0.0), mid: mid.max(0.0), high: high.max(0.0) }
}

/// The classical group, as costs and counters have it.
const CLASSICAL: &str = "x25519";

/// Full handshakes become resumed ones.
fn resuming_saves_ns(mix: &HandshakeMix, costs: &HandshakeCosts) -> Option<UncertainValue> {
    let handshakes = mix.handshakes() as f64;
    let more = RESUMED_TARGET - mix.resumed.n as f64 / handshakes;
    let each_ns = if mix.resumed.n >= HANDSHAKES_MIN {
        mix.full.mean() - mix.resumed.mean()
    } else {
        mix.resuming_spares_ns(costs)?
    };
    (more > 0.0 && mix.full.n > 0).then(|| each_ns * (more * handshakes))
}

/// The same requests come on fewer connections.
fn keeping_saves_ns(mix: &HandshakeMix) -> Option<UncertainValue> {
    let (requests, handshakes) = (mix.requests as f64, mix.handshakes() as f64);
    let spared = 1.0 - requests / REQUESTS_TARGET / handshakes;
    (mix.requests > 0 && spared > 0.0).then(|| (mix.full.sum() + mix.resumed.sum()) * spared)
}

fn group_setting(run: &Run) -> HowTo {
    const NAME: &str = "proxy.groups";
    let Some(setting) = run.setting(NAME) else {
        return HowTo::Otherwise("restart with --groups x25519,secp256r1,secp384r1");
    };
    let before = setting.value.to_string();
    let without: Vec<&str> = before.split(',').filter(|group| !group.eq_ignore_ascii_case(HYBRID)).collect();
    let after = without.join(",");
    let experiment = (!after.is_empty()).then(|| format!("{NAME}={before}..{after}"));
    HowTo::Setting { name: NAME.to_owned(), value: (!after.is_empty()).then_some(after), experiment }
}

/// The load's share of resumed sessions, if the load is ours.
fn load_setting(run: &Run) -> Option<HowTo> {
    const NAME: &str = "load.resume";
    let before = run.setting(NAME)?.value.to_string();
    let target = RESUMED_TARGET * 100.0;
    let experiment = Some(format!("{NAME}={before}..{target}"));
    Some(HowTo::Setting { name: NAME.to_owned(), value: Some(target.to_string()), experiment })
}

impl HandshakeMix {
    /// What a full handshake would not have needed as a resumed one, if too few of these were measured; `None` if its parts
    /// were not measured either.
    fn resuming_spares_ns(&self, costs: &HandshakeCosts) -> Option<UncertainValue> {
        let scale = self.rest_scale(costs)?;
        let rest =
            |kind: &str| costs.rest.of(&format!("{} {kind}", self.version())).map(UncertainValue::from);
        let UncertainValue { low, mid, high } = (rest(FULL)? - rest(RESUMED)?) * scale;
        let error = REST_ERROR * scale * rest(FULL)?.mid;
        let rest = UncertainValue { low: low - error, mid, high: high + error };
        // A session of TLS 1.2 resumes without a key exchange.
        let exchange =
            if self.is_mostly_tls13 { UncertainValue::default() } else { self.key_exchange.mean() };
        Some(self.signature.mean() + exchange + rest)
    }
}

impl From<Cost> for UncertainValue {
    fn from(Cost { low_ns, median_ns, high_ns }: Cost) -> Self {
        Self { low: low_ns as f64, mid: median_ns as f64, high: high_ns as f64 }
    }
}

impl std::ops::Add for UncertainValue {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { low: self.low + other.low, mid: self.mid + other.mid, high: self.high + other.high }
    }
}

impl Sub for UncertainValue {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { low: self.low - other.high, mid: self.mid - other.mid, high: self.high - other.low }
    }
}

/// By a factor that is not negative.
impl Mul<f64> for UncertainValue {
    type Output = Self;

    fn mul(self, factor: f64) -> Self {
        Self { low: self.low * factor, mid: self.mid * factor, high: self.high * factor }
    }
}

#[cfg(test)]
mod tests;
