//! A load with a mix: each connection and request at its time.

use std::collections::HashMap;
use std::time::Duration;

use loadgen::{Lane, LaneKind, Protocol, RequestBody, Script, ScriptRequest, Target, Template};
use records::text::quantity::{counted, elapsed_text, grouped};
use records::values::{ArrivalCounts, ValueCounts};

use crate::clients::Clients;
use crate::draw::{Draw, Steps};
use crate::lanes::{DueConnections, OpenLanes};
use crate::requests::{BYTES, DrawnRequest, HEAD_BYTES, HEAD_BYTES_MAX, RequestDraws};
use crate::traffic::{Second, Sizes, TENTHS, TrafficMix};

/// Most requests of a load, different ones, and bytes of those: they are kept as they are sent.
const REQUESTS_MAX: u64 = 1_000_000;
const TEMPLATES_MAX: usize = 100_000;
const TEMPLATES_BYTES_MAX: u64 = 64 * 1024 * 1024;
const TENTH_US: u64 = ArrivalCounts::TENTH_US;
/// The distance of requests on a connection if it is not known: as of a person who reads.
const GAP_US: u64 = 1_000_000;

/// Why there is no load with a mix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MixLoadError {
    #[error("it has no requests")]
    NoRequests,
    #[error("more than {} requests; take a part of it, or less of it with --scale", grouped(REQUESTS_MAX))]
    Requests,
    #[error(
        "more than {} different requests, or more than 64 MiB of them; print a plan, and change its request_bytes",
        grouped(TEMPLATES_MAX)
    )]
    Templates,
}

/// How a mix becomes a load.
#[derive(Clone, Copy, Debug)]
pub struct MixLoadOptions<'a> {
    /// `{bytes}` in its path stands for the bytes of a response.
    pub target: &'a Target,
    /// Header fields of every request.
    pub headers: &'a [(String, String)],
    /// How many times as much of everything.
    pub scale: f64,
    /// How many times as fast.
    pub speed: f64,
}

/// A mix, ready to be sent.
#[derive(Debug)]
pub struct MixLoad {
    pub templates: Vec<Template>,
    pub script: Script,
    /// What it is, and what is assumed, in sentences.
    pub notes: Vec<String>,
}

#[derive(Debug)]
struct Maker<'a> {
    mix: &'a TrafficMix,
    options: MixLoadOptions<'a>,
    clients: Clients,
    open: OpenLanes,
    /// Of connections with a request at a time, and of those with streams.
    each: [Option<Draw>; 2],
    gaps: [Option<Draw>; 2],
    draws: RequestDraws,
    /// Handshakes up to the present second of the mix, full and resumed.
    so_far: [u64; 2],
    /// Of the connections so far, those that offer a session.
    resumed: u64,
    templates: Vec<Template>,
    numbers: HashMap<DrawnRequest, u32>,
    templates_bytes: u64,
}

impl MixLoad {
    /// # Errors
    /// If there are no requests, or too many.
    pub fn new(mix: &TrafficMix, options: MixLoadOptions<'_>) -> Result<Self, MixLoadError> {
        let seconds = scaled(&mix.seconds, options.scale);
        let sum = |of: fn(&Second) -> u64| seconds.iter().map(of).sum::<u64>();
        let (requests, connections) = (sum(Second::all_requests), sum(Second::all_connections));
        match requests {
            0 => return Err(MixLoadError::NoRequests),
            1..=REQUESTS_MAX => {}
            _ => return Err(MixLoadError::Requests),
        }
        let at_begin = (mix.open as f64 * options.scale).round() as u64;
        let connections = connections.max(1) + at_begin;
        let full = mix.resumed_share().map_or(connections, |resumed| {
            ((1.0 - resumed) * (1.0 - mix.would_resume_share()) * connections as f64) as u64
        });
        let mut maker = Maker {
            mix,
            options,
            clients: Clients::new(mix, options.scale, full),
            open: OpenLanes::default(),
            each: either(
                [&requests_each(mix), &mix.distributions.streams_each],
                Steps::new(0.414_213_562_373_095),
            ),
            gaps: either(
                [&mix.distributions.gaps_us, &mix.distributions.stream_gaps_us],
                Steps::new(0.618_033_988_749_895),
            ),
            draws: RequestDraws::new(mix, options.target),
            so_far: [0; 2],
            resumed: 0,
            templates: Vec::new(),
            numbers: HashMap::new(),
            templates_bytes: 0,
        };
        let requests = maker.requests(&seconds, at_begin)?;
        let period_us = (seconds.len() as f64 * 1e6 / options.speed) as u64;
        let notes = maker.notes(requests.len() as u64, seconds.len() as u64, at_begin);
        let period_us = period_us.max(requests.last().map_or(1, |last| last.after_us)).max(1);
        let script = Script {
            name: mix.source.clone(),
            requests,
            lanes: maker.open.lanes,
            clients: maker.clients.list,
            profiles: maker.clients.profiles,
            period: Duration::from_micros(period_us),
        };
        Ok(Self { templates: maker.templates, script, notes })
    }
}

