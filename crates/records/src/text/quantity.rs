//! Numbers with units as people write them: in flags, configuration files, prompts and lists of settings.

use std::fmt::Display;
use std::time::{Duration, UNIX_EPOCH};

/// Formats a number in a unit of settings: `10s`, `24h`, `512MiB`, `80%`, `1000/s`, `4`.
pub fn shown(number: f64, unit: &str) -> String {
    match unit {
        "s" if (0.0..=u64::MAX as f64).contains(&number) => shown_time(Duration::from_secs_f64(number)),
        "MiB" if number >= 2_048.0 && number % 1_024.0 == 0.0 => format!("{}GiB", number / 1_024.0),
        "1/s" => format!("{number}/s"),
        unit => format!("{number}{unit}"),
    }
}

/// In the largest unit with a whole number; minutes and longer units from two.
fn shown_time(time: Duration) -> String {
    let units = [("d", 86_400), ("h", 3_600), ("m", 60)].map(|(unit, s)| (unit, s * 1_000_000_000, 2));
    let short = [("s", 1_000_000_000, 1), ("ms", 1_000_000, 1), ("us", 1_000, 1)];
    let nanos = time.as_nanos();
    let mut units = units.into_iter().chain(short);
    let fits = |&(_, unit, least): &(&str, u128, u128)| nanos.is_multiple_of(unit) && nanos / unit >= least;
    if nanos == 0 {
        return "0s".to_owned();
    }
    units.find(fits).map_or_else(|| format!("{nanos}ns"), |(name, unit, _)| format!("{}{name}", nanos / unit))
}

/// Formats a range; `None` if it has no upper end.
pub fn bounds((low, high): (f64, f64), unit: &str) -> Option<String> {
    high.is_finite().then(|| format!("{} to {}", shown(low, unit), shown(high, unit)))
}

/// Parses a number with its unit, as [`shown`] writes it, in that unit.
pub fn parse(text: &str, unit: &str) -> Option<f64> {
    let number = |text: &str| text.trim_end().parse::<f64>().ok().filter(|number| number.is_finite());
    match unit {
        "s" => time(text).map(|time| time.as_secs_f64()),
        "MiB" => {
            let whole = |unit| text.strip_suffix(unit)?.trim_end().parse::<u32>().ok().map(f64::from);
            whole("MiB").or_else(|| Some(whole("GiB")? * 1_024.0))
        }
        "1/s" => text.strip_suffix("1/s").or_else(|| text.strip_suffix("/s")).or(Some(text)).and_then(number),
        unit => text.strip_suffix(unit).and_then(number),
    }
}

