//! How the dashboard looks and which keys it has, by flags and configuration file.

use std::collections::BTreeMap;
use std::path::Path;

use clap::Args;
use serde::{Deserialize, Serialize};
use tui::{Colours, Glyphs, Keymap, Scheme};

use crate::cli::{ProxyWords, usage};

/// What every mode that may have a dashboard takes.
#[derive(Args, Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub(crate) struct LookWords {
    /// Draw with ASCII characters only
    #[arg(long)]
    pub(crate) ascii: bool,
    /// Tell in sentences, one below the other, instead of drawing: for screen readers and logs
    #[arg(long)]
    pub(crate) plain: bool,
    /// Colours: auto, dark, light, 16 for the terminal's own, or none [default: auto]
    #[arg(long, value_name = "NAME")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) theme: Option<String>,
    /// Leave the mouse to the terminal
    #[arg(long)]
    pub(crate) no_mouse: bool,
}

impl LookWords {
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            ascii: self.ascii || other.ascii,
            plain: self.plain || other.plain,
            theme: self.theme.or(other.theme),
            no_mouse: self.no_mouse || other.no_mouse,
        }
    }
}

/// Keys and colours, which only the configuration file has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct LookTables {
    /// Keys of actions.
    #[serde(default)]
    pub(crate) keys: BTreeMap<String, Vec<String>>,
    /// Colours of roles.
    #[serde(default)]
    pub(crate) colors: BTreeMap<String, String>,
}

/// How the dashboard looks and which keys it has.
#[derive(Clone, Debug)]
pub(crate) struct Look {
    pub(crate) plain: bool,
    glyphs: Glyphs,
    scheme: Scheme,
    keymap: Keymap,
    mouse: bool,
}

impl Look {
    /// Understands the words.
    ///
    /// # Errors
    /// When one of them means nothing.
    pub(crate) fn resolve(words: &LookWords, tables: &LookTables) -> anyhow::Result<Self> {
        let name = words.theme.as_deref().unwrap_or("auto");
        let scheme = Scheme::named(name)
            .ok_or_else(|| usage(format!("--theme {name}: expected auto, dark, light, 16 or none")))?;
        let recoloured = |scheme: Scheme, (role, colour): (&String, &String)| scheme.with(role, colour);
        let scheme = tables.colors.iter().try_fold(scheme, recoloured).map_err(|error| no_colour(&error))?;
        let changes = tables.keys.iter().map(|(action, keys)| (&**action, &**keys));
        Ok(Self {
            plain: words.plain,
            glyphs: if words.ascii { Glyphs::Ascii } else { Glyphs::detect() },
            scheme,
            keymap: Keymap::with(changes).map_err(|error| usage(format!("keys: {error}")))?,
            mouse: !words.no_mouse,
        })
    }

    /// The same for a mode whose only words these are, with those of a configuration file.
    ///
    /// # Errors
    /// When the file cannot be read, or a word means nothing.
    pub(crate) fn with_file(words: &LookWords, file: Option<&Path>) -> anyhow::Result<Self> {
        let file = file.map(ProxyWords::read).transpose()?.unwrap_or_default();
        Self::resolve(&words.clone().or(file.look), &file.tables)
    }

    /// Gives a dashboard that is about to be drawn this look, and asks its terminal what it shows; see
    /// [`Scheme::palette`].
    pub(crate) fn give(&self, options: &mut tui::Options) {
        options.glyphs = self.glyphs;
        if !self.plain {
            options.palette = self.scheme.palette();
        }
        options.keymap = self.keymap.clone();
        options.mouse = self.mouse;
    }
}

fn no_colour(error: &tui::ColourError) -> anyhow::Error {
    usage(format!("colors: {error}"))
}

impl LookTables {
    pub(crate) fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.colors.is_empty()
    }

    /// All keys and colours as a configuration file has them; colours of a theme that leaves them to the terminal stand
    /// in it as comments, since they are only one theme's.
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

    fn resolve(text: &str) -> Result<Look, String> {
        let words: ProxyWords = toml::from_str(text).unwrap();
        Look::resolve(&words.look, &words.tables).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_and_colours_of_a_file_are_taken_and_what_means_nothing_is_refused() {
        let text = "theme = \"dark\"\n[keys]\nquit = [\"ctrl-q\"]\n[colors]\ngraph = \"#102030\"";
        let look = resolve(text).unwrap();
        assert_eq!(look.scheme, Scheme::named("dark").unwrap().with("graph", "#102030").unwrap());
        assert!(look.keymap.entries().any(|(action, keys)| action == "quit" && keys == ["ctrl-q"]));
        for (text, why) in [
            ("theme = \"sepia\"", "--theme sepia: expected auto, dark, light, 16 or none"),
            ("[keys]\nfly = [\"f\"]", "keys: there is no action fly; --print-config lists them"),
            ("[keys]\nmark = [\"q\"]", "keys: q is bound to both quit and mark"),
        ] {
            assert_eq!(resolve(text).unwrap_err(), why);
        }
        let colour = resolve("theme = \"16\"\n[colors]\ngraph = \"sky\"").unwrap_err();
        assert_eq!(colour, "colors: graph: sky is no colour, such as lightblue, 75 or #5fafff");
    }

    #[test]
    fn what_is_printed_reads_back() {
        let changed: LookTables = toml::from_str("[colors]\ngraph = \"75\"").unwrap();
        let printed = changed.to_toml().unwrap();
        let read: LookTables = toml::from_str(&printed).unwrap();
        assert_eq!(read.colors, changed.colors);
        assert_eq!(read.to_toml().unwrap(), printed);
        assert!(printed.contains("quit = [\"q\", \"ctrl-c\"]"), "{printed}");
    }
}
