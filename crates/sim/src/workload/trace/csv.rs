//! Traces as CSV: a header that names the columns, in any order, then one line per flow. Where the header has
//! tabs and no commas, tabs separate the fields.

use super::columns::{self, Column, Field};
use super::{HostOf, Trace, TraceError, TraceRow, as_text};
use std::borrow::Cow;

/// The columns of a file, and what separates its fields.
struct Header {
    columns: Vec<Option<Column>>,
    separator: char,
}

impl Trace {
    /// Reads CSV. Times may have a fraction, kept to the picosecond; `after` is a list of rows such as "3;7".
    /// Rows with a `flow_id` may be in any order.
    pub fn from_csv(bytes: &[u8], file: &str, host: HostOf) -> Result<Trace, TraceError> {
        let text = as_text(bytes, file)?;
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let Some((at, header)) = lines.next() else {
            let names = columns::REQUIRED.map(Field::name).join(",");
            let message = format!("empty: expected a header such as \"{names}\"");
            return Err(TraceError::new(file, None, None, message));
        };
        let (header, note) = read_header(header).map_err(|m| TraceError::new(file, Some(at + 1), None, m))?;
        let mut trace = Trace::default();
        trace.warnings.extend(note.map(|note| format!("{file}:{}: {note}", at + 1)));
        let wrong = |row, at: usize, message| TraceError::new(file, Some(at + 1), Some(row), message);
        let read = |(row, (at, line)): (usize, (usize, &str))| {
            read_row(line, &header).map(|fields| (row, at, fields)).map_err(|m| wrong(row, at, m))
        };
        let mut take =
            |(row, at, fields)| trace.push(fields, host).map_err(|message| wrong(row, at, message));
        if header.columns.iter().flatten().any(|column| column.field == Field::Id) {
            let mut rows = lines.enumerate().map(read).collect::<Result<Vec<_>, _>>()?;
            TraceRow::put_in_order(&mut rows, |(_, _, fields)| fields);
            rows.into_iter().try_for_each(take)?;
        } else {
            lines.enumerate().try_for_each(|line| take(read(line)?))?;
        }
        trace.not_empty(file)
    }
}

/// The columns of a file, and a note on those that are passed over.
fn read_header(line: &str) -> Result<(Header, Option<String>), String> {
    let separator = if line.contains('\t') && !line.contains(',') { '\t' } else { ',' };
    let names = split(line, separator)?;
    let (columns, note) = columns::read(names.iter().map(|name| name.trim()))?;
    Ok((Header { columns, separator }, note))
}

fn read_row(line: &str, header: &Header) -> Result<TraceRow, String> {
    let fields = split(line, header.separator)?;
    if fields.len() != header.columns.len() {
        let (found, expected) = (fields.len(), header.columns.len());
        let hint = if found < expected { ": is the file truncated?" } else { "" };
        return Err(format!("expected {expected} fields as in the header, found {found}{hint}"));
    }
    let mut row = TraceRow::default();
    for (column, field) in header.columns.iter().zip(&fields) {
        let Some(column) = column else { continue };
        let (name, field) = (column.name, field.trim());
        match column.field {
            Field::Src => (row.src, row.src_name) = end(name, field)?,
            Field::Dst => (row.dst, row.dst_name) = end(name, field)?,
            Field::Size => row.size_bytes = whole(name, field)?,
            Field::Start => row.start_ps = picoseconds(column, field)?,
            Field::Group if !field.is_empty() => row.group = Some(field.to_string()),
            Field::Deadline if !field.is_empty() => row.deadline_ps = Some(picoseconds(column, field)?),
            Field::Compute if !field.is_empty() => row.compute_ps = picoseconds(column, field)?,
            Field::Id => row.id = field.parse().ok(),
            Field::After => {
                let rows = field.split(';').map(str::trim).filter(|row| !row.is_empty());
                row.after = rows.map(|row| whole(name, row)).collect::<Result<_, _>>()?;
            }
            _ => {}
        }
    }
    Ok(row)
}

/// A host by its number or its name.
fn end(column: &str, field: &str) -> Result<(i64, Option<String>), String> {
    match field.parse() {
        Ok(id) => Ok((id, None)),
        Err(_) if field.contains(char::is_alphabetic) => Ok((0, Some(field.to_string()))),
        Err(_) => Err(format!("{column}: expected a host's number or name, found \"{field}\"")),
    }
}

fn whole(column: &str, field: &str) -> Result<i64, String> {
    field.parse().map_err(|_| format!("{column}: expected a whole number, found \"{field}\""))
}

/// Converts a decimal time to picoseconds, rounded to the nearest; exact if possible.
fn picoseconds(column: &Column, field: &str) -> Result<i64, String> {
    let fail = || format!("{}: expected {}, found \"{field}\"", column.name, column.unit);
    let beyond = || {
        format!(
            "{}: {field} {} are beyond what times can hold: subtract the start of the first flow from all of them",
            column.name, column.unit
        )
    };
    if field.contains(['e', 'E']) {
        let value = field.parse().map_err(|_| fail())?;
        return TraceRow::picoseconds(value, column.exponent).ok_or_else(beyond);
    }
    let (sign, digits) = match field.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, field),
    };
    let (units, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if units.is_empty() || !all_digits(units) || !all_digits(fraction) {
        return Err(fail());
    }
    let digit = |place: u32| fraction.as_bytes().get(place as usize).map_or(0, |b| i64::from(b - b'0'));
    let rounding = i64::from(digit(column.exponent) >= 5);
    let ps = (0..column.exponent).fold(0, |ps, place| ps * 10 + digit(place)) + rounding;
    let units: i64 = units.parse().map_err(|_| beyond())?;
    let whole = units.checked_mul(10_i64.pow(column.exponent)).and_then(|whole| whole.checked_add(ps));
    whole.map(|ps| sign * ps).ok_or_else(beyond)
}

/// The fields of a line. Fields may be in double quotes, with quotes doubled within.
fn split(line: &str, separator: char) -> Result<Vec<Cow<'_, str>>, String> {
    if !line.contains('"') {
        return Ok(line.split(separator).map(Cow::Borrowed).collect());
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
            c if c == separator && !quoted => fields.push(String::new()),
            c => fields[last].push(c),
        }
    }
    if quoted {
        return Err("a quote is not closed: is the file truncated?".into());
    }
    Ok(fields.into_iter().map(Cow::Owned).collect())
}
