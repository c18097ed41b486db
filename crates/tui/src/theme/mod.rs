//! Characters, colours, and the texts of figures.

pub(crate) mod format;
mod glyphs;
pub(crate) mod scheme;

use ratatui::style::{Color, Modifier, Style};

pub use glyphs::Glyphs;

/// Colours, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Palette {
    Coloured(Colours),
    /// No colours: bold, dim and reversed only.
    Monochrome,
}

macro_rules! colours {
    ($($(#[$doc:meta])* $role:ident = $sixteen:expr, $dark:expr, $light:expr;)*) => {
        /// The colour of each role. Colour only repeats what words, brackets and positions say.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct Colours { $($(#[$doc])* $role: Color,)* }

        impl Colours {
            /// The terminal's own sixteen colours.
            pub const SIXTEEN: Self = Self { $($role: $sixteen,)* };
            /// Colours among the terminal's 256, for a dark background.
            pub const DARK: Self = Self { $($role: Color::Indexed($dark),)* };
            /// Colours among the terminal's 256, for a light background.
            pub const LIGHT: Self = Self { $($role: Color::Indexed($light),)* };

            pub fn entries(&self) -> impl Iterator<Item = (&'static str, String)> {
                [$((stringify!($role), self.$role.to_string().to_lowercase())),*].into_iter()
            }

            /// Returns the colours after applying a function to each.
            pub(crate) fn map(self, change: impl Fn(Color) -> Color) -> Self {
                Self { $($role: change(self.$role),)* }
            }

            fn role(&mut self, name: &str) -> Option<&mut Color> {
                Some(match name { $(stringify!($role) => &mut self.$role,)* _ => return None })
            }
        }
    };
}
colours! {
    /// The accent: headings and keys.
    heading = Color::Cyan, 80, 24;
    /// Lines, units and words between figures; `reset` leaves their dimming to the terminal.
    quiet = Color::Reset, 246, 241;
    /// Success.
    good = Color::Green, 114, 22;
    /// Actions by a person, and notices; no alarm, so the accent.
    notice = Color::Cyan, 80, 24;
    /// Alarms: what makes figures worse, or untrue.
    warning = Color::Yellow, 221, 94;
    /// Alarms: what does not work at all.
    critical = Color::Red, 210, 124;
    /// Graphs: the accent.
    graph = Color::Cyan, 80, 24;
    /// The line of p99: the hottest of the plot.
    p99 = Color::Yellow, 221, 94;
    /// The line of p50.
    p50 = Color::Reset, 195, 17;
    /// The heat map behind the lines, from few samples to most: one hue, from the background on.
    heat1 = Color::Blue, 17, 195;
    /// The next stronger.
    heat2 = Color::Blue, 17, 195;
    /// The next stronger.
    heat3 = Color::Blue, 18, 153;
    /// The next stronger.
    heat4 = Color::Blue, 24, 117;
    /// Most samples.
    heat5 = Color::Blue, 25, 111;
    /// The parts of a handshake: time on the network.
    network = Color::Magenta, 141, 91;
    /// Time that the client took.
    client = Color::Reset, 109, 60;
    /// Time that what had come waited for the worker.
    loop_delay = Color::Yellow, 221, 94;
    /// CPU time.
    compute = Color::Blue, 75, 25;
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColourError {
    #[error("there is no colour for {0}; --print-config lists them")]
    Role(String),
    #[error("{role}: {colour} is no colour, such as lightblue, 75 or #5fafff")]
    Colour { role: String, colour: String },
}

impl Colours {
    /// Returns the colours with another colour for a role.
    ///
    /// # Errors
    /// If the role does not exist, or the colour is invalid.
    pub fn with(mut self, role: &str, colour: &str) -> Result<Self, ColourError> {
        let place = self.role(role).ok_or_else(|| ColourError::Role(role.to_owned()))?;
        let wrong = |_| ColourError::Colour { role: role.to_owned(), colour: colour.to_owned() };
        *place = colour.parse().map_err(wrong)?;
        Ok(self)
    }
}

/// The glyphs and all styles. Colour only repeats what words, brackets and positions say.
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

    fn coloured(self, role: fn(&Colours) -> Color) -> Style {
        match &self.palette {
            Palette::Coloured(colours) => Style::new().fg(role(colours)),
            Palette::Monochrome => Style::new(),
        }
    }

    pub(crate) fn heading(self) -> Style {
        self.coloured(|colours| colours.heading).add_modifier(Modifier::BOLD)
    }

    /// Lines, units, words between figures: a grey that is readable, and dim only where the theme has none.
    pub(crate) fn quiet(self) -> Style {
        match self.coloured(|colours| colours.quiet) {
            Style { fg: Some(Color::Reset) | None, .. } => Style::new().add_modifier(Modifier::DIM),
            grey => grey,
        }
    }

    /// The name of a figure.
    pub(crate) fn label(self) -> Style {
        Style::new()
    }

    pub(crate) fn figure(self) -> Style {
        Style::new().add_modifier(Modifier::BOLD)
    }

    pub(crate) fn good(self) -> Style {
        self.coloured(|colours| colours.good).add_modifier(Modifier::BOLD)
    }

    /// The style of actions by a person, and of notices.
    pub(crate) fn notice(self) -> Style {
        self.coloured(|colours| colours.notice).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn warning(self) -> Style {
        self.coloured(|colours| colours.warning).add_modifier(Modifier::BOLD)
    }

    /// The style of alarms about what does not work at all.
    pub(crate) fn critical(self) -> Style {
        self.coloured(|colours| colours.critical).add_modifier(Modifier::BOLD)
    }

    /// A badge or a banner in this style.
    pub(crate) fn badge(self, style: Style) -> Style {
        style.add_modifier(Modifier::REVERSED)
    }

    pub(crate) fn graph(self) -> Style {
        self.coloured(|colours| colours.graph)
    }

    /// The line of p99, and its value.
    pub(crate) fn p99(self) -> Style {
        self.coloured(|colours| colours.p99).add_modifier(Modifier::BOLD)
    }

    pub(crate) fn p50(self) -> Style {
        self.coloured(|colours| colours.p50)
    }

    /// The limit of an alert.
    pub(crate) fn limit(self) -> Style {
        self.coloured(|colours| colours.critical)
    }

    /// The parts of a handshake, in the order of its record.
    pub(crate) fn parts(self) -> [Style; 4] {
        let roles: [fn(&Colours) -> Color; 4] = [
            |colours| colours.network,
            |colours| colours.client,
            |colours| colours.loop_delay,
            |colours| colours.compute,
        ];
        roles.map(|role| self.coloured(role))
    }

    /// A cell of the heat map, by its strength: lines are drawn over it, so it is a background where the terminal has
    /// enough colours, and a shade of characters elsewhere.
    pub(crate) fn heat(self, strength: usize) -> (char, Style) {
        let role: fn(&Colours) -> Color = match strength {
            0 => |colours| colours.heat1,
            1 => |colours| colours.heat2,
            2 => |colours| colours.heat3,
            3 => |colours| colours.heat4,
            _ => |colours| colours.heat5,
        };
        match &self.palette {
            Palette::Coloured(colours) if matches!(role(colours), Color::Indexed(16..) | Color::Rgb(..)) => {
                (' ', Style::new().bg(role(colours)))
            }
            _ => (self.glyphs.shades()[strength.min(4)], self.coloured(role).add_modifier(Modifier::DIM)),
        }
    }

    pub(crate) fn selected(self) -> Style {
        Style::new().add_modifier(Modifier::REVERSED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_colour_can_be_changed_and_reads_back_as_it_is_printed() {
        for theme in [Colours::SIXTEEN, Colours::DARK, Colours::LIGHT] {
            for (role, colour) in theme.entries() {
                assert_eq!(theme.with(role, &colour), Ok(theme), "{role} {colour}");
                assert_ne!(theme.with(role, "#102030"), Ok(theme));
            }
        }
        assert_eq!(
            Colours::DARK.with("graph", "sky").unwrap_err().to_string(),
            "graph: sky is no colour, such as lightblue, 75 or #5fafff"
        );
        assert!(Colours::DARK.with("sky", "blue").is_err());
    }

    fn rgb(colour: Color) -> [u8; 3] {
        let Color::Indexed(index) = colour else { panic!("{colour} is not one of the 256") };
        match index {
            16..=231 => {
                [36, 6, 1].map(|place| [0, 95, 135, 175, 215, 255][usize::from((index - 16) / place % 6)])
            }
            232.. => [8 + 10 * (index - 232); 3],
            _ => panic!("each terminal has its own colour {index}"),
        }
    }

    /// The contrast of WCAG 2.2, from 1 to 21.
    fn contrast(a: [u8; 3], b: [u8; 3]) -> f64 {
        let linear = |channel: u8| match f64::from(channel) / 255.0 {
            c if c <= 0.040_45 => c / 12.92,
            c => ((c + 0.055) / 1.055).powf(2.4),
        };
        let luminance = |[r, g, b]: [u8; 3]| 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
        let (a, b) = (luminance(a) + 0.05, luminance(b) + 0.05);
        (a / b).max(b / a)
    }

    #[test]
    fn text_is_readable_on_plain_and_on_solarized_backgrounds() {
        for (theme, backgrounds) in [
            (Colours::DARK, [[0, 0, 0], [0x00, 0x2b, 0x36]]),
            (Colours::LIGHT, [[0xff, 0xff, 0xff], [0xfd, 0xf6, 0xe3]]),
        ] {
            let Colours { heading, quiet, good, notice, warning, critical, graph, p99, p50, .. } = theme;
            let Colours { network, client, loop_delay, compute, .. } = theme;
            let Colours { heat1, heat2, heat3, heat4, heat5, .. } = theme;
            for background in backgrounds {
                let texts = [heading, quiet, good, notice, warning, critical, graph, p99, p50];
                for text in texts.into_iter().chain([network, client, loop_delay, compute]) {
                    let contrast = contrast(rgb(text), background);
                    assert!(contrast >= 4.5, "{text} on {background:?}: {contrast:.1}");
                }
            }
            // Each cell is further from a plain background than the weaker one.
            let heat = [heat1, heat2, heat3, heat4, heat5];
            let from_background = heat.map(|cell| contrast(rgb(cell), backgrounds[0]));
            assert!(from_background.is_sorted() && from_background[4] > 2.0, "{from_background:?}");
            // The lines stand out from the heat behind them.
            for cell in [heat1, heat2, heat3, heat4, heat5] {
                assert!(contrast(rgb(p50), rgb(cell)) >= 3.0, "p50 on {cell}");
                assert!(contrast(rgb(p99), rgb(cell)) >= 1.9, "p99 on {cell}");
            }
        }
    }
}
