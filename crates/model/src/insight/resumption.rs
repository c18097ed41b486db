//! Advice on resumption: lifetime, number and keys of tickets, from the ages of tickets and the reasons of full
//! handshakes.

use std::time::Duration;

use serde::Serialize;

use super::shares::{percent, share};
use crate::runs::Run;
use records::metrics::{Counters, FullReason, LoadCounter, TlsCounter};
use records::text::quantity;

/// Advice is given from this share of the full handshakes on.
const SHARE_MIN: f64 = 0.01;
/// Full handshakes below which nothing is advised.
const FULL_MIN: u64 = 20;
/// Lifetimes that are tried; the last is the longest that RFC 8446 allows.
const LIFETIMES_H: [u64; 9] = [1, 2, 6, 12, 24, 48, 72, 120, 168];
/// Numbers of tickets that are tried, each with the clients that it serves besides those before: those with so many other
/// connections open.
const TICKETS: [(f64, TlsCounter); 3] = [
    (2.0, TlsCounter::NoTicketBeside1),
    (4.0, TlsCounter::NoTicketBeside3),
    (8.0, TlsCounter::NoTicketBeside7),
];
/// Settings whose effect a load like the recorded traffic shows in the blocks of an experiment: its clients offer the
/// sessions that these refused. A lifetime is longer than a block, and how many tickets a client keeps is not recorded.
const CHECKED_BY_EXPERIMENT: [&str; 2] = ["proxy.resumption", "proxy.session-cache"];
/// The share of the largest possible gain that is enough.
const ENOUGH: f64 = 0.8;

/// A setting that would turn full handshakes into resumed ones.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Advice {
    /// The setting, such as `proxy.ticket-lifetime`.
    pub setting: String,
    pub present: String,
    pub proposed: String,
    /// Full handshakes that would have been resumed, from 0 to 1.
    pub share: f64,
    /// The advice in words.
    pub sentence: String,
    /// The flag to start with; a setting of this name can also be changed in the dashboard.
    pub flag: String,
    /// An experiment that checks the advice, in the words of `--ab`; `None` where a block is too short for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
}

/// Changes that would have resumed more of a run's full handshakes, the most effective first. Empty without settings
/// of TLS, and with too few handshakes.
pub fn advice(run: &Run) -> Vec<Advice> {
    let Some(counters) = run.tls().map(|series| *series.totals()) else { return Vec::new() };
    let full = counters.sum(&FullReason::ALL.map(|(_, counter, _)| counter));
    if full < FULL_MIN {
        return Vec::new();
    }
    let basis = Basis { run, counters, full };
    let all = [basis.resumption(), basis.lifetime(), basis.tickets(), basis.keys(), basis.session_cache()];
    let mut all: Vec<Advice> = all.into_iter().flatten().filter(|advice| advice.share >= SHARE_MIN).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    all
}

/// The input of the advice.
struct Basis<'a> {
    run: &'a Run,
    counters: Counters<TlsCounter>,
    full: u64,
}

