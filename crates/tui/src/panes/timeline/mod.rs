//! Latencies over time: a heat map, and percentiles below it.

pub(crate) mod axis;
pub(crate) mod levels;
pub(crate) mod model;
pub(crate) mod plot;
pub(crate) mod raster;
pub(crate) mod rates;
pub(crate) mod ribbon;
pub(crate) mod time_axis;
pub(crate) mod view;
pub(crate) mod welcome;
