//! The record of the resources that a process used.

use crate::metrics::{Counters, CpuGroup, HostCounter};
use crate::values::{ProcessCpuList, WorkerList};
use crate::wire::{FAMILY, field, wire};

wire! {
    /// Resources that the process used, once per interval.
    #[derive(Clone, Debug, Default, PartialEq)]
    pub struct HostRecord {
        /// Resident memory, in bytes.
        pub memory_bytes: u64 = &field::MEMORY,
        /// Resident memory with each shared page divided among its users (PSS); 0 if unknown.
        pub memory_pss_bytes: u64 = &field::MEMORY_PSS,
        pub descriptors: u64 = &field::DESCRIPTORS,
        /// The bound on open file descriptors; 0 without one.
        pub descriptors_max: u64 = &field::DESCRIPTORS_MAX,
        pub threads: u64 = &field::THREADS,
        /// CPU time of the proxy's busiest thread, in microseconds of the run.
        pub busiest_worker_cpu_us_total: u64 = &field::BUSIEST_WORKER_CPU,
        /// Each of the proxy's workers, those that have ended included; empty in recordings of an older version.
        pub workers: WorkerList = &field::WORKER_COUNTS,
        /// Sum, over the readings, of the CPU time of the proxy's busiest thread between two readings, in
        /// microseconds.
        pub peak_worker_cpu_us_total: u64 = &field::PEAK_WORKER_CPU,
        /// Online CPUs of the machine; 0 if unknown.
        pub machine_cpus: u64 = &field::MACHINE_CPUS,
        /// The first process that is observed with all its descendants; 0 if none is.
        pub observed_pid: u64 = &field::OBSERVED_PID,
        /// CPU time that they have used since observing began, in microseconds.
        pub observed_cpu_us: u64 = &field::OBSERVED_CPU,
        pub observed_threads: u64 = &field::OBSERVED_THREADS,
        /// The most threads that they had at a reading.
        pub observed_threads_max: u64 = &field::OBSERVED_THREADS_MAX,
        /// Their resident memory, in bytes.
        pub observed_memory_bytes: u64 = &field::OBSERVED_MEMORY,
        /// The most of it at a reading.
        pub observed_memory_max_bytes: u64 = &field::OBSERVED_MEMORY_MAX,
        /// Their open descriptors; 0 if the kernel hides them.
        pub observed_descriptors: u64 = &field::OBSERVED_DESCRIPTORS,
        /// Their listening TCP sockets.
        pub observed_listeners: u64 = &field::OBSERVED_LISTENERS,
        /// Connections that waited there to be accepted.
        pub observed_backlog: u64 = &field::OBSERVED_BACKLOG,
        /// CPU time of each of them.
        pub observed_processes: ProcessCpuList = &field::OBSERVED_PROCESSES,
        /// CPU time by group of threads, in microseconds of the run.
        pub cpu: Counters<CpuGroup> = &FAMILY,
        pub withheld: Counters<HostCounter> = &FAMILY,
    }
}
