//! What happened to the data packets of a group of flows, and how often senders had to retransmit.
//!
//! Every data packet that a host sends is received, dropped in a buffer, lost on a dead link, lost at random,
//! stranded, or still under way when the run ends, so
//!
//! ```text
//! data_sent = data_received + data_dropped + data_lost_on_dead_links + data_lost_at_random + data_stranded + data_in_flight
//! retransmitted = retransmitted_needed + retransmitted_spurious
//! ```
//!
//! Lost packets are counted where they are lost, by the group that they carry. Sent packets come from the
//! records of the flows. Receivers count spurious and refused packets, and senders count timeouts and loss
//! probes. A packet that arrives in order changes no counter.

use crate::counters::counters;

counters! {
    /// The counters of a group of flows.
    LossCounters {
        data_sent: "packets", "data packets sent",
            "Data packets that senders sent, including retransmissions.";
        data_received: "packets", "data packets received",
            "Data packets that arrived at their hosts, including duplicates.";
        data_dropped: "packets", "data packets dropped in buffers",
            "Data packets that a queue, or the buffer of a switch or a NIC, dropped.";
        data_lost_on_dead_links: "packets", "data packets lost on dead links",
            "Data packets that were on a link when it went down.";
        data_lost_at_random: "packets", "data packets lost at random",
            "Data packets that links lost at random ([failures] loss).";
        data_stranded: "packets", "data packets stranded",
            "Data packets that could not be forwarded: no route was left, or the link for which they waited \
             went down.";
        data_in_flight: "packets", "data packets in flight at the end",
            "Data packets that were on links or in queues when the run ended.";
        data_refused: "packets", "data packets refused by receivers",
            "Data packets that arrived and were discarded because an earlier one was missing (go-back-N), \
             or that carried no data (probes).";
        retransmitted: "packets", "retransmissions",
            "Data packets that were retransmitted.";
        retransmitted_needed: "packets", "retransmissions needed",
            "Retransmissions that were not spurious: the receiver did not have their bytes yet, or they did \
             not arrive.";
        retransmitted_spurious: "packets", "retransmissions spurious",
            "Unnecessary retransmissions: data packets that arrived at a receiver which had all their bytes \
             already.";
        timeouts: "times", "retransmission timeouts",
            "Retransmission timeouts that expired, including those of requests to open a connection or to \
             send.";
        loss_probes: "times", "tail loss probes",
            "Timers of tail loss probes (TCP, MPTCP) that expired, after which a sender sent a segment before its \
             retransmission timeout. With one segment in flight that is 200 ms later by default.";
    }
}

impl LossCounters {
    /// Data packets that did not arrive and are no longer in flight.
    pub fn lost(&self) -> u64 {
        self.data_dropped + self.data_lost_on_dead_links + self.data_lost_at_random + self.data_stranded
    }

    /// Computes the counters that follow from the others, once the run is over.
    pub fn closed(self) -> LossCounters {
        let elsewhere = self.lost() + self.data_in_flight;
        debug_assert!(
            self.data_received == 0 || self.data_sent == self.data_received + elsewhere,
            "a data packet is neither received nor lost nor under way: {self:?}"
        );
        debug_assert!(
            self.retransmitted_spurious <= self.retransmitted,
            "more packets came twice than were sent again: {self:?}"
        );
        LossCounters {
            data_received: self.data_sent.saturating_sub(elsewhere),
            retransmitted_needed: self.retransmitted.saturating_sub(self.retransmitted_spurious),
            ..self
        }
    }
}

#[cfg(test)]
mod tests;
