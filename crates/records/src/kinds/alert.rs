//! The record of an alert that fires, resolves or is withdrawn.

use journal::EntryBuf;

use crate::metrics::Field;
use crate::text::clean;
use crate::text::keywords::keyword_enum;
use crate::wire::{DecodeError, FAMILY, FieldSource, WireField, field, wire};

keyword_enum! {
    AlertState {
        /// Its condition has held for as long as it must.
        #[default]
        Fired = "fired",
        /// Its condition no longer holds.
        Resolved = "resolved",
        /// It was changed or switched off while it was firing.
        Withdrawn = "withdrawn",
    }
}

wire! {
    /// An alert fired, or no longer fires.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct AlertRecord {
        /// Its number within the run, from 1.
        pub number: u64 = &field::ALERT,
        pub state: AlertState = &field::ALERT_STATE,
        /// The alert as it was written.
        pub condition: String = &field::ALERT_CONDITION,
        /// The figure's full name.
        pub figure: String = &field::ALERT_FIGURE,
        /// The sign between value and limit.
        pub operator: String = &field::ALERT_OPERATOR,
        /// The limit of the figure, in the figure's unit.
        pub limit: f64 = &field::ALERT_LIMIT,
        /// The figure over the last window whose value is known, in its unit.
        pub value: f64 = &field::ALERT_VALUE,
        /// The worst value since the condition held.
        pub worst: f64 = &field::ALERT_WORST,
        /// How long the condition must hold, in microseconds.
        pub hold_us: u64 = &field::ALERT_HOLD,
        /// The time that a value is of, in microseconds.
        pub window_us: u64 = &field::ALERT_WINDOW,
        /// How long it has been firing, in microseconds; 0 when it fires.
        pub firing_us: u64 = &field::ALERT_FIRING,
        /// Resolution of the figure's times, in microseconds; 0 if they are of no log.
        pub resolution_us: u64 = &field::LOG_RESOLUTION,
        /// The event for people, in the figure's unit.
        pub sentence: AlertSentence = &FAMILY,
    }
}

impl AlertRecord {
    /// The figure's name as it was written.
    pub fn name(&self) -> &str {
        operator_at(&self.condition).map_or(&*self.figure, |at| self.condition[..at].trim())
    }
}

/// The start of a condition's operator: behind the name of a route, which may contain its characters.
pub fn operator_at(condition: &str) -> Option<usize> {
    let from = condition.rfind('"').unwrap_or(0);
    condition[from..].find(['<', '>', '=', '!']).map(|at| from + at)
}

/// The record's `MESSAGE`. Only the catalogue of figures knows the unit, so the sentence comes with the record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AlertSentence(pub String);

impl WireField for AlertSentence {
    /// Every record's message is written with it.
    fn put(&self, _: &'static Field, _: &mut EntryBuf) {}

    fn get(_: &'static Field, from: &dyn FieldSource) -> Result<Self, DecodeError> {
        Ok(Self(from.text(field::MESSAGE).map(clean::line).unwrap_or_default()))
    }

    fn describe(_: &'static Field, _: &mut Vec<Field>) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;
    use crate::ids::RunId;
    use crate::kinds::{Body, Record, Stamp};

    #[test]
    fn the_sentence_is_the_message_of_the_entry_and_is_cleaned() {
        let sentence = |text: &str| AlertSentence(text.to_owned());
        let read = |written: AlertSentence| {
            let stamp =
                Stamp { run: RunId::from_bits(1), seq: 1, mono_us: 0, realtime_us: 0, interval_us: 0 };
            let body = Body::Alert(Box::new(AlertRecord { sentence: written, ..AlertRecord::default() }));
            let mut entry = EntryBuf::default();
            codec::encode(&Record { stamp, body }, &mut entry);
            let Some(Record { body: Body::Alert(alert), .. }) = codec::decode_fields(&entry, 0).unwrap()
            else {
                panic!("no alert")
            };
            alert.sentence
        };
        assert_eq!(read(sentence("alert: p99 is 7 ms")), sentence("alert: p99 is 7 ms"));
        assert_eq!(read(sentence("alert: \u{1b}[2J")), sentence("alert: \\u{1b}[2J"));
    }
}
