//! Selects the dashboard's colours from the options and the terminal's abilities.

use std::time::Duration;
use std::{env, io};

use ratatui::style::Color;
use terminal_colorsaurus::{QueryOptions, ThemeMode, theme_mode};
use termprofile::{DetectorSettings, TermProfile};

use super::{ColourError, Colours, Palette};

/// The time limit for a terminal to report its background. A terminal that supports the query answers at
/// once, so only a slow line takes long.
const ANSWER_PATIENCE: Duration = Duration::from_millis(600);

/// The requested colours; [`ColourScheme::palette`] resolves them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColourScheme {
    base: BasePalette,
    /// Validated colours of roles.
    changes: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BasePalette {
    Auto,
    Dark,
    Light,
    Sixteen,
    Monochrome,
}

impl ColourScheme {
    /// Returns the scheme of a name: `auto`, `dark`, `light`, `16` or `none`; `None` for any other.
    pub fn named(name: &str) -> Option<Self> {
        let base = match name {
            "auto" => BasePalette::Auto,
            "dark" => BasePalette::Dark,
            "light" => BasePalette::Light,
            "16" => BasePalette::Sixteen,
            "none" => BasePalette::Monochrome,
            _ => return None,
        };
        Some(Self { base, changes: Vec::new() })
    }

    /// Returns the scheme with another colour for a role, such as `lightblue`, `75` or `#5fafff`.
    ///
    /// # Errors
    /// If the role does not exist, or the colour is invalid.
    pub fn with(mut self, role: &str, colour: &str) -> Result<Self, ColourError> {
        Colours::SIXTEEN.with(role, colour)?;
        self.changes.push((role.to_owned(), colour.to_owned()));
        Ok(self)
    }

    /// Returns the colours for the terminal of standard output.
    ///
    /// `auto` selects no colours if `NO_COLOR` is set and not empty (no-color.org); those for a dark or light
    /// background if the terminal has 256 colours; else the terminal's own sixteen. The background is what the
    /// terminal reports, else what `COLORFGBG` says, else dark. A colour that the terminal lacks, by `COLORTERM`
    /// and `TERM`, is replaced by the nearest one. A theme that is named explicitly is taken as supported.
    ///
    /// This may write to the terminal and wait up to 600 ms for its answer: call it before
    /// [`run`](crate::run()), and never while a dashboard is drawn.
    pub fn palette(&self) -> Palette {
        self.palette_in(&TerminalEnvironment::real())
    }

    fn palette_in(&self, around: &TerminalEnvironment<'_>) -> Palette {
        let is_automatic = self.base == BasePalette::Auto;
        let base = match self.base {
            BasePalette::Monochrome => return Palette::Monochrome,
            BasePalette::Auto if around.no_color || around.profile < TermProfile::Ansi16 => {
                return Palette::Monochrome;
            }
            BasePalette::Auto if around.profile < TermProfile::Ansi256 => Colours::SIXTEEN,
            BasePalette::Auto => match (around.background)() {
                Some(ThemeMode::Light) => Colours::LIGHT,
                Some(ThemeMode::Dark) | None => Colours::DARK,
            },
            BasePalette::Dark => Colours::DARK,
            BasePalette::Light => Colours::LIGHT,
            BasePalette::Sixteen => Colours::SIXTEEN,
        };
        let at_least = if is_automatic { TermProfile::Ansi16 } else { TermProfile::Ansi256 };
        let profile = around.profile.max(at_least);
        let changed = self.changes.iter().fold(base, |colours, (role, colour)| {
            colours.with(role, colour).expect("every change was checked as it was made")
        });
        Palette::Coloured(changed.map(|colour| nearest(profile, colour)))
    }
}

/// Returns the nearest colour that a terminal shows.
fn nearest(profile: TermProfile, colour: Color) -> Color {
    profile.adapt_color(colour).unwrap_or(colour)
}

struct TerminalEnvironment<'a> {
    no_color: bool,
    profile: TermProfile,
    /// Queried only if needed.
    background: &'a dyn Fn() -> Option<ThemeMode>,
}

