//! Tests of the estimated ends of jobs.

use super::super::tests::checked;

#[test]
fn repeats_of_an_operation_that_not_all_ranks_wait_for_overlap() {
    let end = |operation: &str, repeat: u32| {
        let facts = checked(&format!(
            "[topology]\nkind = \"star\"\nhosts = 32\nhost_link.rate = \"100Gbps\"\n[transport]\nmtu = \"4KB\"\n[[workload]]\n\
             kind = \"collective\"\noperation = \"{operation}\"\nbytes = \"1MB\"\nrepeat = {repeat}\n"
        ));
        facts["estimate"]["end_ns"].as_f64().expect("a number")
    };
    // Two copies of 1 MB leave a rank, or come to it: 162 us with headers, and the round trip of an acknowledgement. In a run each
    // further broadcast takes 166 us, and each reduce 198.
    for (operation, run) in [("broadcast", 166e3), ("reduce", 198e3)] {
        let further = (end(operation, 20) - end(operation, 1)) / 19.0;
        assert!((0.9..1.05).contains(&(further / run)), "{operation}: {further}");
    }
    for operation in ["all-reduce", "all-to-all"] {
        assert!((end(operation, 20) / end(operation, 1) / 20.0 - 1.0).abs() < 1e-3, "{operation}");
    }
    // A gather ends when its root has all, and so does the next.
    assert!((end("gather", 20) / end("gather", 1) / 20.0 - 1.0).abs() < 0.05);
}

fn end_of(topology: &str, policy: &str, workload: &str) -> f64 {
    let host = if policy.is_empty() { String::new() } else { format!("[host]\nnic_policy = \"{policy}\"\n") };
    let facts = checked(&format!(
        "[topology]\n{topology}\n{host}[transport]\nmtu = \"4KB\"\n[switch.balancer]\nkind = \"spray\"\n[[workload]]\n\
         kind = \"collective\"\nbytes = \"8MB\"\n{workload}\n"
    ));
    facts["estimate"]["end_ns"].as_f64().expect("a number")
}

fn alike(found: f64, expected: f64) -> bool {
    (found / expected - 1.0).abs() < 0.01
}

#[test]
fn links_between_switches_carry_the_messages_of_one_level_of_a_tree_at_a_time() {
    let end = |topology: &str, placement: &str| {
        end_of(topology, "", &format!("operation = \"broadcast\"\nplacement = \"{placement}\""))
    };
    let star = end("kind = \"star\"\nhosts = 8\nhost_link.rate = \"100Gbps\"", "packed");
    let fabric =
        "kind = \"leaf-spine\"\nleaves = 2\nspines = 1\nhosts_per_leaf = 4\nfabric_link.rate = \"100Gbps\"";
    // The levels take two, two and one message of a host; and of each no more than one crosses a link of a leaf, or three in the
    // second level and one in the third.
    assert!(alike(end(fabric, "strided"), star), "{}", end(fabric, "strided") / star);
    assert!(alike(end(fabric, "packed"), star * 6.0 / 5.0), "{}", end(fabric, "packed") / star);
}

/// Four hosts with two NICs.
const TWO_NICS: &str =
    "kind = \"hpn\"\nsegments = 1\nnodes_per_segment = 4\ngpus = 1\nplanes = 2\nhost_link.rate = ";

#[test]
fn a_message_is_as_fast_as_the_nic_that_it_takes() {
    let end = |nics: &str, policy: &str, channels: u32| {
        let workload = format!("operation = \"all-reduce\"\nalgorithm = \"ring\"\nchannels = {channels}");
        end_of(&format!("{TWO_NICS}{nics}"), policy, &workload)
    };
    let [fast, slow] = ["\"100Gbps\"", "\"25Gbps\""];
    let one = "\"100Gbps\"\noverride = [{ between = [\"host2\", \"tor1\"], rate = \"25Gbps\" }]";
    for policy in ["by-rail", "round-robin", "least-bytes"] {
        // The second channel has the slow NIC, the only one has the other.
        assert!(alike(end(one, policy, 2), end(slow, policy, 2)), "{policy}");
        assert_eq!(end(one, policy, 1), end(fast, policy, 1), "{policy}");
    }
    // Half of the packets to the host come by its slow NIC.
    assert!(alike(end(one, "all", 1), end(slow, "all", 1)));
}

#[test]
fn connections_that_take_nics_in_turn_share_them() {
    let end = |policy: &str, operation: &str, algorithm: &str| {
        let workload = format!("operation = \"{operation}\"\nalgorithm = \"{algorithm}\"");
        end_of(&format!("{TWO_NICS}\"100Gbps\""), policy, &workload)
    };
    for policy in ["round-robin", "least-bytes"] {
        // Of two children one by each NIC, then one message that has a NIC of its own; of three messages at once two by one NIC.
        let [tree, all] = [("broadcast", "tree"), ("all-to-all", "linear")].map(|(operation, algorithm)| {
            end(policy, operation, algorithm) / end("by-rail", operation, algorithm)
        });
        assert!(alike(tree, 2.0 / 3.0) && alike(all, 2.0 / 3.0), "{policy}: {tree} {all}");
    }
}
