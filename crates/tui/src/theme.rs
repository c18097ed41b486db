//! Characters and colours.

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
    /// [`Glyphs::Unicode`] where the locale's character set is UTF-8, by the environment's `LC_ALL`, `LC_CTYPE` and
    /// `LANG`, the first that is set and not empty.
    pub fn detect() -> Self {
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .iter()
            .filter_map(env::var_os)
            .find(|value| !value.is_empty())
            .map(|value| value.to_string_lossy().to_ascii_lowercase());
        let is_utf8 = locale.is_some_and(|locale| locale.contains("utf-8") || locale.contains("utf8"));
        if is_utf8 { Self::Unicode } else { Self::Ascii }
    }
}

/// Colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// The terminal's own sixteen.
    Sixteen,
    /// None; bold and dim only.
    Monochrome,
}

impl Palette {
    /// [`Palette::Monochrome`] where the environment's `NO_COLOR` is set and not empty (no-color.org).
    pub fn detect() -> Self {
        if env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()) {
            Self::Monochrome
        } else {
            Self::Sixteen
        }
    }
}
