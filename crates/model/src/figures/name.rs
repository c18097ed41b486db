//! Finds figures by name, and suggests similar names for an unknown one.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use super::{Figure, FigureSide, FigureUnit, NamedFigure, Statistic, named};
use records::metrics::{HttpLatency, LatencyClass, LoadLatency, ProxyLatency, parse_percentile};

/// The minimum similarity (Jaro-Winkler) of a suggested name.
const SIMILARITY_MIN: f64 = 0.85;
/// The same of one of a few words.
const WORD_SIMILARITY_MIN: f64 = 0.8;
const SUGGESTIONS_MAX: usize = 3;
/// Figures that are named where no name is similar.
const EXAMPLES: &str = "response.p99, exchange.p99, rate.achieved, resumed.ratio and requests.failed";
/// The latencies that a statistic without a class may mean: the time that a client waits, measured by the load and by
/// the proxy.
const USUAL_CLASSES: [LatencyClass; 3] = [
    LatencyClass::Load(LoadLatency::Response),
    LatencyClass::Proxy(ProxyLatency::Exchange),
    LatencyClass::Http(HttpLatency::FirstByte),
];

/// The name of a figure as the user wrote it, such as `response.p99`.
///
/// The prefix `proxy.` or `load.` may be omitted. The last part of a name is enough if it is unique (`never_sent`). A
/// latency class may also have its title on the screen (`full_handshake.p99`, `full.p99`). The name of a route or an
/// upstream is in quotes: `proxy.http.route."/api".request.p99`.
#[derive(Clone, Debug, PartialEq)]
pub struct FigureName {
    text: String,
    figures: Vec<Figure>,
}

/// No figure has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct UnknownFigure {
    name: String,
    similar: Vec<String>,
}

impl FigureName {
    /// The figures that the name may mean, at least one. If proxy and load both have one, the proxy's comes first.
    pub fn figures(&self) -> impl Iterator<Item = Figure> {
        self.figures.iter().cloned()
    }

    pub fn unit(&self) -> FigureUnit {
        self.figures.first().map_or(FigureUnit::Count, Figure::unit)
    }
}

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

impl FromStr for FigureName {
    type Err = UnknownFigure;

    fn from_str(text: &str) -> Result<Self, UnknownFigure> {
        let text = records::text::clean::text(text.trim());
        let mut figures = figures_named(&text);
        if figures.is_empty() {
            return Err(UnknownFigure { similar: similar_names(&text), name: text });
        }
        figures.sort_by_key(Figure::side);
        Ok(Self { text, figures })
    }
}

impl fmt::Display for UnknownFigure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, similar } = self;
        match &**similar {
            [] => write!(f, "there is no figure {name}; others are {EXAMPLES}; docs/figures.md has all"),
            [one] => write!(f, "there is no figure {name}; did you mean {one}?"),
            [all @ .., last] => {
                write!(f, "there is no figure {name}; did you mean {} or {last}?", all.join(", "))
            }
        }
    }
}

/// The figures that this name may stand for; none if it is unknown or ambiguous.
fn figures_named(text: &str) -> Vec<Figure> {
    let (side, rest) = match text.split_once('.') {
        Some(("proxy", rest)) => (Some(FigureSide::Proxy), rest),
        Some(("load", rest)) => (Some(FigureSide::Load), rest),
        _ => (None, text),
    };
    let is_on_side = |figure: &Figure| side.is_none_or(|side| figure.side().prefix() == side.prefix());
    if let Some(figure) = NamedFigure::parse(rest).map(Figure::Named).filter(is_on_side) {
        return vec![figure];
    }
    let latencies: Vec<Figure> = latency_figures(rest).into_iter().filter(is_on_side).collect();
    if !latencies.is_empty() {
        return latencies;
    }
    let others: Vec<Figure> = scalars_and_quotients().filter(is_on_side).collect();
    let exact: Vec<Figure> = others.iter().filter(|figure| figure.short_name() == rest).cloned().collect();
    if !exact.is_empty() {
        return exact;
    }
    let ending = format!(".{rest}");
    let (of_http, found): (Vec<Figure>, Vec<Figure>) = others
        .into_iter()
        .filter(|figure| figure.short_name().ends_with(&ending))
        .partition(|figure| figure.side() == FigureSide::Http);
    // The figures of HTTP mode were added later, and must not make an existing ending ambiguous.
    let found = if found.is_empty() { of_http } else { found };
    let is_unambiguous = found.iter().all(|figure| figure.short_name() == found[0].short_name());
    if is_unambiguous { found } else { Vec::new() }
}

