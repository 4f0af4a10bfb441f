use super::*;
use crate::scenario::section::Section;

#[test]
fn every_controller_says_which_transports_take_it_and_they_do() {
    let names = names();
    let serves = |list: &str, name: &str| {
        let all = names[list].as_array().unwrap();
        all.iter().find(|entry| entry["name"] == name).unwrap()["transports"].clone()
    };
    assert_eq!(serves("controllers", "hpcc"), json!({ "rdma": "hpcc" }));
    assert_eq!(serves("controllers", "dctcp"), json!({ "rdma": "dctcp" }));
    let everywhere = json!({ "rdma": "tcp.dctcp", "tcp": "dctcp", "mptcp": "dctcp" });
    assert_eq!(serves("tcp-controllers", "dctcp"), everywhere);
    assert_eq!(serves("tcp-controllers", "lia"), json!({ "mptcp": "lia" }));
    for list in ["controllers", "tcp-controllers"] {
        for entry in names[list].as_array().unwrap() {
            for (transport, name) in entry["transports"].as_object().unwrap() {
                let text = format!("[a]\nkind = \"{transport}\"\ncontroller = {{ kind = {name} }}\n");
                let table = crate::scenario::document::parse(&text, "s.toml").unwrap();
                let mut root = Section::root(&table, "s.toml");
                let mut section = root.child("a");
                let read =
                    crate::scenario::transport::read(&mut section, &crate::transport::ReadContext::listing());
                assert!(read.is_some() && section.is_clean(), "{text}");
            }
        }
    }
}
