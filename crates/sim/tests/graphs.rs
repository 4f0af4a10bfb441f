//! Job graphs are the same on any number of threads, and continue when the network disturbs them.

use std::path::Path;

use crate::common::*;
use weftline_sim::measure::{Ending, Outcome, RankRecord};
use weftline_sim::scenario::{Hooks, Scenario};
use weftline_sim::units::Time;
use weftline_sim::{Execution, Simulation};

fn on_threads(text: &str, threads: usize) -> (Kept, Outcome, usize) {
    let scenario =
        Scenario::load(text, "graphs.toml", Path::new("."), &[], None, Hooks::default()).expect("a scenario");
    let execution = Execution { threads, regions: Some(threads), ..Execution::default() };
    let simulation =
        Simulation::new(scenario.config().expect("a valid scenario"), execution).expect("a network");
    let regions = simulation.plan().regions;
    let mut kept = Kept::default();
    let outcome = simulation.run(&mut kept, &mut |_| true).expect("a run");
    kept.flows.sort_unstable_by_key(|flow| flow.flow);
    (kept, outcome, regions)
}

fn same_bits(text: &str) -> Outcome {
    let (kept, outcome, _) = on_threads(text, 1);
    assert_eq!(outcome.ending, Ending::Done, "{:?}", outcome.waiting);
    for threads in [2, 4] {
        let (others, other, regions) = on_threads(text, threads);
        assert_eq!(regions, threads);
        assert_eq!(kept.flows, others.flows);
        assert_eq!(
            (outcome.fingerprint, &outcome.steps, &outcome.ranks),
            (other.fingerprint, &other.steps, &other.ranks)
        );
    }
    outcome
}