fn scalars_and_quotients() -> impl Iterator<Item = Figure> {
    Figure::scalars().chain(Figure::quotients())
}

/// The statistic of each latency class with this name, such as `connect.p50` of proxy and load.
fn latency_figures(text: &str) -> Vec<Figure> {
    let Some((class, statistic)) = split_statistic(text) else { return Vec::new() };
    let class = class.replace([' ', '-'], "_");
    let has_name = |candidate: &LatencyClass| {
        let names = candidate.names();
        [names.figure, &names.title.replace(' ', "_"), names.alias].contains(&&*class)
    };
    LatencyClass::all().filter(has_name).map(|class| Figure::Latency(class, statistic)).collect()
}

/// The name of a latency class, which may have dots, and the statistic behind it.
pub(super) fn split_statistic(text: &str) -> Option<(&str, Statistic)> {
    text.match_indices('.').find_map(|(at, _)| Some((&text[..at], Statistic::parse(&text[at + 1..])?)))
}

/// The most similar one of a few words, if any is similar.
pub fn nearest<'a>(text: &str, words: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let similar = words.into_iter().map(|word| (strsim::jaro_winkler(word, text), word));
    let similar = similar.filter(|(similarity, _)| *similarity >= WORD_SIMILARITY_MIN);
    similar.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, word)| word)
}

/// The most similar names, the best match first.
fn similar_names(text: &str) -> Vec<String> {
    let text = text.strip_prefix("proxy.").or_else(|| text.strip_prefix("load.")).unwrap_or(text);
    if let Some(statistic) = Statistic::parse(text) {
        return USUAL_CLASSES.map(|class| Figure::Latency(class, statistic).short_name()).into();
    }
    // The class may be misspelt and the statistic right.
    let statistic = split_statistic(text).map_or(Statistic::Percentile(0.99), |(_, statistic)| statistic);
    let latencies = LatencyClass::all().map(|class| Figure::Latency(class, statistic));
    let names = scalars_and_quotients()
        .chain(latencies)
        .map(|figure| figure.short_name())
        .chain(named::candidates(text));
    let ending = format!(".{text}");
    let mut found: Vec<(f64, String)> = names
        .map(|name| {
            let is_part = name.ends_with(&ending);
            (if is_part { 1.0 } else { strsim::jaro_winkler(&name, text) }, name)
        })
        .filter(|(similarity, _)| *similarity >= SIMILARITY_MIN)
        .collect();
    found.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let mut seen = HashSet::new();
    let names = found.into_iter().map(|(_, name)| name).filter(|name| seen.insert(name.clone()));
    names.take(SUGGESTIONS_MAX).collect()
}

impl fmt::Display for Statistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count => f.pad("n"),
            Self::Min => f.pad("min"),
            Self::Mean => f.pad("mean"),
            Self::StandardDeviation => f.pad("sd"),
            Self::Percentile(q) => f.pad(&percentile_name(*q)),
            Self::Max => f.pad("max"),
        }
    }
}

/// The inverse of [`parse_percentile`]. The name is the percentage without its decimal point: 0.999 is p999.
fn percentile_name(q: f64) -> String {
    let percent = format!("{:.9}", q * 100.0);
    let (whole, decimals) = percent.split_once('.').unwrap_or((&percent, ""));
    format!("p{whole:0>2}{}", decimals.trim_end_matches('0'))
}

impl Statistic {
    fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "n" => Self::Count,
            "min" => Self::Min,
            "mean" => Self::Mean,
            "sd" => Self::StandardDeviation,
            "max" => Self::Max,
            _ => Self::Percentile(parse_percentile(name)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.parse::<FigureName>().unwrap().figures().map(|figure| figure.name()).collect()
    }

    fn refusal(text: &str) -> String {
        text.parse::<FigureName>().unwrap_err().to_string()
    }

    #[test]
    fn a_name_without_a_side_finds_both_figures_the_proxys_first() {
        assert_eq!(names("connect.p50"), ["proxy.connect.p50", "load.connect.p50"]);
        assert_eq!(names("handshakes.full"), ["proxy.handshakes.full", "load.handshakes.full"]);
        assert_eq!(names("load.handshakes.full"), ["load.handshakes.full"]);
        assert_eq!(names(" response.p99.9 "), ["load.response.p999"]);
        assert_eq!(names("errors"), ["errors", "load.errors"], "those of both sides come first");
    }

