//! Packets of the set-up: who says what, and what follows from it, at both ends.

use super::packets::{option_of, signal, turned};
use super::sender::Standing;
use super::{Mptcp, config_of};
use crate::packet::{Packet, PacketId};
use crate::transport::HostContext;
use crate::transport::mptcp::parameters::JoinRule;
use crate::wire::mptcp::{Join, MptcpOption, code, proof, sender_of, short, token};

impl Mptcp {
    /// A packet of the set-up has come.
    pub(super) fn receive_signal(&mut self, id: PacketId, cx: &mut HostContext) {
        let option = option_of(id, cx);
        let packet = cx.net.packets[id];
        cx.net.discard(id);
        match packet.code() {
            code::SYN => self.receive_syn(&packet, option, cx),
            code::SYN_ACK => self.receive_syn_ack(&packet, option, cx),
            code::ESTABLISHED => self.receive_third(&packet, option, cx),
            code::CONFIRMED => self.receive_confirmation(&packet, cx),
            code::RESET => self.receive_reset(&packet, cx),
            code::GIVEN_UP => self.forget_subflow(&packet),
            code::ADDRESS => self.receive_address(&packet, option, cx),
            code::ADDRESS_KNOWN => self.receive_known_address(&packet, option, cx),
            _ => {}
        }
    }

    /// Sends what is due of a subflow's handshake, and sets the time after which it is sent again: its SYN, or the third packet of
    /// a join.
    pub(super) fn send_opening(&mut self, slot: u32, cx: &mut HostContext) {
        let (number, at) = self.owners[slot as usize];
        let sender = &self.senders[number as usize];
        let path = &sender.paths[usize::from(at)];
        let mptcp = config_of(cx.settings, sender.spec.transport);
        let config = &mptcp.tcp;
        let tcp = &mut self.outgoing[slot];
        let timeout = sender.opening_timeout(usize::from(at), tcp.timeouts, mptcp.rejoin, config);
        tcp.alarm.deadline = cx.now().saturating_add(timeout);
        let version = sender.version;
        let (code, option) = match (path.standing, path.port) {
            (Standing::Proving, _) => (code::ESTABLISHED, path.third),
            (_, 0) => {
                // Version 0 has the initiator's key at once (RFC 6824 §3.1).
                let key = (version.number() == 0).then_some(sender.keys[0]);
                let version = version.number();
                let capable =
                    MptcpOption::Capable { version, checksum: mptcp.checksum, sender: key, receiver: None };
                (code::SYN, mptcp.is_capable(cx.host, cx.settings.seed).then_some(capable))
            }
            (_, address) => {
                let token = token(version, sender.keys[1]);
                (code::SYN, Some(MptcpOption::Join(Join::Syn { address, token, nonce: path.nonce })))
            }
        };
        let header = Packet { sent: cx.now(), sender: sender_of(slot, path.port), ..tcp.header(slot, cx) };
        self.outgoing.set_alarm(slot, cx);
        let exit = self.outgoing.port(slot, cx);
        signal(code, header, option, exit, config, cx);
        self.touch(exit, cx);
    }

    /// The answer to a SYN has come.
    fn receive_syn_ack(&mut self, packet: &Packet, option: Option<MptcpOption>, cx: &mut HostContext) {
        let Some((slot, number, at)) = self.own(packet) else { return };
        let sender = &mut self.senders[number as usize];
        let config = config_of(cx.settings, packet.profile);
        let opening = sender.paths[at].standing == Standing::Opening;
        match option {
            Some(MptcpOption::Capable { sender: Some(key), .. }) if sender.paths[at].port == 0 => {
                if opening {
                    sender.keys[1] = key;
                    sender.stream.acknowledge(0, super::packets::window(packet.payload, &config.tcp));
                    self.establish(slot, packet, cx);
                }
                self.tell_keys(number, cx);
                if opening && config.join == JoinRule::AtOnce {
                    self.open_others(number, usize::from(config.subflows), cx);
                }
                self.distribute(number, cx);
            }
            Some(MptcpOption::Join(Join::SynAck { proof: theirs, nonce, .. })) if opening => {
                let (keys, nonces) = (sender.keys, [sender.paths[at].nonce, nonce]);
                let [own, other] = keys;
                let expected = short(proof(sender.version, [other, own], [nonces[1], nonces[0]]));
                if theirs != expected {
                    return self.give_up(number, at, cx);
                }
                let proof = proof(sender.version, keys, nonces);
                sender.paths[at].third = Some(MptcpOption::Join(Join::Ack { proof }));
                sender.paths[at].standing = Standing::Proving;
                self.outgoing[slot].timeouts = 0;
                self.send_opening(slot, cx);
                if config.join == JoinRule::AtOnce {
                    self.establish(slot, packet, cx);
                    self.distribute(number, cx);
                }
            }
            None if sender.paths[at].port == 0 => self.fall_back(slot, packet, cx),
            // The third packet was lost: its timer sends it again.
            _ => {}
        }
    }

