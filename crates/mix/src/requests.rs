//! Methods and sizes of the requests of a load.

use loadgen::Target;
use records::values::ValueCounts;

use crate::draw::{Draw, Quota, Steps};
use crate::traffic::{Sizes, TrafficMix};

/// Stands in the target's path for the bytes of a response.
pub(crate) const BYTES: &str = "{bytes}";
/// What a head takes of plaintext, about, of a request and of a response. A request of up to the second is taken for a head
/// alone.
pub(crate) const HEAD_BYTES: u64 = 150;
pub(crate) const HEAD_BYTES_MAX: u64 = 2_048;

/// Methods and sizes of requests.
#[derive(Debug)]
pub(crate) struct RequestSizes {
    methods: (Vec<&'static str>, Quota),
    /// Bodies of requests that have one by their method; `None` if that is not known.
    bodies: Option<Draw>,
    /// Bytes of requests whose method is not known.
    requests: Option<Draw>,
    responses: Option<Draw>,
    sizes: Sizes,
    is_raw: bool,
    pub(crate) follows_responses: bool,
}

const METHODS: [&str; 5] = ["GET", "HEAD", "POST", "PUT", "DELETE"];

fn has_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT")
}

impl RequestSizes {
    pub(crate) fn new(mix: &TrafficMix, target: &Target) -> Self {
        let methods = mix.methods.iter().map(|(name, n)| {
            // Others are few, and seldom work on any path.
            (METHODS.into_iter().find(|known| *known == name).unwrap_or("GET"), n)
        });
        let (names, counts): (Vec<_>, Vec<_>) = methods.unzip();
        let mut bodies = ValueCounts::default();
        mix.distributions
            .bytes_in
            .iter()
            .filter(|(bytes, _)| *bytes > 0)
            .for_each(|(bytes, n)| bodies.count_n(bytes, n));
        let with_body = names.iter().zip(&counts).filter(|(name, _)| has_body(name)).map(|(_, n)| n);
        bodies.count_n(0, with_body.sum::<u64>().saturating_sub(bodies.total()));
        let of_bodies = Some(&bodies).filter(|_| mix.sizes == Sizes::Bodies);
        Self {
            methods: (names, Quota::new(counts.into_iter().map(|n| n as f64))),
            bodies: of_bodies.and_then(|bodies| Draw::new(bodies, Steps::new(0.259_921_049_894_873))),
            requests: Draw::new(&mix.distributions.bytes_in, Steps::new(0.442_249_570_307_408)),
            responses: Draw::new(&mix.distributions.bytes_out, Steps::new(0.709_975_946_676_697)),
            sizes: mix.sizes,
            is_raw: target.scheme().is_raw(),
            follows_responses: target.path().contains(BYTES) && !target.scheme().is_raw(),
        }
    }

    /// The method, and the bytes of both bodies.
    pub(crate) fn next(&mut self) -> (&'static str, u64, u64) {
        let bytes_out = self.responses.as_mut().filter(|_| self.follows_responses).map_or(0, Draw::next);
        if self.is_raw {
            return ("GET", self.requests.as_mut().map_or(1, Draw::next).max(1), 0);
        }
        if self.sizes == Sizes::Plaintext {
            let bytes = self.requests.as_mut().map_or(0, Draw::next);
            let body = if bytes > HEAD_BYTES_MAX { bytes - HEAD_BYTES } else { 0 };
            let method = if body > 0 { "POST" } else { "GET" };
            return (method, body, bytes_out.saturating_sub(HEAD_BYTES));
        }
        let method = self.methods.1.next(1.0, |_| true).map_or("GET", |at| self.methods.0[at]);
        let body = self.bodies.as_mut().filter(|_| has_body(method)).map_or(0, Draw::next);
        (method, body, bytes_out)
    }
}