impl Maker<'_> {
    fn requests(&mut self, seconds: &[Second], at_begin: u64) -> Result<Vec<ScriptRequest>, MixLoadError> {
        let mut within = Steps::new(0.324_717_957_244_746);
        let mut all: Vec<ScriptRequest> = Vec::new();
        let mut due = DueConnections(seconds.iter().flat_map(|second| second.connections).collect());
        due.add(0, at_begin);
        for (number, second) in seconds.iter().enumerate() {
            self.so_far[0] += second.full;
            self.so_far[1] += second.resumed;
            for (tenth, n) in (number * TENTHS..).zip(second.requests) {
                // New connections are spread evenly over the requests.
                let (new, mut opened) = (due.0[tenth].min(n), 0);
                for at in 0..n {
                    let place = (at as f64 + within.next()) / n as f64;
                    let at_us = ((tenth as f64 + place) * TENTH_US as f64) as u64;
                    let is_due = opened < new && opened * n <= at * new;
                    let is_new = (is_due || self.open.due.is_empty()) && due.take(tenth);
                    opened += u64::from(is_new);
                    let lane = match if is_new { None } else { self.open.next() } {
                        Some(lane) => lane,
                        None => self.open(at_us),
                    };
                    let gap_us = self.gaps[self.kind_of(lane)].as_mut().map_or(GAP_US, Draw::next);
                    self.open.sent(lane, at_us + gap_us);
                    let after_us = (at_us as f64 / self.options.speed) as u64;
                    all.push(ScriptRequest { after_us, template: self.template()?, lane });
                }
                // Those for which there was no request wait for one.
                let waiting = std::mem::take(&mut due.0[tenth]);
                due.add(tenth + 1, waiting);
            }
        }
        Ok(all)
    }

    /// Opens a connection that offers a session or does not, whatever is behind its share so far.
    fn open(&mut self, at_us: u64) -> u32 {
        let [full, resumed] = self.so_far;
        let opened = self.open.lanes.len() as u64 + 1;
        let offers = resumed as f64 + full as f64 * self.mix.would_resume_share();
        let wanted = offers / (full + resumed).max(1) as f64 * opened as f64;
        let is_resumed = wanted - self.resumed as f64 >= 0.5;
        self.resumed += u64::from(is_resumed);
        let client = self.clients.next(at_us, is_resumed);
        let lane = self.open.add(Lane { client, kind: LaneKind::Connection { resumes: Some(is_resumed) } });
        let requests = self.each[self.kind_of(lane)].as_mut().map_or(1, Draw::next).max(1);
        self.open.left.push(requests);
        lane
    }

    /// Whether a connection has a request at a time (0), or streams (1).
    fn kind_of(&self, lane: u32) -> usize {
        let Clients { list, profiles, .. } = &self.clients;
        let client = list[self.open.lanes[lane as usize].client as usize];
        usize::from(profiles[client.profile as usize].protocol != Protocol::Http1)
    }

    /// The number of the template of the next request.
    fn template(&mut self) -> Result<u32, MixLoadError> {
        let drawn = self.draws.next();
        if let Some(number) = self.numbers.get(&drawn) {
            return Ok(*number);
        }
        let DrawnRequest { method, bytes_in, bytes_out, route } = drawn;
        let route = &self.draws.routes[route];
        let path = route.path(&self.options.target.path().replace(BYTES, &bytes_out.to_string()));
        let mut headers = self.options.headers.to_vec();
        if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("host")) {
            headers.extend(route.host.clone().map(|host| ("Host".to_owned(), host)));
        }
        let of_headers: usize = headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.templates_bytes += bytes_in + (path.len() + of_headers) as u64;
        self.templates.push(Template {
            method: method.to_owned(),
            headers,
            body: RequestBody::Bytes(usize::try_from(bytes_in).unwrap_or(usize::MAX)),
            ..Template::get(&path)
        });
        if self.templates.len() > TEMPLATES_MAX || self.templates_bytes > TEMPLATES_BYTES_MAX {
            return Err(MixLoadError::Templates);
        }
        let number = self.templates.len() as u32 - 1;
        self.numbers.insert(drawn, number);
        Ok(number)
    }

    fn notes(&self, requests: u64, seconds: u64, at_begin: u64) -> Vec<String> {
        let Self { mix, options, clients, open, draws, .. } = self;
        let connections = open.lanes.len() as u64;
        let sources = clients.list.iter().map(|client| client.source).max().map_or(0, |most| most + 1);
        let what = format!(
            "like {}: {} over {} ({:.1} % to be resumed) of {} in {}",
            mix.source,
            counted(requests, "request"),
            counted(connections, "connection"),
            self.resumed as f64 / connections.max(1) as f64 * 100.0,
            counted(u64::from(sources), "client"),
            elapsed_text((seconds as f64 / options.speed) as u64),
        );
        let is_plaintext = mix.sizes == Sizes::Plaintext && !options.target.scheme().is_raw();
        let before = |n: u64, what: &str| format!("{} {what}", grouped(n));
        let parts = [
            (true, "no header fields but those of --header".to_owned()),
            (
                !draws.follows_responses,
                format!(
                    "responses as long as the server makes them; {BYTES} in the URL stands for their bytes"
                ),
            ),
            (is_plaintext, format!("heads of about {HEAD_BYTES} bytes")),
            (
                is_plaintext && mix.methods.is_empty(),
                format!("requests of up to {HEAD_BYTES_MAX} bytes without a body"),
            ),
            (is_plaintext && !mix.methods.is_empty(), "the largest requests have the bodies".to_owned()),
            (mix.sizes == Sizes::Responses, "empty bodies of requests".to_owned()),
            (
                mix.distributions.requests_each.is_empty() && mix.distributions.streams_each.is_empty(),
                "as many requests on each connection as on average".to_owned(),
            ),
            (
                mix.distributions.gaps_us.is_empty() && mix.distributions.stream_gaps_us.is_empty(),
                "requests of a connection a second apart".to_owned(),
            ),
            (mix.clients.is_empty(), "one client".to_owned()),
            (
                mix.would_resume > 0,
                before(
                    mix.would_resume,
                    "full handshakes, which the server's setting kept from resuming, offer a session",
                ),
            ),
            (at_begin > 0, before(at_begin, "connections that stood before begin with a handshake")),
            (
                open.beyond > 0,
                format!(
                    "{} on {} beyond those of the distribution",
                    counted(open.beyond, "request"),
                    counted(open.spare.len() as u64, "connection")
                ),
            ),
            (
                clients.without_session > 0,
                before(
                    clients.without_session,
                    "sessions from before it are not there to be resumed: full handshakes",
                ),
            ),
            (true, "a connection closes after its last answer, and none is without a request".to_owned()),
        ];
        let assumed: Vec<_> = parts.iter().filter(|(holds, _)| *holds).map(|(_, text)| &**text).collect();
        vec![what, format!("assumed: {}", assumed.join("; "))]
    }
}

