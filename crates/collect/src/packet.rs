//! What telemetry a packet carries, and in which of its headers.

use crate::Malformed;
use crate::bytes::{array, u16_at, u32_at, u64_at};
use crate::int::{Carrier, Header, Shim as IntShim};
use crate::ioam::{self, Ioam};
use crate::ip::{
    FlowKey, GENEVE_PORT, GRE, Ip, TCP, UDP, VXLAN_GPE_PORT, flow_inside_udp, gre_header_bytes, ip_after,
    ip_of_gpe,
};
use crate::report::Group;
use crate::shim::{self, Shim};

/// Next protocol of VXLAN-GPE that INT's specification proposes; not reserved.
const GPE_INT: u8 = 0x82;
/// Option class of INT in Geneve, assigned tentatively.
const GENEVE_INT: u16 = 0x0103;
/// IPv6 option for experiments, which may change on the path: a digest of PINT.
pub const PINT_OPTION: u8 = 0x3e;
/// Domain of INT whose flags are a digest of PINT.
pub const PINT_DOMAIN: u16 = 0x5057;

/// The values that mark telemetry in a domain: no standard assigns them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Markers {
    /// DSCP of TCP and UDP packets with INT.
    pub int_dscp: Option<u8>,
    /// Eight bytes before INT's shim in probes.
    pub int_probe: Option<u64>,
    /// UDP port of INT.
    pub int_port: Option<u16>,
    /// EtherType of INT in GRE.
    pub int_gre: Option<u16>,
    /// Whether INT stands before the options of TCP, instead of after them.
    pub before_tcp_options: bool,
    /// UDP ports that reports are sent to.
    pub report_ports: Vec<u16>,
    /// Whether the id of unfragmented IPv4 packets with DF is a digest of PINT.
    pub pint_ipv4_id: bool,
    /// Whether the IPv6 flow label of unfragmented packets is: 4 bits of the plan, which are never 0, and 16
    /// of the digest. A label of 0 carries no digest.
    pub pint_flow_label: bool,
}

impl Default for Markers {
    fn default() -> Markers {
        Markers {
            int_dscp: Some(0x17),
            int_probe: None,
            int_port: Some(49_203),
            int_gre: Some(0x88b6),
            before_tcp_options: false,
            report_ports: vec![32_766],
            pint_ipv4_id: false,
            pint_flow_label: false,
        }
    }
}

/// One piece of telemetry of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Telemetry<'a> {
    /// `flow` is that of the packet as its source sent it.
    Int {
        carrier: Carrier,
        flow: FlowKey,
        header: Header<'a>,
    },
    Ioam(Ioam<'a>),
    Shim(Shim<'a>),
    Digest(Digest),
    Reports(Group<'a>),
}

/// A digest of PINT in a field of the packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    pub carrier: DigestCarrier,
    pub digest: u128,
    pub digest_bits: u8,
    /// The low bits of the plan's id, if the carrier has any.
    pub plan: Option<u8>,
    /// Hop limit that the packet started with, if the carrier has it.
    pub initial_hop_limit: Option<u8>,
}

/// Where a digest stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum DigestCarrier {
    Ipv4Id,
    FlowLabel,
    Option,
    IntFlags,
}

impl DigestCarrier {
    /// Whether it has bits of the plan's version, so that most digests of another plan are recognised.
    pub fn states_plan(self) -> bool {
        matches!(self, DigestCarrier::FlowLabel | DigestCarrier::Option)
    }
}

/// Calls `found` with every piece of telemetry of a packet, and with what is malformed in it.
pub fn telemetry<'a>(
    ip: &Ip<'a>,
    markers: &Markers,
    found: &mut impl FnMut(Result<Telemetry<'a>, Malformed>),
) {
    for option in ip.options() {
        match option {
            Ok((kind, data)) if ioam::OPTIONS.contains(&kind) => {
                found(Ioam::parse(data).map(Telemetry::Ioam))
            }
            Ok((PINT_OPTION, data)) => found(pint_option(data).map(Telemetry::Digest)),
            Ok(_) => {}
            Err(malformed) => found(Err(malformed)),
        }
    }
    if let Some(digest) = header_digest(ip, markers) {
        found(Ok(Telemetry::Digest(digest)));
    }
    if ip.fragment {
        return;
    }
    let result = match ip.protocol {
        TCP | UDP => transport(ip, markers),
        GRE => gre(ip, markers),
        _ => Ok(None),
    };
    match result.transpose() {
        Some(Ok(telemetry)) => {
            found(Ok(telemetry));
            if let Telemetry::Int { header: Header::Md(md), .. } = &telemetry {
                let instructions = md.instructions;
                if instructions.domain == PINT_DOMAIN && instructions.domain_bitmap & 0x8000 != 0 {
                    let digest = u128::from(instructions.domain_flags);
                    found(Ok(Telemetry::Digest(Digest::of(DigestCarrier::IntFlags, digest, 16))));
                }
            }
        }
        Some(Err(malformed)) => found(Err(malformed)),
        None => {}
    }
}

