//! A managed port alone: packets by name, and what becomes of them.

use super::*;
use crate::packet::Packet;
use crate::parameters::Nothing;
use crate::queue::codel::CodelConfig;
use crate::queue::fifo::OwnFifoConfig;
use crate::queue::fq_codel::FqCodelConfig;
use proptest::prelude::*;

/// A port with its packets, without a network.
pub struct Port<D> {
    pub queue: Managed<D>,
    pub packets: PacketSlab,
}

impl<D: Discipline> Port<D> {
    pub fn new<P: DisciplineParameters<State = D>>(config: ManagedConfig<P>, rate: Rate) -> Port<D> {
        Port::asking(config, rate, false)
    }

    /// The same, whose NIC asks for more in an event of its own or not.
    pub fn asking<P: DisciplineParameters<State = D>>(
        config: ManagedConfig<P>,
        rate: Rate,
        asks_later: bool,
    ) -> Port<D> {
        let place = PortPlace { rate, asks_later, ..PortPlace::TEST };
        Port { queue: Managed::new(&config, &place), packets: PacketSlab::new() }
    }

    /// Offers a data packet at `now`; the names (`seq`) of those that were dropped for it or are it.
    pub fn offer(&mut self, now: Time, flow: u32, name: u64, size: u16) -> Vec<u64> {
        self.offer_packet(now, Packet { flow, seq: name, size, class: 1, ..Packet::default() })
    }

    pub fn offer_packet(&mut self, now: Time, packet: Packet) -> Vec<u64> {
        let id = self.packets.insert(packet);
        assert_eq!(self.queue.enqueue(id, &mut self.packets, now), Verdict::Queued);
        self.dropped()
    }

    /// The next packet, and the names of those dropped on the way.
    pub fn serve(&mut self, now: Time) -> (Option<Packet>, Vec<u64>) {
        let next = self.queue.dequeue(0, &mut self.packets, now).map(|id| {
            let packet = self.packets[id];
            self.packets.remove(id);
            packet
        });
        (next, self.dropped())
    }

    pub fn counted(&mut self) -> CounterSet {
        let mut counted = CounterSet::default();
        self.queue.count(Time::ZERO, &mut counted);
        counted
    }

    /// The link goes down.
    pub fn lose_all(&mut self) {
        self.queue.empty(&mut self.packets);
        self.dropped();
    }

    pub fn take_marks(&mut self) -> u64 {
        self.queue.account.take_marks()
    }

    pub fn discipline(&mut self) -> &mut D {
        &mut self.queue.discipline
    }

    fn dropped(&mut self) -> Vec<u64> {
        let mut names = Vec::new();
        while let Some(id) = self.queue.account.take_one_dropped(&self.packets) {
            names.push(self.packets[id].seq);
            self.packets.remove(id);
        }
        names.reverse();
        assert_eq!(self.queue.account.packets as usize, self.packets.live());
        names
    }
}

/// A file of the reference data; none, with the reason on the screen, where there are none.
pub fn reference(name: &str) -> Option<std::path::PathBuf> {
    let root = std::path::PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("WEFTLINE_REFERENCE")
        .map_or_else(|| root.join("../shared/reference"), std::path::PathBuf::from);
    if !folder.is_dir() {
        println!("skipped: no reference data at {} (set WEFTLINE_REFERENCE)", folder.display());
        return None;
    }
    Some(folder.join(name))
}

pub fn config<P>(discipline: P, packets: u32) -> ManagedConfig<P> {
    ManagedConfig { discipline, limit: Limit::of_packets(packets), nic_packets: 0, link_header: 0 }
}

/// Parameters as they are where nothing is said.
pub fn defaults<P: DisciplineParameters>() -> P {
    P::read(&mut Parameters::new(&mut Nothing::default()))
}

const RATE: Rate = Rate(100_000_000);

fn names(port: &mut Port<impl Discipline>) -> Vec<u64> {
    std::iter::from_fn(|| port.serve(Time::ZERO).0).map(|packet| packet.seq).collect()
}

#[test]
fn a_fifo_of_three_packets_drops_the_fourth() {
    let mut port = Port::new(config(OwnFifoConfig, 3), RATE);
    let dropped: Vec<Vec<u64>> = (0..4).map(|name| port.offer(Time::ZERO, 0, name, 100)).collect();
    assert_eq!(dropped, [vec![], vec![], vec![], vec![3]]);
    assert_eq!((port.queue.bytes(), port.queue.class_bytes(1)), (300, 300));
    assert_eq!(names(&mut port), [0, 1, 2]);
    assert!(port.queue.is_empty() && port.queue.bytes() == 0);
}