fn scenario(workload: &str) -> String {
    format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n\
         [transport]\ncontroller = {{ kind = \"dcqcn\" }}\n[[workload]]\nkind = \"collective\"\n{workload}"
    )
}

#[test]
fn every_collective_has_the_same_bits_on_any_number_of_threads() {
    for workload in [
        "operation = \"all-reduce\"\nbytes = \"1MB\"\nchannels = 2\nrepeat = 3",
        "operation = \"all-reduce\"\nalgorithm = \"double-tree\"\nchunk = \"20KB\"\nbytes = \"400KB\"",
        "operation = \"all-reduce\"\nalgorithm = \"halving-doubling\"\nranks = 13\nbytes = \"400KB\"",
        "operation = \"all-to-all\"\nalgorithm = \"pairwise\"\nbytes = \"160KB\"\nrepeat = 2",
        "operation = \"barrier\"\nrepeat = 5\ncompute = \"3us\"",
        "operation = \"reduce\"\nroot = 5\nchunk = \"10KB\"\nbytes = \"200KB\"\nrepeat = 2",
        "operation = \"gather\"\nroot = 3\nbytes = \"200KB\"\nrepeat = 2",
        "operation = \"scatter\"\nchannels = 2\nbytes = \"200KB\"\nrepeat = 2",
        "operation = \"broadcast\"\nroot = 5\nchunk = \"10KB\"\nbytes = \"200KB\"\nrepeat = 2",
    ] {
        same_bits(&scenario(workload));
    }
}

#[test]
fn domains_of_several_regions_have_the_same_bits_on_any_number_of_threads() {
    let text = "operation = \"all-reduce\"\nalgorithm = \"hierarchical\"\ndomain = 8\nscale_up_rate = \"900Gbps\"\n\
                scale_up_delay = \"300ns\"\nbytes = \"1600KB\"\nrepeat = 2";
    let outcome = same_bits(&scenario(text));
    // Two nodes on eight rails: two steps each way.
    assert_eq!(outcome.flows, 2 * 2 * 2 * 8);
}

#[test]
fn regions_have_equal_work_where_a_job_has_more_messages_than_are_looked_at() {
    let text = "[topology]\nkind = \"rail\"\nnodes = 16\ngpus = 4\nnodes_per_segment = 4\nspines = 4\n\
                [transport]\ncontroller = { kind = \"none\" }\n[[workload]]\nkind = \"collective\"\n\
                operation = \"all-reduce\"\nalgorithm = \"hierarchical\"\ndomain = 4\nscale_up_rate = \"1Tbps\"\n\
                bytes = \"256KB\"\nrepeat = 12\n";
    let scenario = Scenario::load(text, "graphs.toml", Path::new("."), &[], None, Hooks::default());
    let config = scenario.expect("a scenario").config().expect("a valid scenario");
    let simulation =
        Simulation::new(config, Execution { threads: 2, regions: Some(2), ..Execution::default() })
            .expect("a network");
    let (outcome, balance) = simulation.run_balanced(&mut Kept::default(), &mut |_| true).expect("a run");
    assert!(outcome.flows_done > 20_000, "{}", outcome.flows_done);
    assert!(balance.busiest_over_mean() < 1.15, "{}", balance.busiest_over_mean());
}

#[test]
fn a_connection_has_one_timer_for_all_its_messages() {
    let ring = |rto: &str| {
        let text = scenario("operation = \"all-reduce\"\nbytes = \"64KB\"\nrepeat = 40");
        let text = text.replace("{ kind = \"dcqcn\" }", &format!("{{ kind = \"none\" }}\nrto = \"{rto}\""));
        let (_, outcome, _) = on_threads(&text, 1);
        (outcome.events, outcome.end, outcome.fingerprint)
    };
    let ((events, end, with), (fewest, _, without)) = (ring("100us"), ring("none"));
    assert_eq!(with, without, "nothing is lost");
    assert!(end > Time::from_us(2000), "{end}");
    // 30 messages a rank and repeat; one event a timeout, and one where the connection rested at the last.
    let limit = 16 * (end.0 / Time::from_us(100).0 + 1) * 2;
    assert!(events > fewest && events - fewest <= limit, "{events} {fewest} {limit}");
}

#[test]
fn a_ring_that_was_disturbed_by_a_failed_link_recovers() {
    let steady =
        scenario("operation = \"all-reduce\"\nbytes = \"2MB\"\nrepeat = 12").replace("dcqcn", "hpcc");
    let disturbed = format!(
        "{steady}\n[[failures.event]]\nat = \"1ms\"\nlink = [\"leaf0\", \"spine0\"]\nlasts = \"2ms\"\n"
    );
    let times = |text: &str| {
        let (_, outcome, _) = on_threads(text, 1);
        assert_eq!(outcome.ending, Ending::Done);
        let steps = &outcome.steps;
        let times: Vec<u64> = steps.iter().map(|step| step.time().expect("an end").0).collect();
        // Steps overlap, since ranks do not wait for each other; the times that they add do not.
        let (first, last) = (steps[0].start, steps.last().and_then(|step| step.finish));
        assert_eq!(first.0 + times.iter().sum::<u64>(), last.expect("an end").0);
        assert!(steps.windows(2).any(|pair| pair[1].start < pair[1].begin));
        times
    };
    let (steady, disturbed) = (times(&steady), times(&disturbed));
    let (slowest, last) = (disturbed.iter().max(), disturbed.last().copied().unwrap_or(0));
    assert!(slowest > steady.iter().max(), "{disturbed:?}");
    let usual = steady.iter().max().copied().unwrap_or(0);
    assert!(last as f64 <= usual as f64 * 1.05, "{disturbed:?}, undisturbed {steady:?}");
}

/// The steps of a training job whose ranks reach each other only within their domain: nothing contends.
fn training_steps(hosts: u32, keys: &str) -> Vec<Time> {
    let text = format!(
        "[topology]\nkind = \"star\"\nhosts = {hosts}\n[[workload]]\nkind = \"training\"\nlayers = 4\nhidden = 64\n\
         sequence = 32\nvocabulary = 0\nteraflops = 0.001\ndomain = {hosts}\nscale_up_rate = \"80Gbps\"\n\
         scale_up_delay = \"1us\"\n{keys}"
    );
    let (_, outcome, _) = on_threads(&text, 1);
    let wholes = outcome.steps.iter().filter(|step| step.whole);
    wholes.map(|step| step.finish.expect("it ended").saturating_sub(step.start)).collect()
}

fn training(hosts: u32, keys: &str) -> Time {
    let times = training_steps(hosts, keys);
    assert_eq!(times.len(), 1, "a row for each step");
    times[0]
}

/// Forward computation of a layer: 24 b s h^2 + 4 b s^2 h at 10^9 operations a second, in ps.
const LAYER: u64 = (24 * 32 * 64 * 64 + 4 * 32 * 32 * 64) * 1000;

/// A ring's step: a microsecond, and 100 ps a byte.
const fn ring(steps: u64, bytes: u64) -> u64 {
    steps * (1_000_000 + bytes * 100)
}

#[test]
fn a_training_step_without_contention_takes_computation_and_exposed_communication() {
    const ACTIVATIONS: u64 = 32 * 64 * 2;
    const GRADIENTS: u64 = 12 * 64 * 64 * 2;
    // Tensor: 4 all-reduces a layer and micro-batch.
    let tensor = training(4, "tensor = 4\nmicro_batches = 2");
    assert_eq!(tensor.0, 4 * 2 * (3 * LAYER / 4 + 4 * ring(6, ACTIVATIONS / 4)));
    // Data, without overlap: all gradients after the last backward, in two buckets.
    let bucket = "micro_batches = 3\nbucket = \"196608B\"\n";
    let exposed = training(4, &format!("{bucket}overlap = false"));
    assert_eq!(exposed.0, 4 * 3 * 3 * LAYER + 2 * ring(6, 2 * GRADIENTS / 4));
    // With overlap only the last bucket is exposed: it has the last two layers' gradients.
    let hidden = training(4, &format!("{bucket}overlap = true"));
    assert_eq!(hidden.0, 4 * 3 * 3 * LAYER + ring(6, 2 * GRADIENTS / 4));
    // Sharded: without overlap everything is exposed, parameters layer by layer, gradients in two buckets.
    let (gather, reduce) = (ring(3, GRADIENTS / 4), ring(3, 2 * GRADIENTS / 4));
    let sharded = |keys: &str| training(4, &format!("bucket = \"196608B\"\n{keys}")).0;
    let first = sharded("sharding = \"zero1\"\nmicro_batches = 1\noverlap = false");
    assert_eq!(first, 4 * 3 * LAYER + 4 * reduce);
    let third = "sharding = \"zero3\"\nmicro_batches = 2\n";
    let exposed = sharded(&format!("{third}overlap = false"));
    assert_eq!(exposed, 2 * (4 * 3 * LAYER + 8 * gather + 2 * reduce));
    // With overlap only the first parameters and the last gradients.
    assert_eq!(sharded(third), 2 * 4 * 3 * LAYER + gather + reduce);
    // Each of several steps takes the time of one.
    assert_eq!(training_steps(4, &format!("{bucket}overlap = true\nsteps = 3")), [hidden; 3]);
    // A slow rank delays all.
    let slow = training(4, &format!("{bucket}overlap = true\nslow_ranks = \"2\"\nslow_factor = 1.5"));
    assert_eq!(slow.0, 4 * 3 * 3 * LAYER * 3 / 2 + ring(6, 2 * GRADIENTS / 4));
    // A pipeline of one micro-batch: every stage forward, then every stage backward, six messages.
    let pipeline = training(4, "pipeline = 4\nmicro_batches = 1");
    assert_eq!(pipeline.0, 4 * 3 * LAYER + ring(6, ACTIVATIONS));
    // Of m micro-batches: (m + p - 1) forward and backward, plus messages that nothing hides.
    let full = training(4, "pipeline = 4\nmicro_batches = 8").0;
    let bubble = (8 + 3) * 3 * LAYER;
    // The first stage is the last to end a step, and begins the next one at once.
    assert_eq!(training_steps(4, "pipeline = 4\nmicro_batches = 8\nsteps = 3"), [Time(full); 3]);
    assert!(full >= bubble + ring(6, ACTIVATIONS) && full <= bubble + 8 * ring(6, ACTIVATIONS), "{full}");
    // In two groups of a layer a stage the bubble is half as long.
    let halves = training(2, "pipeline = 2\nvirtual_stages = 2\nmicro_batches = 8").0;
    let bubble = (8 * 2 + 1) * 3 * LAYER;
    assert!(
        halves >= bubble + ring(6, ACTIVATIONS) && halves <= bubble + 32 * ring(1, ACTIVATIONS),
        "{halves}"
    );
}

#[test]
fn training_jobs_side_by_side_have_the_same_bits_on_any_number_of_threads() {
    let job = "[[workload]]\nkind = \"training\"\nlayers = 4\nhidden = 128\nsequence = 64\nvocabulary = 100\n\
               micro_batches = 4\nteraflops = 1.0\njitter = 0.1\nranks = 8\nbucket = \"100KB\"\n";
    let fabric = "[topology]\nkind = \"rail\"\nnodes = 4\ngpus = 4\nspines = 2\n\
                  [transport]\ncontroller = { kind = \"dcqcn\" }\n";
    for keys in [
        "tensor = 2\npipeline = 2\nplacement = \"random\"\n",
        "tensor = 4\ndomain = 4\nscale_up_rate = \"3.6Tbps\"\nsharding = \"zero1\"\nplacement = \"strided\"\n",
        "expert = 4\nexperts = 8\nplacement = \"by-rail\"\nalgorithm = \"double-tree\"\n",
        "pipeline = 2\nvirtual_stages = 2\nsharding = \"zero3\"\n",
    ] {
        same_bits(&format!("{fabric}{job}{keys}{job}{keys}"));
    }
}

/// Computations of several ranks of one host, and of another job there, end at the same time.
#[test]
fn ranks_of_one_host_have_the_same_bits_on_any_number_of_threads() {
    let job = "[[workload]]\nkind = \"collective\"\noperation = \"all-to-all\"\nbytes = \"3MB\"\nrepeat = 4\nranks_per_host = 3\n\
               scale_up_rate = \"1Gbps\"\nscale_up_delay = \"7us\"\n";
    let fabric = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 1\n";
    for compute in ["compute = \"1ns\"\n", "compute = \"5us\"\n"] {
        same_bits(&format!("{fabric}{job}{compute}"));
        same_bits(&format!("{fabric}{job}{compute}{job}{compute}"));
    }
}

/// A rank that receives nothing ends when its messages are acknowledged; those to ranks of its host, when
/// they arrive.
#[test]
fn what_waits_for_acknowledgements_ends_where_ranks_share_hosts() {
    let fabric = "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 1\n";
    let keys = "ranks_per_host = 3\nscale_up_rate = \"1Gbps\"\nscale_up_delay = \"7us\"\n";
    for operation in
        ["gather", "scatter", "broadcast", "reduce\"\nroot = 5\nalgorithm = \"linear", "pairwise-all-to-all"]
    {
        let job =
            format!("kind = \"collective\"\noperation = \"{operation}\"\nbytes = \"120KB\"\nrepeat = 2\n");
        let outcome = same_bits(&format!("{fabric}[[workload]]\n{job}{keys}"));
        assert!(outcome.ranks.iter().all(|rank| rank.end.is_some()), "{operation}");
    }
    // The root's own part of 12 stays; two of 10 KB go to its host at 1 Gb/s, one after the other, and end
    // last.
    let outcome = same_bits(&format!(
        "{fabric}[[workload]]\nkind = \"collective\"\noperation = \"scatter\"\nbytes = \"120KB\"\n{keys}"
    ));
    let root = outcome.ranks.iter().find(|rank| rank.rank == 0).expect("a root");
    assert_eq!(root.end, Some(Time::from_us(2 * 80 + 7)));
    // Of a file, where sends end when they are acknowledged.
    let file = std::env::temp_dir().join(format!("weftline-acked-{}.goal", std::process::id()));
    std::fs::write(
        &file,
        "num_ranks 3\nrank 0 {\na: send 1000b to 1\nb: calc 5000\nb requires a\n}\nrank 1 {\nrecv 1000b from 0\n}\nrank 2 {\n}\n",
    )
    .expect("a file");
    let job = format!("kind = \"job-file\"\nfile = \"{}\"\nsend_ends = \"acked\"\n", file.display());
    let (_, outcome, _) = on_threads(&format!("{fabric}[[workload]]\n{job}{keys}"), 1);
    std::fs::remove_file(&file).expect("a file");
    let sender = outcome.ranks.iter().find(|rank| rank.rank == 0).expect("a sender");
    assert_eq!((outcome.ending, sender.end), (Ending::Done, Some(Time::from_us(8 + 7 + 5))));
}

/// What a job file on four hosts came to, with the same bits on any number of threads.
fn outcome_of(text: &str, format: &str) -> Outcome {
    // Tests run side by side.
    let test = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let file = std::env::temp_dir().join(format!("weftline-waits-{test}.{format}"));
    std::fs::write(&file, text).expect("a file");
    let scenario = format!(
        "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 1\n[[workload]]\nkind = \"job-file\"\n\
         file = \"{}\"\n",
        file.display()
    );
    let outcome = same_bits(&scenario);
    std::fs::remove_file(&file).expect("a file");
    outcome
}

/// A job file of two ranks, and what their rows of the whole step say: (exposed, unsent, unjoined) in ps.
fn waits_of(text: &str, format: &str) -> Vec<(u64, u64, u64)> {
    let outcome = outcome_of(text, format);
    let whole = outcome.ranks.iter().filter(|rank| rank.number == 0);
    whole.map(|rank| (rank.exposed.0, rank.unsent.0, rank.unjoined.0)).collect()
}

#[test]
fn the_last_host_of_a_whole_step_is_that_of_the_rank_that_ended_last() {
    // The only message comes to rank 1, which ends at once; rank 2 computes on.
    let text = "num_ranks 3\nrank 0 {\nsend 1000b to 1\n}\nrank 1 {\nrecv 1000b from 0\n}\n\
                rank 2 {\ncalc 900000\n}\n";
    let last = |text: &str| {
        let step = outcome_of(text, "goal").steps.remove(0);
        (step.last.expect("a message").1, step.finish)
    };
    assert_eq!(last(text), (2, Some(Time::from_us(900))));
    assert_eq!(last(&text.replace("900000", "9")).0, 1);
}

#[test]
fn a_rank_waits_for_the_sender_until_the_message_is_sent_and_for_the_network_from_then_on() {
    // Rank 1 computes for 1 us, then waits until rank 0 has computed for 5 us and its message has come.
    let pipeline = "num_ranks 2\nrank 0 {\na: calc 5000\nb: send 100000b to 1\nb requires a\n}\nrank 1 {\na: calc 1000\n\
                    b: recv 100000b from 0\nc: calc 2000\nc requires a\nc requires b\n}\n";
    let found = waits_of(pipeline, "goal");
    let (exposed, unsent, unjoined) = found[1];
    assert_eq!((found[0], unsent, unjoined), ((0, 0, 0), 4_000_000, 0));
    // The rest is the message: 100 KB at 100 Gb/s, and four links of 1 us.
    assert!((8_000_000..16_000_000).contains(&(exposed - unsent)), "{exposed}");
    // A message that has arrived before costs nothing, and one that was sent before costs the network only.
    let early = pipeline.replace("a: calc 1000", "a: calc 90000");
    assert_eq!(waits_of(&early, "goal")[1], (0, 0, 0));
    let under_way = pipeline.replace("a: calc 1000", "a: calc 8000");
    let (later, unsent, _) = waits_of(&under_way, "goal")[1];
    assert_eq!((later, unsent), (exposed - 7_000_000, 0));
    // The message that came last counts, not others that came while the rank waited.
    let two = "num_ranks 3\nrank 0 {\na: calc 5000\nb: send 1000b to 2\nb requires a\n}\nrank 1 {\na: calc 20000\n\
               b: send 1000b to 2\nb requires a\n}\nrank 2 {\na: recv 1000b from 0\nb: recv 1000b from 1\nc: calc 100\n\
               c requires a\nc requires b\n}\n";
    assert_eq!(waits_of(two, "goal")[2].1, 20_000_000);
}

#[test]
fn waits_of_a_training_job_are_within_what_was_exposed_and_a_slow_rank_makes_the_others_wait() {
    let job = |keys: &str| {
        let text = format!(
            "[topology]\nkind = \"leaf-spine\"\nleaves = 4\nspines = 1\nhosts_per_leaf = 2\nfabric_link = {{ rate = \"400Gbps\" }}\n\
             [[workload]]\nkind = \"training\"\n\
             layers = 4\nhidden = 512\nsequence = 512\nvocabulary = 1000\nmicro_batches = 4\n{keys}"
        );
        let (_, outcome, _) = on_threads(&text, 1);
        for threads in [2, 3] {
            assert_eq!(outcome.ranks, on_threads(&text, threads).1.ranks, "{threads} threads");
        }
        let whole: Vec<_> = outcome.ranks.iter().filter(|rank| rank.number == 0).cloned().collect();
        for rank in &whole {
            assert!(rank.unsent + rank.unjoined <= rank.exposed, "{rank:?}");
        }
        let sum = |of: &dyn Fn(&RankRecord) -> Time| whole.iter().map(|rank| of(rank).0).sum::<u64>();
        (sum(&|rank| rank.unsent), sum(&|rank| rank.unjoined), whole)
    };
    // Without a pipeline no rank waits for one message; alike, and alone on their links, all join at once.
    let (unsent, unjoined, _) = job("tensor = 2\n");
    assert_eq!((unsent, unjoined), (0, 0));
    let (_, unjoined, whole) = job("tensor = 2\nslow_ranks = \"3\"\nslow_factor = 2.0\n");
    assert!(unjoined > 700_000_000, "{unjoined} ps");
    let others = whole.iter().filter(|rank| rank.rank != 3);
    assert!(others.map(|rank| rank.unjoined).min() > Some(whole[3].unjoined), "{whole:?}");
    // A pipeline that fills and drains: the second stage waits for the first.
    let (_, _, whole) = job("pipeline = 2\n");
    assert!(
        whole.iter().all(|rank| rank.unsent > Time::ZERO && rank.unjoined < Time::from_us(1)),
        "{whole:?}"
    );
    assert!(
        (0..8).all(|rank| whole[rank].unsent == whole[rank / 4 * 4 + rank % 2].unsent),
        "replicas are alike: {whole:?}"
    );
}

#[test]
fn keys_of_a_collective_without_effect_are_named() {
    let load = |workload: &str| {
        Scenario::load(&scenario(workload), "s.toml", Path::new("."), &[], None, Hooks::default())
    };
    let warnings = |workload: &str| {
        let facts = load(workload).unwrap_or_else(|error| panic!("{error}: {workload}")).check();
        let all = facts["warnings"].as_array().expect("a list").iter().filter_map(|one| one.as_str());
        all.filter(|text| text.contains("has no effect")).map(str::to_string).collect::<Vec<_>>()
    };
    let none: [&str; 0] = [];
    let no_data = "has no effect: a barrier has no data, and sends a message of 8 bytes in every round";
    assert_eq!(
        warnings("operation = \"barrier\"\nbytes = \"4MB\"\nchannels = 4\nchunk = \"1KB\""),
        ["bytes", "channels", "chunk"].map(|key| format!("workload.0: {key} {no_data}"))
    );
    assert_eq!(warnings("operation = \"barrier\"\nrepeat = 2\ncompute = \"1ms\""), none);
    let alone = "workload.0: compute has no effect: hosts compute between two operations, and repeat is 1";
    assert_eq!(warnings("bytes = \"1MB\"\ncompute = \"1ms\""), [alone]);
    let whole = "workload.0: chunk has no effect: no message is larger than the bytes of the operation";
    assert_eq!(warnings("bytes = \"1MB\"\nchunk = \"7MB\""), [whole]);
    assert_eq!(warnings("bytes = \"1MB\"\nchunk = \"10KB\""), none);

    let error = |workload: &str| match load(workload) {
        Ok(_) => panic!("no error: {workload}"),
        Err(error) => error.to_string(),
    };
    for (key, value) in [("protocol", "\"LL\""), ("gpus_per_node", "8")] {
        let expected = format!("workload.0.{key}: only algorithm = \"nccl\" has this key, found ring");
        let found = error(&format!("operation = \"all-reduce\"\n{key} = {value}"));
        assert!(found.starts_with("s.toml:") && found.contains(&expected), "{found}");
        assert_eq!(found.lines().count(), 1, "{found}");
        assert!(load(&format!("operation = \"all-reduce\"\nalgorithm = \"nccl\"\n{key} = {value}")).is_ok());
    }
    let training = scenario("layers = 2\nhidden = 64\nsequence = 64\nprotocol = \"LL\"")
        .replace("\"collective\"", "\"training\"");
    let found = Scenario::load(&training, "s.toml", Path::new("."), &[], None, Hooks::default());
    let found = found.err().map(|error| error.to_string()).unwrap_or_default();
    assert!(found.contains("workload.0.protocol: only algorithm = \"nccl\" has this key"), "{found}");
}

/// The ranks of the domains of a job, as `check` prints them, and the warnings about them.
fn domains(topology: &str, workload: &str) -> (Option<u64>, Vec<String>) {
    let text = format!("[topology]\n{topology}\n[[workload]]\n{workload}");
    let scenario = Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default());
    let facts = scenario.unwrap_or_else(|error| panic!("{error}: {text}")).check();
    let warnings = facts["warnings"].as_array().expect("a list").iter().filter_map(|one| one.as_str());
    let about = warnings.filter(|text| text.contains("domain")).map(str::to_string).collect();
    (facts["hosts"]["ranks_per_domain"].as_u64(), about)
}

