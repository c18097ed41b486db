//! Ordinary words by which help and palette find commands whose meaning has others.

use super::Binding;

/// The words, by the command's name in the configuration.
const SYNONYMS: &[(&str, &str)] = &[
    ("quit", "exit leave stop"),
    ("back", "go back return cancel leave escape close previous"),
    ("help", "keys shortcuts manual glossary"),
    ("freeze", "pause hold stop resume"),
    ("play", "pause replay"),
    ("go-to", "jump seek time"),
    ("worst", "spike peak slowest"),
    ("beginning", "start rewind"),
    ("end", "now live"),
    ("zoom-out", "zoom scale resolution"),
    ("zoom-in", "zoom scale resolution"),
    ("class", "metric series"),
    ("course", "histogram heatmap plot graph percentiles"),
    ("shorter-window", "interval range"),
    ("longer-window", "interval range"),
    ("filter", "search grep find"),
    ("sort", "order"),
    ("overview", "layout preset reset"),
    ("only-clients", "layout preset"),
    ("only-latency", "layout preset"),
    ("tuning", "layout preset"),
    ("reverse", "order sort"),
    ("open", "drill down details"),
    ("requests", "slowest requests failed errors http"),
    ("findings", "advice tickets resumption explain problems"),
    ("only-routes", "layout preset http"),
    ("usage", "sni ja4 alpn tls12 mlkem post-quantum legacy"),
    ("copy", "clipboard yank"),
    ("export", "export save file screenshot json html page report"),
    ("log", "events messages"),
    ("tune", "configure options parameters limits"),
    ("experiments", "compare ab test"),
    ("load", "pause traffic generator"),
    ("slower", "rate rps throttle"),
    ("faster", "rate rps"),
    ("mark", "annotate note bookmark"),
    ("record", "capture save"),
    ("write-configuration", "print-config save toml options"),
    ("rise", "last increase regression jump when"),
    ("undo", "revert back"),
    ("redraw", "refresh repaint"),
    ("suspend", "background shell"),
];

impl Binding {
    /// The text that is searched for it: what it does, its name, and ordinary words for it.
    pub(crate) fn searched(&self) -> String {
        let words = SYNONYMS.iter().find(|(name, _)| *name == self.name).map_or("", |(_, words)| *words);
        format!("{} {} {words}", self.meaning, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::keymap::BINDINGS;

    #[test]
    fn every_synonym_is_of_a_command() {
        for (name, _) in SYNONYMS {
            assert!(BINDINGS.iter().any(|binding| binding.name == *name), "{name}");
        }
    }
}
