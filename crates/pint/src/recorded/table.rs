//! Recorded digests as CSV: read row by row, written with all columns.

use std::io::{self, BufRead, Write};

use super::{Column, Recorded};
use crate::csv::{CsvError, Lines};

/// Reads a CSV file row by row.
#[derive(Debug)]
pub struct CsvReader<R> {
    lines: Lines<R>,
    /// What each field of a row is; None for columns that are passed over.
    columns: Vec<Option<Column>>,
    /// An error has been returned; nothing follows it.
    ended: bool,
}

impl<R: BufRead> CsvReader<R> {
    /// Reads the header. `file` is named in errors. Errors: no header, a required column missing or twice.
    pub fn new(input: R, file: &str) -> Result<CsvReader<R>, CsvError> {
        let lines = Lines::new(input, file)?;
        let columns = Column::of_header(lines.header())
            .map_err(|(column, message)| lines.error(column.name(), message))?;
        Ok(CsvReader { lines, columns, ended: false })
    }

    fn row(&mut self) -> Result<Option<Recorded>, CsvError> {
        let CsvReader { lines, columns, .. } = self;
        let mut row = Recorded::default();
        let read = lines.next(|place, field| match columns.get(place) {
            Some(Some(column)) => column.set(&mut row, field),
            _ => Ok(()),
        })?;
        Ok(read.then_some(row))
    }
}

impl<R: BufRead> Iterator for CsvReader<R> {
    type Item = Result<Recorded, CsvError>;

    /// The next row; after an error nothing more.
    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let row = self.row();
        self.ended = row.is_err();
        row.transpose()
    }
}

/// Writes rows as CSV with all columns.
#[derive(Debug)]
pub struct CsvWriter<W> {
    output: W,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the header.
    pub fn new(mut output: W) -> io::Result<CsvWriter<W>> {
        writeln!(output, "{}", Column::ALL.map(Column::name).join(","))?;
        Ok(CsvWriter { output })
    }

    pub fn write(&mut self, row: &Recorded) -> io::Result<()> {
        let Recorded { time_ns, flow, packet, digest, hops, plan_version, sink, looped } = row;
        writeln!(
            self.output,
            "{time_ns},{},{},{},{},{},{},{packet},{digest},{hops},{plan_version},{sink},{}",
            flow.id.map_or(String::new(), |id| id.to_string()),
            flow.source,
            flow.destination,
            flow.source_port,
            flow.destination_port,
            flow.protocol,
            u8::from(*looped)
        )
    }

    pub fn finish(mut self) -> io::Result<W> {
        self.output.flush()?;
        Ok(self.output)
    }
}

#[cfg(test)]
mod tests;
