//! `--replay FILE`: a load made of a log, with its requests, times, clients and connections.

mod lines;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use loadgen::{
    ClientProfile, Lane, LaneKind, Protocol, RequestBody, Script, ScriptClient, ScriptRequest, Target,
    Template,
};
use observe::LineReader;
use records::ids::ClientId;
use records::text::quantity::{counted, elapsed_text, grouped};

use crate::error::usage;
use lines::{LineFormat, ReplayConnection, ReplayRequest, ReplaySize, Unsent};

/// Lines by which the format is found.
const SAMPLE_LINES: usize = 100;
/// Most requests of a log.
const REQUESTS_MAX: usize = 1_000_000;
/// Most different requests, and most bytes of them: they are kept as they are sent.
const TEMPLATES_MAX: usize = 100_000;
const TEMPLATES_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Most clients: each has an address of its own.
const CLIENTS_MAX: usize = 65_533;
const SECOND_US: u64 = 1_000_000;

/// A log, ready to be sent.
#[derive(Debug)]
pub(super) struct Replay {
    pub(super) templates: Vec<Template>,
    pub(super) script: Script,
    /// What it is, what is not sent, and what the log does not say, in sentences.
    pub(super) notes: Vec<String>,
}

/// What turns a log into a load, beside the log.
#[derive(Debug)]
pub(super) struct ReplayOptions<'a> {
    pub(super) target: &'a Target,
    /// Header fields of every request.
    pub(super) headers: &'a [(String, String)],
    pub(super) speed: f64,
    pub(super) protocol: Protocol,
}

/// Reads a log; `-` is standard input.
///
/// # Errors
/// If it cannot be read, is no known format, has nothing to send, or is too large.
pub(super) fn read(path: &Path, options: &ReplayOptions<'_>) -> anyhow::Result<Replay> {
    let fail = |reason: String| usage(format!("--replay {}: {reason}", path.display()));
    let mut log = ReplayReader::new(options);
    let read = if path == Path::new("-") {
        log.read(&mut io::stdin().lock())
    } else {
        File::open(path).and_then(|mut file| log.read(&mut file))
    };
    read.map_err(|error| fail(format!("cannot read it: {error}")))?;
    let name = if path == Path::new("-") { "standard input".to_owned() } else { path.display().to_string() };
    log.finish(&name).map_err(fail)
}

/// A request of the log.
#[derive(Clone, Copy, Debug)]
struct Entry {
    begun_us: u64,
    client: u32,
    connection: ReplayConnection,
    resumes: Option<bool>,
    template: u32,
}

#[derive(Debug)]
struct ReplayReader<'a> {
    options: &'a ReplayOptions<'a>,
    sample: Vec<Vec<u8>>,
    format: Option<LineFormat>,
    entries: Vec<Entry>,
    clients: HashMap<ClientId, u32>,
    templates: Vec<Template>,
    /// By method, target, size of the body and status.
    numbers: HashMap<(String, String, u64, Option<u16>), u32>,
    templates_bytes: u64,
    unsent: BTreeMap<Unsent, u64>,
    over_http2: u64,
    /// Requests whose query the log does not have.
    without_query: u64,
    /// Requests that have a body by their method, which the log does not measure.
    without_size: u64,
    refusal: Option<String>,
}

impl<'a> ReplayReader<'a> {
    fn new(options: &'a ReplayOptions<'a>) -> Self {
        Self {
            options,
            sample: Vec::new(),
            format: None,
            entries: Vec::new(),
            clients: HashMap::new(),
            templates: Vec::new(),
            numbers: HashMap::new(),
            templates_bytes: 0,
            unsent: BTreeMap::new(),
            over_http2: 0,
            without_query: 0,
            without_size: 0,
            refusal: None,
        }
    }

    fn read(&mut self, from: &mut impl Read) -> io::Result<()> {
        let mut lines = LineReader::default();
        while self.refusal.is_none() && lines.read(from, |line| self.line(line))? > 0 {}
        lines.finish(|line| self.line(line));
        self.begin();
        Ok(())
    }

    fn line(&mut self, line: &[u8]) {
        if LineFormat::is_blank(line) {
            return;
        }
        if self.format.is_some() {
            return self.take(line);
        }
        self.sample.push(line.to_owned());
        if self.sample.len() == SAMPLE_LINES {
            self.begin();
        }
    }

    /// Takes the lines by which the format is found.
    fn begin(&mut self) {
        if self.format.is_none() {
            self.format = LineFormat::of(&self.sample);
            for line in std::mem::take(&mut self.sample) {
                self.take(&line);
            }
        }
    }

