//! Clients: source addresses, with rates and totals.

pub(crate) mod columns;
pub(crate) mod detail;
pub(crate) mod detail_view;
pub(crate) mod history;
pub(crate) mod model;
pub(crate) mod rows;
pub(crate) mod state;
pub(crate) mod view;

#[cfg(test)]
mod tests;