impl Digest {
    fn of(carrier: DigestCarrier, digest: u128, digest_bits: u8) -> Digest {
        Digest { carrier, digest, digest_bits, plan: None, initial_hop_limit: None }
    }
}

/// Whether the id of an IPv4 packet is that of a datagram that may still be cut into fragments: switches may
/// not write a digest there.
///
/// Source: RFC 6864 §4: the id is free in atomic datagrams alone, which have DF set, MF clear and offset 0.
pub fn id_is_in_use(ip: &Ip) -> bool {
    ip.id.is_some() && !ip.dont_fragment && !ip.fragment
}

/// The digest in a field that every IP header has.
fn header_digest(ip: &Ip, markers: &Markers) -> Option<Digest> {
    match ip.id {
        Some(id) if markers.pint_ipv4_id && ip.dont_fragment && !ip.fragment => {
            Some(Digest::of(DigestCarrier::Ipv4Id, u128::from(id), 16))
        }
        // Switches leave the label of a fragment to its host, as they do with the id of one.
        None if markers.pint_flow_label && !ip.fragment && ip.flow_label != 0 => Some(Digest {
            plan: Some((ip.flow_label >> 16) as u8),
            ..Digest::of(DigestCarrier::FlowLabel, u128::from(ip.flow_label & 0xffff), 16)
        }),
        _ => None,
    }
}

/// Plan, hop limit of the start, and a digest of 16 or 80 bits.
fn pint_option(data: &[u8]) -> Result<Digest, Malformed> {
    let &[plan, initial_hop_limit, ref digest @ ..] = data else { return Err(Malformed::PintOption) };
    if !matches!(digest.len(), 2 | 10) {
        return Err(Malformed::PintOption);
    }
    let value = digest.iter().fold(0, |value, &byte| value << 8 | u128::from(byte));
    Ok(Digest {
        plan: Some(plan),
        initial_hop_limit: Some(initial_hop_limit),
        ..Digest::of(DigestCarrier::Option, value, 8 * digest.len() as u8)
    })
}

type Found<'a> = Result<Option<Telemetry<'a>>, Malformed>;

/// INT, reports and weftline's header, after a TCP or UDP header.
fn transport<'a>(ip: &Ip<'a>, markers: &Markers) -> Found<'a> {
    let Some((source_port, port)) = ip.ports() else { return Err(Malformed::Transport) };
    let flow = ip.own_flow();
    if ip.protocol == UDP {
        let payload = ip.payload.get(8..).ok_or(Malformed::Transport)?;
        if markers.int_port == Some(port) {
            return int_port(flow, source_port, payload);
        }
        if markers.report_ports.contains(&port) {
            return Group::parse(payload).map(|group| Some(Telemetry::Reports(group)));
        }
        match port {
            shim::PORT => return Shim::parse(payload).map(|shim| Some(Telemetry::Shim(shim))),
            VXLAN_GPE_PORT => return vxlan_gpe(flow, payload),
            GENEVE_PORT => return geneve(flow, payload),
            _ => {}
        }
    }
    if markers.int_dscp != Some(ip.dscp) && markers.int_probe.is_none() {
        return Ok(None);
    }
    let header_bytes = match ip.protocol {
        UDP => 8,
        _ if markers.before_tcp_options => 20,
        _ => ip.payload.get(12).map(|offset| usize::from(offset >> 4) * 4).unwrap_or_default().max(20),
    };
    let payload = ip.payload.get(header_bytes..).ok_or(Malformed::Transport)?;
    if markers.int_dscp == Some(ip.dscp) {
        let shim = IntShim::parse(payload)?;
        let original = (shim.last >> 2) as u8 & 63;
        let tunnelled = if ip.protocol == UDP { flow_inside_udp(port, shim.rest) } else { None };
        return int(Carrier::Dscp { original }, tunnelled.unwrap_or(flow), &shim);
    }
    match u64_at(payload, 0).filter(|_| u64_at(payload, 0) == markers.int_probe) {
        Some(_) => int(Carrier::ProbeMarker, flow, &IntShim::parse(&payload[8..])?),
        None => Ok(None),
    }
}

