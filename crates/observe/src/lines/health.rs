//! What is known of lines that did not arrive, or could not be read.

use std::time::Duration;

use foldhash::HashMap;
use records::delta::ProxyDelta;
use records::kinds::{Level, NoticeRecord};
use records::metrics::ProxyCounter;
use records::text::clean;
use records::values::{AbsentFigures, LogFigure};

use crate::event::AbsentFigure;
use crate::event::{LineNumber, LogEvent};
use crate::format::{BadLine, LogParser};
use crate::lines::numbers::LineNumbers;

/// The most logs whose line numbers are followed. There are as many as frontends.
const LOGS_MAX: usize = 256;
/// The shortest time between two notices about the same.
const NOTICE_EVERY: Duration = Duration::from_secs(10);
/// How late a line may come, counted from the first that overtook it. A terminator's threads number their lines before
/// they send them.
const LATE_MAX: Duration = Duration::from_secs(2);
/// The time without a line since the start after which a notice is made.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Lines that were lost without a trace.
const LOST_LINES: &[AbsentFigure] = &[AbsentFigure {
    figure: LogFigure::LostLines,
    reason: "the lines have no numbers, and neither a Unix socket nor syslog says what it dropped",
}];

/// The way of the lines to us.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogTransport {
    /// A Unix socket, whose drops only the sender notices.
    UnixSocket,
    /// A UDP port, whose drops the kernel counts.
    Udp,
    /// A file, of which nothing is lost.
    #[default]
    File,
    /// The system journal, which says what its rate limit drops.
    Journal,
}

impl LogTransport {
    /// What helps against lost lines.
    fn remedy(self) -> &'static str {
        match self {
            Self::UnixSocket => "raise net.unix.max_dgram_qlen, or use --syslog udp:",
            Self::Udp => "raise net.core.rmem_max, up to which the socket holds lines",
            Self::File => "they are not in the file: whoever writes it lost them",
            Self::Journal => "journald's rate limit dropped them: raise LogRateLimitBurst= of the unit",
        }
    }
}

#[derive(Debug, Default)]
pub struct LineHealth {
    transport: LogTransport,
    pub lines: u64,
    /// Lines that could not be read.
    pub bad: u64,
    /// Lines that the kernel dropped since the socket's buffer was full.
    pub dropped: u64,
    /// Messages that journald's rate limit dropped.
    pub suppressed: u64,
    /// Lines read, unreadable and lost that are counted in the records.
    counted: [u64; 3],
    /// The last line that could not be read, with the reason.
    sample: String,
    logs: HashMap<Box<str>, LineNumbers>,
    /// What the lines so far lack.
    lacking: Vec<LogFigure>,
    /// When each log's lines were last expected to have come.
    expected_at: Option<Duration>,
    is_silence_told: bool,
    notices: Vec<NoticeRecord>,
    bad_told: Option<(Duration, u64)>,
    lost_told: Option<(Duration, u64)>,
}

impl LineHealth {
    pub fn new(transport: LogTransport) -> Self {
        Self { transport, ..Self::default() }
    }

    /// Notes a line's number, and what the line lacks.
    ///
    /// # Errors
    /// When the number is far beyond that of the line before.
    pub(crate) fn note(&mut self, event: &LogEvent<'_>) -> Result<(), BadLine> {
        let may_be_lost_unseen = match self.transport {
            LogTransport::UnixSocket => true,
            LogTransport::File => event.is_relayed,
            LogTransport::Udp | LogTransport::Journal => false,
        };
        match &event.sequence {
            Some(number) if !self.number(number) => return Err(BadLine::Implausible("line number")),
            None if may_be_lost_unseen => self.lack(LOST_LINES),
            Some(_) | None => {}
        }
        self.lack(event.lacks);
        Ok(())
    }

    /// Counts a line by its outcome. An unreadable line's number is still searched for, so that the line does not count
    /// as lost, too.
    pub(crate) fn close(
        &mut self,
        parser: &LogParser,
        line: &[u8],
        outcome: Result<Result<(), BadLine>, BadLine>,
    ) {
        self.lines += 1;
        if outcome.is_err() {
            parser.number(line, |number| self.number(number));
        }
        if let Err(why) = outcome.unwrap_or_else(Err) {
            self.bad += 1;
            self.sample = format!("{}: {why}", clean::bytes(line));
        }
    }

