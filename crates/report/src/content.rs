//! What a report says, before it has a form.

use telemetry::model::{
    ClientSummary, Interval, Label, LogLine, Marker, MetricSeries, Run, Summary, TimelineEvent,
};
use telemetry::{
    Counters, Histogram, LoadLatency, Metric, Model, ProxyCounter, ProxyLatency, SparseHistogram,
    percentile_interval_ns, quantile_is_thin,
};

/// Columns of a plot over time at the most; intervals are taken together until there are no more.
const COLUMNS_MAX: u64 = 240;
/// How late plots may begin without being said to.
const KEPT_FROM_S_MIN: f64 = 60.0;
/// Percentiles of the tables.
pub(crate) const QUANTILES: [(&str, f64); 5] =
    [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];

/// Stands for what an anonymous report does not name.
const LEFT_OUT: &str = "(left out)";

/// A run that is reported on.
#[derive(Debug)]
pub struct Report<'a> {
    pub(crate) run: &'a Run,
    pub(crate) summary: Summary,
    /// Where it was read.
    pub(crate) source: String,
    /// What makes this report again.
    pub(crate) command: String,
    /// The runs that it is of, if it is of several.
    parts: Vec<String>,
}

impl<'a> Report<'a> {
    /// Of a run that was read from `source`, by `command`.
    pub fn new(model: &Model, run: &'a Run, source: &str, command: String) -> Self {
        let summary = model.summary(run, Some(source));
        Self { run, summary, source: source.to_owned(), command, parts: Vec::new() }
    }

    /// The same, of several runs that were taken together: what each of them is.
    pub fn of_parts(self, parts: Vec<String>) -> Self {
        Self { parts, ..self }
    }

    /// The same without anything that tells whom it is about: clients are numbered, and hosts, addresses and names that
    /// stand in settings and messages left out.
    pub fn anonymised(mut self) -> Self {
        for (number, client) in (1..).zip(&mut self.summary.clients) {
            client.client = format!("client {number}");
        }
        self.summary.load.iter_mut().flat_map(|load| &mut load.events).for_each(|event| {
            event.example.clear();
        });
        for (number, part) in (1..).zip(&mut self.parts) {
            let said = part.split_once(": ").map_or("", |(_, said)| said);
            *part = format!("host {number}: {said}");
        }
        (self.summary.uid, self.summary.unit) = (None, String::new());
        LEFT_OUT.clone_into(&mut self.source);
        LEFT_OUT.clone_into(&mut self.command);
        if let Some(journal) = &mut self.summary.journal {
            journal.source.clone_from(&self.source);
        }
        self
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        self.source == LEFT_OUT
    }

    /// What it is of, for a heading: the run, and whose it is.
    pub(crate) fn title(&self) -> String {
        let run = self.run.id().short();
        match &*self.account() {
            "" => format!("tlsdash: run {run}"),
            account => format!("tlsdash: run {run} of {account}"),
        }
    }

    /// The user or the unit that the run is of, by the fields that journald adds.
    pub(crate) fn account(&self) -> String {
        if self.is_anonymous() { String::new() } else { self.run.writer().account() }
    }

