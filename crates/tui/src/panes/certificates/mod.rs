//! Certificates that are served, and refusals of clients' certificates.

mod columns;
pub(crate) mod detail_view;
mod model;
pub(crate) mod state;
pub(crate) mod view;