fn int<'a>(carrier: Carrier, flow: FlowKey, shim: &IntShim<'a>) -> Found<'a> {
    Header::parse(shim.kind, shim.header).map(|header| Some(Telemetry::Int { carrier, flow, header }))
}

/// Next-protocol types 1 (the payload follows) and 2 (the old transport header follows).
fn int_port(outer: FlowKey, source_port: u16, payload: &[u8]) -> Found<'_> {
    let shim = IntShim::parse(payload)?;
    match shim.flags >> 2 {
        1 => {
            let own = FlowKey { destination_port: shim.last, ..outer };
            let flow = flow_inside_udp(shim.last, shim.rest).unwrap_or(own);
            int(Carrier::UdpPort { original: shim.last }, flow, &shim)
        }
        2 => {
            let original_protocol = shim.last as u8;
            let ports = matches!(original_protocol, TCP | UDP)
                .then(|| Some((u16_at(shim.rest, 0)?, u16_at(shim.rest, 2)?)))
                .flatten();
            let (source_port, destination_port) = ports.unwrap_or((source_port, 0));
            let flow = FlowKey { protocol: original_protocol, source_port, destination_port, ..outer };
            int(Carrier::UdpHeader { original_protocol }, flow, &shim)
        }
        _ => Err(Malformed::IntShim),
    }
}

fn gre<'a>(ip: &Ip<'a>, markers: &Markers) -> Found<'a> {
    let [flags, _, high, low] = array(ip.payload, 0).ok_or(Malformed::Tunnel)?;
    if markers.int_gre != Some(u16::from_be_bytes([high, low])) {
        return Ok(None);
    }
    let shim = IntShim::parse(ip.payload.get(gre_header_bytes(flags)..).ok_or(Malformed::Tunnel)?)?;
    let flow = ip_after(shim.last, shim.rest).map_or_else(|| ip.own_flow(), |ip| ip.flow());
    int(Carrier::Gre { inserted: shim.flags & 8 != 0 }, flow, &shim)
}

fn vxlan_gpe(outer: FlowKey, payload: &[u8]) -> Found<'_> {
    let [flags, _, _, next, ..] = array::<8>(payload, 0).ok_or(Malformed::Tunnel)?;
    if flags & 4 == 0 || next != GPE_INT {
        return Ok(None);
    }
    let vni = u32_at(payload, 4).ok_or(Malformed::Tunnel)? >> 8;
    let shim = IntShim::parse(&payload[8..])?;
    let flow = ip_of_gpe(shim.last & 0xff, shim.rest).map_or(outer, |ip| ip.flow());
    let carrier = Carrier::VxlanGpe { vni, was_vxlan: shim.last & 0x8000 != 0 };
    int(carrier, FlowKey { vni: flow.vni.or(Some(vni)), ..flow }, &shim)
}

fn geneve(outer: FlowKey, payload: &[u8]) -> Found<'_> {
    let [first, _, high, low, ..] = array::<8>(payload, 0).ok_or(Malformed::Tunnel)?;
    let vni = u32_at(payload, 4).ok_or(Malformed::Tunnel)? >> 8;
    let options_bytes = 4 * usize::from(first & 63);
    let (mut options, inner) = payload[8..].split_at_checked(options_bytes).ok_or(Malformed::Tunnel)?;
    while !options.is_empty() {
        let [class_high, class_low, kind, words] = array(options, 0).ok_or(Malformed::Tunnel)?;
        let length = 4 + 4 * usize::from(words & 31);
        let (option, after) = options.split_at_checked(length).ok_or(Malformed::Tunnel)?;
        if u16::from_be_bytes([class_high, class_low]) == GENEVE_INT {
            let flow = ip_after(u16::from_be_bytes([high, low]), inner).map_or(outer, |ip| ip.flow());
            let flow = FlowKey { vni: flow.vni.or(Some(vni)), ..flow };
            // The top bit of a Geneve option's type says that it is critical.
            let header = Header::parse(kind & 0x7f, &option[4..])?;
            return Ok(Some(Telemetry::Int { carrier: Carrier::Geneve { vni }, flow, header }));
        }
        options = after;
    }
    Ok(None)
}
