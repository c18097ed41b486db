//! What another terminator's log or packets lack, and how finely the times are known.

use super::Run;
use records::kinds::RunRecord;
use records::metrics::{ClientCounter, HttpCounter, LatencyClass, ProxyCounter, TimeResolution};
use records::values::LogFigure;

/// Why figures of connections are absent if all lines are of requests.
const LINES_WITHOUT_TLS: &str =
    "the lines have no fields of TLS; `tlsdash observe setup` prints a format that has";

impl Run {
    /// Its first record, if another program terminated TLS, and its log or packets were counted.
    pub fn other_terminator(&self) -> Option<&RunRecord> {
        self.began().filter(|began| !began.log.is_empty())
    }

    /// Its first record, if it was counted from another terminator's log. Such a log reports connections and requests
    /// when they end, so those in flight are unknown.
    pub fn counted_log(&self) -> Option<&RunRecord> {
        self.other_terminator().filter(|began| !began.is_of_packets())
    }

    /// How finely the times of a class are known.
    pub fn resolution(&self, class: LatencyClass) -> TimeResolution {
        match class {
            LatencyClass::Load(_) => TimeResolution::FINE,
            LatencyClass::Proxy(_) | LatencyClass::Tls(_) | LatencyClass::Http(_) => self.log_resolution(),
        }
    }

    /// The resolution of the terminator's times.
    pub fn log_resolution(&self) -> TimeResolution {
        self.counted_log()
            .map_or(TimeResolution::FINE, |began| TimeResolution::from_us(began.log_resolution_us))
    }

    /// Why a figure is absent, and which log format would have it; `None` if it is present.
    pub fn absent(&self, figure: LogFigure) -> Option<&str> {
        let began = self.other_terminator()?;
        let counted = |counter| self.proxy().map_or(0, |series| series.totals()[counter]);
        let has_tls = self.proxy().is_none() || counted(ProxyCounter::Accepted) > 0;
        let has_lines = self.http().is_some_and(|series| series.totals()[HttpCounter::Requests] > 0);
        if figure.is_of_connections() && has_lines && !has_tls {
            return began.absent.reason(LogFigure::Handshakes).or(Some(LINES_WITHOUT_TLS));
        }
        // A log of its own may have them, which is there if it has some.
        let is_counted = figure == LogFigure::Failures && counted(ProxyCounter::HandshakesFailed) > 0;
        began.absent.reason(figure).filter(|_| !is_counted)
    }

    /// What was counted of a client; `None` if it is nothing, and the log does not tell.
    pub fn client_count(&self, counter: ClientCounter, n: u64) -> Option<u64> {
        let is_absent = || match LogFigure::of_client_counter(counter) {
            Some(figure) => self.absent(figure).is_some(),
            None => counter == ClientCounter::Retransmits && self.counted_log().is_some(),
        };
        (n > 0 || !is_absent()).then_some(n)
    }

    /// The figures that its log is known to lack, each as `name: reason`.
    pub fn absent_figures(&self) -> Vec<String> {
        let named = |(figure, name)| {
            let reason = self.other_terminator()?.absent.reason(figure)?;
            self.absent(figure).map(|_| format!("{name}: {reason}"))
        };
        LogFigure::ALL.into_iter().filter_map(named).collect()
    }

    /// Why the log does not give a class of latencies; `None` if it does.
    pub fn absent_class(&self, class: LatencyClass) -> Option<&str> {
        LogFigure::of_class(class).and_then(|figure| self.absent(figure))
    }
}
