use super::super::managed::tests::reference;
use super::*;

/// Flows that share one of 1024 queues with others.
fn colliding(flows: u32) -> Vec<u32> {
    let tuples = FiveTuples::of(flows).unwrap();
    let queue = |flow| tuples.hash(flow, flow + flows, 0) % 1024;
    (0..flows).filter(|&f| (0..flows).any(|other| other != f && queue(other) == queue(f))).collect()
}

#[test]
fn addresses_carry_over_from_byte_to_byte() {
    let tuples = FiveTuples::of(300).unwrap();
    let addresses = [0, 254, 255, 299, 300, 599].map(|host| tuples.address(host).to_be_bytes());
    assert_eq!(addresses[..3], [[1, 1, 1, 1], [1, 1, 255, 1], [1, 2, 0, 1]]);
    assert_eq!(addresses[3..], [[1, 2, 44, 1], [100, 1, 1, 1], [100, 2, 44, 1]]);
    assert_eq!(FiveTuples::of(0), None);
}

/// In the authors' FQ runs flows that share a queue get less than three quarters of the median.
#[test]
fn the_flows_that_the_authors_runs_starve_are_those_that_share_a_queue() {
    let Some(file) = reference("cebinae/table_25rows.json") else { return };
    let rows: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    for (row, flows) in [(9, 129), (12, 129), (18, 65), (25, 256)] {
        let goodputs = &rows[row - 1]["results"]["fq"]["per_flow_goodput_bps"];
        let goodputs: Vec<f64> = goodputs.as_array().unwrap().iter().map(|g| g.as_f64().unwrap()).collect();
        let mut sorted = goodputs.clone();
        sorted.sort_by(f64::total_cmp);
        let low = |&flow: &u32| goodputs[flow as usize] < 0.75 * sorted[sorted.len() / 2];
        assert_eq!((0..flows).filter(low).collect::<Vec<_>>(), colliding(flows), "row {row}");
    }
}
