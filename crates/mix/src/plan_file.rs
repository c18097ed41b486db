//! A mix as a file in TOML, for people to read and change.

use std::fmt::Write as _;
use std::str::FromStr;

use records::values::{AgeCounts, MixDistributions, ValueCounts};
use serde::Deserialize;

use crate::requests::RoutePlace;
use crate::traffic::{Second, Shares, Sizes, TrafficMix};

/// Version of the format.
const FORMAT: u64 = 1;
/// Most seconds of a plan: a day.
const SECONDS_MAX: usize = 86_400;

/// Most of anything in a second.
const COUNT_MAX: u64 = 1_000_000_000;

const HEADER: &str = "\
# What a traffic was like. `tlsdash load URL --plan FILE` sends a load that is like it (docs/load.md).
# A distribution is NUMBER:COUNT ..., such as \"13:60 10112:40\": 60 of 100 had 13, and 40 had 10112.
";

/// A plan cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct PlanFileError(String);

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    format: u64,
    source: String,
    sizes: Sizes,
    #[serde(default)]
    open: u64,
    #[serde(default)]
    would_resume: u64,
    #[serde(default)]
    requests_each: String,
    #[serde(default)]
    streams_each: String,
    #[serde(default)]
    gaps_us: String,
    #[serde(default)]
    stream_gaps_us: String,
    #[serde(default)]
    request_bytes: String,
    #[serde(default)]
    response_bytes: String,
    #[serde(default)]
    client_connections: String,
    #[serde(default)]
    ticket_ages_s: String,
    #[serde(default)]
    shares: SharesTable,
    seconds: Vec<Second>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SharesTable {
    version: toml::map::Map<String, toml::Value>,
    group: toml::map::Map<String, toml::Value>,
    cipher: toml::map::Map<String, toml::Value>,
    alpn: toml::map::Map<String, toml::Value>,
    method: toml::map::Map<String, toml::Value>,
    route: toml::map::Map<String, toml::Value>,
}

impl TrafficMix {
    /// The mix as a plan file.
    pub fn to_plan(&self) -> String {
        let mut out = HEADER.to_owned();
        let known = &self.distributions;
        let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
        let sizes = match self.sizes {
            Sizes::Bodies => "bodies",
            Sizes::Responses => "responses",
            Sizes::Plaintext => "plaintext",
        };
        let _ = write!(
            out,
            "format = {FORMAT}\n\
             source = {}\n\n\
             # What sizes are of: bodies; responses (bodies of responses alone); plaintext (with heads).\n\
             sizes = \"{sizes}\"\n\
             request_bytes = \"{}\"\n\
             response_bytes = \"{}\"\n\n\
             # Connections that stood at the begin; requests of a connection; microseconds from a request to the next one\n\
             # on its connection; both also of HTTP/2, whose requests are streams; connections of a client.\n\
             open = {}\n\
             requests_each = \"{}\"\n\
             gaps_us = \"{}\"\n\
             streams_each = \"{}\"\n\
             stream_gaps_us = \"{}\"\n\
             client_connections = \"{}\"\n\n\
             # Full handshakes that the server's setting kept from resuming: their clients offer a session.\n\
             would_resume = {}\n\n\
             # Seconds, as far as they are known. They follow from how often clients connect, and are not set.\n\
             ticket_ages_s = \"{}\"\n",
            text(&self.source),
            known.bytes_in,
            known.bytes_out,
            self.open,
            known.requests_each,
            known.gaps_us,
            known.streams_each,
            known.stream_gaps_us,
            self.clients,
            self.would_resume,
            self.ages,
        );
        out.push_str("\n# Handshakes, and requests of each method.\n[shares]\n");
        // A plan without routes does not name what it leaves out.
        for (name, shares) in
            self.shares().into_iter().filter(|(name, all)| *name != "route" || !all.is_empty())
        {
            let counts = shares.iter().map(|(value, n)| format!("{} = {n}", text(value)));
            let _ = writeln!(out, "{name} = {{ {} }}", counts.collect::<Vec<_>>().join(", "));
        }
        // Tables come last in TOML, so the seconds go before them.
        let seconds = self.seconds.iter().map(|second| {
            let Second { full, resumed, connections, requests } = second;
            format!(
                "    {{ full = {full}, resumed = {resumed}, connections = {connections:?}, requests = {requests:?} }},\n"
            )
        });
        let seconds = format!(
            "\n# Each second: handshakes, and what began in each of its tenths.\nseconds = [\n{}]\n",
            seconds.collect::<String>()
        );
        let shares_at = out.find("\n# Handshakes, and requests").unwrap_or(out.len());
        out.insert_str(shares_at, &seconds);
        out
    }

