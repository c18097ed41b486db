//! The dashboard as sentences, one below the other: for screen readers, and for logs.

use std::fmt::Write as _;
use std::io::Write;
use std::time::Duration;

use model::runs::{Level, LogLine};
use records::metrics::KnownTime;
use records::text::quantity;

use super::action::Action;
use super::run::is_gone;
use super::update::{prepare, update};
use crate::clock::ClockReading;
use crate::options::channel::Inbox;
use crate::options::{DashboardResult, Event, Exit, Options, TuiError};
use crate::state::State;
use crate::state::status::ViewStatus;
use crate::theme::Glyphs;
use crate::theme::format;
use crate::view_model::ViewModel;
use crate::view_model::load::LoopState;

/// How often the figures are written.
const EVERY: Duration = Duration::from_secs(10);

/// Writes sentences until the program ends or the output is closed: the figures every ten seconds, and news as they
/// come. Writes only text and line breaks, and reads no keys.
pub fn run_plain(options: Options, inbox: &Inbox, out: &mut dyn Write) -> DashboardResult {
    let mut plain = PlainMode::new(options);
    let exit = match plain.go_on(inbox, out) {
        // The reader has closed the pipe, as `head` does, or the terminal was closed.
        Err(error) if is_gone(&error) => Ok(Exit::TerminalLost),
        exit => exit.map_err(TuiError::Draw),
    };
    DashboardResult { exit, model: plain.state.into_model() }
}

struct PlainMode {
    state: State,
    told: Option<ClockReading>,
    /// The last line of the log that was written.
    last_line: Option<LogLine>,
    warning: String,
}

impl PlainMode {
    fn new(options: Options) -> Self {
        Self { state: State::new(options, (80, 24)), told: None, last_line: None, warning: String::new() }
    }

    fn go_on(&mut self, inbox: &Inbox, out: &mut dyn Write) -> std::io::Result<Exit> {
        loop {
            let now = ClockReading::read();
            match inbox.recv_timeout(Duration::from_secs(1)) {
                Some(Event::Terminate) => {
                    self.tell(now, true, out)?;
                    return Ok(Exit::Terminated);
                }
                Some(Event::Update(news)) => drop(update(&mut self.state, Action::Update(news), now)),
                Some(Event::Suspend | Event::Access(..)) => {}
                Some(Event::Read(reader)) => reader.read(self.state.live_model()),
                None => drop(update(&mut self.state, Action::Tick, now)),
            }
            self.tell(now, false, out)?;
        }
    }

    /// Tells what is new, and the figures if it is time for them.
    fn tell(&mut self, now: ClockReading, is_end: bool, out: &mut dyn Write) -> std::io::Result<()> {
        prepare(&mut self.state, now);
        if self.state.status == ViewStatus::Reading {
            return Ok(());
        }
        let lines: Vec<LogLine> = self.state.log_lines().into_iter().cloned().collect();
        let new = self.last_line.as_ref().and_then(|last| lines.iter().rposition(|line| line == last));
        for line in &lines[new.map_or(0, |at| at + 1)..] {
            let word = if line.level == Level::Warning { "warning: " } else { "" };
            writeln!(out, "{} {word}{}", format::time_of_day(line.realtime_us), line.text)?;
        }
        self.last_line = lines.last().cloned().or_else(|| self.last_line.take());
        self.tell_warning(now, out)?;
        let since = self.told.map(|told| now.instant.saturating_duration_since(told.instant));
        let is_time = is_end || since.is_none_or(|since| since >= EVERY);
        if let Some(figures) = self.state.figures().filter(|_| is_time) {
            let time = format::time_of_day(now.realtime_us);
            writeln!(out, "{time} {}", sentence(figures, self.state.status, &self.state.account()))?;
            self.told = Some(now);
        }
        out.flush()
    }

    /// Tells the worst warning when it is another one, or over.
    fn tell_warning(&mut self, now: ClockReading, out: &mut dyn Write) -> std::io::Result<()> {
        let time = format::time_of_day(now.realtime_us);
        let worst = self.state.figures().and_then(|figures| figures.warnings.first());
        let worst = worst.map_or("", |warning| &*warning.0);
        // Its figures change with every second; that alone is not worth a sentence.
        let gist = |text: &str| text.replace(|c: char| c.is_ascii_digit() || c == '.', "");
        if gist(worst) != gist(&self.warning) {
            match worst {
                "" => writeln!(out, "{time} over: {}", self.warning)?,
                worst => writeln!(out, "{time} attention: {worst}")?,
            }
            worst.clone_into(&mut self.warning);
        }
        Ok(())
    }
}

