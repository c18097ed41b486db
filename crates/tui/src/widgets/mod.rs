//! What panes and screens are drawn with.

pub(crate) mod alerts;
pub(crate) mod detail;
pub(crate) mod overlay;
pub(crate) mod parts;
pub(crate) mod sparkline;
pub(crate) mod table;