    /// False if the number is far beyond that of the line before.
    fn number(&mut self, line: &LineNumber<'_>) -> bool {
        if let Some(log) = self.logs.get_mut(&*line.log) {
            return log.add(line.number);
        }
        if self.logs.len() < LOGS_MAX {
            self.logs.entry((*line.log).into()).or_default().add(line.number);
        }
        true
    }

    fn lack(&mut self, figures: &[AbsentFigure]) {
        if figures.iter().all(|absent| self.lacking.contains(&absent.figure)) {
            return;
        }
        self.lacking.extend(figures.iter().map(|absent| absent.figure));
        let absent = AbsentFigures::new(figures.iter().map(|absent| (absent.figure, absent.reason)));
        let text = format!("these lines do not say: {}", absent.as_str());
        self.notices.push(NoticeRecord { absent, ..NoticeRecord::new(Level::Warning, "log", &text) });
    }

    /// Lines that did not arrive, as of the last time they were expected: dropped by the kernel or by journald, or missing in
    /// the numbers of a log.
    pub fn lost(&self) -> u64 {
        let missing = self.logs.values().map(LineNumbers::missing).fold(0, u64::saturating_add);
        // A line that the kernel dropped is missing in its log too, if that has numbers.
        self.dropped.max(missing).max(self.suppressed)
    }

    /// Adds the lines since the last call. A line that arrives very late still counts as lost.
    pub(crate) fn count_into(&mut self, delta: &mut ProxyDelta) {
        let counters = [ProxyCounter::LinesRead, ProxyCounter::LinesUnreadable, ProxyCounter::LinesLost];
        let now = [self.lines, self.bad, self.lost()];
        for ((counter, counted), now) in counters.into_iter().zip(&mut self.counted).zip(now) {
            delta.counters[counter] += now.saturating_sub(*counted);
            *counted = now.max(*counted);
        }
    }

    /// Counts what is missing of the lines that were due at a time since the start. `is_last`: nothing follows.
    pub(crate) fn expect(&mut self, now: Duration, is_last: bool) {
        let expected_at = *self.expected_at.get_or_insert(now);
        if is_last || now.saturating_sub(expected_at) >= LATE_MAX {
            self.expected_at = Some(now);
            self.logs.values_mut().for_each(|log| log.expect(is_last));
        }
    }

    /// Makes notices of what is new, each kind at most every ten seconds.
    pub(crate) fn tell(&mut self, now: Duration, is_last: bool) {
        if self.lines == 0 && now >= SILENCE_MAX && !self.is_silence_told {
            self.is_silence_told = true;
            let text = format!(
                "no line of the log came in the first {} s; if there were connections, the terminator does not log here, or may not write to the socket (its own log says so): `tlsdash observe setup` prints what to configure",
                SILENCE_MAX.as_secs()
            );
            self.notices.push(NoticeRecord::new(Level::Notice, "log-silent", &text));
        }
        let is_due = |told: Option<(Duration, u64)>, n: u64| match told {
            None => n > 0,
            Some((at, before)) => n > before && (is_last || now.saturating_sub(at) >= NOTICE_EVERY),
        };
        if is_due(self.bad_told, self.bad) {
            self.bad_told = Some((now, self.bad));
            let text =
                format!("{} of {} lines cannot be read; the last: {}", self.bad, self.lines, self.sample);
            self.warn("log-line", &text);
        }
        let lost = self.lost();
        if is_due(self.lost_told, lost) {
            self.lost_told = Some((now, lost));
            let text = format!(
                "{lost} lines of the log were lost beside {} that were read: counts are too low by them; {}",
                self.lines,
                self.transport.remedy()
            );
            self.warn("log-lost", &text);
        }
    }

    pub(crate) fn warn(&mut self, topic: &str, text: &str) {
        self.notices.push(NoticeRecord::new(Level::Warning, topic, text));
    }

    /// Takes the notices made so far.
    pub fn take_notices(&mut self) -> Vec<NoticeRecord> {
        std::mem::take(&mut self.notices)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::LogKind;

    const SECOND: Duration = Duration::from_secs(1);

    fn event(number: Option<u64>) -> LogEvent<'static> {
        let sequence = number.map(|number| LineNumber { log: "in".into(), number });
        LogEvent { sequence, ..LogEvent::of(records::ids::ClientId::Other) }
    }

