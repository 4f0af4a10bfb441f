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

#[test]
fn a_file_of_a_job_has_the_bytes_that_a_rank_sends_to_itself() {
    let path = std::env::temp_dir().join(format!("weftline-self-{}.goal", std::process::id()));
    let text = "num_ranks 2\nrank 0 {\nsend 10b to 0 tag 7\nrecv 10b from 0 tag 7\nsend 5b to 1 tag 7\n}\n\
                rank 1 {\nrecv 5b from 0 tag 7\n}\n";
    std::fs::write(&path, text).unwrap();
    let found = rank_lists(&path, None, None);
    std::fs::remove_file(&path).unwrap();
    let found: serde_json::Value = serde_json::from_str(&found.unwrap()).unwrap();
    assert_eq!((&found["messages"], &found["bytes"]), (&json!(2), &json!(15)));
}
