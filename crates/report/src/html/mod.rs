//! Pages that work without a network, print, and need no script.

mod compared;
mod curves;
mod effects;
mod heat;
mod multiples;
mod plot;
mod run;
mod tables;
mod time;

use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

/// A page without external resources.
fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body { h1 { (title) } (body) }
        }
    };
    page.into_string()
}

fn section(title: &str, content: &Markup) -> Markup {
    html! { @if !content.0.is_empty() { section { h2 { (title) } (content) } } }
}

fn made_by(command: &str) -> Markup {
    html! { p.dim { "Made by " code { (command) } } }
}
