//! The path manager: by which NIC a subflow leaves, and when it is opened, for the first time or again.
//!
//! The NICs that lead to the other end stand for the addresses of the host, and every subflow belongs to one of them, by its number:
//! the first subflow to the one by which the connection began, the others to those after it, in turn. A subflow that was given up is
//! opened again by its own NIC, from another port, so that a path that was repaired is used again. While the NIC has no link, or no
//! route leads by it to the other end, the subflow waits, and the host opens it as soon as both are back.
//!
//! ```text
//! given up -> after `rejoin`: MP_JOIN from another port -> up
//!                             no answer, `fail_after` times -> given up
//!          -> the NIC cannot be used: waits -> link or route is back: MP_JOIN
//! ```
//!
//! Source: RFC 8684 §3.2 (joins), §3.4 (address management); Linux: stale subflows that recover are used again (net/mptcp), and subflows
//! are opened again after an error, or when an interface comes up (the full-mesh path manager of multipath-tcp.org, `create_on_err`).
//! Differs from the source: the initiator announces no addresses; the times are ours.

use super::packets::subflow_hash;
use super::sender::{Path, Sender, Standing};
use super::{Mptcp, config_of};
use crate::engine::random::RandomStream;
use crate::transport::HostContext;
use crate::transport::mptcp::parameters::{JoinRule, MptcpConfig};
use crate::transport::tcp::TcpConfig;
use crate::transport::tcp::connection::Connection;
use crate::transport::tcp::packets::syn_timeout;
use crate::transport::tcp::source::Source;
use crate::units::Time;

/// Ports that a connection opens subflows from: the first subflow has port 0, the others share the rest.
const JOIN_PORTS: u32 = u8::MAX as u32;

/// NICs of a host that lead to another, by number.
struct Nics<'a> {
    /// While nothing has failed.
    intact: &'a [u32],
    routed: &'a [u32],
}

impl<'a> Nics<'a> {
    fn new(dst: u32, cx: &HostContext<'a>) -> Nics<'a> {
        let (node, map) = (cx.node, cx.map);
        Nics { intact: map.intact_routes().next_hops(node, dst), routed: map.routes.next_hops(node, dst) }
    }

    /// The NIC that the first subflow leaves by.
    fn first(&self, hash: usize, cx: &HostContext) -> u32 {
        let up = || self.routed.iter().filter(|&&nic| has_link(nic, cx));
        let any = |nics: &'a [u32]| nics.get(hash % nics.len().max(1));
        let chosen = up().nth(hash % up().count().max(1)).or_else(|| any(self.routed));
        // Without a route the first SYN is lost, and the timeout tries again.
        chosen.or_else(|| any(self.intact)).copied().unwrap_or(0)
    }

    /// The NIC of a subflow, if it can be used now. Where none that the intact network uses is left, any other.
    fn of(&self, subflow: usize, first: u32, cx: &HostContext) -> Option<u32> {
        let at = |nics: &[u32]| nics.iter().position(|&nic| nic == first).unwrap_or(0) + subflow;
        let own = *self.intact.get(at(self.intact) % self.intact.len().max(1))?;
        let detour = || {
            let lost = !self.intact.iter().any(|nic| self.routed.contains(nic));
            self.routed.get(at(self.routed) % self.routed.len().max(1)).copied().filter(|_| lost)
        };
        let nic = if self.routed.contains(&own) { Some(own) } else { detour() };
        nic.filter(|&nic| has_link(nic, cx))
    }
}

/// The link of a NIC is up, as its host sees at once.
fn has_link(nic: u32, cx: &HostContext) -> bool {
    cx.net.ports[(cx.first_port + nic) as usize].up
}

impl Sender {
    /// The next port to open subflow `at` from, one that leads to its address at the other end, and how many were opened before.
    fn take_port(&mut self, at: usize, config: &MptcpConfig) -> (u8, u32) {
        loop {
            let opened = self.opened;
            self.opened += 1;
            let port = if opened == 0 { 0 } else { 1 + (opened - 1) % JOIN_PORTS } as u8;
            let in_use = |path: &Path| path.standing != Standing::Gone && path.port == port;
            let own = config.join != JoinRule::Announced || usize::from(config.address_of(port)) == at;
            if own && !self.paths.iter().any(in_use) {
                return (port, opened);
            }
        }
    }