impl Basis<'_> {
    fn word(&self, setting: &str) -> Option<String> {
        Some(self.run.setting(setting)?.value.to_string())
    }

    fn number(&self, setting: &str) -> Option<f64> {
        match self.run.setting(setting)?.value {
            records::setting::Value::Number(number) => Some(number),
            records::setting::Value::Flag(_) | records::setting::Value::Text(_) => None,
        }
    }

    fn is_off(&self) -> bool {
        self.word("proxy.resumption").is_some_and(|word| word == "off")
    }

    /// Advice in the usual sentence: `how` is `up to`, `at least` or `about`.
    fn advise(
        &self,
        setting: &str,
        (present, proposed): (String, String),
        n: u64,
        what: &str,
        how: &str,
    ) -> Advice {
        let share = share(n.min(self.full), self.full);
        let sentence = format!("{what} would have resumed {how} {} of the full handshakes", percent(share));
        let flag = format!("--{} {proposed}", setting.trim_start_matches("proxy."));
        let experiment =
            CHECKED_BY_EXPERIMENT.contains(&setting).then(|| format!("{setting}={present}..{proposed}"));
        Advice { setting: setting.to_owned(), present, proposed, share, sentence, flag, experiment }
    }

    fn resumption(&self) -> Option<Advice> {
        let present = self.word("proxy.resumption").filter(|word| word == "off")?;
        let n = self.counters[TlsCounter::FullResumptionOff];
        let values = (present, "tickets".to_owned());
        Some(self.advise("proxy.resumption", values, n, "resumption by tickets instead of off", "up to"))
    }

    /// The next longer lifetime that covers tickets that had expired. A lower bound, because a client may know the
    /// lifetime and not offer an expired ticket.
    fn lifetime(&self) -> Option<Advice> {
        let present = Duration::try_from_secs_f64(self.number("proxy.ticket-lifetime")?).ok()?;
        let expired = &self.run.tls_record()?.ages_expired;
        let within = |lifetime| expired.up_to(lifetime).saturating_sub(expired.up_to(present));
        let longer = LIFETIMES_H.map(|hours| Duration::from_secs(hours * 3_600)).into_iter();
        let mut longer = longer.filter(|&lifetime| lifetime > present && !self.is_off());
        let proposed = longer.find(|&lifetime| share(within(lifetime), self.full) >= SHARE_MIN)?;
        let shown = |time: Duration| quantity::shown(time.as_secs_f64(), "s");
        let values = (shown(present), shown(proposed));
        let what = format!("a lifetime of {} instead of {}", values.1, values.0);
        Some(self.advise("proxy.ticket-lifetime", values, within(proposed), &what, "at least"))
    }

    /// The fewest tickets that serve most of the clients that open several connections at once. An estimate: these
    /// clients may not keep and use more tickets, and of their other connections only those of the same worker are seen.
    fn tickets(&self) -> Option<Advice> {
        let present = self.number("proxy.tickets")?;
        if self.is_off() {
            return None;
        }
        let of_known = self.counters[TlsCounter::FullNoTicket];
        if present == 0.0 {
            let values = ("0".to_owned(), "1".to_owned());
            return Some(self.advise("proxy.tickets", values, of_known, "1 ticket instead of none", "up to"));
        }
        let more = TICKETS.iter().filter(|(tickets, _)| *tickets > present);
        let mut sum = 0_u64;
        let steps: Vec<(f64, u64)> = more
            .map(|(tickets, counter)| {
                sum = sum.saturating_add(self.counters[*counter]);
                (*tickets, sum)
            })
            .collect();
        let most = steps.last()?.1 as f64;
        let &(proposed, n) = steps.iter().find(|(_, n)| *n as f64 >= ENOUGH * most)?;
        let values = (present.to_string(), proposed.to_string());
        let what = format!("{} tickets instead of {}", values.1, values.0);
        let n = n.saturating_sub(full_by_load(self.run));
        let mut advice = self.advise("proxy.tickets", values, n, &what, "about");
        advice.sentence += ", if their clients keep and use more";
        Some(advice)
    }

    /// Keys that outlive the process and are shared with the other hosts.
    fn keys(&self) -> Option<Advice> {
        let n = self.counters[TlsCounter::FullUnknownKey];
        // It is unknown which keys a file lacks; the finding says what to compare.
        if self.run.setting("proxy.ticket-keys").is_some() || self.word("proxy.resumption")? != "tickets" {
            return None;
        }
        let values = ("none".to_owned(), "FILE".to_owned());
        let what = "ticket keys in a file that all hosts share, instead of keys of this process,";
        Some(self.advise("proxy.ticket-keys", values, n, what, "up to"))
    }

    fn session_cache(&self) -> Option<Advice> {
        self.word("proxy.resumption").filter(|word| word == "cache")?;
        let present = self.number("proxy.session-cache")?;
        let (_, most) = self.run.setting("proxy.session-cache")?.range.unwrap_or((0.0, f64::INFINITY));
        let proposed = (present * 2.0).min(most);
        if proposed <= present {
            return None;
        }
        let values = (present.to_string(), proposed.to_string());
        let n = self.counters[TlsCounter::FullEvicted];
        let what = format!("a session cache of {} instead of {}", values.1, values.0);
        Some(self.advise("proxy.session-cache", values, n, &what, "up to"))
    }
}

/// Returns the handshakes of the run's own load that were to be full: no ticket changes them.
pub fn full_by_load(run: &Run) -> u64 {
    run.load().map_or(0, |load| full_on_purpose(load.totals()))
}

