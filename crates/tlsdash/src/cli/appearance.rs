//! How the dashboard looks and which keys it has, by flags and by the configuration file.

use std::collections::BTreeMap;
use std::str::FromStr;

use clap::Args;
use serde::{Deserialize, Serialize};
use tui::{AlertNotify, ColourScheme, Colours, Glyphs, Keymap, Zone};

use super::flags::without_flags;
use super::help::DASHBOARD;
use crate::error::usage;
use crate::value::{InvalidValue, ParsedValue};

/// What every mode that may have a dashboard takes.
#[derive(Args, Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[command(next_help_heading = DASHBOARD)]
pub(crate) struct AppearanceOptions {
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Print sentences instead of a screen: for screen readers and logs
    #[arg(long)]
    pub(crate) plain: bool,
    /// Colours of the screen: auto, dark, light, 16 for the terminal's own, or none
    #[arg(long, value_name = "NAME", default_value = "auto")]
    theme: ParsedValue<ThemeName>,
    /// Leave the mouse to the terminal
    #[arg(long)]
    pub(crate) no_mouse: bool,
    /// Show times in UTC; else in the zone of TZ or of this machine
    #[arg(long)]
    pub(crate) utc: bool,
    /// Tell by the terminal that an alert fires: off, bell, or desktop for a notification (OSC 9 or 777)
    #[arg(long, value_name = "HOW", default_value = "off")]
    alert_notify: ParsedValue<Notify>,
}

/// How the terminal tells that an alert fires.
#[derive(Clone, Copy, Debug)]
struct Notify(AlertNotify);

impl FromStr for Notify {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<Self, InvalidValue> {
        Ok(Self(match name {
            "off" => AlertNotify::Off,
            "bell" => AlertNotify::Bell,
            "desktop" => AlertNotify::desktop(),
            _ => return Err(InvalidValue("off, bell or desktop")),
        }))
    }
}

impl Default for AppearanceOptions {
    fn default() -> Self {
        without_flags()
    }
}

/// The colours of a name.
#[derive(Clone, Debug)]
pub(crate) struct ThemeName(ColourScheme);

impl FromStr for ThemeName {
    type Err = InvalidValue;

    fn from_str(name: &str) -> Result<Self, InvalidValue> {
        ColourScheme::named(name).map(Self).ok_or(InvalidValue("auto, dark, light, 16 or none"))
    }
}

/// Keys and colours, which only the configuration file has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct AppearanceTables {
    /// Keys of actions.
    #[serde(default)]
    pub(crate) keys: BTreeMap<String, Vec<String>>,
    /// Colours of roles.
    #[serde(default)]
    pub(crate) colors: BTreeMap<String, String>,
}

/// How the dashboard looks and which keys it has.
#[derive(Clone, Debug)]
pub(crate) struct Appearance {
    pub(crate) plain: bool,
    glyphs: Glyphs,
    scheme: ColourScheme,
    keymap: Keymap,
    mouse: bool,
    zone: Zone,
    alert_notify: AlertNotify,
}

impl Appearance {
    /// Puts options, keys and colours together.
    ///
    /// # Errors
    /// When a key or a colour means nothing.
    pub(crate) fn resolve(options: &AppearanceOptions, tables: &AppearanceTables) -> anyhow::Result<Self> {
        let scheme = options.theme.0.clone();
        let recoloured = |scheme: ColourScheme, (role, colour): (&String, &String)| scheme.with(role, colour);
        let scheme = tables.colors.iter().try_fold(scheme, recoloured).map_err(|error| no_colour(&error))?;
        let changes = tables.keys.iter().map(|(action, keys)| (&**action, &**keys));
        Ok(Self {
            plain: options.plain,
            glyphs: if options.ascii { Glyphs::Ascii } else { Glyphs::detect() },
            scheme,
            keymap: Keymap::with(changes).map_err(|error| usage(format!("keys: {error}")))?,
            mouse: !options.no_mouse,
            zone: if options.utc { Zone::default() } else { Zone::local() },
            alert_notify: options.alert_notify.0,
        })
    }

