use crate::parameters::Value;
use crate::workload::tests::{complaints, drain, source, text};

#[test]
fn deadlines_are_exponential_and_leave_the_flows_as_they_are() {
    let plain = [("count", Value::Integer(20_000)), ("size", text("10KB"))];
    let with = [plain.to_vec(), vec![("deadline_mean", text("1ms"))]].concat();
    let (plain, with) = (drain(&*source("poisson", 8, &plain)), drain(&*source("poisson", 8, &with)));
    let patience = |i: usize| with[i].deadline.map_or(0.0, |d| (d - with[i].start).as_ns());
    for (i, flow) in plain.iter().enumerate() {
        assert_eq!((flow.src, flow.dst, flow.size, flow.start), {
            let same = with[i];
            (same.src, same.dst, same.size, same.start)
        });
        assert_eq!(flow.deadline, None);
    }
    let n = with.len();
    let mean = (0..n).map(patience).sum::<f64>() / n as f64;
    // The standard error of the mean of 20 000 draws is 0.7 %.
    assert!((mean / 1e6 - 1.0).abs() < 0.03, "{mean}");
    // Of an exponential distribution 63.2 % lie below its mean.
    let below = (0..n).filter(|&i| patience(i) < 1e6).count() as f64 / n as f64;
    assert!((below - 0.632).abs() < 0.015, "{below}");
    assert_eq!(
        source("poisson", 8, &[("count", Value::Integer(1)), ("deadline_mean", text("1ms"))]).min_deadline(),
        1.25
    );
}

#[test]
fn deadlines_that_make_no_sense_are_complained_about() {
    assert_eq!(
        complaints("poisson", &[("deadline_mean", text("0s"))]),
        ["deadline_mean: must be greater than 0"]
    );
    let given = complaints("flows", &[("deadline_mean", text("1ms"))]);
    assert!(given.iter().any(|message| message.contains("set the deadline of each flow")), "{given:?}");
    let endless = complaints("bulk", &[("deadline_mean", text("1ms"))]);
    assert!(endless.iter().any(|message| message.contains("send until the run ends")), "{endless:?}");
    let bulk = [("deadline_mean", text("1ms")), ("size", text("1MB"))];
    assert!(drain(&*source("bulk", 8, &bulk)).iter().all(|flow| flow.deadline.is_some()));
}
