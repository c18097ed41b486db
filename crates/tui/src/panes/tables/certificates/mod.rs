//! Certificates that are served, and refusals of clients' certificates.

mod columns;
pub(crate) mod detail_view;
pub(crate) mod model;
pub(crate) mod rows;
pub(crate) mod view;
