//! Deadlines met: flows that ended by theirs, of all that have one, whether or not the run ended before it.

use std::path::Path;

use crate::{ResultsError, flow_table, parquet_read};

/// Flows with a deadline, and how many of them had ended by it; of one group or all.
pub fn met(dir: &Path, group: Option<&str>) -> Result<(u64, u64), ResultsError> {
    let path = dir.join(flow_table::FILE);
    let foreign = || ResultsError::input(format!("{}: not a table of flows", path.display()));
    let (mut count, mut met) = (0, 0);
    parquet_read::each(&path, &["deadline_ns", "finish_ns", "group"], &mut |batch| {
        let batch = [batch];
        let deadlines = parquet_read::numbers(&batch, 0).ok_or_else(foreign)?;
        let ends = parquet_read::numbers(&batch, 1).ok_or_else(foreign)?;
        let (names, groups) = parquet_read::strings(&batch, 2).ok_or_else(foreign)?;
        for (row, (deadline, end)) in deadlines.iter().zip(&ends).enumerate() {
            let wanted = group.is_none_or(|only| names[groups[row] as usize] == only);
            if wanted && !deadline.is_nan() {
                count += 1;
                met += u64::from(end <= deadline);
            }
        }
        Ok(())
    })?;
    Ok((count, met))
}