#[test]
fn a_fifo_of_bytes_takes_a_small_packet_where_a_large_one_no_longer_fits() {
    let limit = Limit { bytes: Bytes(250), ..Limit::NONE };
    let mut port = Port::new(ManagedConfig { limit, ..config(OwnFifoConfig, 0) }, RATE);
    assert_eq!(port.offer(Time::ZERO, 0, 0, 200), [0u64; 0]);
    assert_eq!(port.offer(Time::ZERO, 0, 1, 51), [1]);
    assert_eq!(port.offer(Time::ZERO, 0, 2, 50), [0u64; 0]);
    assert_eq!(names(&mut port), [0, 2]);
}

#[test]
fn the_nic_after_the_discipline_holds_packets_in_addition_to_the_limit() {
    let nic = ManagedConfig { nic_packets: 1, ..config(OwnFifoConfig, 2) };
    let mut port = Port::new(nic, RATE);
    let dropped: Vec<Vec<u64>> = (0..4).map(|name| port.offer(Time::ZERO, 0, name, 100)).collect();
    assert_eq!(dropped, [vec![], vec![], vec![], vec![3]]);
    // One leaves, the NIC takes the next, and there is room for one more.
    assert_eq!(port.serve(Time::ZERO).0.unwrap().seq, 0);
    assert_eq!(port.offer(Time::ZERO, 0, 4, 100), [0u64; 0]);
    assert_eq!(names(&mut port), [1, 2, 4]);
}

#[test]
fn the_link_header_is_on_the_wire_but_not_in_the_limit() {
    let limit = Limit { bytes: Bytes(200), ..Limit::NONE };
    let mut port = Port::new(ManagedConfig { limit, link_header: 2, ..config(OwnFifoConfig, 0) }, RATE);
    assert_eq!(port.offer(Time::ZERO, 0, 0, 102), [0u64; 0]);
    assert_eq!(port.offer(Time::ZERO, 0, 1, 102), [0u64; 0]);
    assert_eq!(port.queue.bytes(), 204);
    assert_eq!(port.offer(Time::ZERO, 0, 2, 3), [2]);
}

#[test]
fn a_packet_smaller_than_the_link_header_leaves_with_the_bytes_that_it_came_with() {
    let fifo = ManagedConfig { link_header: 64, ..config(OwnFifoConfig, 2) };
    let mut port = Port::new(fifo, RATE);
    let dropped: Vec<Vec<u64>> = (0..3).map(|name| port.offer(Time::ZERO, 0, name, 40)).collect();
    assert_eq!((dropped, port.queue.bytes()), (vec![vec![], vec![], vec![2]], 80));
    assert_eq!(names(&mut port), [0, 1]);
    assert_eq!((port.queue.bytes(), port.queue.class_bytes(1)), (0, 0));
}

#[test]
fn pauses_pass_by_all_data_and_a_paused_class_holds_them() {
    let mut port = Port::new(config(OwnFifoConfig, 1), RATE);
    port.offer(Time::ZERO, 0, 0, 100);
    assert_eq!(port.offer_packet(Time::ZERO, Packet { seq: 9, size: 64, ..Packet::default() }), [0u64; 0]);
    let mut serve = |paused| port.queue.dequeue(paused, &mut port.packets, Time::ZERO);
    let first = serve(0b10);
    assert_eq!(serve(0b10), None);
    let second = serve(0);
    assert_eq!([first, second].map(|id| port.packets[id.unwrap()].seq), [9, 0]);
}

#[test]
fn a_port_that_is_emptied_gives_everything_back_and_restarts() {
    let nic = ManagedConfig { nic_packets: 1, ..config(OwnFifoConfig, 5) };
    let mut port = Port::new(nic, RATE);
    for name in 0..4 {
        port.offer(Time::ZERO, 0, name, 100);
    }
    let mut removed = Vec::new();
    while let Some(id) = port.queue.evict(&mut port.packets) {
        removed.push(port.packets[id].seq);
    }
    removed.sort_unstable();
    assert_eq!((removed, port.queue.bytes(), port.queue.is_empty()), (vec![0, 1, 2, 3], 0, true));
    assert_eq!(port.queue.evict(&mut port.packets), None);
}

