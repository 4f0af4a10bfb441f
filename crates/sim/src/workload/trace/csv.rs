//! Traces as CSV: a header that names the columns, in any order, then one line per flow.

use super::{HostOf, Trace, TraceError, TraceRow, as_text};
use crate::parameters::unknown;
use std::borrow::Cow;

/// Columns by name; a flow_id is accepted and ignored.
const COLUMNS: &[&str] =
    &["src", "dst", "size_bytes", "start_ns", "group", "deadline_ns", "after", "compute_ns", "flow_id"];
const REQUIRED: usize = 4;

impl Trace {
    /// Reads CSV. `start_ns`, `deadline_ns` and `compute_ns` may have a fraction, kept to the picosecond;
    /// `after` is a list of rows such as "3;7".
    pub fn from_csv(bytes: &[u8], file: &str, host: HostOf) -> Result<Trace, TraceError> {
        let text = as_text(bytes, file)?;
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((at, header)) = lines.next() else {
            let message = format!("empty: expected a header such as \"{}\"", COLUMNS[..REQUIRED].join(","));
            return Err(TraceError::new(file, None, None, message));
        };
        let header = read_header(header).map_err(|m| TraceError::new(file, Some(at + 1), None, m))?;
        let mut trace = Trace::default();
        for (row, (at, line)) in lines.enumerate() {
            let read = read_row(line, &header).and_then(|fields| trace.push(fields, host));
            read.map_err(|message| TraceError::new(file, Some(at + 1), Some(row), message))?;
        }
        trace.not_empty(file)
    }
}

/// The column of every field of a line.
fn read_header(line: &str) -> Result<Vec<&'static str>, String> {
    let mut header = Vec::new();
    for name in split(line)? {
        let name = name.trim();
        let Some(&column) = COLUMNS.iter().find(|column| **column == name) else {
            return Err(unknown("column", name, COLUMNS.iter().copied()));
        };
        if header.contains(&column) {
            return Err(format!("column {column} occurs twice"));
        }
        header.push(column);
    }
    match COLUMNS[..REQUIRED].iter().find(|column| !header.contains(column)) {
        Some(missing) => Err(format!("column {missing} is missing")),
        None => Ok(header),
    }
}

fn read_row(line: &str, header: &[&'static str]) -> Result<TraceRow, String> {
    let fields = split(line)?;
    if fields.len() != header.len() {
        let (found, expected) = (fields.len(), header.len());
        let hint = if found < expected { ": is the file truncated?" } else { "" };
        return Err(format!("expected {expected} fields as in the header, found {found}{hint}"));
    }
    let mut row = TraceRow::default();
    for (column, field) in header.iter().zip(&fields) {
        let field = field.trim();
        match *column {
            "src" => row.src = whole(column, field)?,
            "dst" => row.dst = whole(column, field)?,
            "size_bytes" => row.size_bytes = whole(column, field)?,
            "start_ns" => row.start_ps = picoseconds(column, field)?,
            "group" if !field.is_empty() => row.group = Some(field.to_string()),
            "deadline_ns" if !field.is_empty() => row.deadline_ps = Some(picoseconds(column, field)?),
            "compute_ns" if !field.is_empty() => row.compute_ps = picoseconds(column, field)?,
            "after" => {
                let rows = field.split(';').map(str::trim).filter(|row| !row.is_empty());
                row.after = rows.map(|row| whole(column, row)).collect::<Result<_, _>>()?;
            }
            _ => {}
        }
    }
    Ok(row)
}

fn whole(column: &str, field: &str) -> Result<i64, String> {
    field.parse().map_err(|_| format!("{column}: expected a whole number, found \"{field}\""))
}

/// Converts decimal nanoseconds to picoseconds, rounded to the nearest; exact if possible.
fn picoseconds(column: &str, field: &str) -> Result<i64, String> {
    let fail = || format!("{column}: expected nanoseconds, found \"{field}\"");
    if field.contains(['e', 'E']) {
        return TraceRow::picoseconds(field.parse().map_err(|_| fail())?).ok_or_else(fail);
    }
    let (sign, digits) = match field.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, field),
    };
    let (ns, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if ns.is_empty() || !all_digits(ns) || !all_digits(fraction) {
        return Err(fail());
    }
    let digit = |place: usize| fraction.as_bytes().get(place).map_or(0, |b| i64::from(b - b'0'));
    let ps = digit(0) * 100 + digit(1) * 10 + digit(2) + i64::from(digit(3) >= 5);
    let ns: i64 = ns.parse().map_err(|_| fail())?;
    ns.checked_mul(1000).and_then(|ns| ns.checked_add(ps)).map(|ps| sign * ps).ok_or_else(fail)
}

/// The fields of a line. Fields may be in double quotes, with quotes doubled within.
fn split(line: &str) -> Result<Vec<Cow<'_, str>>, String> {
    if !line.contains('"') {
        return Ok(line.split(',').map(Cow::Borrowed).collect());
    }
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = line.chars().peekable();
    while let Some(c) = characters.next() {
        let last = fields.len() - 1;
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                fields[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields[last].push(c),
        }
    }
    if quoted {
        return Err("a quote is not closed: is the file truncated?".into());
    }
    Ok(fields.into_iter().map(Cow::Owned).collect())
}