#[test]
fn a_domain_is_a_node_unless_a_number_is_given() {
    let two = "kind = \"rail\"\nnodes = 8\ngpus = 2\nspines = 2";
    let star = "kind = \"star\"\nhosts = 16";
    let hpn = "kind = \"hpn\"\nsegments = 1\nnodes_per_segment = 4\ngpus = 4";
    let training = "kind = \"training\"\nlayers = 2\nhidden = 64\nsequence = 64\nscale_up_rate = \"3.6Tbps\"\ntensor = 2";
    let hierarchical = "kind = \"collective\"\noperation = \"all-reduce\"\nalgorithm = \"hierarchical\"\n\
                        scale_up_rate = \"3.6Tbps\"\nbytes = \"1MB\"";
    for job in [training, hierarchical] {
        assert_eq!(domains(two, job), (Some(2), vec![]));
        assert_eq!(domains(&two.replace("rail", "rail-only"), job), (Some(2), vec![]));
        assert_eq!(domains(hpn, job), (Some(4), vec![]));
        // A network without nodes.
        assert_eq!(domains(star, job), (Some(8), vec![]));
        assert_eq!(domains("kind = \"clos\"", &format!("{job}\nranks = 16")), (Some(8), vec![]));
        // Parts of nodes, and whole nodes.
        assert_eq!(domains(hpn, &format!("{job}\ndomain = 2")), (Some(2), vec![]));
        assert_eq!(domains(hpn, &format!("{job}\ndomain = 8")), (Some(8), vec![]));
        assert_eq!(domains(hpn, &format!("{job}\nranks_per_host = 2")), (Some(8), vec![]));
        assert_eq!(domains(star, &format!("{job}\nranks_per_host = 4")), (Some(4), vec![]));
        let (ranks, warnings) = domains("kind = \"rail\"\nnodes = 16\ngpus = 1", job);
        assert!(ranks == Some(8) && warnings[0].contains("nodes have one GPU"), "{warnings:?}");
    }
    let six = "kind = \"rail\"\nnodes = 2\ngpus = 6\nspines = 2";
    let (ranks, warnings) = domains(six, &format!("{hierarchical}\ndomain = 4"));
    let expected = "domain = 4 is neither a part of a node nor whole nodes, which have 6 GPUs";
    assert!(ranks == Some(4) && warnings.iter().any(|text| text.contains(expected)), "{warnings:?}");
    // Hosts that are not next to each other.
    let (_, warnings) = domains(two, &format!("{hierarchical}\nhosts = \"0,2,4,6\""));
    let expected = "ranks 0 to 1 are a domain, but on 2 nodes of 2 GPUs";
    assert!(warnings.iter().any(|text| text.contains(expected)), "{warnings:?}");
}