    /// What it ran with, as far as records tell.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let run = self.run;
        let mut all = vec![("run", run.id().to_string()), ("user or unit", self.account())];
        if let Some(began) = run.began() {
            all.push(("tlsdash", began.version.clone()));
            if !self.is_anonymous() {
                all.push(("host", run.hostname().to_owned()));
                all.push(("listening on", began.listen.clone()));
                all.push(("aimed at", began.upstream.clone()));
            }
            all.push(("certificate", began.certificate.clone()));
            let workers = if began.workers > 0 { began.workers.to_string() } else { String::new() };
            all.push(("workers at the beginning", workers));
            let cores = if began.cores > 0 { format!(", {} cores", began.cores) } else { String::new() };
            all.push(("processor", format!("{}{cores}", began.cpu_model)));
            all.push(("frequency set by", began.governor.clone()));
            let memory = began.host_memory_bytes as f64 / 1e9;
            all.push(("memory", if memory > 0.0 { format!("{memory:.1} GB") } else { String::new() }));
            all.push(("kernel", began.kernel.clone()));
            all.push(("clock source", began.clock_source.clone()));
        }
        all.push(("began, seconds since 1970 (UTC)", format!("{:.3}", run.began_realtime_us() as f64 / 1e6)));
        all.push(("lasted", format!("{:.1} s", run.duration_us() as f64 / 1e6)));
        all.push(("read from", self.source.clone()));
        all.retain(|(_, value)| !value.is_empty());
        all
    }

    /// Every setting as it stood at the end.
    pub(crate) fn settings(&self) -> Vec<(String, String, String)> {
        // Their values are names of hosts and paths.
        let is_plain = |name: &str| !self.is_anonymous() || !NAMING.iter().any(|word| name.contains(word));
        let settings = self.run.settings().iter().filter(|setting| is_plain(&setting.name));
        settings
            .map(|setting| {
                let value = format!("{} {}", setting.value, setting.unit).trim_end().to_owned();
                (setting.name.clone(), value, setting.applies.to_string())
            })
            .collect()
    }

    /// What happened, in order; none of it anonymously, since it tells of clients.
    pub(crate) fn events(&self) -> Vec<Event<'a>> {
        let lines = self.run.log().filter(|_| !self.is_anonymous());
        let mut events = 0;
        let event = |line: &'a LogLine| {
            let mark = self.mark_of(line);
            let label = mark.map_or_else(
                || {
                    events += 1;
                    format!("e{events}")
                },
                |number| number.to_string(),
            );
            Event { after_s: self.seconds_at(line.mono_us), label, mark, line }
        };
        lines.map(event).collect()
    }

    /// The number of the mark that a line of the log tells of.
    fn mark_of(&self, line: &LogLine) -> Option<u64> {
        let at_once = self.run.markers().filter(|marker| marker.mono_us == line.mono_us);
        let number = |marker: &Marker| match marker.event {
            TimelineEvent::Mark { number, .. } if line.text.starts_with(&format!("mark {number}")) => {
                Some(number)
            }
            TimelineEvent::Mark { .. } | TimelineEvent::Change { .. } => None,
        };
        at_once.filter_map(number).max()
    }

    pub(crate) fn seconds_at(&self, mono_us: u64) -> f64 {
        let began_us = self.run.last_us().saturating_sub(self.run.duration_us());
        mono_us.saturating_sub(began_us) as f64 / 1e6
    }

    /// The latencies that have samples.
    pub(crate) fn latencies(&self) -> Vec<Latency<'a>> {
        let proxy = self.run.proxy().into_iter().flat_map(|track| {
            ProxyLatency::ALL.iter().map(move |&class| Latency::new("proxy", class, &track.whole()[class]))
        });
        let load = self.run.load().into_iter().flat_map(|track| {
            LoadLatency::ALL.iter().map(move |&class| Latency::new("load", class, &track.whole()[class]))
        });
        proxy.chain(load).filter(|latency| !latency.histogram.is_empty()).collect()
    }

    /// Handshakes told apart by what was agreed on, and failures by their cause; only what happened.
    pub(crate) fn handshakes(&self) -> Vec<(&'static str, &'static str, u64)> {
        let Some(track) = self.run.proxy() else { return Vec::new() };
        let count = |(kind, name, counter): &(&'static str, &'static str, ProxyCounter)| {
            (*kind, *name, track.totals()[*counter])
        };
        HANDSHAKES.iter().map(count).filter(|(.., count)| *count > 0).collect()
    }

    /// What has to be known of how far the figures can be trusted.
    pub(crate) fn quality(&self) -> Vec<String> {
        let mut all = Vec::new();
        if !self.summary.ended {
            all.push("The run's last record was not read: it still ran, or was killed. Totals are those of the last records read.".to_owned());
        }
        if let Some(journal) = &self.summary.journal {
            all.push(format!(
                "{} of {} records were read, {} lost.",
                journal.read, journal.made, journal.lost
            ));
            for (count, what) in [
                (journal.before, "records were made before the first one read"),
                (journal.gaps, "gaps, in which records were lost or the process did not run"),
                (
                    journal.merged,
                    "intervals went with a later record, since the journal took theirs too late",
                ),
                (journal.dropped, "records were given up by the writer"),
                (journal.suppressed, "messages were suppressed by journald's rate limit"),
                (journal.foreign, "records under this run's id were another process's and do not count"),
                (journal.malformed, "entries of the journal claim to be records and are none"),
                (journal.skipped_bytes, "bytes of the journal could not be read"),
            ] {
                if count > 0 {
                    all.push(format!("{count} {what}."));
                }
            }
        }
        if !self.parts.is_empty() {
            all.push(format!(
                "{} runs are taken together, placed in time by the wall clock of each host. How far these clocks are apart is not known, since no record of one host tells the time of another; as far apart may what is drawn at the same time be. Totals and percentiles do not depend on it.",
                self.parts.len()
            ));
            all.extend(self.parts.iter().map(|part| format!("{part}.")));
        }
        let kept_from = [
            self.run.proxy().and_then(|track| track.timeline().next()).map(|interval| interval.start_us),
            self.run.load().and_then(|track| track.timeline().next()).map(|interval| interval.start_us),
        ];
        let kept_from_s = kept_from.into_iter().flatten().max().map_or(0.0, |us| self.seconds_at(us));
        if kept_from_s > KEPT_FROM_S_MIN {
            all.push(format!(
                "Plots and intervals begin {kept_from_s:.0} s after the run did: earlier ones were not kept. Totals are of the whole run."
            ));
        }
        let step_us = self.run.health().clock_step_us;
        if step_us != 0 {
            all.push(format!(
                "The wall clock was set by {:.3} s during the run; rates use another clock.",
                step_us as f64 / 1e6
            ));
        }
        if let Some(load) = &self.summary.load {
            all.extend(load.notes.iter().map(|note| format!("Load: {note}.")));
        }
        all
    }

    pub(crate) fn clients(&self) -> &[ClientSummary] {
        &self.summary.clients
    }
}