    /// Applies this appearance to a dashboard before it is drawn, and queries its terminal; see
    /// [`ColourScheme::palette`].
    pub(crate) fn apply_to(&self, options: &mut tui::Options) {
        options.glyphs = self.glyphs;
        if !self.plain {
            options.palette = self.scheme.palette();
        }
        options.keymap = self.keymap.clone();
        options.mouse = self.mouse;
        options.zone = self.zone.clone();
        options.alert_notify = self.alert_notify;
    }
}

fn no_colour(error: &tui::ColourError) -> anyhow::Error {
    usage(format!("colors: {error}"))
}

impl AppearanceTables {
    /// All keys and colours in the form of a configuration file. Colours of a theme that leaves them to the terminal
    /// are comments in it.
    pub(crate) fn to_toml(&self) -> anyhow::Result<String> {
        let changes = self.keys.iter().map(|(action, keys)| (&**action, &**keys));
        let keymap = Keymap::with(changes).map_err(|error| usage(format!("keys: {error}")))?;
        let keys = keymap.entries().map(|(action, keys)| (action.to_owned(), keys)).collect();
        let recoloured = |colours: Colours, (role, colour): (&String, &String)| colours.with(role, colour);
        let theme =
            self.colors.iter().try_fold(Colours::SIXTEEN, recoloured).map_err(|error| no_colour(&error))?;
        let colors = theme.entries().map(|(role, colour)| (role.to_owned(), colour)).collect();
        let text = toml::to_string(&Self { keys, colors })?;
        let (keys, roles) = text.split_once("[colors]\n").unwrap_or((&text, ""));
        let mut text = format!("\n{keys}[colors]\n");
        for line in roles.lines() {
            let role = line.split(' ').next().unwrap_or_default();
            let comment = if self.colors.contains_key(role) { "" } else { "# " };
            text.push_str(comment);
            text.push_str(line);
            text.push('\n');
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::ProxyOptions;

    fn resolve(text: &str) -> anyhow::Result<Appearance> {
        let options: ProxyOptions = toml::from_str(text).unwrap();
        Appearance::resolve(&options.appearance, &options.tables)
    }

    #[test]
    fn keys_and_colours_of_a_file_apply_and_unknown_ones_are_refused() {
        let text = "theme = \"dark\"\n[keys]\nquit = [\"ctrl-q\"]\n[colors]\ngraph = \"#102030\"";
        let appearance = resolve(text).unwrap();
        assert_eq!(appearance.scheme, ColourScheme::named("dark").unwrap().with("graph", "#102030").unwrap());
        assert!(appearance.keymap.entries().any(|(action, keys)| action == "quit" && keys == ["ctrl-q"]));
        for (text, why) in [
            ("[keys]\nfly = [\"f\"]", "keys: there is no action fly; --print-config lists them"),
            ("[keys]\nmark = [\"q\"]\nquit = [\"q\"]", "keys: q is bound to both quit and mark"),
        ] {
            assert_eq!(resolve(text).unwrap_err().to_string(), why);
        }
        let colour = resolve("theme = \"16\"\n[colors]\ngraph = \"sky\"").unwrap_err().to_string();
        assert_eq!(colour, "colors: graph: sky is no colour, such as lightblue, 75 or #5fafff");
    }

    #[test]
    fn what_is_printed_reads_back() {
        let changed: AppearanceTables = toml::from_str("[colors]\ngraph = \"75\"").unwrap();
        let printed = changed.to_toml().unwrap();
        let read: AppearanceTables = toml::from_str(&printed).unwrap();
        assert_eq!(read.colors, changed.colors);
        assert_eq!(read.to_toml().unwrap(), printed);
        assert!(printed.contains("quit = [\"q\", \"ctrl-c\"]"), "{printed}");
    }
}