/// A run that is interrupted does not list the messages that it never came to.
#[test]
fn an_interrupted_run_has_no_rows_of_messages_that_never_started() {
    let text = scenario("operation = \"all-reduce\"\nbytes = \"400KB\"\nchunk = \"10B\"\nrepeat = 50");
    let loaded =
        Scenario::load(&text, "s.toml", Path::new("."), &[], None, Hooks::default()).expect("a scenario");
    let config = loaded.config().expect("a valid scenario");
    let mut kept = Kept::default();
    let simulation = Simulation::new(config, Execution::default()).expect("a network");
    let outcome = simulation.run(&mut kept, &mut |_| false).expect("a run");
    assert_eq!(outcome.ending, Ending::Interrupted);
    // 30 steps of 16 messages in 2500 chunks, 50 times.
    assert!(kept.flows.len() < 30 * 16 * 2500, "{}", kept.flows.len());
}

/// Whether messages have rows changes no count: those that wait for others count from when their job begins.
#[test]
fn counts_of_flows_do_not_depend_on_whether_messages_have_rows() {
    let counts = |until: &str, keys: &str, threads: usize| {
        let job = "operation = \"all-reduce\"\nbytes = \"400KB\"\nrepeat = 3";
        let run = format!("[run]\nuntil = {until}\n");
        let (kept, outcome, _) = on_threads(&format!("{}\n{keys}{run}", scenario(job)), threads);
        (
            kept.flows.len() as u64,
            [outcome.flows, outcome.flows_done, outcome.flows_not_due],
            outcome.fingerprint,
        )
    };
    // 30 steps of 16 messages, three times.
    let all = 3 * 30 * 16;
    for (until, [min, max]) in
        [("\"20us\"", [0, 480]), ("\"200us\"", [1, all]), ("\"flows-done\"", [all, all])]
    {
        let (rows, counted, fingerprint) = counts(until, "", 1);
        assert_eq!((rows, counted[0], counted[2]), (all, all, 0), "{until}");
        assert!((min..=max).contains(&counted[1]), "{until}: {counted:?}");
        for threads in [1, 2] {
            assert_eq!(counts(until, "messages = false\n", threads), (0, counted, fingerprint), "{until}");
        }
    }
    // A job that begins after the end of the run.
    for keys in ["", "messages = false\n"] {
        let keys = format!("start = \"1ms\"\n{keys}");
        assert_eq!(counts("\"20us\"", &keys, 1).1, [0, 0, all], "{keys}");
    }
}

