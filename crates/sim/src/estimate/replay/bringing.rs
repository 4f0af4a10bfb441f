//! What flows bring to the links, which are looked at for more than they carry, or until they have carried
//! all.

use super::Player;
use crate::estimate::offered::Bits;
use crate::topology::Path;
use crate::workload::FlowSpec;

impl Player<'_> {
    /// A flow of a source brings its packets, and the answers of its receiver.
    pub(super) fn bring(&mut self, source: u16, spec: &FlowSpec, path: Option<Path>) {
        if self.offered.looked_at(usize::from(source)).is_none() {
            return;
        }
        let wire = &self.wires[usize::from(spec.transport)];
        let of_size = |size: u64| {
            let packets = size.div_ceil(wire.mtu);
            let is_next = spec.connection.is_some() && wire.keeps_connections;
            let answers = if is_next { wire.answers.of_next(packets) } else { wire.answers.of(packets) };
            [wire.bytes(size) as f64 * 8.0, answers * wire.answer as f64 * 8.0]
        };
        let drawn = of_size(spec.size);
        let mean = self.sources[usize::from(source)].mean_size(spec).map(|mean| mean.ceil() as u64);
        let counted = mean.map_or(drawn, of_size);
        let bits = |at: usize| Bits { bits: counted[at], drawn: drawn[at] };
        self.offered.bring(source, (spec.src, spec.dst), path.map(|_| (bits(0), bits(1))), spec.start);
    }
}
