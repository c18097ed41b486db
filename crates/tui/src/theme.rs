//! Characters and colours.

use std::env;

use ratatui::style::{Color, Modifier, Style};

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

    /// Stands where text was cut.
    pub(crate) fn ellipsis(self) -> char {
        self.pick('…', '~')
    }

    /// Stands where there is no figure.
    pub(crate) fn none(self) -> char {
        self.pick('–', '-')
    }

    /// Points at the selected row.
    pub(crate) fn pointer(self) -> char {
        self.pick('▶', '>')
    }

    /// A column with the direction in which it is sorted; in ASCII as the sort keys of `ps` and `git` say it.
    pub(crate) fn sorted(self, column: &str, descending: bool) -> String {
        match (self, descending) {
            (Self::Unicode, true) => format!("{column}▼"),
            (Self::Unicode, false) => format!("{column}▲"),
            (Self::Ascii, true) => format!("-{column}"),
            (Self::Ascii, false) => format!("+{column}"),
        }
    }

    /// Stands where a setting was changed.
    pub(crate) fn marker(self) -> char {
        self.pick('▲', '^')
    }

    /// Cells of the heat map, from a single sample to most of them.
    pub(crate) fn shades(self) -> [char; 7] {
        self.pick(['·', ':', '-', '░', '▒', '▓', '█'], ['.', ':', '-', '=', '+', '*', '#'])
    }

    /// Levels of a sparkline, from nothing to the most.
    pub(crate) fn levels(self) -> &'static [char] {
        self.pick(&['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'], &['_', '.', ':', '-', '=', '+', '*', '#'])
    }
}

/// Colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    /// The terminal's own sixteen.
    Sixteen,
    /// None; bold, dim and reversed only.
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

/// Glyphs and the styles of everything; colour only repeats what words, brackets and places say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Theme {
    pub(crate) glyphs: Glyphs,
    palette: Palette,
}

#[expect(clippy::unused_self, reason = "what a style depends on is the theme's own business")]
impl Theme {
    pub(crate) fn new(glyphs: Glyphs, palette: Palette) -> Self {
        Self { glyphs, palette }
    }

    fn coloured(self, color: Color) -> Style {
        match self.palette {
            Palette::Sixteen => Style::new().fg(color),
            Palette::Monochrome => Style::new(),
        }
    }

    /// A pane's heading.
    pub(crate) fn heading(self) -> Style {
        self.coloured(Color::Cyan).add_modifier(Modifier::BOLD)
    }

    /// Lines, units, words between figures.
    pub(crate) fn quiet(self) -> Style {
        Style::new().add_modifier(Modifier::DIM)
    }

    /// The name of a figure.
    pub(crate) fn label(self) -> Style {
        Style::new()
    }

    /// A figure.
    pub(crate) fn figure(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    /// All goes well.
    pub(crate) fn good(self) -> Style {
        self.coloured(Color::Green).add_modifier(Modifier::BOLD)
    }

    /// A person did something, or should look.
    pub(crate) fn notice(self) -> Style {
        self.coloured(Color::Yellow).add_modifier(Modifier::BOLD)
    }

    /// Something is wrong.
    pub(crate) fn warning(self) -> Style {
        self.coloured(Color::Red).add_modifier(Modifier::BOLD)
    }

    /// A badge or a banner in this style.
    pub(crate) fn badge(self, style: Style) -> Style {
        style.add_modifier(Modifier::REVERSED)
    }

    /// A graph.
    pub(crate) fn graph(self) -> Style {
        self.coloured(Color::Blue)
    }

    /// A cell of the heat map, by its strength.
    pub(crate) fn heat(self, strength: usize) -> Style {
        self.coloured(match strength {
            0 | 1 => Color::Blue,
            2 | 3 => Color::Cyan,
            4 => Color::Green,
            5 => Color::Yellow,
            _ => Color::Red,
        })
    }

    /// The selected row.
    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}