/// What runs print of these jobs of files, each on hosts of its own around one switch, whose ranks have stalled.
fn stalled(jobs: &[&str], events: &str) -> Vec<String> {
    let test = format!("{}-{:?}", std::process::id(), std::thread::current().id());
    let file = |job: usize| std::env::temp_dir().join(format!("weftline-stalled-{test}-{job}.goal"));
    let mut text = "[topology]\nkind = \"star\"\nhosts = 4\n".to_string();
    for (job, content) in jobs.iter().enumerate() {
        std::fs::write(file(job), content).expect("a file");
        let (file, hosts) = (file(job).display().to_string(), format!("{}-{}", 2 * job, 2 * job + 1));
        text += &format!("[[workload]]\nkind = \"job-file\"\nfile = \"{file}\"\nhosts = \"{hosts}\"\n");
    }
    let printed: Vec<Vec<String>> = [1, 2]
        .map(|threads| on_threads(&format!("{text}{events}"), threads).1)
        .into_iter()
        .inspect(|outcome| assert_eq!(outcome.ending, Ending::Stalled))
        .map(|outcome| outcome.waiting)
        .collect();
    (0..jobs.len()).for_each(|job| std::fs::remove_file(file(job)).expect("a file"));
    assert_eq!(printed[0], printed[1]);
    printed.into_iter().next().expect("what both runs printed")
}

