//! What a run takes of memory.

use super::{LogLine, Run};
use crate::model::series::Track;
use crate::record::heap_size::HeapSize;
use crate::record::{HostRecord, RunRecord};

impl Run {
    /// What is kept of it, in bytes, but for what the allocator adds.
    pub fn bytes(&self) -> usize {
        let records = [&self.began, &self.stopped].into_iter().flatten();
        let records: usize = records.map(|(_, run)| size_of::<RunRecord>() + run.heap_bytes()).sum();
        let log: usize = self.log.iter().map(|line| size_of::<LogLine>() + line.text.heap_bytes()).sum();
        size_of::<Self>()
            + records
            + log
            + self.settings.heap_bytes()
            + self.proxy.as_ref().map_or(0, Track::bytes)
            + self.load.as_ref().map_or(0, Track::bytes)
            + self.load_record.heap_bytes()
            + self.clients.bytes()
            + self.reading.bytes()
            + self.hosts.len() * size_of::<(u64, HostRecord)>()
            + self.experiments.bytes()
            + self.health.error.heap_bytes()
            + self.markers.bytes()
            + self.failures.bytes()
    }
}