/// Words in the names of settings whose values name somebody.
const NAMING: [&str; 8] =
    ["listen", "upstream", "target", "certificate", "client-ca", "ticket-keys", "accept-proxy", "trust"];

const HANDSHAKES: [(&str, &str, ProxyCounter); 21] = [
    ("version", "TLS 1.3, full", ProxyCounter::Tls13Full),
    ("version", "TLS 1.3, resumed", ProxyCounter::Tls13Resumed),
    ("version", "TLS 1.2, full", ProxyCounter::Tls12Full),
    ("version", "TLS 1.2, resumed", ProxyCounter::Tls12Resumed),
    ("version", "full with a HelloRetryRequest", ProxyCounter::HandshakesRetried),
    ("group", "X25519MLKEM768", ProxyCounter::GroupMlkem),
    ("group", "X25519", ProxyCounter::GroupX25519),
    ("group", "secp256r1", ProxyCounter::GroupP256),
    ("group", "secp384r1", ProxyCounter::GroupP384),
    ("group", "another", ProxyCounter::GroupOther),
    ("cipher", "AES-256-GCM", ProxyCounter::CipherAes256),
    ("cipher", "AES-128-GCM", ProxyCounter::CipherAes128),
    ("cipher", "ChaCha20-Poly1305", ProxyCounter::CipherChacha),
    ("cipher", "another", ProxyCounter::CipherOther),
    ("failed", "not done at the deadline", ProxyCounter::FailedTimeout),
    ("failed", "the client went away", ProxyCounter::FailedEof),
    ("failed", "the client sent an alert", ProxyCounter::FailedAlert),
    ("failed", "not TLS", ProxyCounter::FailedNotTls),
    ("failed", "nothing in common", ProxyCounter::FailedIncompatible),
    ("failed", "for another reason", ProxyCounter::FailedOther),
    ("failed", "upstream not reached", ProxyCounter::UpstreamConnectsFailed),
];

/// Something that happened during a run.
#[derive(Debug)]
pub(crate) struct Event<'a> {
    /// Since the run began.
    pub(crate) after_s: f64,
    /// The number of a mark, by which `mark:3` finds it; `e1`, `e2` and so on for all else.
    pub(crate) label: String,
    /// The number of the mark.
    pub(crate) mark: Option<u64>,
    pub(crate) line: &'a LogLine,
}