#[test]
fn ranks_wait_in_a_circle_only_of_their_own_job_and_where_no_message_is_under_way() {
    let [to_the_first, to_the_second] = [(1, 0), (0, 1)].map(|(from, to)| {
        let rank = |rank: u32| match rank == from {
            true => format!("send 1000000b to {to} tag 7"),
            false => format!("recv 1000000b from {from} tag 7"),
        };
        format!("num_ranks 2\nrank 0 {{\n{}\n}}\nrank 1 {{\n{}\n}}\n", rank(0), rank(1))
    });
    let crossed = "num_ranks 2\nrank 0 {\nr: recv 8b from 1 tag 1\ns: send 8b to 1 tag 2\ns requires r\n}\n\
                   rank 1 {\nr: recv 8b from 0 tag 2\ns: send 8b to 0 tag 1\ns requires r\n}\n";
    let down = |hosts: &[u32]| -> String {
        let event = |host| format!("[[failures.event]]\nat = \"10us\"\nlink = [\"host{host}\", \"s0\"]\n");
        hosts.iter().map(event).collect()
    };
    let circle =
        |printed: &[String]| printed.iter().filter(|line| line.contains("wait for each other")).count();
    // Rank 0 of one job waits for its rank 1, and rank 1 of the other one for its rank 0.
    let printed = stalled(&[&to_the_first, &to_the_second], &down(&[0, 2]));
    assert_eq!(circle(&printed), 0, "{printed:?}");
    assert_eq!(printed[0], "workload 0: no path leads from rank 0 to others since links or switches failed");
    assert!(printed.contains(&"workload 0: rank 0 waits to receive from rank 1, tag 7 (line 3)".to_string()));
    assert!(printed.contains(&"workload 1: rank 1 waits to receive from rank 0, tag 7 (line 6)".to_string()));
    // Both ranks wait, for messages that both have sent.
    let both = "num_ranks 2\nrank 0 {\nsend 1000000b to 1 tag 7\nrecv 1000000b from 1 tag 7\n}\n\
                rank 1 {\nsend 1000000b to 0 tag 7\nrecv 1000000b from 0 tag 7\n}\n";
    assert_eq!(circle(&stalled(&[both], &down(&[0]))), 0);
    let printed = stalled(&[crossed, &to_the_second], &down(&[2]));
    assert_eq!(printed[0], "workload 0: ranks 0 -> 1 -> 0 wait for each other");
    assert_eq!(circle(&printed), 1, "{printed:?}");
}