/// The units of a time with decimals, in nanoseconds.
const TIME_UNITS: [(&str, f64); 9] = [
    ("", 1e9),
    ("ns", 1.0),
    ("us", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("min", 60e9),
    ("h", 3_600e9),
    ("d", 86_400e9),
];

/// Parses a time: `500ms`, `1.5s`, `1h 30m`; a number without a unit is in seconds.
pub fn time(text: &str) -> Option<Duration> {
    let text = text.trim();
    let unit_at = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (amount, unit) = text.split_at(unit_at);
    if !amount.contains('.') {
        let whole = if unit.is_empty() { format!("{amount}s") } else { text.to_owned() };
        return humantime::parse_duration(&whole).ok();
    }
    let (_, unit_ns) = TIME_UNITS.into_iter().find(|(name, _)| *name == unit.trim_start())?;
    let nanos = (amount.parse::<f64>().ok()? * unit_ns).round();
    (nanos <= u64::MAX as f64).then(|| Duration::from_nanos(nanos as u64))
}

/// Formats a difference and the ends of its interval: `+12.34 %`, `+10.00` and `+15.00`; as ratios, `287 ×`, `201 ×`
/// and `401 ×`, if one of them is tenfold, or the difference is to a tenth or less. Units other than percent have no
/// ratios.
pub fn difference(values: [f64; 3], unit: &str, decimals: usize) -> [String; 3] {
    let ratios = values.map(|percent| 1.0 + percent / 100.0);
    let is_multiple = ratios.iter().any(|ratio| *ratio >= TENFOLD);
    let is_fraction = ratios[0] <= 1.0 / TENFOLD && ratios.iter().all(|ratio| *ratio > 0.0);
    if unit == "%" && (is_multiple || is_fraction) {
        return ratios.map(multiple);
    }
    let [effect, low, high] = values.map(|value| format!("{value:+.decimals$}"));
    [format!("{effect} {unit}"), low, high]
}

/// From here on a ratio is read as a multiple.
const TENFOLD: f64 = 10.0;

/// Formats a ratio: `0.912` within tenfold, and beyond `286 ×` or `÷ 286`.
pub fn ratio(ratio: f64, decimals: usize) -> String {
    let is_within = ratio <= 0.0 || (1.0 / TENFOLD..TENFOLD).contains(&ratio);
    if is_within { format!("{ratio:.decimals$}") } else { multiple(ratio) }
}

/// Formats a ratio as a multiple with three digits: `1.03 ×`, `286 ×`, and `÷ 286` for a tenth or less.
pub fn multiple(ratio: f64) -> String {
    // Two decimals below 1 too: the third means nothing there.
    let digits = |factor: f64| if factor < 1.0 { format!("{factor:.2}") } else { three_digits(factor) };
    let is_fraction = ratio > 0.0 && ratio <= 1.0 / TENFOLD;
    if is_fraction { format!("÷ {}", digits(1.0 / ratio)) } else { format!("{} ×", digits(ratio)) }
}

/// Describes the accepted numbers: `a time from 1ms to 24h, such as 10s`.
pub fn allowed((low, high): (f64, f64), unit: &str, is_whole: bool) -> String {
    let (kind, examples) = match unit {
        "s" => ("time", &["10s", "10m"][..]),
        "MiB" => ("size", &["512MiB", "2GiB"][..]),
        "%" => ("percentage", &[][..]),
        _ if is_whole => ("whole number", &[][..]),
        _ => ("number", &[][..]),
    };
    let is_accepted = |text: &str| parse(text, unit).is_some_and(|number| (low..=high).contains(&number));
    let example = examples.iter().find(|text| is_accepted(text));
    let example = example.map_or_else(String::new, |example| format!(", such as {example}"));
    let range = bounds((low, high), unit).unwrap_or_else(|| shown(low, unit));
    format!("a {kind} from {range}{example}")
}

/// A length of time as `mm:ss`, or `h:mm:ss` from an hour.
pub fn elapsed_text(seconds: u64) -> String {
    let (h, m, s) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
    if h == 0 { format!("{m:02}:{s:02}") } else { format!("{h}:{m:02}:{s:02}") }
}

/// A moment in seconds since 1970, such as `2027-03-01T12:00:00Z`; at most the last one of year 9999.
pub fn moment(unix: u64) -> String {
    const YEAR_9999_END: u64 = 253_402_300_799;
    let at = UNIX_EPOCH + Duration::from_secs(unix.min(YEAR_9999_END));
    humantime::format_rfc3339_seconds(at).to_string()
}

/// The day of a moment.
pub fn day(unix: u64) -> String {
    moment(unix).chars().take_while(|c| *c != 'T').collect()
}

/// A number of things in words: `1 client`, `3,000 clients`.
pub fn counted(n: u64, noun: &str) -> String {
    if n == 1 { format!("1 {noun}") } else { format!("{} {noun}s", grouped(n)) }
}

/// A whole number with its thousands grouped, such as `19,995` or `-1,234`.
pub fn grouped(number: impl Display) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.char_indices() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && !text.ends_with('-') {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with this many decimals and its thousands grouped; a value that is not a number is written unchanged.
pub fn fixed(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    grouped(whole) + rest
}

/// A number with three digits, but at most three decimals and all digits before the point: `0.041`, `1.92`, `60,000`.
pub fn three_digits(value: f64) -> String {
    let decimals = match value.abs() {
        v if v < 0.9995 => 3,
        v if v < 9.995 => 2,
        v if v < 99.95 => 1,
        _ => 0,
    };
    fixed(value, decimals)
}

/// A number's text without the zeros at the end of its decimals.
pub fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_beyond_tenfold_are_multiples() {
        let told = |values, unit| difference(values, unit, 2);
        assert_eq!(told([12.345, -3.0, 899.0], "%"), ["+12.35 %", "-3.00", "+899.00"]);
        assert_eq!(told([28_577.24, 900.0, 1.5e5], "%"), ["287 ×", "10.0 ×", "1,501 ×"]);
        assert_eq!(told([3.0, -60.0, 1_000.0], "%"), ["1.03 ×", "0.40 ×", "11.0 ×"], "all in one form");
        assert_eq!(told([-99.65, -99.8, -60.0], "%"), ["÷ 286", "÷ 500", "0.40 ×"]);
        assert_eq!(
            told([-95.0, -110.0, -80.0], "%"),
            ["-95.00 %", "-110.00", "-80.00"],
            "no ratio is negative"
        );
        assert_eq!(told([-60.0, -95.0, 20.0], "%"), ["-60.00 %", "-95.00", "+20.00"]);
        assert_eq!(told([1_000.0, 0.0, 0.0], "points")[0], "+1000.00 points");
    }

    #[test]
    fn a_time_has_a_unit_or_is_in_seconds() {
        let times = [
            ("30", 30_000),
            (" 1.5 ", 1_500),
            ("0.25s", 250),
            ("500ms", 500),
            ("1h 30m", 5_400_000),
            ("2d", 172_800_000),
            ("0", 0),
            ("1.5h", 5_400_000),
            ("1.5d", 129_600_000),
        ];
        for (text, ms) in times {
            assert_eq!(time(text), Some(Duration::from_millis(ms)), "{text}");
        }
        assert_eq!(time("1us"), Some(Duration::from_micros(1)));
        for text in
            ["", "s", "soon", "-1s", "1e3", "1.5 fortnights", ".", "1.2.3s", "99999999999999999999", "9e99s"]
        {
            assert_eq!(time(text), None, "{text}");
        }
    }

    #[test]
    fn ratios_beyond_tenfold_are_multiples() {
        let told = |value| ratio(value, 3);
        assert_eq!([1.0, 0.9118, 9.5, 0.1].map(told), ["1.000", "0.912", "9.500", "0.100"]);
        assert_eq!([10.0, 286.4, 12_345.0].map(told), ["10.0 ×", "286 ×", "12,345 ×"]);
        assert_eq!([0.0875, 1.0 / 286.0, 0.0].map(told), ["÷ 11.4", "÷ 286", "0.000"]);
    }

    #[test]
    fn displayed_values_parse_back() {
        for (number, unit, text) in [
            (10.0, "s", "10s"),
            (0.0, "s", "0s"),
            (60.0, "s", "60s"),
            (600.0, "s", "10m"),
            (86_400.0, "s", "24h"),
            (0.001, "s", "1ms"),
            (604_800.0, "s", "7d"),
            (512.0, "MiB", "512MiB"),
            (1_048_576.0, "MiB", "1024GiB"),
            (80.0, "%", "80%"),
            (1_000.5, "1/s", "1000.5/s"),
            (4.0, "", "4"),
        ] {
            assert_eq!(shown(number, unit), text);
            assert_eq!(parse(text, unit), Some(number), "{text}");
        }
        assert_eq!(
            (parse("10", "s"), parse("10", "1/s"), parse("10", "MiB")),
            (Some(10.0), Some(10.0), None)
        );
        assert_eq!(parse("1e400", ""), None);
    }

    #[test]
    fn allowed_values_are_described_with_range_and_unit() {
        let time = allowed((0.001, 86_400.0), "s", false);
        assert_eq!(time, "a time from 1ms to 24h, such as 10s");
        let lifetime = allowed((60.0, 604_800.0), "s", false);
        assert_eq!(lifetime, "a time from 60s to 7d, such as 10m");
        assert_eq!(allowed((1.0, 64.0), "MiB", true), "a size from 1MiB to 64MiB");
        assert_eq!(allowed((1.0, 256.0), "", true), "a whole number from 1 to 256");
        assert_eq!(allowed((1.0, f64::INFINITY), "", true), "a whole number from 1");
    }

    #[test]
    fn counts_are_grouped_and_agree_with_their_noun() {
        assert_eq!((counted(1, "client"), counted(0, "client")), ("1 client".into(), "0 clients".into()));
        assert_eq!(["7", "1000", "123456"].map(grouped), ["7", "1,000", "123,456"]);
        assert_eq!([-123, -1_234].map(grouped), ["-123", "-1,234"]);
    }

    #[test]
    fn decimals_are_kept_and_thousands_grouped() {
        assert_eq!([-1234.5, 0.0, 999.9999].map(|value| fixed(value, 2)), ["-1,234.50", "0.00", "1,000.00"]);
        assert_eq!([f64::INFINITY, f64::NEG_INFINITY].map(|value| fixed(value, 1)), ["inf", "-inf"]);
        assert_eq!(["1.50", "2.000", "100", "0"].map(trimmed), ["1.5", "2", "100", "0"]);
    }

    #[test]
    fn three_digits_never_become_four_by_rounding() {
        let values = [0.0413, 0.9996, 1.92, 9.996, 99.96, 60_000.0, -1.5];
        assert_eq!(values.map(three_digits), ["0.041", "1.00", "1.92", "10.0", "100", "60,000", "-1.50"]);
    }
}
