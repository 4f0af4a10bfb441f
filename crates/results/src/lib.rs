//! The results of a run, and how they are read again: the run's folder, its Parquet tables, its summary.
//!
//! ```text
//! scenario.toml    resolved: rerunning it gives the same bits           (folder)
//! flows.parquet    one row a flow                                       (flow_table)
//! series.parquet   what [measure] requests over time                    (series)
//! queues.parquet   histogram of the bytes queued at each measured port  (queues)
//! jobs.parquet     one row per step of a job                             (jobs)
//! ranks.parquet    one row per rank and step of a job graph              (ranks)
//! capture.pcapng   packets of the captured links, for other tools        (capture)
//! summary.json     totals, percentiles, cost, versions                  (summary)
//! digests.json     size and digest of every other file, written last    (file_digests)
//! run.lock         while a run writes the folder: which process          (folder)
//! ```
//!
//! Tables are written during the run and are complete Parquet files after every row group (`table_file`), so
//! that a full disk or a killed process leaves what was computed.

pub mod backlog;
pub mod capture;
pub mod completion;
pub mod deadlines;
pub mod digests;
pub mod distribution;
pub mod durable;
mod error;
pub mod file_digests;
mod findings;
pub mod flow_table;
pub mod folder;
mod footer;
pub mod jobs;
pub mod names;
pub mod parquet_read;
pub mod queues;
pub mod ranks;
pub mod recorded;
pub mod resources;
pub mod rows;
pub mod seal;
pub mod series;
pub mod shares;
pub mod slowdown;
pub mod summary;
pub mod table_file;
pub mod trace;

pub use error::ResultsError;
pub use folder::{About, FolderClaim, RunFolder};
pub use names::Names;
pub use resources::{Resources, Stopwatch, memory_bytes, peak_memory_bytes};

#[cfg(test)]
mod scratch;
