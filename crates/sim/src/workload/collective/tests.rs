use super::*;
use crate::parameters::Value;
use crate::units::Rate;
use crate::workload::tests::{drain, play, source, source_error, spec, text, with_hosts};
use proptest::prelude::*;

fn collective(operation: &str, hosts: u32, repeat: i64) -> Box<dyn FlowSource> {
    let keys = [
        ("operation", text(operation)),
        ("bytes", text("1003B")),
        ("repeat", Value::Integer(repeat)),
        ("compute", text("10us")),
    ];
    source("collective", hosts, &keys)
}

/// End of each job if every transfer takes 1 us.
fn ends(source: &dyn FlowSource) -> Vec<u64> {
    let times = play(source, Time::from_us(1));
    let mut ends = Vec::new();
    for (order, job) in source.jobs() {
        ends.resize(job as usize + 1, 0);
        ends[job as usize] = ends[job as usize].max(times[order as usize].1.ns());
    }
    ends
}

#[test]
fn a_ring_of_four_takes_six_steps_and_sends_six_quarters() {
    let ring = collective("ring-all-reduce", 4, 2);
    let flows = drain(&*ring);
    assert_eq!(flows.len(), 2 * 6 * 4);
    assert!(flows.iter().all(|f| f.dst == (f.src + 1) % 4));
    // 1003 = 251 + 251 + 251 + 250; in every step each chunk is sent once.
    for step in flows.chunks(4) {
        assert_eq!(step.iter().map(|f| f.size).sum::<u64>(), 1003);
    }
    assert_eq!(ends(&*ring), [6000, 6000 + 10_000 + 6000]);
}

#[test]
fn in_a_ring_a_host_passes_on_the_chunk_that_it_received() {
    let flows = drain(&*collective("ring-all-reduce", 4, 1));
    for step in 1..6 {
        for host in 0..4 {
            assert_eq!(flows[step * 4 + host].size, flows[(step - 1) * 4 + (host + 3) % 4].size);
        }
    }
}

#[test]
fn a_tree_of_seven_goes_up_two_levels_and_down_two() {
    let tree = collective("tree-all-reduce", 7, 2);
    let flows = drain(&*tree);
    assert_eq!(flows.len(), 2 * 12);
    assert!(flows.iter().all(|f| f.size == 1003));
    assert_eq!(ends(&*tree), [4000, 4000 + 10_000 + 4000]);
}

#[test]
fn all_to_all_goes_at_once_or_in_pairwise_steps() {
    assert_eq!(ends(&*collective("all-to-all", 5, 2)), [1000, 12_000]);
    assert_eq!(ends(&*collective("pairwise-all-to-all", 5, 2)), [4000, 18_000]);
    let flows = drain(&*collective("all-to-all", 5, 1));
    assert_eq!(flows.iter().map(|f| f.size).sum::<u64>(), 1003 * 4);
}

#[test]
fn what_is_too_small_or_too_large_is_refused() {
    let keys = [("bytes", text("3B"))];
    let error = source_error("collective", 4, &keys);
    assert_eq!(error.to_string(), "4 ranks need at least 4 bytes, one per chunk");
    let keys = [("operation", text("all-to-all")), ("repeat", Value::Integer(1_000_000))];
    let error = source_error("collective", 320, &keys).to_string();
    assert_eq!(
        error,
        "102080000000 messages in 1000000 operations exceed the limit of 4294967295: use fewer operations (repeat), fewer ranks, an \
         algorithm with fewer messages, or a larger chunk if one is set"
    );
}

