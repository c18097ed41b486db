//! Reads the `[[case]]` tables. Their keys are the flags of `tlsdash load`, and a few about the comparison.

use std::time::Duration;

use records::metrics::parse_percentile;
use records::text::quantity;
use toml::de::DeValue;

use super::error::ScenarioError;
use super::matrix::combinations;
use super::table::{Table, shown};
use super::{BenchCase, BenchTarget, LatencyBound, Question, absolute};

/// The flags of `tlsdash load` that a case may have besides `duration` and `warmup`. Bench sets the others itself.
const LOAD_FLAGS: &[&str] = &[
    "arrivals",
    "body",
    "body-bytes",
    "connections",
    "early-data",
    "expect-bytes",
    "expect-echo",
    "header",
    "http2",
    "keep-alive",
    "lifetime",
    "like",
    "loops",
    "method",
    "plan",
    "ramp-up",
    "rate",
    "replay",
    "requests",
    "resume",
    "scale",
    "source-addresses",
    "speed",
    "streams",
    "targets",
    "threads",
    "timeout",
    "tls-version",
];
/// The flags that need TLS; a target without TLS gets the same load without them.
const TLS_FLAGS: [&str; 3] = ["resume", "early-data", "tls-version"];
/// The flags whose value is the path of a file.
const FILE_FLAGS: [&str; 5] = ["body", "like", "plan", "replay", "targets"];
/// The flags whose requests have times of their own.
const TIMED_FLAGS: [&str; 3] = ["like", "plan", "replay"];
/// The shortest turn: its end, in which nothing is asked, must be a small part.
const TURN_MIN: Duration = Duration::from_millis(100);
/// The default length of a turn.
const TURN: Duration = Duration::from_millis(200);
/// The default length of a case.
const DURATION: Duration = Duration::from_secs(10);
/// The default warm-up of a case without a number of requests.
const WARMUP: Duration = Duration::from_secs(1);

/// Checks that `tlsdash load` accepts these arguments, and returns the error otherwise.
pub type CheckFlags<'c> = &'c dyn Fn(&[String]) -> Result<(), String>;

/// Reads the cases, with their matrices expanded.
pub(super) fn read_all(
    tables: Vec<Table<'_>>,
    check: CheckFlags<'_>,
) -> Result<Vec<BenchCase>, ScenarioError> {
    let mut cases = Vec::new();
    for mut table in tables {
        for combination in combinations(&mut table)? {
            let mut case = read(table.with(&combination.entries, "matrix"), check)?;
            case.name.push_str(&combination.name);
            cases.push(case);
        }
    }
    // Without a list of primary cases, verdicts are given on all.
    if cases.iter().all(|case| !case.primary) {
        for case in &mut cases {
            case.primary = true;
        }
    }
    Ok(cases)
}

fn read(mut table: Table<'_>, check: CheckFlags<'_>) -> Result<BenchCase, ScenarioError> {
    let duration = table.time("duration")?;
    let warmup = table.time("warmup")?;
    let has_own_end = table.has("requests") || timed(&table).is_some() || has_stages(&table);
    let duration = duration.or_else(|| (!has_own_end).then_some(DURATION));
    let case = BenchCase {
        name: table.require("name")?,
        line: table.line(),
        question: table.get("measure")?.unwrap_or_default(),
        only: table.get("only")?.unwrap_or_default(),
        path: path(&mut table)?,
        flags: Vec::new(),
        duration,
        warmup: warmup.unwrap_or(if has_own_end { Duration::ZERO } else { WARMUP }),
        turns: turns(&mut table)?,
        bound: bound(&mut table)?,
        quick: quick(&mut table, duration)?,
        primary: table.get("primary")?.unwrap_or_default(),
    };
    table.finish(LOAD_FLAGS)?;
    let case = BenchCase { flags: flags(&table)?, ..case };
    check_question(&table, &case)?;
    check(&case.load_flags()).map_err(|problem| {
        // The problem names the flag that is at fault.
        let at_fault = table.rest().into_iter().find(|(key, _)| problem.contains(&format!("--{key}")));
        at_fault
            .map_or_else(|| table.error(problem.clone()), |(key, _)| table.error_of(&key, problem.clone()))
    })?;
    Ok(case)
}

