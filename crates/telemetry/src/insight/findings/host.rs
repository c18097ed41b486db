//! What the host refuses.

use super::sight::Sight;
use super::{Rule, Severity, Told};
use crate::insight::counted;
use crate::metrics::ProxyCounter;

pub(super) const ACCEPT_ERRORS: Rule =
    Rule { id: "accept-errors", judge: accept_errors, tell: tell_accept_errors };

fn accept_errors(sight: &Sight<'_>) -> Option<Severity> {
    (sight.minute().proxy[ProxyCounter::AcceptErrors] > 0).then_some(Severity::Critical)
}

fn tell_accept_errors(sight: &Sight<'_>) -> Told {
    let n = sight.minute().proxy[ProxyCounter::AcceptErrors];
    let descriptors = sight.run.host().map_or(0, |host| host.descriptors);
    Told::new(format!(
        "Accepting connections failed {} in the last minute, mostly for lack of descriptors",
        counted(n, "time")
    ))
    .figure("failed attempts, last minute", n)
    .figure("open descriptors", descriptors)
    .advise("raise the bound (LimitNOFILE= of the service, or ulimit -n), or lower --connections-max")
    .about("proxy.connections-max")
}
