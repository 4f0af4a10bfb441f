//! What Cebinae counts at a port, and what tables and series show of it.

use crate::counters::{Counter, CounterGroup, Metric, counters};
use crate::queue::managed::cause;

cause!(
    FILTER,
    "filter",
    "drops by a filter",
    "Packets that Cebinae's filter dropped.",
    "Drops by Cebinae's filter in an interval."
);

counters! {
    /// What happened at the port.
    Tally {
        windows: "windows", "windows",
            "Recomputations of Cebinae, one a period.";
        windows_saturated: "windows", "windows saturated",
            "Recomputations of Cebinae that found their link saturated.";
        top_flows: "flows", "flows made top",
            "Flows that Cebinae made top, in all windows.";
        to_head: "packets", "packets sent to the head queue",
            "Packets that Cebinae's filter let pass in the round that is being sent.";
        to_tail: "packets", "packets sent to the tail queue",
            "Packets that Cebinae's filter sent to the next round.";
        dropped_by_filter: "packets", "drops by Cebinae's filter",
            "Packets that Cebinae's filter dropped: their group had used up both rounds.";
        dropped_by_buffer: "packets", "drops by Cebinae's full buffer",
            "Packets that the full buffer of a port under Cebinae dropped.";
        missed_by_cache: "packets", "packets that the flow cache missed",
            "Packets of flows that found no slot in Cebinae's flow cache.";
    }
}

pub static COUNTERS: CounterGroup = CounterGroup {
    table: "cebinae",
    text: "What Cebinae decided at its ports, over the whole run.",
    counters: Tally::ALL,
    gauges: &[
        Counter::sum(
            "rate_top_bps",
            "bit/s",
            "rate of the top flows",
            "Cebinae: what the top flows may send in the next round.",
        ),
        Counter::sum(
            "rate_bottom_bps",
            "bit/s",
            "rate of the others",
            "Cebinae: what all others may send in the next round.",
        ),
    ],
    metrics: &[
        Metric {
            name: "cebinae_saturated",
            axis: "windows that found the link saturated (%)",
            text: "Recomputations of Cebinae that found their link saturated, over all.",
            part: "windows_saturated",
            over: &["windows"],
            series: ("saturated_share", "Cebinae: share of the interval's windows that were saturated."),
            ..Metric::NONE
        },
        Metric {
            name: "cebinae_top",
            title: "top flows in a saturated window, mean",
            text: "Flows that Cebinae made top in a window that found the link saturated, mean.",
            part: "top_flows",
            over: &["windows_saturated"],
            series: ("top_flows", "Cebinae: flows made top in a saturated window, mean of the interval."),
            ..Metric::NONE
        },
        Metric {
            name: "cebinae_tail",
            axis: "packets sent to the tail queue (%)",
            text: "Packets that Cebinae's filter sent to the next round, over all that it let pass.",
            part: "to_tail",
            over: &["to_head", "to_tail"],
            series: ("tail_share", "Cebinae: share of the packets let pass that wait for the next round."),
            ..Metric::NONE
        },
        Metric { name: "cebinae_filter_drops", part: "dropped_by_filter", ..Metric::NONE },
        Metric { name: "cebinae_buffer_drops", part: "dropped_by_buffer", ..Metric::NONE },
        Metric {
            name: "cebinae_misses",
            part: "missed_by_cache",
            series: ("cache_misses", "Cebinae: packets that the flow cache had no slot for."),
            ..Metric::NONE
        },
    ],
};
