//! Counting: every figure is a plain addition in its worker.

pub(crate) mod account;
pub(crate) mod clients;