/// Returns the handshakes in which a load offered no session because its plan says so.
pub(super) fn full_on_purpose(load: &Counters<LoadCounter>) -> u64 {
    let handshakes = load.sum(&[LoadCounter::HandshakesFull, LoadCounter::HandshakesResumed]);
    handshakes.saturating_sub(load[LoadCounter::ResumptionsWanted])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::insight::testing::RunBuilder;
    use records::kinds::{Body, LoadRecord, TlsRecord};
    use records::setting::Value;

    /// A run with 1,000 full handshakes, its settings, and what else is counted.
    fn told(settings: &[(&str, Value)], fill: impl FnOnce(&mut TlsRecord)) -> Vec<String> {
        let mut recorder = RunBuilder::begun(settings);
        let mut tls = TlsRecord::default();
        fill(&mut tls);
        let counted = tls.counters.sum(&FullReason::ALL.map(|(_, counter, _)| counter));
        tls.counters[TlsCounter::FullFirstVisit] += 1_000 - counted;
        recorder.tls(tls);
        advice(recorder.run())
            .into_iter()
            .map(|advice| format!("{}: {}", advice.flag, advice.sentence))
            .collect()
    }

    fn usual() -> Vec<(&'static str, Value)> {
        vec![
            ("proxy.resumption", Value::Text("tickets".into())),
            ("proxy.tickets", Value::Number(1.0)),
            ("proxy.ticket-lifetime", Value::Number(43_200.0)),
            ("proxy.session-cache", Value::Number(20_000.0)),
        ]
    }

    #[test]
    fn a_longer_lifetime_is_worth_the_tickets_that_expired_within_it() {
        let told = told(&usual(), |tls| {
            tls.counters[TlsCounter::FullExpired] = 85;
            // 80 within 24 hours, 5 after days.
            (0..80).for_each(|_| tls.ages_expired.count(Duration::from_secs(60_000)));
            (0..5).for_each(|_| tls.ages_expired.count(Duration::from_secs(500_000)));
        });
        let sentence =
            "a lifetime of 24h instead of 12h would have resumed at least 8.0 % of the full handshakes";
        assert_eq!(told, [format!("--ticket-lifetime 24h: {sentence}")]);
    }

    #[test]
    fn more_tickets_serve_clients_that_open_several_connections_at_once() {
        let told = told(&usual(), |tls| {
            tls.counters[TlsCounter::FullNoTicket] = 300;
            tls.counters[TlsCounter::NoTicketAlone] = 180;
            tls.counters[TlsCounter::NoTicketBeside1] = 110;
            tls.counters[TlsCounter::NoTicketBeside3] = 10;
        });
        let sentence = "2 tickets instead of 1 would have resumed about 11 % of the full handshakes, if their clients keep and use more";
        assert_eq!(told, [format!("--tickets 2: {sentence}")]);
    }

    #[test]
    fn tickets_do_not_serve_the_connections_that_the_load_made_full_on_purpose() {
        let mut tls = TlsRecord::default();
        tls.counters[TlsCounter::FullNoTicket] = 300;
        tls.counters[TlsCounter::NoTicketBeside1] = 300;
        let told_of = |wanted: u64| {
            let mut recorder = RunBuilder::begun(&usual());
            let mut load = LoadRecord::default();
            load.counters[LoadCounter::HandshakesFull] = 300;
            load.counters[LoadCounter::HandshakesResumed] = 700;
            load.counters[LoadCounter::ResumptionsWanted] = wanted;
            recorder.write(Body::Load(Box::new(load)));
            recorder.tls(tls.clone());
            advice(recorder.run()).into_iter().map(|advice| advice.share).collect::<Vec<_>>()
        };
        assert_eq!(told_of(1_000), [1.0]);
        assert_eq!(told_of(850), [0.5]);
        assert!(told_of(700).is_empty());
    }

    #[test]
    fn keys_in_a_file_are_advised_where_there_is_none() {
        let unknown = |tls: &mut TlsRecord| tls.counters[TlsCounter::FullUnknownKey] = 400;
        let told_without = told(&usual(), unknown);
        assert!(
            told_without.len() == 1 && told_without[0].starts_with("--ticket-keys FILE: "),
            "{told_without:?}"
        );
        let mut settings = usual();
        settings.push(("proxy.ticket-keys", Value::Text("a1 of /etc/keys".into())));
        assert!(told(&settings, unknown).is_empty());
    }

    #[test]
    fn resumption_that_is_off_is_the_only_advice() {
        let mut settings = usual();
        settings[0].1 = Value::Text("off".into());
        let told = told(&settings, |tls| {
            tls.counters[TlsCounter::FullResumptionOff] = 900;
            tls.counters[TlsCounter::NoTicketBeside1] = 100;
        });
        assert!(told.len() == 1 && told[0].starts_with("--resumption tickets: "), "{told:?}");
    }

    #[test]
    fn nothing_is_advised_that_would_resume_next_to_nothing() {
        let told = told(&usual(), |tls| {
            tls.counters[TlsCounter::FullNoTicket] = 500;
            tls.counters[TlsCounter::NoTicketBeside1] = 9;
            tls.counters[TlsCounter::FullEvicted] = 200;
            (0..9).for_each(|_| tls.ages_expired.count(Duration::from_secs(60_000)));
        });
        assert!(told.is_empty(), "{told:?}");
    }
}