/// Draws from both distributions, or from the other one where one is not known.
fn either(counts: [&ValueCounts; 2], steps: Steps) -> [Option<Draw>; 2] {
    let known = counts.map(|one| Draw::new(one.iter(), steps));
    let [first, second] = known.clone();
    let [of_first, of_second] = known;
    [of_first.or(second), of_second.or(first)]
}

/// The requests of a connection, as far as they are known: of the mean otherwise.
fn requests_each(mix: &TrafficMix) -> ValueCounts {
    if !(mix.distributions.requests_each.is_empty() && mix.distributions.streams_each.is_empty()) {
        return mix.distributions.requests_each.clone();
    }
    let mut counts = ValueCounts::default();
    let (requests, connections) = (mix.requests(), mix.connections().max(1));
    let more = requests % connections;
    counts.count_n(requests / connections, connections - more);
    counts.count_n(requests / connections + 1, more);
    counts
}

/// The seconds with so many times as much of everything: what is rounded is carried on, so that nothing is lost.
fn scaled(seconds: &[Second], scale: f64) -> Vec<Second> {
    let mut carried = [0.0; 4];
    let mut times = |at: usize, n: u64| {
        let exact = n as f64 * scale + carried[at];
        let whole = (exact + 1e-9).floor();
        carried[at] = exact - whole;
        whole as u64
    };
    let of = |second: &Second| Second {
        full: times(0, second.full),
        resumed: times(1, second.resumed),
        connections: second.connections.map(|n| times(2, n)),
        requests: second.requests.map(|n| times(3, n)),
    };
    seconds.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use records::values::MixDistributions;

    use super::*;

    fn mix() -> TrafficMix {
        // A burst in each second, of connections that carry one request or ten.
        let second = Second {
            full: 10,
            resumed: 30,
            connections: [40, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            requests: [100, 20, 10, 10, 10, 20, 10, 10, 10, 20],
        };
        TrafficMix {
            seconds: vec![second; 60],
            distributions: MixDistributions {
                requests_each: "1:20 10:20".parse().unwrap(),
                gaps_us: "100000:9 300000:1".parse().unwrap(),
                bytes_in: "0:90 5000:10".parse().unwrap(),
                bytes_out: "13:50 10112:49 100000:1".parse().unwrap(),
                ..MixDistributions::default()
            },
            clients: "1:60 60:39".parse().unwrap(),
            methods: crate::Shares::new([("GET".to_owned(), 90), ("POST".to_owned(), 10)]),
            ..TrafficMix::default()
        }
    }

    fn load(mix: &TrafficMix, scale: f64, speed: f64) -> MixLoad {
        let target: Target = "https://localhost/bytes/{bytes}".parse().unwrap();
        MixLoad::new(mix, MixLoadOptions { target: &target, headers: &[], scale, speed }).unwrap()
    }

    #[test]
    fn what_a_setting_of_the_server_refused_is_offered_again() {
        // Of 600 full handshakes 150 would have resumed.
        let MixLoad { script, .. } = load(&TrafficMix { would_resume: 150, ..mix() }, 1.0, 1.0);
        let offers =
            script.lanes.iter().filter(|lane| lane.kind == LaneKind::Connection { resumes: Some(true) });
        assert!(offers.count().abs_diff(60 * 30 + 150) <= 1);
    }

    #[test]
    fn requests_go_to_the_routes_of_the_mix() {
        let routes = crate::Shares::new([("shop.example/static".to_owned(), 30), ("/api".to_owned(), 10)]);
        let MixLoad { templates, script, .. } = load(&TrafficMix { routes, ..mix() }, 1.0, 1.0);
        let at_shop =
            |template: &Template| template.headers == [("Host".to_owned(), "shop.example".to_owned())];
        let (mut shop, all) = (0, script.requests.len());
        for request in &script.requests {
            let template = &templates[request.template as usize];
            let prefix = if at_shop(template) { "/static/bytes/" } else { "/api/bytes/" };
            assert!(template.path.starts_with(prefix), "{template:?}");
            shop += usize::from(at_shop(template));
        }
        assert!(shop.abs_diff(all * 3 / 4) <= all / 100, "{shop} of {all}");
    }

    #[test]
    fn a_load_has_the_arrivals_and_distributions_of_its_mix() {
        let mix = mix();
        let MixLoad { templates, script, .. } = load(&mix, 1.0, 1.0);
        assert_eq!(script.requests.len(), 60 * 220);
        let mut tenths = vec![0; 600];
        script.requests.iter().for_each(|request| tenths[request.after_us as usize / 100_000] += 1);
        assert_eq!(tenths[..10], mix.seconds[0].requests);
        assert_eq!(tenths[590..], mix.seconds[0].requests);
        assert_eq!(script.lanes.len(), 60 * 40);
        let resumed =
            script.lanes.iter().filter(|lane| lane.kind == LaneKind::Connection { resumes: Some(true) });
        assert!(resumed.count().abs_diff(60 * 30) <= 1);
        let mut each = vec![0_u64; script.lanes.len()];
        script.requests.iter().for_each(|request| each[request.lane as usize] += 1);
        let short = each.iter().filter(|n| **n == 1).count() as f64 / each.len() as f64;
        assert!((0.48..0.53).contains(&short), "{short}");
        assert!(each.iter().all(|n| (1..=10).contains(n)), "{each:?}");
        let share = |is_one: &dyn Fn(&Template) -> bool| {
            let is_one = |request: &&ScriptRequest| is_one(&templates[request.template as usize]);
            script.requests.iter().filter(is_one).count() as f64 / script.requests.len() as f64
        };
        let posts =
            share(&|template| template.method == "POST" && template.body == RequestBody::Bytes(5_056));
        assert!((0.099..0.101).contains(&posts), "{posts}");
        let large = share(&|template| template.path == "/bytes/10112");
        assert!((0.485..0.495).contains(&large), "{large}");
    }

    #[test]
    fn connections_of_http2_have_their_own_requests() {
        let mix = TrafficMix {
            distributions: MixDistributions {
                requests_each: "1:30".parse().unwrap(),
                streams_each: "10:30".parse().unwrap(),
                ..mix().distributions
            },
            protocols: crate::Shares::new([("h2".to_owned(), 1), ("http/1.1".to_owned(), 1)]),
            ..mix()
        };
        let MixLoad { script, .. } = load(&mix, 1.0, 1.0);
        let mut requests = vec![[0_u64; 2]; script.lanes.len()];
        for request in &script.requests {
            let client = script.clients[script.lanes[request.lane as usize].client as usize];
            let is_http2 = script.profiles[client.profile as usize].protocol != Protocol::Http1;
            requests[request.lane as usize][usize::from(is_http2)] += 1;
        }
        let of = |kind: usize| requests.iter().map(move |n| n[kind]).filter(|n| *n > 0);
        let share = |kind: usize, requests: u64| {
            of(kind).filter(|n| *n == requests).count() as f64 / of(kind).count() as f64
        };
        assert!(share(0, 1) > 0.98, "{}", share(0, 1));
        assert!(share(1, 10) > 0.95, "{}", share(1, 10));
        assert!(of(0).count().abs_diff(of(1).count()) * 100 < script.lanes.len() * 3);
    }

    #[test]
    fn half_as_much_is_sent_twice_as_fast() {
        let MixLoad { script, notes, .. } = load(&mix(), 0.5, 2.0);
        assert_eq!(script.requests.len(), 60 * 110);
        assert_eq!(script.period, Duration::from_secs(30));
        assert!(script.requests.last().unwrap().after_us < 30_000_000);
        assert!(
            notes[0].contains("1200 connections") || notes[0].contains("1,200 connections"),
            "{}",
            notes[0]
        );
    }

    #[test]
    fn what_a_mix_does_not_say_is_assumed_and_named() {
        let bare = TrafficMix {
            seconds: vec![Second {
                full: 1,
                requests: [9; TENTHS],
                connections: [3; TENTHS],
                ..Second::default()
            }],
            ..TrafficMix::default()
        };
        let target: Target = "https://localhost/".parse().unwrap();
        let options = MixLoadOptions { target: &target, headers: &[], scale: 1.0, speed: 1.0 };
        let MixLoad { templates, script, notes } = MixLoad::new(&bare, options).unwrap();
        assert_eq!((templates.len(), script.lanes.len(), script.requests.len()), (1, 30, 90));
        for part in ["{bytes}", "on average", "a second apart", "one client"] {
            assert!(notes[1].contains(part), "{part}: {}", notes[1]);
        }
        let too_many = MixLoadOptions { scale: 1e6, ..options };
        assert_eq!(MixLoad::new(&bare, too_many).unwrap_err(), MixLoadError::Requests);
        assert_eq!(MixLoad::new(&TrafficMix::default(), options).unwrap_err(), MixLoadError::NoRequests);
    }
}