    #[test]
    fn a_line_is_lost_once_it_can_no_longer_come() {
        let mut health = LineHealth::default();
        let mut lost_at = |seconds, numbers: &[u64]| {
            for &number in numbers {
                health.note(&event(Some(number))).unwrap();
            }
            health.expect(SECOND * seconds, false);
            health.tell(SECOND * seconds, false);
            health.lost()
        };
        assert_eq!(lost_at(0, &[1, 3]), 0);
        assert_eq!(lost_at(2, &[5]), 0, "4 is late for the first time, and 2 was not awaited yet");
        assert_eq!(lost_at(4, &[2, 7]), 1, "2 came late, 4 did not come");
        assert_eq!(lost_at(6, &[9]), 2);
        assert_eq!(lost_at(7, &[]), 2, "8 is awaited");
        assert_eq!(health.take_notices().len(), 1);
        let mut delta = ProxyDelta::default();
        health.count_into(&mut delta);
        health.count_into(&mut delta);
        assert_eq!(delta.counters[ProxyCounter::LinesLost], 2);
    }

    #[test]
    fn what_helps_against_lost_lines_depends_on_their_way() {
        for (transport, remedy) in [
            (LogTransport::UnixSocket, "max_dgram_qlen"),
            (LogTransport::Udp, "net.core.rmem_max"),
            (LogTransport::File, "not in the file"),
            (LogTransport::Journal, "LogRateLimitBurst"),
        ] {
            let mut health = LineHealth { suppressed: 17, ..LineHealth::new(transport) };
            health.tell(SECOND, true);
            let notices = health.take_notices();
            assert!(health.lost() == 17 && notices[0].text.contains(remedy), "{}", notices[0].text);
        }
    }

    #[test]
    fn lines_that_may_be_lost_without_a_trace_are_told_of_once() {
        let lacking = |transport, number, is_relayed| {
            let mut health = LineHealth::new(transport);
            for _ in 0..3 {
                health.note(&LogEvent { is_relayed, ..event(number) }).unwrap();
            }
            health.take_notices().iter().filter(|it| it.absent.reason(LogFigure::LostLines).is_some()).count()
        };
        assert_eq!(lacking(LogTransport::UnixSocket, None, false), 1);
        assert_eq!(lacking(LogTransport::UnixSocket, Some(1), false), 0);
        assert_eq!(lacking(LogTransport::File, None, true), 1, "syslog wrote it");
        assert_eq!(lacking(LogTransport::File, None, false), 0);
        assert_eq!(lacking(LogTransport::Udp, None, true), 0);
    }

    #[test]
    fn a_log_without_a_line_is_told_of_once() {
        let told = |health: &mut LineHealth, after| {
            health.tell(SECOND * after, false);
            health.take_notices().len()
        };
        let mut silent = LineHealth::default();
        assert_eq!([0, 9, 10, 60].map(|after| told(&mut silent, after)), [0, 0, 1, 0]);
        let mut heard = LineHealth { lines: 1, ..LineHealth::default() };
        assert_eq!([0, 60].map(|after| told(&mut heard, after)), [0, 0]);
    }

    #[test]
    fn a_further_bad_line_is_told_of_later_and_at_the_end() {
        let mut health = LineHealth::default();
        let told = |health: &mut LineHealth, after, is_last| {
            health.close(&LogKind::Haproxy.parser(), b"{\x1b[2J", Err(BadLine::Unknown));
            health.tell(SECOND * after, is_last);
            health.take_notices().len()
        };
        assert_eq!(told(&mut health, 0, false), 1);
        assert_eq!(told(&mut health, 1, false), 0);
        assert_eq!(told(&mut health, 11, false), 1);
        assert_eq!(told(&mut health, 12, true), 1);
        assert!(!health.sample.contains('\u{1b}'), "{}", health.sample);
    }

    #[test]
    fn a_line_that_cannot_be_read_is_not_lost_as_well() {
        let (mut health, parser) = (LineHealth::default(), LogKind::Haproxy.parser());
        health.note(&event(Some(1))).unwrap();
        let cut = br#"<134>haproxy[1]: {"kind":"http","time":"1.0","log":"in","line":"2","clie"#;
        health.close(&parser, cut, Err(BadLine::Unknown));
        health.note(&event(Some(3))).unwrap();
        health.expect(SECOND, true);
        assert_eq!((health.bad, health.lost()), (1, 0));
    }
}