fn path(table: &mut Table<'_>) -> Result<String, ScenarioError> {
    let path = table.get("path")?.unwrap_or_else(|| "/".to_owned());
    if !path.starts_with('/') || !path.bytes().all(|b| b.is_ascii_graphic()) {
        return Err(table.error_of("path", "write a path such as /bytes/13, percent-encoded"));
    }
    Ok(path)
}

/// A time with its unit, or in seconds without one, as `tlsdash load` takes it.
fn quick(table: &mut Table<'_>, duration: Option<Duration>) -> Result<Option<Duration>, ScenarioError> {
    match table.get::<toml::Value>("quick")? {
        None | Some(toml::Value::Boolean(false)) => Ok(None),
        Some(toml::Value::Boolean(true)) if duration.is_some() => Ok(duration),
        Some(toml::Value::Boolean(true)) => {
            Err(table.error_of("quick", "the case has no duration; write how long it runs, such as \"5s\""))
        }
        Some(_) if has_stages(table) => {
            Err(table.error_of("quick", "a rate with stages cannot be shortened; write another case"))
        }
        Some(_) => table.time("quick"),
    }
}

/// The key whose requests have times of their own, if there is one.
fn timed(table: &Table<'_>) -> Option<&'static str> {
    TIMED_FLAGS.into_iter().find(|key| table.has(key))
}

/// True if the rate has stages with lengths, such as `100..1000/30s`.
fn has_stages(table: &Table<'_>) -> bool {
    table
        .rest()
        .iter()
        .any(|(key, value)| key == "rate" && value.get_ref().as_str().is_some_and(|rate| rate.contains('/')))
}

/// How long a turn is. The targets of a cost case take turns unless it says `off`; those of others never do.
fn turns(table: &mut Table<'_>) -> Result<Option<Duration>, ScenarioError> {
    let is_cost = table.get::<Question>("measure")?.unwrap_or_default() == Question::Cost;
    match table.get::<toml::Value>("turns")? {
        None => Ok(is_cost.then_some(TURN)),
        Some(_) if !is_cost => Err(table.error_of("turns", "only measure = \"cost\" has turns")),
        Some(toml::Value::String(text)) if text == "off" => Ok(None),
        Some(_) => match table.time("turns")? {
            Some(turn) if turn >= TURN_MIN => Ok(Some(turn)),
            _ => Err(table.error_of("turns", "expected a time from 100ms on, or \"off\"")),
        },
    }
}

fn bound(table: &mut Table<'_>) -> Result<Option<LatencyBound>, ScenarioError> {
    let Some(text) = table.get::<String>("bound")? else { return Ok(None) };
    let parsed = text.split_once('<').and_then(|(percentile, limit)| {
        let limit_us = quantity::parse(limit.trim(), "s")? * 1e6;
        let percentile = parse_percentile(percentile.trim())? * 100.0;
        (limit_us >= 1.0).then_some(LatencyBound { percentile, limit_us: limit_us as u64 })
    });
    parsed
        .ok_or_else(|| table.error_of("bound", "write a percentile and its limit, such as \"p99 < 10ms\""))
        .map(Some)
}

/// The other keys, as flags.
fn flags(table: &Table<'_>) -> Result<Vec<String>, ScenarioError> {
    let mut flags = Vec::new();
    for (key, value) in table.rest() {
        match value.get_ref() {
            DeValue::Boolean(true) => flags.push(format!("--{key}")),
            DeValue::Boolean(false) => {}
            DeValue::Array(values) if key == "header" => {
                let values = values.iter().map(|value| value.get_ref().as_str());
                let values = values.collect::<Option<Vec<_>>>();
                let values = values.ok_or_else(|| table.error_of(&key, "must be a list of texts"))?;
                flags.extend(values.iter().map(|value| format!("--{key}={value}")));
            }
            DeValue::Array(_) => {
                let problem = format!("cannot be a list; write matrix = {{ {key} = [...] }}");
                return Err(table.error_of(&key, problem));
            }
            value => {
                let text = shown(value)
                    .ok_or_else(|| table.error_of(&key, "must be a number, a text, true or false"))?;
                if key == "body-bytes" && text.contains(',') {
                    return Err(
                        table.error_of(&key, "must be one size; write matrix = { body-bytes = [...] }")
                    );
                }
                let text = if FILE_FLAGS.contains(&&*key) { absolute(&text) } else { text };
                flags.push(format!("--{key}={text}"));
            }
        }
    }
    Ok(flags)
}

/// Refuses flags that contradict the question.
fn check_question(table: &Table<'_>, case: &BenchCase) -> Result<(), ScenarioError> {
    let (is_fixed, problem): (&[&str], _) = match case.question {
        Question::Cost => (&["requests", "ramp-up"], "measure = \"cost\" needs a duration instead"),
        Question::Capacity => {
            (&["requests", "ramp-up", "rate"], "measure = \"capacity\" finds the rate itself")
        }
        Question::Load => (&[], ""),
    };
    if let Some(key) = is_fixed.iter().find(|key| table.has(key)) {
        return Err(table.error_of(key, problem));
    }
    if let Some(key) = timed(table).filter(|_| case.question != Question::Load) {
        return Err(table.error_of(key, "it has times of its own: write measure = \"load\""));
    }
    if case.question == Question::Cost && has_stages(table) {
        return Err(table.error_of("rate", "measure = \"cost\" needs one rate, or none: then it is found"));
    }
    if case.bound.is_some() != (case.question == Question::Capacity) {
        return Err(table.error("measure = \"capacity\" and bound = \"p99 < 10ms\" go together"));
    }
    Ok(())
}

impl BenchCase {
    /// The value of a flag of `tlsdash load`, such as `rate`; empty for a switch.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags.iter().find_map(|flag| {
            let (flag, value) = flag.split_once('=').unwrap_or((flag, ""));
            (flag.strip_prefix("--") == Some(name)).then_some(value)
        })
    }

    /// The requests per second that are asked, if their rate is constant.
    pub fn constant_rate(&self) -> Option<f64> {
        quantity::parse(self.flag("rate")?, "")
    }

    pub fn is_for(&self, target: &BenchTarget) -> bool {
        self.only.is_empty() || self.only.contains(&target.name)
    }

    pub fn is_http2(&self) -> bool {
        self.flag("http2").is_some()
    }

    /// All flags of `tlsdash load` for a target with TLS.
    pub fn load_flags(&self) -> Vec<String> {
        let time = |time: Duration| quantity::shown(time.as_secs_f64(), "s");
        let mut flags = self.flags.clone();
        flags.extend(self.duration.map(|length| format!("--duration={}", time(length))));
        if !self.warmup.is_zero() {
            flags.push(format!("--warmup={}", time(self.warmup)));
        }
        flags
    }

    /// All flags of `tlsdash load` for this target. Without TLS, those about TLS are left out.
    pub fn load_flags_for(&self, target: &BenchTarget) -> Vec<String> {
        let mut flags = self.load_flags();
        if !target.has_tls() {
            let needs_tls = |flag: &str| {
                let name = flag.split('=').next().unwrap_or(flag).trim_start_matches("--");
                TLS_FLAGS.contains(&name)
            };
            flags.retain(|flag| !needs_tls(flag));
        }
        flags
    }

    /// The case for `--quick`: of the length in `quick`, at the same rate; `None` if it is omitted.
    pub fn for_quick(&self) -> Option<Self> {
        let quick = self.quick?;
        let mut case = Self { duration: Some(quick), ..self.clone() };
        // A number of requests over a time is a rate.
        let number = |name| quantity::parse(self.flag(name)?, "");
        let rate = number("requests").zip(self.flag("ramp-up").and_then(|time| quantity::parse(time, "s")));
        case.flags.retain(|flag| !flag.starts_with("--requests=") && !flag.starts_with("--ramp-up="));
        case.flags.extend(rate.map(|(requests, seconds)| format!("--rate={}", requests / seconds)));
        Some(case)
    }

    /// How long the load lasts with its warm-up; `None` if that depends on the target.
    pub fn length(&self) -> Option<Duration> {
        let time = |text: &str| {
            quantity::parse(text, "s").and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        };
        let number = |name| quantity::parse(self.flag(name)?, "");
        let stages = |rate: &str| {
            rate.split('+').map(|stage| time(stage.split_once('/')?.1)).sum::<Option<Duration>>()
        };
        let requests_at_rate = || {
            let seconds = number("requests")? / number("rate")?;
            Duration::try_from_secs_f64(seconds).ok()
        };
        self.duration
            .or_else(|| self.flag("ramp-up").and_then(time))
            .or_else(|| self.flag("rate").and_then(stages))
            .or_else(requests_at_rate)
    }
}
