//! A report for programs: JSON, and the intervals as CSV.

use std::fmt::Write as _;

use model::runs::{Interval, Marker, MetricSeries, TimelineEvent};
use model::summary::Summary;
use records::histogram::SparseHistogram;
use records::metrics::{KnownValue, LatencyClass, Metric, Percentile, TimeResolution};
use records::setting::Setting;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::assert::{AssertionOutcome, AssertionResult};
use crate::report::Report;
use crate::report::headline::{Apdex, Tile};

/// Version of the shape; later versions only add to it.
const SCHEMA: u64 = 1;

#[derive(Serialize)]
struct Document<'a> {
    schema: u64,
    began_unix_s: f64,
    environment: Map<String, Value>,
    settings: Vec<&'a Setting>,
    happened: Vec<Value>,
    headline: Vec<Tile>,
    apdex: Option<Apdex>,
    conditions: Vec<Value>,
    changes: Vec<Value>,
    handshakes: Vec<Value>,
    errors: Vec<Value>,
    warnings: Vec<String>,
    quality: Vec<String>,
    summary: &'a Summary,
    proxy_intervals: Vec<Value>,
    /// Absent without a record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tls_intervals: Vec<Value>,
    /// Absent in TCP mode.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    http_intervals: Vec<Value>,
    load_intervals: Vec<Value>,
}