    #[test]
    fn every_figure_is_found_by_its_name() {
        let latencies = LatencyClass::all().flat_map(Figure::of_class);
        let mut seen = HashSet::new();
        for figure in scalars_and_quotients().chain(latencies) {
            let name = figure.name();
            assert!(names(&name).contains(&name), "{name}");
            assert!(!figure.definition().is_empty(), "{name}");
            assert!(seen.insert(name.clone()), "{name} occurs twice");
        }
    }

    #[test]
    fn a_class_is_found_by_its_title_on_the_screen() {
        let full = [LatencyClass::Proxy(ProxyLatency::HandshakeFull), LoadLatency::HandshakeFull.into()];
        let full = full.map(|class| Figure::Latency(class, Statistic::Percentile(0.99)).name());
        for name in ["full.p99", "full_handshake.p99", "full handshake.p99", "handshake_full.p99"] {
            assert_eq!(names(name), full, "{name}");
        }
        assert_eq!(names("proxy.compute resumed.mean"), ["proxy.compute_resumed.mean"]);
        assert_eq!(names("send-lag.max"), ["load.lag.max"]);
        for class in LatencyClass::all() {
            let figure = Figure::Latency(class, Statistic::Mean);
            assert!(names(&format!("{}.mean", class.title())).contains(&figure.name()), "{}", class.title());
        }
    }

    #[test]
    fn a_unique_ending_of_a_name_is_enough() {
        assert_eq!(names("never_sent"), ["load.requests.never_sent"]);
        assert_eq!(names("full"), ["proxy.handshakes.full", "load.handshakes.full"]);
        let error = refusal("failed");
        assert_eq!(
            error,
            "there is no figure failed; did you mean connections.failed, handshakes.failed or requests.failed?"
        );
    }

    #[test]
    fn a_misspelt_name_is_answered_with_similar_names() {
        for (name, meant) in [
            ("exchnge.p99", "exchange.p99"),
            ("respose.mean", "response.mean"),
            ("load.request.ok", "requests.ok"),
            ("cpu.per_exchanges", "cpu.per_exchange"),
            ("exchange", "exchange.p99"),
        ] {
            let error = refusal(name);
            assert!(error.contains("did you mean") && error.contains(meant), "{error}");
        }
        let error = refusal("speed");
        for part in ["there is no figure speed; others are response.p99, ", "docs/figures.md has all"] {
            assert!(error.contains(part) && error.len() < 200, "{error}");
        }
        let error = refusal("p99");
        assert!(
            error.ends_with("did you mean response.p99, exchange.p99 or http.first_byte.p99?"),
            "{error}"
        );
    }

    #[test]
    fn a_figure_of_a_route_has_the_routes_name_in_quotes() {
        assert_eq!(
            names("http.route.\"shop.example/a.b\".ttfb.p99.9"),
            ["proxy.http.route.\"shop.example/a.b\".first_byte.p999"]
        );
        for figure in Figure::of_route("/api") {
            assert_eq!(names(&figure.short_name()), [figure.name()]);
            assert!(!figure.definition().is_empty());
        }
        let meant = "did you mean http.route.\"/api\".request.p99";
        assert!(
            refusal("proxy.http.route.\"/api\".requst.p99").contains(meant),
            "{}",
            refusal("proxy.http.route.\"/api\".requst.p99")
        );
        assert!(
            refusal("http.route./api.failed").contains("http.route.\"/PATH\".failed"),
            "{}",
            refusal("http.route./api.failed")
        );
        assert!("load.http.route.\"/api\".failed".parse::<FigureName>().is_err());
        assert!("http.route.\"\".failed".parse::<FigureName>().is_err());
    }

    #[test]
    fn an_unknown_name_is_refused() {
        for text in [
            "",
            "p99",
            "exchange.p",
            "exchange.p100",
            "exchange.p0",
            "proxy.response.p50",
            "load.exchange.p50",
            "exchange.pp9",
            "exchange.p-1",
            "exchange.pNaN",
            "proxy.load.errors",
            "in",
        ] {
            assert!(text.parse::<FigureName>().is_err(), "{text}");
        }
    }
}
