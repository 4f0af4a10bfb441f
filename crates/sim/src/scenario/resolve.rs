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
mod tests {
    use super::super::document::{Data, Node, Origin, parse};
    use super::*;
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::Text),
            any::<i64>().prop_map(Value::Integer),
            any::<f64>().prop_filter("equal to itself", |x| x.is_finite()).prop_map(Value::Number),
            any::<bool>().prop_map(Value::Flag),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
                prop::collection::btree_map("[a-z._ ]{0,5}", inner, 0..4)
                    .prop_map(|map| Value::Table(map.into_iter().collect())),
            ]
        })
    }

    /// Tables by sorted keys, as the order of sections differs from that of values.
    fn sorted(value: Value) -> Value {
        match value {
            Value::Table(mut entries) => {
                entries.sort_by(|a, b| a.0.cmp(&b.0));
                Value::Table(entries.into_iter().map(|(k, v)| (k, sorted(v))).collect())
            }
            Value::List(items) => Value::List(items.into_iter().map(sorted).collect()),
            other => other,
        }
    }

    proptest! {
        #[test]
        fn what_is_written_reads_back(map in prop::collection::btree_map("[a-z\"é]{0,5}", value(), 0..5)) {
            let root: Vec<(String, Value)> = map.into_iter().collect();
            let text = to_toml(&root);
            let table = parse(&text, "r.toml").unwrap();
            let read = Node { data: Data::Table(table), origin: Origin::Nowhere }.value();
            prop_assert_eq!(sorted(read), sorted(Value::Table(root)), "{}", text);
        }
    }
}
