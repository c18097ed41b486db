//! Methods, sizes and routes of the requests of a load.

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

/// What is drawn of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DrawnRequest {
    pub(crate) method: &'static str,
    /// Bytes of its body, and of that of the response.
    pub(crate) bytes_in: u64,
    pub(crate) bytes_out: u64,
    /// The index of its route.
    pub(crate) route: usize,
}

/// Where the requests of a route go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RoutePlace {
    /// `None` for that of the URL.
    pub(crate) host: Option<String>,
    /// What comes before the path of the URL; empty, or a path that does not end with `/`.
    pub(crate) prefix: String,
}

impl RoutePlace {
    /// Parses `[HOST]/PATH` as records name routes; of `*.example` a host with that ending.
    pub(crate) fn parse(route: &str) -> Option<Self> {
        let (host, _) = route.split_once('/')?;
        let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#{}".contains(&byte);
        route.bytes().all(is_plain).then(|| Self {
            host: (!host.is_empty()).then(|| host.replacen('*', "www", 1)),
            prefix: route[host.len()..].trim_end_matches('/').to_owned(),
        })
    }

    /// The path below the route.
    pub(crate) fn path(&self, path: &str) -> String {
        match path {
            "/" if !self.prefix.is_empty() => self.prefix.clone(),
            path => format!("{}{path}", self.prefix),
        }
    }
}

/// Methods, sizes and routes of requests.
#[derive(Debug)]
pub(crate) struct RequestDraws {
    methods: (Vec<&'static str>, Quota),
    /// Bodies of requests that have one by their method; `None` if that is not known.
    bodies: Option<Draw>,
    /// Bytes of requests whose method is not known.
    requests: Option<Draw>,
    responses: Option<Draw>,
    sizes: Sizes,
    is_raw: bool,
    pub(crate) follows_responses: bool,
    /// At least one.
    pub(crate) routes: Vec<RoutePlace>,
    /// Of their indices; `None` if there is only that of the URL.
    route: Option<Draw>,
}

const METHODS: [&str; 5] = ["GET", "HEAD", "POST", "PUT", "DELETE"];

fn has_body(method: &str) -> bool {
    matches!(method, "POST" | "PUT")
}

impl RequestDraws {
    pub(crate) fn new(mix: &TrafficMix, target: &Target) -> Self {
        let methods = mix.methods.iter().map(|(name, n)| {
            // Others are few, and seldom work on any path.
            (METHODS.into_iter().find(|known| *known == name).unwrap_or("GET"), n)
        });
        let (names, counts): (Vec<_>, Vec<_>) = methods.unzip();
        let with_body = names.iter().zip(&counts).filter(|(name, _)| has_body(name)).map(|(_, n)| n);
        let bodies = bodies(mix, with_body.sum());
        let known = mix.routes.iter().filter_map(|(route, n)| Some((RoutePlace::parse(route)?, n)));
        let (mut routes, of_routes): (Vec<_>, Vec<_>) = known.unzip();
        if routes.is_empty() {
            routes.push(RoutePlace::default());
        }
        Self {
            methods: (names, Quota::new(counts.into_iter().map(|n| n as f64))),
            bodies: Draw::new(bodies.iter(), Steps::new(0.259_921_049_894_873)),
            requests: Draw::new(mix.distributions.bytes_in.iter(), Steps::new(0.442_249_570_307_408)),
            responses: Draw::new(mix.distributions.bytes_out.iter(), Steps::new(0.709_975_946_676_697)),
            sizes: mix.sizes,
            is_raw: target.scheme().is_raw(),
            follows_responses: target.path().contains(BYTES) && !target.scheme().is_raw(),
            routes,
            route: Draw::new((0..).zip(of_routes), Steps::new(0.587_401_051_968_199)),
        }
    }

    pub(crate) fn next(&mut self) -> DrawnRequest {
        let (method, bytes_in, bytes_out) = self.next_sizes();
        let route = self.route.as_mut().map_or(0, |route| route.next() as usize);
        DrawnRequest { method, bytes_in, bytes_out, route }
    }

