//! Pages that work without a network, print, and need no script: their only script sorts tables.

mod compared;
mod experiments;
mod plot;
mod run;
mod tables;
mod targets;

use maud::{DOCTYPE, Markup, PreEscaped, html};
pub use targets::targets_page;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");
/// The browser's permissions for a page: only its style and its script.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'";

/// A page without external resources.
fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { main { h1 { (title) } (body) } script { (PreEscaped(SCRIPT)) } }
        }
    };
    page.into_string()
}

fn section(title: &str, content: &Markup) -> Markup {
    html! { @if !content.0.is_empty() { section { h2 { (title) } (content) } } }
}

/// A section that few need on the screen; printed it is open.
fn rare(title: &str, content: &Markup) -> Markup {
    html! { @if !content.0.is_empty() { section { details { summary { h2 { (title) } } (content) } } } }
}

/// A box that scrolls if it is wider than the page.
fn wide(label: &str, content: &Markup) -> Markup {
    html! { div.scroll tabindex="0" role="group" aria-label=(label) { (content) } }
}

/// A table. Its caption is shown unless a heading is above.
fn scrolled(caption: &str, content: &Markup) -> Markup {
    wide(caption, &html! { table { caption { (caption) } (content) } })
}

/// The folded table behind a plot.
fn figures(caption: &str, content: &Markup) -> Markup {
    html! { details { summary { "The figures" } div.figures { (scrolled(caption, content)) } } }
}

fn made_by(command: &str) -> Markup {
    html! { p.dim { "Made by " code { (command) } } }
}
