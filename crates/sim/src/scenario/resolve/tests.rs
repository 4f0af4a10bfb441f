//! Tests of `resolve`.

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