    fn take(&mut self, line: &[u8]) {
        let Some(format) = &mut self.format else { return };
        let added = format.parse(line).and_then(|request| self.add(request));
        if let Err(reason) = added {
            *self.unsent.entry(reason).or_default() += 1;
        }
    }

    fn add(&mut self, request: ReplayRequest) -> Result<(), Unsent> {
        let ReplayRequest { begun_us, client, connection, resumes, .. } = request;
        let ReplayRequest { method, target, status, size, has_query, is_http2, .. } = request;
        let has_body = matches!(method.as_str(), "POST" | "PUT" | "PATCH");
        let body_bytes = match size {
            ReplaySize::Body(bytes) => bytes,
            ReplaySize::Whole(bytes) if has_body => self.body_bytes(&method, &target, bytes),
            ReplaySize::Whole(_) | ReplaySize::Unknown => 0,
        };
        let template = self.number(method, target, body_bytes, status)?;
        self.over_http2 += u64::from(is_http2);
        self.without_query += u64::from(!has_query);
        self.without_size += u64::from(has_body && size == ReplaySize::Unknown);
        let clients = self.clients.len() as u32;
        let client = *self.clients.entry(client).or_insert(clients % CLIENTS_MAX as u32);
        self.entries.push(Entry { begun_us, client, connection, resumes, template });
        if self.entries.len() > REQUESTS_MAX {
            self.refusal = Some(format!("more than {} requests; take a part of it", grouped(REQUESTS_MAX)));
        }
        Ok(())
    }

    /// The size of the body that makes a request in HTTP/1.1 as long as `whole` bytes.
    fn body_bytes(&self, method: &str, target: &str, whole: u64) -> u64 {
        let given: usize =
            self.options.headers.iter().map(|(name, value)| name.len() + value.len() + ": \r\n".len()).sum();
        let own = "  HTTP/1.1\r\nHost: \r\nUser-Agent: tlsdash/\r\nContent-Length: \r\n\r\n";
        let values = [method, target, &self.options.target.authority(), env!("CARGO_PKG_VERSION")];
        let head = given + own.len() + values.map(str::len).iter().sum::<usize>();
        let rest = whole.saturating_sub(head as u64);
        rest.saturating_sub(rest.to_string().len() as u64)
    }

    /// The number of the template of these requests.
    fn number(
        &mut self,
        method: String,
        target: String,
        body_bytes: u64,
        status: Option<u16>,
    ) -> Result<u32, Unsent> {
        let key = (method, target, body_bytes, status);
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        let template = Template {
            method: key.0.clone(),
            headers: self.options.headers.to_vec(),
            body: RequestBody::Bytes(usize::try_from(body_bytes).unwrap_or(usize::MAX)),
            expect_status: status,
            ..Template::get(&*key.1)
        };
        template.check(self.options.target.scheme()).map_err(|_| Unsent::Unsendable)?;
        let number = self.templates.len() as u32;
        let headers: usize = template.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        self.templates_bytes += body_bytes + (template.path.len() + headers) as u64;
        self.templates.push(template);
        self.numbers.insert(key, number);
        if self.templates.len() > TEMPLATES_MAX || self.templates_bytes > TEMPLATES_BYTES_MAX {
            self.refusal = Some(format!(
                "more than {} different requests, or more than 64 MiB of them; take a part of it",
                grouped(TEMPLATES_MAX)
            ));
        }
        Ok(number)
    }

