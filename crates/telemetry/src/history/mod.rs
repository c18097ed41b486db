//! Reading journals: following one, choosing runs, reading back, cutting out a time range, downsampling.

pub(crate) mod downsample;
pub(crate) mod follow;
pub(crate) mod moment;
pub(crate) mod reader;
pub(crate) mod run_filter;
pub(crate) mod seen_records;
pub(crate) mod slice;
pub(crate) mod update;
