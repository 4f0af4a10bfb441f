//! Lines of a CSV file, one at a time, and errors that name their place.
//!
//! Fields may be quoted as in RFC 4180, without line breaks in them. One line is kept in memory.

use std::io::{self, BufRead};

/// Longest line of a file, in bytes.
pub const MAX_LINE: usize = 65_536;

/// What a table does not have or should not have, and where.
#[derive(Debug, thiserror::Error)]
#[error("{file}{}: {}{message}", line_text(*.line), column_text(.column))]
pub struct CsvError {
    /// The file as the user named it.
    pub file: String,
    /// From 1; 0 if the file as a whole is meant.
    pub line: u64,
    /// Empty if the line as a whole is meant.
    pub column: String,
    pub message: String,
}

fn line_text(line: u64) -> String {
    if line == 0 { String::new() } else { format!(":{line}") }
}

fn column_text(column: &str) -> String {
    if column.is_empty() { String::new() } else { format!("column {column}: ") }
}

/// The lines of a file below its header.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    file: String,
    line: u64,
    text: Vec<u8>,
    /// Names of the columns.
    header: Vec<String>,
}

impl<R: BufRead> Lines<R> {
    /// Reads the header. Errors: there is none, it is not UTF-8 or badly quoted.
    pub fn new(input: R, file: &str) -> Result<Lines<R>, CsvError> {
        let mut lines =
            Lines { input, file: file.to_string(), line: 0, text: Vec::new(), header: Vec::new() };
        if !lines.read_line()? {
            return Err(
                lines.error("", "expected a line with the names of the columns, found nothing".to_string())
            );
        }
        let text = std::mem::take(&mut lines.text);
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&text);
        let text =
            std::str::from_utf8(text).map_err(|_| lines.error("", "the text is not UTF-8".to_string()))?;
        let mut header = Vec::new();
        let split = fields(text, |_, name| {
            header.push(name.trim().to_string());
            Ok(())
        });
        split.map_err(|(_, message)| lines.error("", message))?;
        lines.header = header;
        Ok(lines)
    }

    pub fn header(&self) -> &[String] {
        &self.header
    }

    /// Hands the fields of the next line that is not empty to `take`, with their places, trimmed; false at the end of the file. Errors:
    /// those of reading and of `take`, and another number of fields than the header's.
    pub fn next(
        &mut self,
        mut take: impl FnMut(usize, &str) -> Result<(), String>,
    ) -> Result<bool, CsvError> {
        loop {
            if !self.read_line()? {
                return Ok(false);
            }
            if !self.text.is_empty() {
                break;
            }
        }
        let text = std::str::from_utf8(&self.text)
            .map_err(|_| self.error("", "the text is not UTF-8".to_string()))?;
        let mut count = 0;
        let split = fields(text, |place, field| {
            count = place + 1;
            take(place, field.trim())
        });
        if let Err((place, message)) = split {
            let column = self.header.get(place).map_or("", String::as_str);
            return Err(self.error(column, message));
        }
        let wanted = self.header.len();
        if count != wanted {
            let at_end = matches!(self.input.fill_buf(), Ok([]));
            let cut = if count < wanted && at_end { " (the last line: is the file cut off?)" } else { "" };
            return Err(self.error("", format!("expected {wanted} fields, found {count}{cut}")));
        }
        Ok(true)
    }

    /// An error of the line that was read last.
    pub fn error(&self, column: &str, message: String) -> CsvError {
        CsvError { file: self.file.clone(), line: self.line, column: column.to_string(), message }
    }

    /// The next line without its end into `text`; false at the end of the file.
    fn read_line(&mut self) -> Result<bool, CsvError> {
        self.text.clear();
        self.line += 1;
        let mut limited = io::Read::take(&mut self.input, MAX_LINE as u64 + 1);
        if let Err(error) = limited.read_until(b'\n', &mut self.text) {
            return Err(self.error("", format!("reading failed: {error}")));
        }
        if self.text.len() > MAX_LINE {
            return Err(self.error("", format!("the line is longer than {MAX_LINE} bytes")));
        }
        let read = !self.text.is_empty();
        if self.text.ends_with(b"\n") {
            self.text.pop();
            if self.text.ends_with(b"\r") {
                self.text.pop();
            }
        }
        Ok(read)
    }
}

/// Hands every field of a line to `take`, quotes taken off. Errors: the place of the field and what is wrong.
fn fields(
    line: &str,
    mut take: impl FnMut(usize, &str) -> Result<(), String>,
) -> Result<(), (usize, String)> {
    let (mut rest, mut place) = (line, 0);
    loop {
        let after = if let Some(quoted) = rest.strip_prefix('"') {
            let (field, after) = unquote(quoted).ok_or((place, "a quote is not closed".to_string()))?;
            take(place, &field).map_err(|message| (place, message))?;
            after
        } else {
            let end = rest.find(',').unwrap_or(rest.len());
            take(place, &rest[..end]).map_err(|message| (place, message))?;
            &rest[end..]
        };
        match after.strip_prefix(',') {
            Some(more) => rest = more,
            None if after.is_empty() => return Ok(()),
            None => return Err((place, "expected a comma after the closing quote".to_string())),
        }
        place += 1;
    }
}

/// The text up to the closing quote, doubled quotes made single, and what follows.
fn unquote(text: &str) -> Option<(String, &str)> {
    let (mut field, mut rest) = (String::new(), text);
    loop {
        let end = rest.find('"')?;
        field.push_str(&rest[..end]);
        rest = &rest[end + 1..];
        match rest.strip_prefix('"') {
            Some(more) => {
                field.push('"');
                rest = more;
            }
            None => return Some((field, rest)),
        }
    }
}