    /// How long the opening of a subflow waits for an answer: one that is opened again never longer than `rejoin`.
    pub fn opening_timeout(&self, at: usize, timeouts: u32, rejoin: Time, config: &TcpConfig) -> Time {
        let timeout = syn_timeout(timeouts, config);
        if self.paths[at].reopened { timeout.min(rejoin.max(config.rto.syn)) } else { timeout }
    }
}

impl Mptcp {
    /// Opens the first subflow of a connection.
    pub(super) fn open_first(&mut self, number: u32, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let hash = subflow_hash(sender.spec.src, sender.spec.dst, sender.flow, 0) as usize;
        sender.first_nic = Nics::new(sender.spec.dst, cx).first(hash, cx);
        let nic = sender.first_nic;
        self.open(number, 0, nic, cx);
    }

    /// Opens the first `subflows` of them, once; those whose NIC cannot be used wait.
    pub(super) fn open_others(&mut self, number: u32, subflows: usize, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let opened = sender.paths.len();
        sender.paths.resize_with(subflows.max(opened), || Path::waiting(cx.now()));
        for at in opened..subflows {
            self.open_if_possible(number, at, cx);
        }
    }

    /// Subflows that were given up may be due to be opened again.
    pub(super) fn retry(&mut self, number: u32, cx: &mut HostContext) {
        let now = cx.now();
        self.open_again(number, |path| path.retry <= now, cx);
    }

    /// Routes have changed, or a link is back: subflows that wait for theirs are opened, and those that were given up need not wait.
    pub(super) fn open_waiting(&mut self, cx: &mut HostContext) {
        for number in 0..self.senders.len() as u32 {
            self.open_again(number, |path| path.retry != Time::MAX, cx);
        }
    }

    /// Takes note of the links of this host; whether one of a subflow went down since. Other subflows send what has not
    /// left on it: it would wait for the link, and what never left does not time out.
    pub(super) fn lose_links(&mut self, cx: &mut HostContext) -> bool {
        let mut lost = false;
        for number in 0..self.senders.len() as u32 {
            let Sender { paths, stream, over, .. } = &mut self.senders[number as usize];
            let mut changed = false;
            for path in paths.iter_mut().filter(|path| !*over && path.standing != Standing::Gone) {
                let cut_off = !has_link(u32::from(self.outgoing[path.slot].nic), cx);
                if cut_off && !path.cut_off {
                    path.held().for_each(|piece| stream.send_again(piece));
                    lost = true;
                }
                changed |= cut_off != path.cut_off;
                path.cut_off = cut_off;
            }
            if changed {
                self.distribute(number, cx);
            }
        }
        lost
    }

    /// Opens those subflows that are gone and for which `may` holds.
    fn open_again(&mut self, number: u32, may: impl Fn(&Path) -> bool, cx: &mut HostContext) {
        let subflows = |mptcp: &Mptcp| {
            mptcp
                .senders
                .get(number as usize)
                .filter(|sender| !sender.over)
                .map_or(0, |sender| sender.paths.len())
        };
        for at in 0..subflows(self) {
            let path = &self.senders[number as usize].paths[at];
            if path.standing == Standing::Gone && may(path) {
                self.open_if_possible(number, at, cx);
            }
        }
    }

    fn open_if_possible(&mut self, number: u32, at: usize, cx: &mut HostContext) {
        let sender = &self.senders[number as usize];
        let nic = Nics::new(sender.spec.dst, cx).of(at, sender.first_nic, cx);
        if let Some(nic) = nic {
            self.open(number, at, nic, cx);
        }
    }

    /// Opens a subflow of a connection, as the one of this number, from the next port.
    fn open(&mut self, number: u32, at: usize, nic: u32, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let config = config_of(cx.settings, sender.spec.transport);
        let (flow, spec) = (sender.flow, sender.spec);
        let (port, opened) = sender.take_port(at, config);
        let mut random = RandomStream::new(cx.settings.seed, &format!("mptcp.flow{flow}.{opened}"));
        let path = cx.path_to(spec.dst, &config.tcp.controller, config.tcp.packet().into());
        let mut tcp = Connection::new(flow, &spec, &config.tcp, random.next_u64(), path, cx.now());
        tcp.source = Source::in_pieces();
        tcp.hash = subflow_hash(spec.src, spec.dst, flow, port);
        tcp.nic = nic as u16;
        let slot = self.outgoing.open(tcp, config.tcp.class);
        if slot as usize >= self.owners.len() {
            self.owners.resize(slot as usize + 1, (0, 0));
        }
        self.owners[slot as usize] = (number, at as u8);
        let path = Path::new(slot, port, random.next_u64() as u32);
        match sender.paths.get_mut(at) {
            Some(closed) => *closed = path.in_place_of(closed),
            None => sender.paths.push(path),
        }
        self.send_opening(slot, cx);
    }
}