fn sentence(figures: &ViewModel, status: ViewStatus, account: &str) -> String {
    let word = match status {
        ViewStatus::Live => "live".to_owned(),
        ViewStatus::Silent(seconds) => {
            format!("no data for {}", quantity::elapsed_text(seconds))
        }
        ViewStatus::Ended => "ended".to_owned(),
        ViewStatus::Waiting
        | ViewStatus::Reading
        | ViewStatus::Frozen(_)
        | ViewStatus::Playing
        | ViewStatus::Paused => "waiting".to_owned(),
    };
    let time = quantity::elapsed_text(figures.duration_us / 1_000_000);
    let of = if account.is_empty() { String::new() } else { format!(" of {account}") };
    let mut text = format!("{word} at +{time}{of}, over {}", figures.span.words());
    let per_second = |rate: Option<f64>| rate.map_or_else(|| "unknown".to_owned(), format::per_second);
    if let Some(load) = &figures.load {
        let _ = match load.kind {
            LoopState::Stopped => write!(text, "; load stopped"),
            LoopState::Closed => write!(text, "; load sends {} a second", per_second(load.sent_per_second)),
            LoopState::Open => write!(
                text,
                "; load offers {} and sends {} requests a second",
                format::plain(load.offered_per_second),
                per_second(load.sent_per_second)
            ),
        };
    }
    if let Some(http) = &figures.http {
        let _ = write!(text, "; {} HTTP requests, failed {}", http.requests, http.failed.words());
    }
    let handshakes = &figures.handshakes;
    text.push_str("; handshakes ");
    if handshakes.full_per_second.or(handshakes.resumed_per_second).is_some() {
        let [full, resumed] = [handshakes.full_per_second, handshakes.resumed_per_second].map(per_second);
        let _ = write!(text, "{full} full and {resumed} resumed a second, ");
    }
    let _ = write!(text, "failed {}", handshakes.failed.words());
    for row in figures.latencies.iter().filter(|row| row.rank == 0 && row.n > 0) {
        let ms = |ns| match row.resolution.known(ns) {
            KnownTime::AtMost(ns) => format!("at most {}", ns / 1_000_000),
            KnownTime::Fine(_) | KnownTime::Rounded(_) => format::latency(ns, row.resolution, Glyphs::Ascii),
        };
        let at = |index: usize| row.quantiles[index].map_or_else(String::new, |q| ms(q.ns));
        let max = row.max_ns.map_or_else(String::new, ms);
        let note = if row.class.names().note.is_empty() {
            String::new()
        } else {
            format!(" {}", row.class.names().note)
        };
        let _ = write!(
            text,
            "; {}{note} p50 {}, p99 {}, maximum {max} ms of {}",
            row.class.title(),
            at(0),
            at(2),
            row.n
        );
    }
    if let Some(proxy) = &figures.proxy {
        let out = proxy.out_per_second.map_or_else(|| "unknown".to_owned(), format::bytes_per_second);
        if let Some(open) = proxy.open {
            let _ = write!(text, "; {open} open");
        }
        let _ = write!(text, "{} out {out}", if proxy.open.is_some() { "," } else { ";" });
    }
    text + "."
}

/// The sentences written for updates, without a terminal.
#[cfg(test)]
mod tests {
    use model::history::Update;
    use model::runs::Model;

    use super::*;
    use crate::app::testing::options;
    use crate::options::channel::channel;
    use crate::synthetic::SyntheticLoad;

    #[test]
    fn plain_output_is_sentences_without_escape_sequences() {
        let (events, inbox) = channel();
        let mut run = SyntheticLoad::default();
        let start = run.start();
        let telling = std::thread::spawn(move || {
            let mut said = Vec::new();
            let ended = run_plain(options(), &inbox, &mut said);
            (ended.exit, ended.model, String::from_utf8(said))
        });
        let send = |news| events.send(Event::Update(news)).unwrap();
        send(Update::Batch(SyntheticLoad::live(vec![start])));
        send(Update::CaughtUp);
        (0..12).for_each(|_| send(run.batch()));
        send(Update::Notice(Level::Warning, "the journal takes no records".to_owned()));
        events.send(Event::Terminate).unwrap();
        let (exit, model, said) = telling.join().unwrap();
        let said = said.unwrap();
        assert_eq!(exit.unwrap(), Exit::Terminated);
        assert!(said.chars().all(|c| c == '\n' || !c.is_control()), "{said:?}");
        assert!(
            said.contains("tlsdash 0.1.0 started") && said.contains("warning: the journal takes"),
            "{said}"
        );
        let last = said.lines().last().unwrap();
        for text in
            ["live at +00:12", "sends 4,998 requests", "100 full and 400 resumed", "of 49980", "CO-corrected"]
        {
            assert!(last.contains(text), "{text}: {last}");
        }
        assert_eq!(Model::default().runs_and_parts().len() + 1, model.runs_and_parts().len());
    }
}
