//! The resolved scenario as TOML: every key with the value in force, so that running it again gives the same bits.

use std::fmt::Write;

use crate::parameters::Value;

/// Writes the sections that were read, in their order: single values first, then `[section]` and `[[section]]`.
pub fn to_toml(root: &[(String, Value)]) -> String {
    let mut text = String::new();
    for (key, value) in root.iter().filter(|(_, value)| !is_section(value)) {
        let _ = writeln!(text, "{} = {}", bare_or_quoted(key), inline(value));
    }
    for (key, value) in root {
        match value {
            Value::Table(entries) => write_section(&mut text, &format!("[{}]", bare_or_quoted(key)), entries),
            Value::List(tables) if is_section(value) => {
                for table in tables {
                    let Value::Table(entries) = table else { continue };
                    write_section(&mut text, &format!("[[{}]]", bare_or_quoted(key)), entries);
                }
            }
            _ => {}
        }
    }
    text
}

fn is_section(value: &Value) -> bool {
    match value {
        Value::Table(_) => true,
        Value::List(items) => !items.is_empty() && items.iter().all(|i| matches!(i, Value::Table(_))),
        _ => false,
    }
}

fn write_section(text: &mut String, header: &str, entries: &[(String, Value)]) {
    let _ = writeln!(text, "\n{header}");
    for (key, value) in entries {
        let key = bare_or_quoted(key);
        match value {
            // One table a line, so that a long list of flows can be read.
            Value::List(items) if is_section(value) => {
                let _ = writeln!(text, "{key} = [");
                for item in items {
                    let _ = writeln!(text, "    {},", inline(item));
                }
                let _ = writeln!(text, "]");
            }
            _ => {
                let _ = writeln!(text, "{key} = {}", inline(value));
            }
        }
    }
}

fn inline(value: &Value) -> String {
    match value {
        Value::Text(text) => quoted(text),
        Value::Integer(integer) => integer.to_string(),
        Value::Number(number) => decimal(*number),
        Value::Flag(flag) => flag.to_string(),
        Value::List(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Value::Table(entries) if entries.is_empty() => "{}".to_string(),
        Value::Table(entries) => {
            let pairs = entries.iter().map(|(key, v)| format!("{} = {}", bare_or_quoted(key), inline(v)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
    }
}

/// The shortest digits that read back as the same number.
fn decimal(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_string();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_string();
    }
    format!("{number:?}")
}

fn bare_or_quoted(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_string() } else { quoted(key) }
}

fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04X}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests;