impl Report<'_> {
    /// The documented JSON (docs/reports.md).
    ///
    /// # Errors
    /// None for any run that a journal can hold.
    pub fn json(&self) -> serde_json::Result<String> {
        let happened = self.events().into_iter().map(|event| {
            let mut value = json!({"after_s": event.after_s, "label": event.label, "text": event.line.text});
            if let Some(number) = event.mark() {
                value["mark"] = number.into();
            }
            value
        });
        let document = Document {
            schema: SCHEMA,
            began_unix_s: self.run.began_realtime_us() as f64 / 1e6,
            environment: self
                .environment()
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into()))
                .collect(),
            settings: self.shown_settings().collect(),
            happened: happened.collect(),
            headline: self.headline(),
            apdex: self.apdex(),
            conditions: self.condition_values(),
            changes: self.change_values(),
            handshakes: self.handshakes().into_iter().map(|(by, name, count)| json!({"by": by, "name": name, "count": count})).collect(),
            errors: self.errors().into_iter().map(|error| json!({"of": error.of, "cause": error.cause, "count": error.count, "example": error.example})).collect(),
            warnings: self.warnings(),
            quality: self.quality(),
            summary: &self.summary,
            proxy_intervals: self.run.proxy().map(|series| self.intervals(series)).unwrap_or_default(),
            tls_intervals: self.run.tls().map(|series| self.intervals(series)).unwrap_or_default(),
            http_intervals: self.run.http().map(|series| self.intervals(series)).unwrap_or_default(),
            load_intervals: self.run.load().map(|series| self.intervals(series)).unwrap_or_default(),
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    fn condition_values(&self) -> Vec<Value> {
        let value = |result: &AssertionResult| {
            let (holds, reason) = match &result.verdict {
                AssertionOutcome::Holds => (true, None),
                AssertionOutcome::Breached(reason) => (false, Some(reason)),
            };
            json!({"condition": result.assertion.to_string(), "holds": holds, "reason": reason})
        };
        self.conditions.iter().map(value).collect()
    }

    /// The changes of settings; none in an anonymous report, whose log is left out too.
    fn change_values(&self) -> Vec<Value> {
        let markers = self.run.markers().filter(|_| !self.is_anonymous());
        let value = |marker: &Marker| match &marker.event {
            TimelineEvent::Change { before, after, .. } => Some(json!({
                "after_s": self.seconds_at(marker.mono_us),
                "setting": after.name,
                "before": before,
                "after": after.value,
            })),
            TimelineEvent::Mark { .. } | TimelineEvent::Alert { .. } => None,
        };
        markers.filter_map(value).collect()
    }

    fn intervals<C: Metric, L: Metric + Into<LatencyClass>>(
        &self,
        series: &MetricSeries<C, L>,
    ) -> Vec<Value> {
        series.timeline().map(|interval| self.interval(interval)).collect()
    }

    fn interval<C: Metric, L: Metric + Into<LatencyClass>>(&self, interval: &Interval<C, L>) -> Value {
        let counters: Map<String, Value> = interval
            .counters
            .iter()
            .filter(|(_, n)| *n > 0)
            .map(|(counter, n)| (word(counter), n.into()))
            .collect();
        let timed = L::ALL.iter().map(|&class| (class.into(), interval.latency(class)));
        let latencies: Map<String, Value> = timed
            .filter(|(_, latency)| !latency.is_empty())
            .map(|(class, latency)| (class.key().to_owned(), of(latency, self.run.resolution(class))))
            .collect();
        json!({
            "start_s": self.seconds_at(interval.start_us),
            "end_s": self.seconds_at(interval.end_us),
            "after_loss": interval.after_loss,
            "counters": counters,
            "latency_us": latencies,
        })
    }

    /// Every interval in long form, as one table: a line for each counter, and for each latency class. Unused counters
    /// and classes of the run are omitted.
    pub fn csv(&self) -> String {
        let mut out =
            String::from("side,start_s,end_s,after_loss,kind,name,count,p50_us,p90_us,p99_us,max_us\n");
        if let Some(series) = self.run.proxy() {
            self.lines("proxy", series, &mut out);
        }
        if let Some(series) = self.run.tls() {
            self.lines("tls", series, &mut out);
        }
        if let Some(series) = self.run.http() {
            self.lines("http", series, &mut out);
        }
        if let Some(series) = self.run.load() {
            self.lines("load", series, &mut out);
        }
        out
    }

    fn lines<C: Metric, L: Metric + Into<LatencyClass>>(
        &self,
        side: &str,
        series: &MetricSeries<C, L>,
        out: &mut String,
    ) {
        let counters: Vec<C> =
            C::ALL.iter().copied().filter(|&counter| series.totals()[counter] > 0).collect();
        let classes: Vec<L> =
            L::ALL.iter().copied().filter(|&class| !series.whole()[class].is_empty()).collect();
        for interval in series.timeline() {
            let (start_s, end_s) = (self.seconds_at(interval.start_us), self.seconds_at(interval.end_us));
            let of_interval = format!("{side},{start_s},{end_s},{}", u8::from(interval.after_loss));
            for &counter in &counters {
                let (name, count) = (word(counter), interval.counters[counter]);
                let _ = writeln!(out, "{of_interval},counter,{name},{count},,,,");
            }
            for &class in &classes {
                let latency = interval.latency(class);
                let _ = write!(out, "{of_interval},latency,{},{}", class.into().key(), latency.count());
                let micros = |ns: u64| micros(ns, self.run.resolution(class.into()));
                for Percentile { q, .. } in Percentile::INTERVAL {
                    let _ = write!(out, ",{}", latency.quantile_ns(q).map(micros).unwrap_or_default());
                }
                let max = (!latency.is_empty()).then(|| micros(latency.max_ns()));
                let _ = writeln!(out, ",{}", max.unwrap_or_default());
            }
        }
    }
}

/// Microseconds; a bound is `<=` and the bound.
fn micros(ns: u64, resolution: TimeResolution) -> String {
    match resolution.known_us(ns as f64 / 1e3) {
        KnownValue::Exact(us) => us.to_string(),
        KnownValue::AtMost { at_most } => format!("<={at_most}"),
    }
}

/// A counter's name: its field without the common prefix and suffix.
fn word<C: Metric>(counter: C) -> String {
    let name = counter.field().name.trim_start_matches("TLSDASH_");
    name.trim_start_matches("LOAD_").trim_end_matches("_TOTAL").to_ascii_lowercase()
}

fn of(latency: &SparseHistogram, resolution: TimeResolution) -> Value {
    let micros = |ns: u64| json!(resolution.known_us(ns as f64 / 1e3));
    let mut all = Map::new();
    all.insert("n".to_owned(), latency.count().into());
    for percentile in Percentile::INTERVAL {
        all.insert(percentile.key(), latency.quantile_ns(percentile.q).map(micros).into());
    }
    all.insert("max".to_owned(), micros(latency.max_ns()));
    Value::Object(all)
}
