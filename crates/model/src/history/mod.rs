//! Reading journals: following one, choosing runs, reading back, cutting out a time range, downsampling.

#[cfg(test)]
mod downsample_tests;
mod follow;
mod moment;
mod reader;
mod run_filter;
mod seen_records;
#[cfg(test)]
pub(crate) mod slice_tests;
mod update;

pub use follow::{FollowError, Follower};
pub use moment::{Moment, MomentRange, ParseMomentError};
pub use reader::{HistoryReader, HistoryReply, HistoryRequest, SeekRequest};
pub(crate) use run_filter::Admission;
pub use run_filter::{EntryFilter, RunFilter, WriterFilter};
pub use seen_records::SeenRecords;
pub use update::{BATCH_BYTES_MAX, BATCH_RECORDS_MAX, Batch, RecordingStatus, Update};