    /// The answer to the first SYN does not say that the other end supports multipath TCP: the connection stays one of TCP (RFC 8684
    /// §3.7). The answer may have come before, and what confirmed it been lost.
    fn fall_back(&mut self, slot: u32, packet: &Packet, cx: &mut HostContext) {
        let (number, at) = self.owners[slot as usize];
        let sender = &mut self.senders[number as usize];
        let config = &config_of(cx.settings, packet.profile).tcp;
        if sender.paths[usize::from(at)].standing == Standing::Opening {
            (sender.plain, sender.confirmed) = (true, true);
            sender.stream.acknowledge(0, super::packets::window(packet.payload, config));
            self.establish(slot, packet, cx);
        }
        let header =
            Packet { sent: cx.now(), sender: sender_of(slot, 0), ..self.outgoing[slot].header(slot, cx) };
        let exit = self.outgoing.port(slot, cx);
        signal(code::ESTABLISHED, header, None, exit, config, cx);
        self.touch(exit, cx);
        self.distribute(number, cx);
    }

    /// Sends both keys, the third packet of the first handshake, or again while nothing says that they have come; once a round
    /// trip at most.
    pub(super) fn tell_keys(&mut self, number: u32, cx: &mut HostContext) {
        let sender = &mut self.senders[number as usize];
        let mptcp = config_of(cx.settings, sender.spec.transport);
        let config = &mptcp.tcp;
        let Some(path) = sender.paths.iter().find(|path| path.port == 0 && path.standing == Standing::Up)
        else {
            return;
        };
        let slot = path.slot;
        let tcp = &mut self.outgoing[slot];
        if !sender.confirmed && tcp.board.outstanding() == 0 {
            tcp.alarm.deadline = cx.now().saturating_add(tcp.rtt.rto());
        }
        let round_trip = tcp.rtt.smoothed().unwrap_or(config.rto.initial);
        let fresh = sender.keys_sent.0 > 0 && cx.now() < sender.keys_sent.saturating_add(round_trip);
        let header = Packet { sent: cx.now(), sender: sender_of(slot, 0), ..tcp.header(slot, cx) };
        self.outgoing.set_alarm(slot, cx);
        if fresh {
            return;
        }
        let repeated = sender.keys_sent.0 > 0;
        sender.repeated |= repeated;
        sender.keys_sent = cx.now();
        let both = MptcpOption::Capable {
            version: sender.version.number(),
            checksum: mptcp.checksum,
            sender: Some(sender.keys[0]),
            receiver: Some(sender.keys[1]),
        };
        let exit = self.outgoing.port(slot, cx);
        // What was complete long ago answers such a packet only if it is another one.
        let header = Packet { aux: u32::from(repeated), ..header };
        signal(code::ESTABLISHED, header, Some(both), exit, config, cx);
        self.touch(exit, cx);
    }

    /// The third packet of a join has come to the other end.
    fn receive_confirmation(&mut self, packet: &Packet, cx: &mut HostContext) {
        let Some((slot, number, at)) = self.own(packet) else { return };
        if self.senders[number as usize].paths[at].standing == Standing::Proving {
            self.establish(slot, packet, cx);
            self.distribute(number, cx);
        }
    }

    /// The other end knows nothing of a subflow.
    fn receive_reset(&mut self, packet: &Packet, cx: &mut HostContext) {
        let Some((_, number, at)) = self.own(packet) else { return };
        self.give_up(number, at, cx);
        if !self.senders[number as usize].over {
            self.distribute(number, cx);
        }
    }

    /// Answers a packet of the set-up.
    pub(super) fn reply(&mut self, code: u8, to: &Packet, option: Option<MptcpOption>, cx: &mut HostContext) {
        let config = config_of(cx.settings, to.profile);
        let header = Packet { payload: super::packets::scaled_window(&config.tcp), ..turned(to) };
        let exit = cx.first_port + u32::from(header.ingress);
        signal(code, header, option, exit, &config.tcp, cx);
        self.touch(exit, cx);
    }
}
