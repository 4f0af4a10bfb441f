//! The columns of a file of flows, the same in CSV and in Parquet.

use crate::parameters::nearest;

/// A column that a trace has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// As in the header.
    pub name: &'static str,
    pub field: Field,
    /// Of a time: the unit, and the power of ten of its picoseconds.
    pub unit: &'static str,
    pub exponent: u32,
}

/// What a column gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    Src,
    Dst,
    Size,
    Start,
    Group,
    Deadline,
    After,
    Compute,
    /// Its number among flows that start together, as in the table of flows of an earlier run.
    Id,
}

impl Field {
    /// Its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Field::Src => "src",
            Field::Dst => "dst",
            Field::Size => "size_bytes",
            Field::Start => "start_ns",
            Field::Group => "group",
            Field::Deadline => "deadline_ns",
            Field::After => "after",
            Field::Compute => "compute_ns",
            Field::Id => "flow_id",
        }
    }
}

const fn plain(name: &'static str, field: Field) -> Column {
    Column { name, field, unit: "", exponent: 0 }
}

const fn time(field: Field, names: [&'static str; 4]) -> [Column; 4] {
    [
        Column { name: names[0], field, unit: "nanoseconds", exponent: 3 },
        Column { name: names[1], field, unit: "microseconds", exponent: 6 },
        Column { name: names[2], field, unit: "milliseconds", exponent: 9 },
        Column { name: names[3], field, unit: "seconds", exponent: 12 },
    ]
}

const PLAIN: &[Column] = &[
    plain("src", Field::Src),
    plain("dst", Field::Dst),
    plain("size_bytes", Field::Size),
    plain("group", Field::Group),
    plain("after", Field::After),
    plain("flow_id", Field::Id),
];
const TIMES: &[[Column; 4]] = &[
    time(Field::Start, ["start_ns", "start_us", "start_ms", "start_s"]),
    time(Field::Deadline, ["deadline_ns", "deadline_us", "deadline_ms", "deadline_s"]),
    time(Field::Compute, ["compute_ns", "compute_us", "compute_ms", "compute_s"]),
];
/// Without these a row is no flow.
pub const REQUIRED: [Field; 4] = [Field::Src, Field::Dst, Field::Size, Field::Start];

fn known() -> impl Iterator<Item = &'static Column> + Clone {
    PLAIN.iter().chain(TIMES.iter().flatten())
}

/// The column of each name, none where it is passed over, and the note that this deserves.
///
/// A name that is nearly one of the columns is an error: it is more likely misspelled than meant for others.
pub fn read<'n>(
    names: impl Iterator<Item = &'n str> + Clone,
) -> Result<(Vec<Option<Column>>, Option<String>), String> {
    let mut found: Vec<Option<Column>> = Vec::new();
    let mut others = Vec::new();
    for name in names.clone() {
        let column = known().find(|column| column.name == name).copied();
        if let Some(new) = column
            && let Some(before) = found.iter().flatten().find(|before| before.field == new.field)
        {
            return Err(match before.name == new.name {
                true => format!("column {name} occurs twice"),
                false => format!("columns {} and {name} say the same: expected one of them", before.name),
            });
        }
        if column.is_none() {
            others.push(name);
        }
        found.push(column);
    }
    let has = |field: Field| found.iter().flatten().any(|column| column.field == field);
    for &other in &others {
        if let Some(near) =
            nearest(other, known().filter(|column| !has(column.field)).map(|column| column.name))
            && near.len() >= 5
        {
            return Err(format!("unknown column \"{other}\": did you mean \"{near}\"?{}", list()));
        }
    }
    if let Some(missing) = REQUIRED.into_iter().find(|&field| !has(field)) {
        let others = match found.len() {
            1 => ": expected names separated by commas or tabs".to_string(),
            _ if others.is_empty() => String::new(),
            _ => format!(", and there is {}", quoted(&others)),
        };
        return Err(format!("column {} is missing{others}{}", missing.name(), list()));
    }
    let note = (!others.is_empty()).then(|| {
        let (noun, are) = if others.len() == 1 { ("column", "is") } else { ("columns", "are") };
        format!("{noun} {} {are} passed over{}", quoted(&others), list())
    });
    Ok((found, note))
}

fn quoted(names: &[&str]) -> String {
    let shown: Vec<_> = names.iter().take(8).map(|name| format!("{:?}", shortened(name))).collect();
    let more = if names.len() > shown.len() { ", ..." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn shortened(name: &str) -> String {
    name.chars().take(40).collect()
}

fn list() -> String {
    let plain = PLAIN.iter().map(|column| column.name).collect::<Vec<_>>().join(", ");
    let times = TIMES.iter().map(|units| units[0].name).collect::<Vec<_>>().join(", ");
    format!(" (known: {plain}, {times}; times also in _us, _ms, _s)")
}