impl TerminalEnvironment<'_> {
    fn real() -> Self {
        let settings = DetectorSettings::new().enable_tmux_info(false);
        Self {
            no_color: env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty()),
            profile: TermProfile::detect(&io::stdout(), settings),
            background: &|| {
                background_by_answer().or_else(|| background_by_name(&env::var("COLORFGBG").ok()?))
            },
        }
    }
}

fn background_by_answer() -> Option<ThemeMode> {
    let mut options = QueryOptions::default();
    options.timeout = ANSWER_PATIENCE;
    theme_mode(options).ok()
}

/// Returns the background from `COLORFGBG`, such as `15;default;0`: the last part is its number among the
/// sixteen colours.
fn background_by_name(value: &str) -> Option<ThemeMode> {
    match value.rsplit(';').next()?.parse::<u8>().ok()? {
        7 | 15 => Some(ThemeMode::Light),
        0..=6 | 8 => Some(ThemeMode::Dark),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn palette(name: &str, profile: TermProfile, background: Option<ThemeMode>) -> Palette {
        let around = TerminalEnvironment { no_color: false, profile, background: &|| background };
        ColourScheme::named(name).unwrap().palette_in(&around)
    }

    #[test]
    fn colours_are_chosen_by_what_the_terminal_shows() {
        let (dark, light) = (Some(ThemeMode::Dark), Some(ThemeMode::Light));
        for (name, profile, background, expected) in [
            ("auto", TermProfile::TrueColor, dark, Palette::Coloured(Colours::DARK)),
            ("auto", TermProfile::Ansi256, light, Palette::Coloured(Colours::LIGHT)),
            ("auto", TermProfile::Ansi256, None, Palette::Coloured(Colours::DARK)),
            ("auto", TermProfile::Ansi16, light, Palette::Coloured(Colours::SIXTEEN)),
            ("auto", TermProfile::NoColor, dark, Palette::Monochrome),
            ("none", TermProfile::TrueColor, dark, Palette::Monochrome),
            ("16", TermProfile::TrueColor, dark, Palette::Coloured(Colours::SIXTEEN)),
            // An explicit theme takes precedence over the environment.
            ("dark", TermProfile::NoColor, light, Palette::Coloured(Colours::DARK)),
            ("light", TermProfile::Ansi16, dark, Palette::Coloured(Colours::LIGHT)),
        ] {
            assert_eq!(palette(name, profile, background), expected, "{name} {profile:?} {background:?}");
        }
        assert_eq!(ColourScheme::named("sepia"), None);
    }

    #[test]
    fn no_color_applies_unless_a_theme_is_named() {
        let asked = || panic!("the terminal was asked");
        let around =
            TerminalEnvironment { no_color: true, profile: TermProfile::TrueColor, background: &asked };
        assert_eq!(ColourScheme::named("auto").unwrap().palette_in(&around), Palette::Monochrome);
        let dark = ColourScheme::named("dark").unwrap().palette_in(&around);
        assert_eq!(dark, Palette::Coloured(Colours::DARK));
    }

    #[test]
    fn a_colour_the_terminal_lacks_becomes_the_nearest_one() {
        let scheme = ColourScheme::named("auto").unwrap().with("graph", "#5fafff").unwrap();
        for (profile, expected) in [
            (TermProfile::TrueColor, "#5fafff"),
            (TermProfile::Ansi256, "75"),
            (TermProfile::Ansi16, "lightcyan"),
        ] {
            let around =
                TerminalEnvironment { no_color: false, profile, background: &|| Some(ThemeMode::Dark) };
            let Palette::Coloured(colours) = scheme.palette_in(&around) else { panic!("{profile:?}") };
            let graph = colours.entries().find(|(role, _)| *role == "graph");
            assert_eq!(graph, Some(("graph", expected.to_owned())), "{profile:?}");
        }
        assert!(ColourScheme::named("auto").unwrap().with("sky", "blue").is_err());
    }

    #[test]
    fn the_background_is_the_last_word_of_colorfgbg() {
        for (value, expected) in [
            ("15;0", Some(ThemeMode::Dark)),
            ("0;default;15", Some(ThemeMode::Light)),
            ("0;7", Some(ThemeMode::Light)),
            ("default;default", None),
            ("", None),
        ] {
            assert_eq!(background_by_name(value), expected, "{value}");
        }
    }
}