    fn finish(mut self, name: &str) -> Result<Replay, String> {
        if let Some(refusal) = self.refusal {
            return Err(refusal);
        }
        let Some(format) = &self.format else {
            return Err(
                "no line is of an access log of nginx or HAProxy, or of a list of requests: SECONDS METHOD TARGET \
                 [BODY-BYTES [CLIENT-IP]]"
                    .to_owned()
            );
        };
        self.entries.sort_by_key(|entry| entry.begun_us);
        let (Some(first), Some(last)) = (self.entries.first(), self.entries.last()) else {
            return Err(format!("there is nothing to send in it: {}", self.unsent_text()));
        };
        let (begin_us, length_us) = (first.begun_us, last.begun_us - first.begun_us);
        let is_coarse = !matches!(format, LineFormat::List)
            && self.entries.iter().all(|entry| entry.begun_us.is_multiple_of(SECOND_US));
        if is_coarse {
            spread(&mut self.entries);
        }
        // The last request has the mean distance to the next round.
        let n = self.entries.len() as u64;
        let period_us = if n == 1 || length_us == 0 { SECOND_US } else { length_us + length_us / (n - 1) };
        let at = |us: u64| (us as f64 / self.options.speed) as u64;
        let (lanes, of_entries) = lanes(&self.entries);
        let requests = self.entries.iter().zip(of_entries).map(|(entry, lane)| ScriptRequest {
            after_us: at(entry.begun_us - begin_us),
            template: entry.template,
            lane,
        });
        let requests: Vec<_> = requests.collect();
        let period_us = at(period_us).max(requests.last().map_or(0, |last| last.after_us)).max(1);
        let what = format!(
            "{name} is {} with {} of {} in {}",
            format.name(),
            counted(n, "request"),
            counted(self.clients.len() as u64, "client"),
            elapsed_text(length_us / SECOND_US),
        );
        let unsent = if self.unsent.is_empty() { String::new() } else { format!("; {}", self.unsent_text()) };
        let assumed = self.assumed(&lanes, is_coarse);
        let mut notes = vec![what + &unsent, format!("not in the log, so assumed: {assumed}")];
        if self.over_http2 * 2 > n && self.options.protocol == Protocol::Http1 {
            notes.push(format!("{} were sent over HTTP/2: add --http2", counted(self.over_http2, "request")));
        }
        Ok(Replay {
            script: Script {
                name: name.to_owned(),
                clients: (0..self.clients.len().min(CLIENTS_MAX) as u32)
                    .map(|client| ScriptClient { source: client, profile: 0 })
                    .collect(),
                profiles: vec![ClientProfile { protocol: self.options.protocol, ..ClientProfile::default() }],
                period: Duration::from_micros(period_us),
                requests,
                lanes,
            },
            templates: self.templates,
            notes,
        })
    }

    fn unsent_text(&self) -> String {
        let lines: u64 = self.unsent.values().sum();
        let are = if lines == 1 { "is" } else { "are" };
        let parts = self.unsent.iter().map(|(reason, n)| format!("{} {}", grouped(n), reason.text()));
        format!("{} {are} not sent: {}", counted(lines, "line"), parts.collect::<Vec<_>>().join(", "))
    }

    /// What the log does not say, and what is done instead.
    fn assumed(&self, lanes: &[Lane], is_coarse: bool) -> String {
        let has_kind = |is_kind: fn(&LaneKind) -> bool| lanes.iter().any(|lane| is_kind(&lane.kind));
        let parts = [
            (true, "no header fields but those of --header"),
            (is_coarse, "requests spread evenly over their second"),
            (self.without_query > 0, "no queries"),
            (self.without_size > 0, "empty bodies"),
            (
                has_kind(|kind| *kind == LaneKind::Pool),
                "up to six connections of a client, kept until the server closes them",
            ),
            (
                has_kind(|kind| matches!(kind, LaneKind::Pool | LaneKind::Connection { resumes: None })),
                "connections resume as --resume says, without it whenever they can",
            ),
        ];
        parts.iter().filter(|(holds, _)| *holds).map(|(_, text)| *text).collect::<Vec<_>>().join("; ")
    }
}

/// Spreads requests of the same second evenly over it.
fn spread(entries: &mut [Entry]) {
    for second in entries.chunk_by_mut(|a, b| a.begun_us == b.begun_us) {
        let n = second.len() as u64;
        (0..).zip(second).for_each(|(at, entry): (u64, _)| entry.begun_us += at * SECOND_US / n);
    }
}

/// The lanes of the requests, which are in the order of their times, and that of each.
fn lanes(entries: &[Entry]) -> (Vec<Lane>, Vec<u32>) {
    let mut lanes: Vec<Lane> = Vec::new();
    let (mut by_number, mut latest, mut pools) = (HashMap::new(), HashMap::new(), HashMap::new());
    let of_entries = entries.iter().map(|entry| {
        let Entry { client, connection, resumes, .. } = *entry;
        let mut add = |kind| {
            lanes.push(Lane { client, kind });
            lanes.len() as u32 - 1
        };
        let lane = match connection {
            ReplayConnection::First(_) => add(LaneKind::Connection { resumes }),
            ReplayConnection::Numbered(number) => match by_number.get(&number) {
                Some(lane) => return *lane,
                // Its first request is not in the log.
                None => add(LaneKind::Connection { resumes: None }),
            },
            ReplayConnection::Former => match latest.get(&client) {
                Some(lane) => return *lane,
                None => add(LaneKind::Connection { resumes: None }),
            },
            ReplayConnection::Unknown => {
                return *pools.entry(client).or_insert_with(|| add(LaneKind::Pool));
            }
        };
        latest.insert(client, lane);
        if let ReplayConnection::First(Some(number)) | ReplayConnection::Numbered(number) = connection {
            by_number.insert(number, lane);
        }
        lane
    });
    let of_entries = of_entries.collect();
    (lanes, of_entries)
}

#[cfg(test)]
mod tests;
