//! Latency histograms: dense or compact where latencies are recorded, sparse in records and series, and one for sliding windows.

mod compact;
mod dense;
pub(crate) mod encoding;
pub(crate) mod sketch;
pub(crate) mod sparse;
pub(crate) mod window;

pub use compact::CompactHistogram;
pub(crate) use dense::{DIGITS, LOWEST_NS};
pub use dense::{HIGHEST_NS, Histogram, Histograms, quantile_is_thin};
pub use encoding::interval_log_line;
pub use sketch::Sketch;
pub use sparse::SparseHistogram;
pub use window::WindowHistogram;
