//! Numbers and times for people.

use std::time::{Duration, UNIX_EPOCH};

use records::metrics::{KnownTime, TimeResolution};
use records::text::quantity::trimmed;
pub(crate) use records::text::quantity::{fixed, grouped, three_digits};

/// Shown for an unknown value.
pub(crate) const DASH: &str = "–";

/// Milliseconds with three decimals, so the decimals of a column are aligned.
pub(crate) fn ms(value: f64) -> String {
    fixed(value, 3)
}

/// A time in milliseconds, no finer than it is known.
pub(crate) fn known_ms(ms_value: f64, resolution: TimeResolution) -> String {
    let whole = |ns: u64| grouped(ns / 1_000_000);
    match resolution.known((ms_value * 1e6) as u64) {
        KnownTime::Fine(_) => ms(ms_value),
        KnownTime::Rounded(ns) => whole(ns),
        KnownTime::AtMost(ns) => format!("≤ {}", whole(ns)),
    }
}

/// A bound in milliseconds, to a tenth that is not below it.
pub(crate) fn bound_ms(ms_value: f64) -> String {
    // Histograms keep three digits.
    let tenths = (ms_value * 10.0 - 0.01).ceil() / 10.0;
    format!("≤ {}", short(tenths))
}

/// A number with some four digits.
pub(crate) fn short(value: f64) -> String {
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.0 => 0,
        _ => 4,
    };
    trimmed(&fixed(value, decimals)).to_owned()
}

/// A share in percent.
pub(crate) fn percent(part: f64, whole: f64) -> String {
    let percent = part / whole * 100.0;
    match percent {
        _ if !percent.is_finite() => DASH.to_owned(),
        // A share that rounds to 0 or 100 % is marked as more or less.
        _ if part > 0.0 && percent < 0.05 => "< 0.1 %".to_owned(),
        _ if part < whole && percent > 99.95 => "> 99.9 %".to_owned(),
        _ => format!("{percent:.1} %"),
    }
}

/// A moment of the wall clock in UTC, from microseconds since 1970.
pub(crate) fn iso(us: u64) -> String {
    match us {
        // What is written with four digits of the year.
        0..253_402_300_800_000_000 => {
            humantime::format_rfc3339_millis(UNIX_EPOCH + Duration::from_micros(us)).to_string()
        }
        _ => format!("{} s after 1970", us / 1_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn some_four_digits_have_no_zeros_at_their_end() {
        assert_eq!(
            [0.0, 0.1234, 1.5, 12.34, 123_456.0].map(short),
            ["0", "0.1234", "1.5", "12.3", "123,456"]
        );
    }

    #[test]
    fn a_time_of_a_log_has_no_decimals_and_may_be_a_bound() {
        let log = TimeResolution::from_us(1_000);
        assert_eq!([1.0004, 0.0, 12.004].map(|value| known_ms(value, log)), ["≤ 1", "≤ 1", "12"]);
        assert_eq!(known_ms(1.0004, TimeResolution::FINE), "1.000");
        assert_eq!([1.0, 1.24, 1.3].map(bound_ms), ["≤ 1", "≤ 1.3", "≤ 1.3"]);
    }

    #[test]
    fn a_share_that_is_not_nothing_does_not_read_as_nothing() {
        let shares = [(0.0, 5.0), (1.0, 1e6), (5.0, 5.0), (1e6 - 1.0, 1e6), (1.0, 0.0)];
        let shown = shares.map(|(part, whole)| percent(part, whole));
        assert_eq!(shown, ["0.0 %", "< 0.1 %", "100.0 %", "> 99.9 %", "–"]);
    }
}
