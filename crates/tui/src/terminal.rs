//! The terminal itself.

use std::io::IsTerminal;

/// True if standard input and output are a terminal on which a dashboard can be drawn.
pub fn has_terminal() -> bool {
    let draws = std::env::var_os("TERM").is_some_and(|term| !term.is_empty() && term != "dumb");
    draws && std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}