    /// The method, and the bytes of both bodies.
    fn next_sizes(&mut self) -> (&'static str, u64, u64) {
        let bytes_out = self.responses.as_mut().filter(|_| self.follows_responses).map_or(0, Draw::next);
        if self.is_raw {
            return ("GET", self.requests.as_mut().map_or(1, Draw::next).max(1), 0);
        }
        let head_bytes = if self.sizes == Sizes::Plaintext { HEAD_BYTES } else { 0 };
        let bytes_out = bytes_out.saturating_sub(head_bytes);
        if self.methods.0.is_empty() && self.sizes == Sizes::Plaintext {
            let bytes = self.requests.as_mut().map_or(0, Draw::next);
            let body = if bytes > HEAD_BYTES_MAX { bytes - HEAD_BYTES } else { 0 };
            let method = if body > 0 { "POST" } else { "GET" };
            return (method, body, bytes_out);
        }
        let method = self.methods.1.next(1.0, |_| true).map_or("GET", |at| self.methods.0[at]);
        let body = self.bodies.as_mut().filter(|_| has_body(method)).map_or(0, Draw::next);
        (method, body, bytes_out)
    }
}

/// Bodies of the requests that have one by their method: the largest, or what is largest of all plaintext without a head.
fn bodies(mix: &TrafficMix, with_body: u64) -> ValueCounts {
    let head_bytes = match mix.sizes {
        Sizes::Bodies => 0,
        Sizes::Plaintext => HEAD_BYTES,
        Sizes::Responses => return ValueCounts::default(),
    };
    let (mut bodies, mut left) = (ValueCounts::default(), with_body);
    let mut sizes: Vec<_> = mix.distributions.bytes_in.iter().collect();
    sizes.reverse();
    for (bytes, n) in sizes {
        let n = n.min(left);
        bodies.count_n(bytes.saturating_sub(head_bytes), n);
        left -= n;
    }
    bodies
}

#[cfg(test)]
mod tests {
    use records::values::MixDistributions;

    use crate::traffic::Shares;

    use super::*;

    #[test]
    fn the_largest_requests_have_the_bodies() {
        let mix = TrafficMix {
            sizes: Sizes::Plaintext,
            methods: Shares::new([("GET".to_owned(), 9), ("POST".to_owned(), 1)]),
            distributions: MixDistributions {
                bytes_in: "97:900 2144:100".parse().unwrap(),
                bytes_out: "1104:1000".parse().unwrap(),
                ..MixDistributions::default()
            },
            ..TrafficMix::default()
        };
        let target: Target = "https://localhost/bytes/{bytes}".parse().unwrap();
        let mut draws = RequestDraws::new(&mix, &target);
        let requests: Vec<DrawnRequest> = (0..100).map(|_| draws.next()).collect();
        let bodies = |method| {
            let own = requests.iter().filter(|one| one.method == method);
            own.map(|one| (one.bytes_in, one.bytes_out)).collect::<Vec<_>>()
        };
        // The middle of the class of 2,144 without a head.
        assert_eq!(bodies("POST"), [(2_000, 1104 - HEAD_BYTES); 10]);
        assert_eq!(bodies("GET"), [(0, 1104 - HEAD_BYTES); 90]);
    }

    #[test]
    fn a_route_has_a_host_and_a_path() {
        let place = |route| {
            RoutePlace::parse(route)
                .map(|place| (place.host.clone(), place.path("/bytes/13"), place.path("/")))
        };
        let of = |host: Option<&str>, below: &str, itself: &str| {
            Some((host.map(str::to_owned), below.to_owned(), itself.to_owned()))
        };
        assert_eq!(place("/"), of(None, "/bytes/13", "/"));
        assert_eq!(place("/api"), of(None, "/api/bytes/13", "/api"));
        assert_eq!(place("shop.example/static"), of(Some("shop.example"), "/static/bytes/13", "/static"));
        assert_eq!(place("*.example/"), of(Some("www.example"), "/bytes/13", "/"));
        for none in ["other", "", "/a b", "/a\r\nX: y", "/a?b", "/{bytes}"] {
            assert_eq!(place(none), None, "{none:?}");
        }
    }
}
