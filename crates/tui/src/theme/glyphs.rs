//! Characters of borders, graphs and markers.

use std::env;

/// Characters of borders, graphs and markers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyphs {
    /// Box drawing and block elements.
    Unicode,
    /// Seven-bit characters only.
    Ascii,
}

impl Glyphs {
    /// Returns [`Glyphs::Unicode`] if the locale's character set is UTF-8. The locale is the first of the
    /// environment's `LC_ALL`, `LC_CTYPE` and `LANG` that is set and not empty.
    pub fn detect() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty())
            .map(|value| value.to_string_lossy().to_ascii_lowercase());
        let is_utf8 = locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"));
        if is_utf8 { Self::Unicode } else { Self::Ascii }
    }

    fn pick<T>(self, unicode: T, ascii: T) -> T {
        match self {
            Self::Unicode => unicode,
            Self::Ascii => ascii,
        }
    }

    /// Fills headings.
    pub(crate) fn rule(self) -> char {
        self.pick('─', '-')
    }

    /// Marks truncated text.
    pub(crate) fn ellipsis(self) -> char {
        self.pick('…', '~')
    }

    /// Replaces a missing figure.
    pub(crate) fn none(self) -> char {
        self.pick('–', '-')
    }

    /// Precedes a lower bound.
    pub(crate) fn at_least(self) -> &'static str {
        self.pick("≥", ">=")
    }

    /// Precedes an upper bound.
    pub(crate) fn at_most(self) -> &'static str {
        self.pick("≤", "<=")
    }

    /// Points at the selected row.
    pub(crate) fn pointer(self) -> char {
        self.pick('▶', '>')
    }

    /// Returns a column name with its sort direction; in ASCII in the notation of the sort keys of `ps` and
    /// `git`.
    pub(crate) fn sorted(self, column: &str, descending: bool) -> String {
        match (self, descending) {
            (Self::Unicode, true) => format!("{column}▼"),
            (Self::Unicode, false) => format!("{column}▲"),
            (Self::Ascii, true) => format!("-{column}"),
            (Self::Ascii, false) => format!("+{column}"),
        }
    }

    /// The sign after a factor.
    pub(crate) fn times(self) -> char {
        self.pick('×', 'x')
    }

    /// The sign before the divisor of a factor.
    pub(crate) fn over(self) -> char {
        self.pick('÷', '/')
    }

    /// The signs for playing, paused, and ended.
    pub(crate) fn playback(self) -> [&'static str; 3] {
        self.pick(["▶", "⏸", "■"], [">", "||", "[]"])
    }

    /// The past part of a length, its end, and the rest.
    pub(crate) fn bar(self) -> [char; 3] {
        self.pick(['━', '●', '─'], ['=', 'O', '-'])
    }

    /// Marks a moment on the time line, before the time since the beginning.
    pub(crate) fn moment_tick(self) -> &'static str {
        match self {
            Self::Unicode => "┴+",
            Self::Ascii => "+",
        }
    }

    /// Marks a changed setting.
    pub(crate) fn marker(self) -> char {
        self.pick('▲', '^')
    }

    /// The cells of the heat map, from a single sample to most of them.
    pub(crate) fn shades(self) -> [char; 5] {
        self.pick(['·', '░', '▒', '▓', '█'], ['.', ':', '+', '%', '#'])
    }

    /// The levels of a sparkline, from the minimum to the maximum.
    pub(crate) fn levels(self) -> &'static [char] {
        self.pick(&['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'], &['_', '-', '~', '=', '+', '*', '%', '#'])
    }

    /// The ends of a stretch of time, from below.
    pub(crate) fn bracket(self) -> (char, char) {
        self.pick(('└', '┘'), ('\\', '/'))
    }

    /// The ends of an interval.
    pub(crate) fn interval(self) -> (char, char) {
        self.pick(('├', '┤'), ('[', ']'))
    }

    /// A line from above to below.
    pub(crate) fn upright(self) -> char {
        self.pick('│', '|')
    }

    /// Such a line across an interval.
    pub(crate) fn crossing(self) -> char {
        self.pick('┿', '|')
    }

    /// A single value among others.
    pub(crate) fn dot(self) -> char {
        self.pick('•', 'o')
    }

    /// A limit.
    pub(crate) fn dash(self) -> char {
        self.pick('╌', '-')
    }

    /// Point at what is above and below a scale.
    pub(crate) fn beyond(self) -> [char; 2] {
        self.pick(['↑', '↓'], ['^', 'v'])
    }

    /// Zero in a sparkline: a dotted line.
    pub(crate) fn zero(self) -> char {
        self.pick('⡀', '.')
    }
}
