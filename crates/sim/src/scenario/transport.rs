//! `[transport]`: how flows are sent, and by which controller. Each transport reads its own keys.

use super::section::Section;
use crate::parameters::Source;
use crate::transport::{DECLARED, DEFAULT, KINDS, ReadContext, TransportConfig};

/// Reads one transport. None: its kind or controller is unknown, and reported.
pub fn read(section: &mut Section, cx: &ReadContext) -> Option<TransportConfig> {
    let kind = section.kind("transport", Some(DEFAULT), KINDS, "how flows are sent")?;
    read_keys(kind, section, cx)
}

/// Declares the keys of one kind.
pub fn declare(kind: &str, section: &mut Section, cx: &ReadContext) {
    section.kind("transport", Some(DEFAULT), KINDS, "how flows are sent");
    read_keys(kind, section, cx);
}

fn read_keys(kind: &str, section: &mut Section, cx: &ReadContext) -> Option<TransportConfig> {
    let mut repeated = DECLARED.iter().filter(|declared| declared.has_compat).map(|declared| declared.name);
    if cx.rules.only_rdma && !repeated.any(|name| name == kind) {
        let why = "repeats a simulator that has only RDMA: leave [compat] out, or set kind = \"rdma\"";
        section.complain("kind", format!("like = \"{}\" {why}", cx.rules.like));
    }
    TransportConfig::read(kind, &mut section.parameters(), cx)
}
