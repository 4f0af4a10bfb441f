//! Flows of a connection start in the order in which they were announced, as messages of one sender: one that is due before those
//! ahead of it have started is held back.

use crate::workload::FlowId;
use crate::workload::merge::Arrival;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

#[derive(Default)]
pub struct Turns {
    /// By connection (the flow that opens it): flows that have not started, in order.
    lines: FxHashMap<FlowId, VecDeque<FlowId>>,
    /// Those that are due.
    held: FxHashMap<FlowId, Arrival>,
}

impl Turns {
    /// A flow will start over a connection.
    pub fn announce(&mut self, connection: FlowId, flow: FlowId) {
        self.lines.entry(connection).or_default().push_back(flow);
    }

    /// A flow is due.
    pub fn is_due(&mut self, arrival: Arrival) {
        self.held.insert(arrival.id, arrival);
    }

    /// The flow that starts next over a connection, if it is due.
    pub fn next(&mut self, connection: FlowId) -> Option<Arrival> {
        let line = self.lines.get_mut(&connection)?;
        let arrival = self.held.remove(line.front()?)?;
        line.pop_front();
        Some(arrival)
    }

    /// Those that are due before their turn, in no order.
    pub fn held(&self) -> impl Iterator<Item = Arrival> {
        self.held.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::FlowSpec;

    #[test]
    fn a_flow_that_is_due_early_waits_for_those_ahead_of_it() {
        let mut turns = Turns::default();
        let arrival = |id| Arrival { id, spec: FlowSpec::default(), source: 0, order: id };
        for (connection, flow) in [(3, 3), (4, 4), (3, 7), (3, 8)] {
            turns.announce(connection, flow);
        }
        let mut due = |flow, connection| {
            turns.is_due(arrival(flow));
            std::iter::from_fn(|| turns.next(connection)).map(|a| a.id).collect::<Vec<_>>()
        };
        assert_eq!((due(7, 3), due(4, 4), due(3, 3), due(8, 3)), (vec![], vec![4], vec![3, 7], vec![8]));
        assert_eq!(turns.held().count(), 0);
    }
}
