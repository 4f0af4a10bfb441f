//! Flows that follow each other over connections that stay open, as their receivers know them: whose bytes come next.
//!
//! A packet says of which connection it is, not of which flow. Flows of a connection come in the order in which they are announced,
//! so counting their ends tells them apart.

use crate::workload::FlowId;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// By connection (the flow that opened it): announced flows that have not arrived, in order.
#[derive(Default)]
pub struct Awaited {
    flows: FxHashMap<FlowId, Line>,
}

/// Mostly there is one at most, which is in the table itself.
#[derive(Default)]
struct Line {
    first: Option<FlowId>,
    others: VecDeque<FlowId>,
}

impl Awaited {
    /// A flow will come over a connection.
    pub fn announce(&mut self, connection: FlowId, flow: FlowId) {
        let line = self.flows.entry(connection).or_default();
        match line.first {
            None => line.first = Some(flow),
            Some(_) => line.others.push_back(flow),
        }
    }

    /// The connection carries several flows.
    pub fn stays_open(&self, connection: FlowId) -> bool {
        self.flows.contains_key(&connection)
    }

    /// The flow whose bytes come over a connection now; of one that carries a single flow, that.
    pub fn current(&self, connection: FlowId) -> FlowId {
        self.flows.get(&connection).and_then(|line| line.first).unwrap_or(connection)
    }

    /// The last byte of the current flow has come: its number.
    pub fn arrive(&mut self, connection: FlowId) -> FlowId {
        let first = self.flows.get_mut(&connection).and_then(|line| {
            let first = line.first.take();
            if !line.others.is_empty() {
                line.first = line.others.pop_front();
            }
            first
        });
        debug_assert!(first.is_some(), "a flow arrived that was not announced");
        first.unwrap_or(connection)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_of_a_connection_arrive_in_the_order_in_which_they_were_announced() {
        let mut awaited = Awaited::default();
        for (connection, flow) in [(3, 3), (4, 4), (3, 9)] {
            awaited.announce(connection, flow);
        }
        assert_eq!([3, 4, 5].map(|connection| awaited.current(connection)), [3, 4, 5]);
        assert_eq!((awaited.arrive(3), awaited.current(3), awaited.arrive(3)), (3, 9, 9));
        assert_eq!([3, 4, 5].map(|connection| awaited.stays_open(connection)), [true, true, false]);
    }
}
