//! Figures and texts as the screen shows them. Units are beside them or in the heading.

use records::metrics::{KnownTime, TimeResolution};
use records::text::quantity::{fixed, grouped, three_digits, trimmed};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::theme::Glyphs;

/// Nanoseconds in milliseconds.
pub(crate) fn millis(ns: u64) -> String {
    three_digits(ns as f64 / 1e6)
}

/// Nanoseconds in milliseconds, no finer than the time is known.
pub(crate) fn latency(ns: u64, resolution: TimeResolution, glyphs: Glyphs) -> String {
    let whole = |ns: u64| grouped(ns / 1_000_000);
    match resolution.known(ns) {
        KnownTime::Fine(ns) => millis(ns),
        KnownTime::Rounded(ns) => whole(ns),
        KnownTime::AtMost(ns) => format!("{} {}", glyphs.at_most(), whole(ns)),
    }
}

/// Events a second: whole from 100 up.
pub(crate) fn per_second(rate: f64) -> String {
    match rate {
        r if r < 0.05 => if r > 0.0 { "<0.1" } else { "0" }.to_owned(),
        r if r < 99.95 => format!("{r:.1}"),
        r if r < 999_999.5 => fixed(r, 0),
        r => format!("{}M", three_digits(r / 1e6)),
    }
}

/// A count: exact to seven digits, then in millions or billions.
pub(crate) fn count(n: u64) -> String {
    match n {
        0..=9_999_999 => grouped(n),
        10_000_000..=999_499_999 => format!("{}M", three_digits(n as f64 / 1e6)),
        _ => format!("{}G", three_digits(n as f64 / 1e9)),
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct ByteUnit {
    pub(crate) name: &'static str,
    bytes: f64,
}

impl ByteUnit {
    /// The largest unit in which an amount has at most three digits before the point.
    pub(crate) fn of(bytes: f64) -> Self {
        let (name, unit) = match bytes {
            b if b < 999.5 => ("B", 1.0),
            b if b < 999_500.0 => ("kB", 1e3),
            b if b < 999.5e6 => ("MB", 1e6),
            b if b < 999.5e9 => ("GB", 1e9),
            _ => ("TB", 1e12),
        };
        Self { name, bytes: unit }
    }

    /// An amount in this unit, without its name, with three digits.
    pub(crate) fn shown(self, bytes: f64) -> String {
        match bytes / self.bytes {
            0.0 => "0".to_owned(),
            number if self.bytes <= 1.0 => format!("{number:.0}"),
            number if number < 0.000_5 => "<0.001".to_owned(),
            number => three_digits(number),
        }
    }
}

/// Decimal bytes, with three digits.
pub(crate) fn bytes(bytes: f64) -> String {
    let unit = ByteUnit::of(bytes);
    format!("{} {}", unit.shown(bytes), unit.name)
}

/// Decimal bytes a second.
pub(crate) fn bytes_per_second(rate: f64) -> String {
    format!("{}/s", bytes(rate))
}

/// A share of one in percent, with one decimal.
pub(crate) fn percent(share: f64) -> String {
    format!("{:.1}%", share * 100.0)
}

/// Cores kept busy, in percent of one core.
pub(crate) fn cpu(cores: f64) -> String {
    let percent = cores * 100.0;
    if percent < 9.95 { format!("{percent:.1}%") } else { format!("{percent:.0}%") }
}

/// The time of day in UTC.
pub(crate) fn time_of_day(realtime_us: u64) -> String {
    let s = realtime_us / 1_000_000;
    format!("{:02}:{:02}:{:02}Z", s / 3600 % 24, s / 60 % 60, s % 60)
}

/// A span in words: microseconds below 1 ms as ms, then s, then min.
pub(crate) fn span(us: u64) -> String {
    match us {
        0..=999_499 => format!("{} ms", us.div_ceil(1000)),
        999_500..=59_999_999 if us.is_multiple_of(1_000_000) => format!("{} s", us / 1_000_000),
        999_500..=59_999_999 => format!("{:.1} s", us as f64 / 1e6),
        _ if us.is_multiple_of(60_000_000) => format!("{} min", us / 60_000_000),
        _ => format!("{:.1} min", us as f64 / 60e6),
    }
}

/// How long something has lasted, in its two largest units: `12 s`, `12 min 3 s`, `3 h 4 min`, `5 d 2 h`.
pub(crate) fn age(seconds: u64) -> String {
    let (large, small) = match seconds {
        0..60 => return format!("{seconds} s"),
        60..3_600 => ((60, "min"), (1, "s")),
        3_600..86_400 => ((3_600, "h"), (60, "min")),
        _ => ((86_400, "d"), (3_600, "h")),
    };
    let rest = seconds % large.0 / small.0;
    let rest = if rest > 0 { format!(" {rest} {}", small.1) } else { String::new() };
    format!("{} {}{rest}", count(seconds / large.0), large.1)
}

/// A number without needless zeros, for values of settings.
pub(crate) fn plain(number: f64) -> String {
    trimmed(&format!("{number:.3}")).to_owned()
}

/// A sentence as a phrase beside others: without its capital and its full stop.
pub(crate) fn phrase(sentence: &str) -> String {
    let text = sentence.trim_end_matches('.');
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        // An abbreviation such as TLS stays.
        (Some(first), Some(second)) if !second.is_uppercase() => {
            first.to_lowercase().chain(text.chars().skip(1)).collect()
        }
        _ => text.to_owned(),
    }
}

/// Cells that a text takes.
pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// The beginning of a text, cut to `cells` with a mark where something is missing.
pub(crate) fn cut(text: &str, cells: usize, glyphs: Glyphs) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let mark = glyphs.ellipsis();
    let room = cells.saturating_sub(1);
    let mut used = 0;
    let fits = |c: &char| {
        used += c.width().unwrap_or(0);
        used <= room
    };
    let mut kept: String = text.chars().take_while(fits).collect();
    if cells > 0 {
        kept.push(mark);
    }
    kept
}

