//! Sparklines: a client's bytes over the last intervals.

use model::runs::Run;
use records::ids::ClientId;

/// Intervals of a sparkline, and records kept for each client.
pub(crate) const SLOTS: usize = 60;

/// Bytes a second, both ways, for each of the last intervals, oldest first; `None` where records are missing, or have
/// been put off.
pub(crate) type History = Vec<Option<f64>>;

/// What the client did, on the time line of the proxy's records, which are so far apart; empty if nothing is known of it.
pub(crate) fn history(run: &Run, id: ClientId, interval_us: u64) -> History {
    let (Some(series), Some(client)) = (run.proxy(), run.client(id)) else { return History::new() };
    // A silent client does nothing, unless its record is still to come.
    let known_until_us = run.client_known_until_us(client).unwrap_or(client.last_us);
    let slot_us = interval_us.max(1);
    let mut rates = client.history().rev().peekable();
    let mut intervals = series.intervals().rev().peekable();
    let middles =
        (0..SLOTS as u64).map_while(|slot| series.last_us().checked_sub(slot * slot_us + slot_us / 2));
    let mut slots: History = middles
        .map(|middle_us| {
            while intervals.next_if(|interval| interval.start_us > middle_us).is_some() {}
            while rates.next_if(|rate| rate.end_us.saturating_sub(rate.span_us) > middle_us).is_some() {}
            let interval = intervals.peek().filter(|interval| !interval.after_loss)?;
            debug_assert!(interval.start_us <= middle_us);
            let rate = rates.peek().filter(|rate| rate.end_us > middle_us);
            match rate {
                Some(rate) => Some(rate.bytes_per_second()),
                None => (middle_us < known_until_us).then_some(0.0),
            }
        })
        .collect();
    slots.reverse();
    slots
}
