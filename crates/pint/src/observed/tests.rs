use super::*;
use crate::plan;

const QUERIES: &str = r#"
bits = 16
[[query]]
name = "path"
value = "switch-id"
aggregation = "path"
bits = 8
[[query]]
name = "longest"
value = "queue-bytes"
aggregation = "max"
approximation = { epsilon = 0.025, rounding = "nearest" }
bits = 8
"#;

fn walks(text: &str) -> Result<Vec<Recorded>, String> {
    let plan = Plan::new(plan::read(QUERIES, "q.toml").unwrap()).unwrap();
    let walks = Walks::new(&plan, text.as_bytes(), "w.csv").map_err(|error| error.to_string())?;
    walks.map(|row| row.map_err(|error| error.to_string())).collect()
}

#[test]
fn each_packet_becomes_the_digest_that_its_hops_make() {
    let plan = Plan::new(plan::read(QUERIES, "q.toml").unwrap()).unwrap();
    let text = "packet_id,hop,switch-id,queue-bytes,flow_id,note\n7,1,3,0,2,a\n7,2,4,900,2,b\n7,1,5,0,2,c\n8,1,3,10,1,d\n";
    let rows = walks(text).unwrap();
    let encoder = plan.encoder().unwrap();
    let one = encoder.encode(0, 7, 1, &[3, 0]);
    let expected = [
        encoder.encode(one, 7, 2, &[4, 900]),
        encoder.encode(0, 7, 1, &[5, 0]),
        encoder.encode(0, 8, 1, &[3, 10]),
    ];
    assert_eq!(rows.iter().map(|row| row.digest).collect::<Vec<_>>(), expected);
    assert_eq!(
        rows.iter().map(|row| (row.hops, row.flow.id)).collect::<Vec<_>>(),
        [(2, Some(2)), (1, Some(2)), (1, Some(1))]
    );
    assert!(rows.iter().all(|row| row.plan_version == plan.version()));
}

#[test]
fn a_packet_that_circles_becomes_a_report_of_the_hop_that_found_the_loop() {
    let text = "bits = 16\n[[query]]\nname = \"loop\"\nvalue = \"switch-id\"\naggregation = \"loops\"\ntolerance = 0\nbits = 16\n";
    let plan = Plan::open(text, "q.toml").unwrap();
    let mut table = "packet_id,hop,switch-id\n".to_string();
    for packet in 0..200 {
        // Packets with an odd number pass 32 hops of a circle of three switches, the others pass three hops.
        for hop in 1..=if packet % 2 == 1 { 32 } else { 3 } {
            table += &format!("{packet},{hop},{}\n", 5 + (hop - 1) % 3);
        }
    }
    let rows: Result<Vec<Recorded>, _> = Walks::new(&plan, table.as_bytes(), "w.csv").unwrap().collect();
    let (circling, others): (Vec<_>, Vec<_>) = rows.unwrap().into_iter().partition(|row| row.packet % 2 == 1);
    assert_eq!((circling.len(), others.len()), (100, 100));
    assert!(others.iter().all(|row| !row.looped && row.hops == 3));
    // A hash stays for a circle with probability h / (h + 2) after hop h, so 32 hops miss no loop in practice.
    assert!(circling.iter().all(|row| row.looped && (4..=32).contains(&row.hops)), "{circling:?}");
    let mut collector =
        crate::collector::Collector::new(&plan, Default::default(), crate::collector::NoPaths).unwrap();
    let mut collected = crate::collector::Collected::default();
    circling.iter().for_each(|row| collector.take(row, &mut collected).unwrap());
    assert_eq!((collector.counts().loops, collected.events.len()), (100, 100));
}

#[test]
fn values_that_fragments_would_cut_are_refused() {
    let text = "bits = 8\n[[query]]\nname = \"path\"\nvalue = \"switch-id\"\naggregation = \"path\"\nblocks = \"fragments\"\n\
                value-bits = 16\nbits = 8\n";
    let plan = Plan::open(text, "q.toml").unwrap();
    let walked = |id: u64| {
        let table = format!("packet_id,hop,switch-id\n7,1,{id}\n");
        let rows: Result<Vec<_>, _> = Walks::new(&plan, table.as_bytes(), "w.csv").unwrap().collect();
        rows.map(|rows| rows.len()).map_err(|error| error.to_string())
    };
    assert_eq!(walked(65_535), Ok(1));
    let error = walked(70_000).unwrap_err();
    assert_eq!(
        error,
        "w.csv:2: column switch-id: 70000 has 17 bits, and query path writes 16 of each value: set value-bits = 17"
    );
    assert_eq!(plan.beyond_bits(crate::query::Value::SwitchId, 65_535), [""; 0]);
    assert!(plan.beyond_bits(crate::query::Value::SwitchId, 65_536)[0].contains("switches up to 65536"));
}

#[test]
fn errors_tell_the_place_and_what_was_expected() {
    for (text, message) in [
        (
            "packet_id,hop,switch_id,queue-bytes\n",
            "w.csv:1: column switch-id: the header does not have it: unknown column \"switch-id\": did you mean \"switch_id\"?",
        ),
        (
            "packet_id,hop,switch-id,queue-bytes,hop\n",
            "w.csv:1: column hop: the header has it more than once",
        ),
        (
            "packet_id,hop,switch-id,queue-bytes\n7,2,1,1\n",
            "w.csv:2: column hop: expected hop 1 of packet 7, found hop 2",
        ),
        (
            "packet_id,hop,switch-id,queue-bytes\n7,1,1,1\n7,3,1,1\n",
            "w.csv:3: column hop: expected hop 2 of packet 7, found hop 3",
        ),
        (
            "packet_id,hop,switch-id,queue-bytes\n7,0,1,1\n",
            "w.csv:2: column hop: expected a hop from 1 to 64, found 0",
        ),
        (
            "packet_id,hop,switch-id,queue-bytes\n7,1,-1,1\n",
            "w.csv:2: column switch-id: expected a whole number of at most 64 bits, found \"-1\"",
        ),
    ] {
        let error = walks(text).unwrap_err();
        assert!(error.starts_with(message), "{error}\n{message}");
    }
}
