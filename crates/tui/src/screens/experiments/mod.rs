//! Experiments: their form, progress and verdicts.

pub(crate) mod bar;
mod figures;
pub(crate) mod form;
mod form_state;
pub(crate) mod form_view;
pub(crate) mod view;
