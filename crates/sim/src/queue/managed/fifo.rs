//! First come, first served, whatever the class; a full port drops the packet that comes.

use super::{BUFFER, Bench, Discipline, List, Queued};

#[derive(Debug, Clone, Default)]
pub struct ManagedFifo {
    list: List,
}

impl Discipline for ManagedFifo {
    fn enqueue(&mut self, packet: Queued, cx: &mut Bench) {
        if cx.is_full_for(packet.size) {
            return cx.drop(packet, &BUFFER);
        }
        cx.waiting.push(&mut self.list, packet);
    }

    fn dequeue(&mut self, cx: &mut Bench) -> Option<Queued> {
        cx.waiting.pop(&mut self.list)
    }

    fn forget(&mut self) {
        self.list = List::default();
    }
}