#[test]
fn a_nic_that_asks_later_lets_what_comes_at_the_same_time_go_before() {
    let order = |asks_later: bool| {
        let fq = FqCodelConfig { always_old: true, ..defaults() };
        let fq = ManagedConfig { nic_packets: 1, ..config(fq, 100) };
        let mut port = Port::asking(fq, RATE, asks_later);
        // The first one waits in the NIC, and what comes behind it when it leaves is of a new flow.
        (0..3).for_each(|name| assert_eq!(port.offer(Time::ZERO, 0, name, 1500), [0u64; 0]));
        let mut order = vec![port.serve(Time::ZERO).0.unwrap().seq];
        port.offer(Time::ZERO, 1, 10, 1500);
        loop {
            let woken = port.queue.account.take_wake();
            assert_eq!(woken, asks_later);
            if woken {
                port.queue.ask(&mut port.packets, Time::ZERO);
            }
            let Some(packet) = port.serve(Time::ZERO).0 else { return order };
            order.push(packet.seq);
        }
    };
    assert_eq!((order(false), order(true)), (vec![0, 1, 10, 2], vec![0, 10, 1, 2]));
}

#[test]
fn a_nic_that_asks_later_finds_a_full_port_that_drops_what_comes_at_the_same_time() {
    let dropped = |asks_later: bool| {
        let fifo = ManagedConfig { nic_packets: 1, ..config(OwnFifoConfig, 2) };
        let mut port = Port::asking(fifo, RATE, asks_later);
        (0..3).for_each(|name| assert_eq!(port.offer(Time::ZERO, 0, name, 1500), [0u64; 0]));
        port.serve(Time::ZERO);
        port.offer(Time::ZERO, 0, 3, 1500)
    };
    assert_eq!((dropped(false), dropped(true)), (vec![], vec![3]));
}

/// A packet of a flow comes after some microseconds; the transmitter is idle then or not, and after that some packets leave.
type Step = (u64, u32, u16, bool, usize);

/// What leaves a port of this kind, and the state of its discipline after every step.
fn walk<P: DisciplineParameters<State: std::fmt::Debug>>(
    config: ManagedConfig<P>,
    steps: &[Step],
    may_pass: bool,
) -> (Vec<String>, usize) {
    let mut port = Port::new(config, RATE);
    let (mut now, mut passed, mut seen) = (Time::ZERO, 0, Vec::new());
    for (name, &(wait, flow, size, is_idle, served)) in steps.iter().enumerate() {
        now += Time::from_us(wait);
        let packet = Packet { flow, src: flow, seq: name as u64, size, class: 1, ..Packet::default() };
        let leaves = if may_pass && is_idle && port.queue.lets_through(&packet, 0) {
            passed += 1;
            (Some(packet.seq), Vec::new())
        } else {
            if is_idle {
                port.queue.rest();
            }
            let mut dropped = port.offer_packet(now, packet);
            let (next, more) = if is_idle { port.serve(now) } else { (None, Vec::new()) };
            dropped.extend(more);
            (next.map(|packet| packet.seq), dropped)
        };
        let later: Vec<_> = (0..served).map(|_| port.serve(now).0.map(|packet| packet.seq)).collect();
        seen.push(format!("{leaves:?} {later:?} {:?}", port.discipline()));
    }
    (seen, passed)
}

proptest! {
    #[test]
    fn a_packet_that_passes_leaves_all_as_if_it_had_been_queued(
        steps in proptest::collection::vec(
            (0..20_000u64, 0..6u32, 60..1500u16, any::<bool>(), 0..4usize), 1..200,
        ),
        nic_packets in 0..4u32,
    ) {
        fn same<P: DisciplineParameters<State: std::fmt::Debug> + Clone>(
            discipline: P, nic_packets: u32, steps: &[Step],
        ) -> Result<usize, TestCaseError> {
            let config = || ManagedConfig { nic_packets, link_header: 2, ..config(discipline.clone(), 20) };
            let ((with, passed), (without, none)) = (walk(config(), steps, true), walk(config(), steps, false));
            prop_assert_eq!(none, 0);
            prop_assert!(nic_packets != 1 || passed == 0);
            prop_assert_eq!(with, without);
            Ok(passed)
        }
        let fq = FqCodelConfig { queues: 4, always_old: nic_packets > 1, ..defaults() };
        same(fq, nic_packets, &steps)?;
        same(FqCodelConfig { queues: 0, ..fq }, nic_packets, &steps)?;
        same(defaults::<CodelConfig>(), nic_packets, &steps)?;
        same(OwnFifoConfig, nic_packets, &steps)?;
        let idle_first = Step::from((0, 0, 100, true, 0));
        prop_assert_eq!(same(OwnFifoConfig, 0, &[idle_first])?, 1);
    }
}