#[test]
fn an_error_has_the_key_that_is_wrong() {
    let keys = |operation| [("operation", text(operation)), ("algorithm", text("halving-doubling"))];
    for operation in ["reduce-scatter", "all-gather"] {
        let error = source_error("collective", 3, &keys(operation));
        assert_eq!(error.key, "algorithm");
        assert!(
            error.to_string().ends_with("among a power of two of ranks only, found 3: use ring"),
            "{error}"
        );
    }
    let rails = |more: &[(&'static str, Value)]| {
        let keys = [("algorithm", text("hierarchical")), ("operation", text("reduce-scatter"))];
        source_error("collective", 6, &[&keys, more].concat())
    };
    assert_eq!(rails(&[("domain", Value::Integer(4))]).key, "domain");
    let halves = rails(&[("domain", Value::Integer(2)), ("in_rails", text("halving-doubling"))]);
    assert_eq!(halves.key, "in_rails");
    let few = [
        ("bytes", text("95B")),
        ("ranks_per_host", Value::Integer(4)),
        ("scale_up_rate", text("1Tbps")),
        ("channels", Value::Integer(3)),
    ];
    let few = source_error("collective", 8, &few);
    assert_eq!(
        (few.key, few.message.as_str()),
        ("bytes", "32 ranks over 3 channels need at least 96 bytes, one per chunk")
    );
}

proptest! {
    #[test]
    fn every_operation_keeps_the_promises_of_a_source(hosts in 2u32..20, repeat in 1i64..4, kind in 0usize..4) {
        let source = collective(OPERATIONS[kind].0, hosts, repeat);
        drain(&*source);
        prop_assert_eq!(ends(&*source).len(), repeat as usize);
    }
}

/// What NCCL's choice says of an all-reduce of 1 MB among hosts 0 to 7 of those with these rates.
fn choice_of_nccl(rates: &[Rate], more: &[(&'static str, Value)]) -> String {
    let keys = [
        ("operation", text("all-reduce")),
        ("algorithm", text("nccl")),
        ("bytes", text("1MB")),
        ("hosts", text("0-7")),
    ];
    let keys: Vec<_> = keys.into_iter().chain(more.iter().cloned()).collect();
    let warned = std::cell::RefCell::new(String::new());
    with_hosts(rates.len() as u32, |cx| {
        let warn = |message: String| *warned.borrow_mut() += &message;
        let cx = WorkloadContext { host_rate: rates, warn: &warn, ..*cx };
        spec("collective", &keys).source(&cx).map(|_| ())
    })
    .expect("a job");
    warned.into_inner()
}

#[test]
fn nccl_chooses_by_the_links_of_the_job_and_not_of_hosts_that_it_does_not_use() {
    let rates = [Rate::from_gbps(400); 9];
    let alone = choice_of_nccl(&rates[..8], &[]);
    assert!(alone.contains("NCCL takes ring, LL128"), "{alone}");
    for idle in [1, 100, 800] {
        let mut rates = rates;
        rates[8] = Rate::from_gbps(idle);
        assert_eq!(choice_of_nccl(&rates, &[]), alone, "{idle} Gb/s");
    }
    let mut slow = rates;
    slow[3] = Rate::from_gbps(1);
    assert_ne!(choice_of_nccl(&slow, &[]), alone);
}

#[test]
fn nccl_gives_each_rank_its_share_of_the_links_of_its_host() {
    let ranks = |count, node| {
        [
            ("ranks_per_host", Value::Integer(count)),
            ("gpus_per_node", Value::Integer(node)),
            ("scale_up_rate", text("3.6Tbps")),
            ("protocol", text("Simple")),
        ]
    };
    // Four ranks a host of 400 Gb/s: 32 ranks in 8 nodes of 4, which have 50 GB/s. By hand, of the ring,
    // whose 62 steps cross nodes 14 times: (8.4 + 48 x 3.4 + 14 x 14) x 1.4 + 1 MB / (1000 x 50 x 32 / 62).
    let of = choice_of_nccl(&[Rate::from_gbps(400); 8], &ranks(4, 4));
    let ring = (8.4 + 48.0 * 3.4 + 14.0 * 14.0) * 1.4 + 1e6 / (1000.0 * 50.0 * 32.0 / 62.0);
    assert!(of.contains(&format!("ring, Simple {ring:.1} us")), "{ring} is not in {of}");
    // Nodes of one rank each: 12.5 GB/s.
    let of = choice_of_nccl(&[Rate::from_gbps(400); 8], &ranks(4, 1));
    let ring = (8.4 + 62.0 * 14.0) * 1.4 + 1e6 / (1000.0 * 12.5 * 32.0 / 62.0);
    assert!(of.contains(&format!("ring, Simple {ring:.1} us")), "{ring} is not in {of}");
}
