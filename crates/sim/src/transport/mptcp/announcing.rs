//! Addresses that the other end announces, where further subflows wait for them (`join = "announced"`).
//!
//! A host has one address, and a port of its own for each further subflow, as the listeners that Linux opens for the same address with
//! another port. One is announced at a time, the first as soon as both keys are known here; the initiator returns it (an echo) and opens
//! the subflow to it. An announcement without an echo is repeated with the first packet of data after the timeout of a SYN. The timeout
//! doubles with each repetition, and there are as many repetitions as of a SYN.
//!
//! ```text
//! initiator                                          other end
//!   ACK        MP_CAPABLE (both keys)                  ->
//!   <-         ADD_ADDR (number, address, port, proof) ACK
//!   ACK        ADD_ADDR (number, echo)                 ->
//!   SYN        MP_JOIN to that port                    ->
//!   <-         ADD_ADDR (the next number)              ACK
//! ```
//!
//! Source: RFC 8684 §3.4.1; Linux 6 (net/mptcp/pm.c): the next address after the echo of the one before.
//!
//! Differs from the source: Linux repeats by a timer of its own, after two minutes; addresses are not removed.

use super::packets::signal;
use super::{Mptcp, config_of};
use crate::packet::Packet;
use crate::transport::HostContext;
use crate::transport::mptcp::parameters::JoinRule;
use crate::transport::tcp::packets::syn_timeout;
use crate::units::Time;
use crate::wire::addresses::{address, subflow_ports};
use crate::wire::mptcp::{Announcement, MptcpOption, announcement, code, sender_of};

/// What the other end has announced of a connection.
#[derive(Default)]
pub struct Announcing {
    /// The number of the last address; 0: none yet.
    last: u8,
    /// Nothing has returned it.
    pub waits: bool,
    sent: Time,
    repeats: u32,
}

impl Mptcp {
    /// Both keys are known at the other end: it announces its first address, once.
    pub(super) fn announce_first(&mut self, packet: &Packet, cx: &mut HostContext) {
        let config = config_of(cx.settings, packet.profile);
        let known = self.arrivals.get(packet.flow).is_some_and(|arrival| arrival.announcing.last == 0);
        if config.join == JoinRule::Announced && known {
            self.announce_next(packet, cx);
        }
    }

    /// Announces the address after the last one, if there is one.
    fn announce_next(&mut self, to: &Packet, cx: &mut HostContext) {
        let config = config_of(cx.settings, to.profile);
        let Some(arrival) = self.arrivals.get(to.flow) else { return };
        let announcing = &mut arrival.announcing;
        announcing.waits = announcing.last + 1 < config.subflows;
        if announcing.waits {
            (announcing.last, announcing.repeats) = (announcing.last + 1, 0);
            self.announce(to, cx);
        }
    }

    /// Announces the last address, in answer to a packet of the initiator.
    fn announce(&mut self, to: &Packet, cx: &mut HostContext) {
        let Some(arrival) = self.arrivals.get(to.flow) else { return };
        let Some(other) = arrival.other else { return };
        arrival.announcing.sent = cx.now();
        let (id, address) = (arrival.announcing.last, address(cx.host));
        let [_, port] = subflow_ports(to.flow, 0, id);
        let proof = Some(announcement([arrival.key, other], id, address, port));
        let option = MptcpOption::Announcement(Announcement { id, address, port, proof });
        self.reply(code::ADDRESS, to, Some(option), cx);
    }

    /// Data have come, and the last address was not returned: perhaps it is announced again.
    #[cold]
    pub(super) fn announce_again(&mut self, packet: &Packet, cx: &mut HostContext) {
        let config = &config_of(cx.settings, packet.profile).tcp;
        let Some(arrival) = self.arrivals.get(packet.flow) else { return };
        let announcing = &mut arrival.announcing;
        let due = announcing.sent.saturating_add(syn_timeout(announcing.repeats, config));
        if cx.now() < due {
            return;
        }
        announcing.repeats += 1;
        announcing.waits = announcing.repeats <= config.syn_retries;
        if announcing.waits {
            self.announce(packet, cx);
        }
    }

    /// The initiator has returned an address.
    pub(super) fn receive_known_address(
        &mut self,
        packet: &Packet,
        option: Option<MptcpOption>,
        cx: &mut HostContext,
    ) {
        let Some(MptcpOption::Announcement(Announcement { id, proof: None, .. })) = option else { return };
        let announcing = self.arrivals.get(packet.flow).map(|arrival| &arrival.announcing);
        if announcing.is_some_and(|announcing| announcing.waits && announcing.last == id) {
            self.announce_next(packet, cx);
        }
    }

    /// At the initiator: the other end has one more address. It is returned, and the subflow to it is opened.
    pub(super) fn receive_address(
        &mut self,
        packet: &Packet,
        option: Option<MptcpOption>,
        cx: &mut HostContext,
    ) {
        let Some((slot, number, at)) = self.own(packet) else { return };
        let Some(MptcpOption::Announcement(announced)) = option else { return };
        let Announcement { id, address, port, proof } = announced;
        let sender = &self.senders[number as usize];
        let [own, other] = sender.keys;
        if proof != Some(announcement([other, own], id, address, port)) {
            return;
        }
        let port = sender.paths[at].port;
        let config = config_of(cx.settings, sender.spec.transport);
        let header =
            Packet { sent: cx.now(), sender: sender_of(slot, port), ..self.outgoing[slot].header(slot, cx) };
        let exit = self.outgoing.port(slot, cx);
        let known = MptcpOption::Announcement(Announcement { proof: None, ..announced });
        signal(code::ADDRESS_KNOWN, header, Some(known), exit, &config.tcp, cx);
        self.touch(exit, cx);
        self.open_others(number, usize::from(id) + 1, cx);
    }
}
