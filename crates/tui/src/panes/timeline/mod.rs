//! Latencies over time: a heat map, and percentiles below it.

pub(crate) mod axis;
pub(crate) mod heat;
pub(crate) mod levels;
pub(crate) mod lines;
pub(crate) mod model;
pub(crate) mod raster;
pub(crate) mod view;
