//! All keys by group, and the meaning of the figures.

mod figures;
pub(crate) mod view;