/// One class of latencies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Latency<'a> {
    pub(crate) side: &'static str,
    pub(crate) label: &'static str,
    /// What is timed.
    pub(crate) meaning: &'static str,
    pub(crate) histogram: &'a Histogram,
}

impl<'a> Latency<'a> {
    fn new<L: Metric + Label>(side: &'static str, class: L, histogram: &'a Histogram) -> Self {
        Self { side, label: class.label(), meaning: class.field().meaning.as_ref(), histogram }
    }

    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.side, self.label.replace('_', " "))
    }

    /// A percentile.
    pub(crate) fn quantile(&self, q: f64) -> Option<Quantile> {
        let n = self.histogram.count();
        let ms = |ns: u64| ns as f64 / 1e6;
        let (low_ns, high_ns) = percentile_interval_ns(n, q, |q| self.histogram.quantile_ns(q));
        Some(Quantile {
            ms: self.histogram.quantile_ns(q).map(ms)?,
            interval_ms: low_ns.map(ms).zip(high_ns.map(ms)),
            is_thin: quantile_is_thin(n, q),
        })
    }
}

/// A percentile, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Quantile {
    pub(crate) ms: f64,
    /// Its 95 % confidence interval, if samples do not depend on each other; `None` where too few tell.
    pub(crate) interval_ms: Option<(f64, f64)>,
    /// Fewer than ten samples lie above it.
    pub(crate) is_thin: bool,
}

/// Some intervals of a series taken together.
#[derive(Debug)]
pub(crate) struct Column<C: Metric> {
    pub(crate) start_s: f64,
    pub(crate) end_s: f64,
    /// Nothing is known of a part of it.
    pub(crate) is_gap: bool,
    pub(crate) counters: Counters<C>,
    pub(crate) latency: SparseHistogram,
}

impl<C: Metric> Column<C> {
    pub(crate) fn rate(&self, amount: u64) -> Option<f64> {
        let seconds = self.end_s - self.start_s;
        (!self.is_gap && seconds > 0.0).then(|| amount as f64 / seconds)
    }

    pub(crate) fn quantile_ms(&self, q: f64) -> Option<f64> {
        self.latency.quantile_ns(q).filter(|_| !self.is_gap).map(|ns| ns as f64 / 1e6)
    }

    pub(crate) fn max_ms(&self) -> Option<f64> {
        (!self.is_gap && !self.latency.is_empty()).then(|| self.latency.max_ns() as f64 / 1e6)
    }
}

/// A series as columns of a plot, with one class of its latencies.
pub(crate) fn columns<C: Metric, L: Metric>(
    report: &Report<'_>,
    track: &MetricSeries<C, L>,
    class: L,
) -> Vec<Column<C>> {
    let intervals: Vec<&Interval<C, L>> = track.timeline().map(|interval| &**interval).collect();
    let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else { return Vec::new() };
    // By time: what is old is kept in stretches of ten seconds.
    let width_us = last.end_us.saturating_sub(first.start_us) / COLUMNS_MAX;
    let at = |interval: &Interval<C, L>| {
        interval.middle_us().saturating_sub(first.start_us).checked_div(width_us).unwrap_or(0)
    };
    // What is left at the end of a run is so short that its rate says nothing: it goes with what is before it.
    let is_rest = |a: &Interval<C, L>, b: &Interval<C, L>| {
        b.end_us == last.end_us && !b.after_loss && b.length_us() * 2 < a.length_us()
    };
    let is_together = |a: &&Interval<C, L>, b: &&Interval<C, L>| {
        is_rest(a, b) || (intervals.len() > COLUMNS_MAX as usize && at(a) == at(b))
    };
    let column = |chunk: &[&Interval<C, L>]| {
        let (first, last) = (chunk.first()?, chunk.last()?);
        let mut counters = Counters::default();
        for interval in chunk {
            counters.add(&interval.counters);
        }
        Some(Column {
            start_s: report.seconds_at(first.start_us),
            end_s: report.seconds_at(last.end_us),
            is_gap: chunk.iter().any(|interval| interval.after_loss),
            counters,
            latency: SparseHistogram::merged(chunk.iter().map(|interval| interval.latency(class))),
        })
    };
    intervals.chunk_by(is_together).filter_map(column).collect()
}
