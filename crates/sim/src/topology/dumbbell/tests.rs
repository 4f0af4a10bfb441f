use super::*;
use crate::parameters::{Declared, Source};

struct Given(Vec<Value>, Vec<String>);

impl Source for Given {
    fn get(&mut self, key: &str) -> Option<Value> {
        (key == "groups").then(|| Value::List(self.0.clone()))
    }
    fn complain(&mut self, key: &str, message: String) {
        self.1.push(format!("{key}: {message}"));
    }
    fn declare(&mut self, _: Declared, _: Option<Value>) {}
}

fn read(groups: Vec<Value>) -> (Dumbbell, Vec<String>) {
    let mut given = Given(groups, Vec::new());
    let dumbbell = Dumbbell::read(&mut Parameters::new(&mut given));
    (dumbbell, given.1)
}

fn group(hosts: i64, delay: &str) -> Value {
    let entries = [("hosts", Value::Integer(hosts)), ("delay", Value::Text(delay.into()))];
    Value::Table(entries.map(|(key, value)| (key.to_string(), value)).to_vec())
}

#[test]
fn groups_have_delays_of_their_own_on_both_sides() {
    let (dumbbell, complaints) = read(vec![group(2, "200us"), group(1, "2ms")]);
    assert!(complaints.is_empty(), "{complaints:?}");
    let topology = dumbbell.build().unwrap();
    let delays: Vec<u64> = topology.links[..6].iter().map(|link| link.delay.ns() / 1000).collect();
    assert_eq!(delays, [200, 200, 2000, 200, 200, 2000]);
}

#[test]
fn groups_that_make_no_sense_are_reported() {
    let message = |groups| read(groups).1.remove(0);
    assert_eq!(message(vec![group(0, "1us")]), "groups: group 0: hosts: expected 1 to 1000000, found 0");
    assert_eq!(
        message(vec![group(1, "1us"), group(1, "0us")]),
        "groups: group 1: delay must be greater than 0, such as \"1us\""
    );
    assert!(message(vec![Value::Integer(3)]).contains("expected a table with hosts and delay"));
    assert!(
        message(vec![Value::Table(vec![("host".into(), Value::Integer(1))])])
            .contains("did you mean \"hosts\"")
    );
}
