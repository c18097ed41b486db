//! The speed at which a recording is played.

use std::str::FromStr;

use crate::theme::Glyphs;

/// The selectable speeds, slowest first.
const CHOICES: [(f64, &str); 9] = [
    (0.25, "1/4"),
    (0.5, "1/2"),
    (1.0, "1"),
    (2.0, "2"),
    (4.0, "4"),
    (8.0, "8"),
    (16.0, "16"),
    (32.0, "32"),
    (64.0, "64"),
];

/// The recording's own speed.
const OWN: usize = 2;

/// The playback speed of a recording, as a multiple of real time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(usize);

/// The text is not a selectable speed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a speed: 1/4, 1/2, 1, 2, 4, 8, 16, 32 or 64")]
pub struct ParseSpeedError;

impl Default for Speed {
    fn default() -> Self {
        Self(OWN)
    }
}

impl FromStr for Speed {
    type Err = ParseSpeedError;

    fn from_str(text: &str) -> Result<Self, ParseSpeedError> {
        let text = text.trim_end_matches(['x', '×']);
        let is_it = |(times, words): &(f64, &str)| *words == text || text.parse() == Ok(*times);
        CHOICES.iter().position(is_it).map(Self).ok_or(ParseSpeedError)
    }
}

impl Speed {
    /// Returns the seconds of the recording per second of playing.
    pub(crate) fn times(self) -> f64 {
        CHOICES[self.0].0
    }

    /// Returns the speed as text, such as `4×`.
    pub(crate) fn words(self, glyphs: Glyphs) -> String {
        format!("{}{}", CHOICES[self.0].1, glyphs.times())
    }

    pub(crate) fn slower(self) -> Self {
        Self(self.0.saturating_sub(1))
    }

    pub(crate) fn faster(self) -> Self {
        Self((self.0 + 1).min(CHOICES.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_is_one_of_the_choices_however_it_is_written() {
        for (text, times) in
            [("1", 1.0), ("4x", 4.0), ("64×", 64.0), ("1/4", 0.25), ("0.5", 0.5), (".25", 0.25)]
        {
            assert_eq!(text.parse().map(Speed::times), Ok(times), "{text}");
        }
        for text in ["", "3", "128", "-1", "fast", "1/3", "NaN"] {
            assert_eq!(text.parse::<Speed>(), Err(ParseSpeedError), "{text}");
        }
        assert_eq!(Speed(0).slower(), Speed(0));
        assert_eq!(Speed(8).faster().words(Glyphs::Ascii), "64x");
    }
}