    fn shares(&self) -> [(&'static str, &Shares); 6] {
        let Self { versions, groups, ciphers, protocols, methods, routes, .. } = self;
        [
            ("version", versions),
            ("group", groups),
            ("cipher", ciphers),
            ("alpn", protocols),
            ("method", methods),
            ("route", routes),
        ]
    }

    /// Reads a plan file.
    ///
    /// # Errors
    /// What is wrong with it, and where.
    pub fn from_plan(text: &str) -> Result<Self, PlanFileError> {
        let plan: PlanFile = toml::from_str(text).map_err(|error| PlanFileError(error.to_string()))?;
        if plan.format != FORMAT {
            return Err(PlanFileError(format!(
                "format {} is not {FORMAT}, which this version reads",
                plan.format
            )));
        }
        if plan.seconds.is_empty() || plan.seconds.len() > SECONDS_MAX {
            return Err(PlanFileError(format!(
                "seconds: there are {}, expected 1 to {SECONDS_MAX}",
                plan.seconds.len()
            )));
        }
        let is_large = |second: &Second| {
            let Second { full, resumed, connections, requests } = second;
            [full, resumed].into_iter().chain(connections).chain(requests).any(|n| *n > COUNT_MAX)
        };
        if let Some(at) = plan.seconds.iter().position(is_large) {
            return Err(PlanFileError(format!("seconds: a number of second {at} is above {COUNT_MAX}")));
        }
        let counts = |name: &str, text: &str| parsed::<ValueCounts>(name, text);
        let SharesTable { version, group, cipher, alpn, method, route } = plan.shares;
        Ok(Self {
            source: records::text::clean::text(&plan.source),
            sizes: plan.sizes,
            seconds: plan.seconds,
            open: plan.open,
            would_resume: plan.would_resume,
            distributions: MixDistributions {
                requests_each: counts("requests_each", &plan.requests_each)?,
                gaps_us: counts("gaps_us", &plan.gaps_us)?,
                streams_each: counts("streams_each", &plan.streams_each)?,
                stream_gaps_us: counts("stream_gaps_us", &plan.stream_gaps_us)?,
                bytes_in: counts("request_bytes", &plan.request_bytes)?,
                bytes_out: counts("response_bytes", &plan.response_bytes)?,
            },
            clients: counts("client_connections", &plan.client_connections)?,
            ages: parsed::<AgeCounts>("ticket_ages_s", &plan.ticket_ages_s)?,
            versions: shares("version", version)?,
            groups: shares("group", group)?,
            ciphers: shares("cipher", cipher)?,
            protocols: shares("alpn", alpn)?,
            methods: shares("method", method)?,
            routes: routes(route)?,
        })
    }
}

fn parsed<T: FromStr>(name: &str, text: &str) -> Result<T, PlanFileError> {
    text.parse().map_err(|_| {
        PlanFileError(format!(
            "{name}: {:?} is no distribution, such as 13:60 10112:40",
            records::text::clean::text(text)
        ))
    })
}

fn shares(name: &str, table: toml::map::Map<String, toml::Value>) -> Result<Shares, PlanFileError> {
    let counts = table.into_iter().map(|(value, n)| {
        let n = n.as_integer().and_then(|n| u64::try_from(n).ok());
        let value = records::text::clean::text(&value);
        n.map(|n| (value.clone(), n))
            .ok_or_else(|| PlanFileError(format!("shares.{name}: {value:?} needs a count, such as 12")))
    });
    Ok(Shares::new(counts.collect::<Result<Vec<_>, _>>()?))
}

/// Routes become parts of requests.
fn routes(table: toml::map::Map<String, toml::Value>) -> Result<Shares, PlanFileError> {
    let routes = shares("route", table)?;
    if let Some((route, _)) = routes.iter().find(|(route, _)| RoutePlace::parse(route).is_none()) {
        let problem = format!("shares.route: {route:?} is no [HOST]/PATH, such as shop.example/static");
        return Err(PlanFileError(problem));
    }
    Ok(routes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::TENTHS;

    fn mix() -> TrafficMix {
        let counts = |text: &str| text.parse().unwrap();
        let shares = |name: &str| Shares::new([(name.to_owned(), 7), ("other \"one\"".to_owned(), 1)]);
        TrafficMix {
            source: "a \"quoted\"\\ name".to_owned(),
            sizes: Sizes::Plaintext,
            seconds: vec![Second { full: 1, resumed: 2, connections: [3; TENTHS], requests: [4; TENTHS] }; 3],
            open: 5,
            would_resume: 2,
            distributions: MixDistributions {
                requests_each: counts("1:3 10:7"),
                gaps_us: counts("1008:3"),
                streams_each: counts("30:2"),
                stream_gaps_us: counts("0:7"),
                bytes_in: counts("0:80"),
                bytes_out: counts("13:60 10112:23"),
            },
            clients: counts("1:40"),
            ages: "60:11".parse().unwrap(),
            versions: shares("TLSv1.3"),
            groups: shares("x25519"),
            ciphers: Shares::default(),
            protocols: shares("h2"),
            methods: shares("GET"),
            routes: Shares::new([("shop.example/static".to_owned(), 7), ("/api".to_owned(), 1)]),
        }
    }

    #[test]
    fn a_plan_comes_back_as_it_was_written() {
        let text = mix().to_plan();
        assert_eq!(TrafficMix::from_plan(&text).unwrap_or_else(|error| panic!("{error}\n{text}")), mix());
    }

    #[test]
    fn a_wrong_plan_is_refused_with_the_place() {
        let text = mix().to_plan();
        for (from, to, reason) in [
            ("format = 1", "format = 9", "format 9"),
            ("open = 5", "opened = 5", "opened"),
            ("\"13:60 10112:23\"", "\"13\"", "response_bytes"),
            ("\"TLSv1.3\" = 7", "\"TLSv1.3\" = \"x\"", "shares.version"),
            ("full = 1", "full = -1", "full"),
            ("requests = [4, 4", "requests = [4", "requests"),
            ("\"/api\" = 1", "\"/a b\" = 1", "shares.route"),
            ("resumed = 2", "resumed = 9000000000", "second 0"),
        ] {
            assert!(text.contains(from), "{from}");
            let error = TrafficMix::from_plan(&text.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(reason), "{reason}: {error}");
        }
        let none = "format = 1\nsource = ''\nsizes = 'bodies'\nseconds = []\n";
        assert!(TrafficMix::from_plan(none).unwrap_err().to_string().contains("seconds"));
    }
}