/// The end of a text, cut to `cells` with a mark where something is missing: for paths.
pub(crate) fn cut_front(text: &str, cells: usize, glyphs: Glyphs) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let reversed: String = text.chars().rev().collect();
    cut(&reversed, cells, glyphs).chars().rev().collect()
}

/// Both ends of a text, cut to `cells` with a mark between: for addresses.
pub(crate) fn cut_middle(text: &str, cells: usize, glyphs: Glyphs) -> String {
    if width(text) <= cells {
        return text.to_owned();
    }
    let tail_cells = cells.saturating_sub(1) / 2;
    let head = cut(text, cells - tail_cells, glyphs);
    let reversed: String = text.chars().rev().collect();
    let tail = cut(&reversed, tail_cells + 1, glyphs);
    head + &tail.chars().rev().skip(1).collect::<String>()
}

/// A text in lines of at most `cells`, parted at blanks; a word that is longer has a line for itself.
pub(crate) fn wrapped(text: &str, cells: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| width(line) + 1 + width(word) <= cells) {
            Some(line) => {
                line.push(' ');
                line.push_str(word);
            }
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_wrapped_at_blanks() {
        assert_eq!(wrapped("one two three", 7), ["one two", "three"]);
        assert_eq!(wrapped("one two three", 6), ["one", "two", "three"]);
        assert_eq!(wrapped("a  unbreakable b", 4), ["a", "unbreakable", "b"]);
        assert_eq!(wrapped(" ", 4), [""; 0]);
    }

    #[test]
    fn a_sentence_becomes_a_phrase() {
        let phrases = ["Segments sent again.", "TLS version of its handshakes", "p50 of all"].map(phrase);
        assert_eq!(phrases, ["segments sent again", "TLS version of its handshakes", "p50 of all"]);
    }

    #[test]
    fn latencies_keep_three_digits_and_never_grow_at_a_rounding() {
        let ms = |ns: u64| millis(ns);
        assert_eq!(ms(1_920_000), "1.92");
        assert_eq!(ms(41_300), "0.041");
        assert_eq!(ms(999_600), "1.00");
        assert_eq!(ms(9_996_000), "10.0");
        assert_eq!(ms(60_000_000_000), "60,000");
    }

    #[test]
    fn a_latency_of_a_log_is_no_finer_than_the_log() {
        let log = |ns: u64| latency(ns, TimeResolution::from_us(1_000), Glyphs::Unicode);
        assert_eq!(log(1_000_400), "≤ 1");
        assert_eq!(log(12_004_000), "12");
        assert_eq!(log(60_000_000_000), "60,000");
        assert_eq!(latency(1_000_400, TimeResolution::FINE, Glyphs::Unicode), "1.00");
    }

    #[test]
    fn bytes_are_decimal_and_change_unit_before_they_take_four_digits() {
        assert_eq!(bytes(999.0), "999 B");
        assert_eq!(bytes(999_700.0), "1.00 MB");
        assert_eq!(bytes(41_234_000.0), "41.2 MB");
        assert_eq!(bytes(512_000_000.0), "512 MB");
    }

    #[test]
    fn bytes_in_the_unit_of_others_are_never_shown_as_nothing() {
        let megabytes = ByteUnit::of(41_234_000.0);
        let shown = [41_234_000.0, 569_000.0, 4_200.0, 12.0, 0.0].map(|bytes| megabytes.shown(bytes));
        assert_eq!(shown, ["41.2", "0.569", "0.004", "<0.001", "0"]);
    }

    #[test]
    fn a_rate_above_nothing_is_never_shown_as_nothing() {
        assert_eq!(per_second(0.0), "0");
        assert_eq!(per_second(0.01), "<0.1");
        assert_eq!(per_second(99.97), "100");
        assert_eq!(per_second(4998.2), "4,998");
    }

    #[test]
    fn thousands_are_grouped() {
        assert_eq!(
            [0, 999, 1_000, 12_345, 1_234_567].map(count),
            ["0", "999", "1,000", "12,345", "1,234,567"]
        );
    }

    #[test]
    fn cut_texts_fit_by_cells_not_by_characters() {
        for cells in 0..12 {
            for text in
                ["plain text that is long", "日本語の長い文字列です", "e\u{301}e\u{301}e\u{301}e\u{301}"]
            {
                for cutter in [cut, cut_front, cut_middle] {
                    assert!(width(&cutter(text, cells, Glyphs::Unicode)) <= cells, "{text} in {cells}");
                }
            }
        }
        assert_eq!(cut("abcdef", 4, Glyphs::Unicode), "abc…");
        assert_eq!(cut_front("abcdef", 4, Glyphs::Ascii), "~def");
        assert_eq!(cut_middle("2001:db8:0:1::abcd", 9, Glyphs::Unicode), "2001…abcd");
    }
}
