//! Timeslot allocation: which sender may send to which receiver in each timeslot of an epoch.
//!
//! In every timeslot the arbiter scans the demands by fewest packets remaining and takes each one whose source and
//! destination are both still free in that timeslot: a greedy, hence maximal, matching. A demand that is taken has
//! one packet less in the next timeslot.
//!
//! Source: Perry et al., "Fastpass: A Centralized Zero-Queue Datacenter Network", SIGCOMM 2014; order by fewest
//! remaining as in the Fastpass of the pHost authors' simulator.
//! Differs from the source: equal demands are taken in order of flow number, so that a run repeats exactly.

/// Timeslots of one epoch; a grant keeps them as the bits of one byte.
pub const SLOTS_PER_EPOCH: u32 = 8;

/// Packets that one flow still asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Number of the flow; breaks ties, lowest first.
    pub flow: u32,
    /// Host that sends.
    pub source: u32,
    /// Host that receives.
    pub destination: u32,
    /// Packets not yet granted; one less with every timeslot given.
    pub remaining: u64,
}

/// Timeslots that one flow received in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Number of the flow.
    pub flow: u32,
    /// Host that the schedule packet goes to.
    pub source: u32,
    /// Bit k is set when timeslot k belongs to the flow.
    pub slots: u8,
}

/// Fills one epoch for `hosts` hosts and takes the granted packets off `demands`, which it leaves sorted.
///
/// Returns one grant for each flow with a timeslot, by flow number. A demand that names a host outside `0..hosts` is
/// never granted.
pub fn fill_epoch(demands: &mut [Demand], hosts: usize) -> Vec<Grant> {
    let mut grants: Vec<Grant> = Vec::new();
    for slot in 0..SLOTS_PER_EPOCH {
        demands.sort_unstable_by_key(|demand| (demand.remaining, demand.flow));
        let mut sends = vec![false; hosts];
        let mut receives = vec![false; hosts];
        for demand in demands.iter_mut().filter(|demand| demand.remaining > 0) {
            let (source, destination) = (demand.source as usize, demand.destination as usize);
            if source >= hosts || destination >= hosts || sends[source] || receives[destination] {
                continue;
            }
            sends[source] = true;
            receives[destination] = true;
            demand.remaining -= 1;
            match grants.iter_mut().find(|grant| grant.flow == demand.flow) {
                Some(grant) => grant.slots |= 1 << slot,
                None => grants.push(Grant { flow: demand.flow, source: demand.source, slots: 1 << slot }),
            }
        }
    }
    grants.sort_unstable_by_key(|grant| grant.flow);
    grants
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demand(flow: u32, source: u32, destination: u32, remaining: u64) -> Demand {
        Demand { flow, source, destination, remaining }
    }

    fn slots(grants: &[Grant]) -> Vec<(u32, u8)> {
        grants.iter().map(|grant| (grant.flow, grant.slots)).collect()
    }

    #[test]
    fn a_lone_flow_gets_the_first_slots_that_it_needs() {
        let mut demands = [demand(0, 0, 1, 3)];
        assert_eq!(slots(&fill_epoch(&mut demands, 2)), [(0, 0b0000_0111)]);
        assert_eq!(demands[0].remaining, 0);
    }

    #[test]
    fn a_long_flow_gets_all_eight_slots_and_keeps_the_rest() {
        let mut demands = [demand(0, 0, 1, 100)];
        assert_eq!(slots(&fill_epoch(&mut demands, 2)), [(0, 0xff)]);
        assert_eq!(demands[0].remaining, 92);
    }

    #[test]
    fn of_two_senders_to_one_receiver_the_shorter_flow_goes_first() {
        let mut demands = [demand(0, 0, 2, 100), demand(1, 1, 2, 3)];
        assert_eq!(slots(&fill_epoch(&mut demands, 3)), [(0, 0b1111_1000), (1, 0b0000_0111)]);
    }

    #[test]
    fn one_sender_gives_each_slot_to_one_receiver_only() {
        let mut demands = [demand(0, 0, 1, 100), demand(1, 0, 2, 2)];
        assert_eq!(slots(&fill_epoch(&mut demands, 3)), [(0, 0b1111_1100), (1, 0b0000_0011)]);
    }

    #[test]
    fn disjoint_pairs_share_every_slot() {
        let mut demands = [demand(0, 0, 1, 9), demand(1, 2, 3, 9)];
        assert_eq!(slots(&fill_epoch(&mut demands, 4)), [(0, 0xff), (1, 0xff)]);
    }

    #[test]
    fn a_demand_on_a_missing_host_is_never_granted() {
        assert!(fill_epoch(&mut [demand(0, 0, 7, 1)], 2).is_empty());
    }
}
