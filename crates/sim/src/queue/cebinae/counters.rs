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
            "Recomputations of Cebinae, one per period.";
        windows_saturated: "windows", "saturated windows",
            "Recomputations of Cebinae that found their link saturated.";
        top_flows: "flows", "flows classified as top",
            "Flows that Cebinae classified as top, over all windows.";
        to_head: "packets", "packets sent to the head queue",
            "Packets that Cebinae's filter put into the current round.";
        to_tail: "packets", "packets sent to the tail queue",
            "Packets that Cebinae's filter put into the next round.";
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
    text: "Decisions of Cebinae at its ports, over the whole run.",
    counters: Tally::ALL,
    gauges: &[
        Counter::sum(
            "rate_top_bps",
            "bit/s",
            "rate of the top flows",
            "Cebinae: rate at which the top flows may send in the next round.",
        ),
        Counter::sum(
            "rate_bottom_bps",
            "bit/s",
            "rate of the others",
            "Cebinae: rate at which all other flows may send in the next round.",
        ),
    ],
    metrics: &[
        Metric {
            name: "cebinae_saturated",
            axis: "windows that found the link saturated (%)",
            text: "Recomputations of Cebinae that found their link saturated, over all recomputations.",
            part: "windows_saturated",
            over: &["windows"],
            series: ("saturated_share", "Cebinae: share of the interval's windows that were saturated."),
            ..Metric::NONE
        },
        Metric {
            name: "cebinae_top",
            title: "top flows in a saturated window, mean",
            text: "Mean number of flows that Cebinae classified as top in a window that found the link saturated.",
            part: "top_flows",
            over: &["windows_saturated"],
            series: (
                "top_flows",
                "Cebinae: flows classified as top in a saturated window, mean of the interval.",
            ),
            ..Metric::NONE
        },
        Metric {
            name: "cebinae_tail",
            axis: "packets sent to the tail queue (%)",
            text: "Packets that Cebinae's filter put into the next round, over all packets that it accepted.",
            part: "to_tail",
            over: &["to_head", "to_tail"],
            series: ("tail_share", "Cebinae: share of the accepted packets that wait for the next round."),
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
