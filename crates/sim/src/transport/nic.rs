//! A NIC's choice among its queue pairs: round robin over those that may send now. Several ports may take packets from one scheduler.

use super::{Hold, HostContext, Look};
use crate::compat::Rules;
use crate::net::PortId;
use crate::net::agenda::SERIAL_BITS;
use crate::units::Time;

/// What the NIC must know of a queue pair to pass it over or choose it; 16 bytes, scanned in a row.
#[derive(Debug, Clone, Copy)]
struct Gate {
    /// Pacing lets its next packet leave from then on.
    due: Time,
    slot: u32,
    class: u8,
    /// Has bytes to send and its window has room.
    open: bool,
    /// Has bytes to send.
    has_data: bool,
    finished: bool,
}

#[derive(Debug, Default)]
pub struct Nic {
    gates: Vec<Gate>,
    /// Gate served last; the search begins behind it.
    last: usize,
    open: u32,
    wake_at: Option<Time>,
    wake_serial: u32,
    /// Once all its flows are finished, it returns to its first state.
    pub resets: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    Send(u32),
    /// Nothing now, but the pacing of some queue pair ends then.
    WaitUntil(Time),
    Nothing,
}

impl Nic {
    /// Takes in a new queue pair; its gate's number.
    pub fn add(&mut self, slot: u32, due: Time, class: u8) -> u32 {
        self.gates.push(Gate { due, slot, class, open: false, has_data: false, finished: false });
        (self.gates.len() - 1) as u32
    }

    /// Takes out a queue pair that will have nothing to send for a while; `moved` learns of gates that got another number.
    pub fn take_out(&mut self, gate: u32, mut moved: impl FnMut(u32, u32)) {
        let at = gate as usize;
        self.open -= u32::from(self.gates[at].open);
        self.gates.remove(at);
        for (number, gate) in self.gates.iter().enumerate().skip(at).filter(|(_, gate)| !gate.finished) {
            moved(gate.slot, number as u32);
        }
        // The search goes on where it would have.
        if self.last >= at {
            self.last = self.last.checked_sub(1).unwrap_or(self.gates.len().saturating_sub(1));
        }
    }

    /// All its queue pairs are finished: nothing of them stays.
    pub fn reset(&mut self) {
        self.gates.clear();
        (self.last, self.open, self.wake_at) = (0, 0, None);
    }

    /// Queue pairs, with those that are finished and not yet taken out.
    pub fn len(&self) -> usize {
        self.gates.len()
    }

    pub fn due(&self, gate: u32) -> Time {
        self.gates[gate as usize].due
    }
    /// Why a queue pair sends nothing now, if it does not.
    pub fn hold(&self, gate: u32) -> Hold {
        match self.gates.get(gate as usize) {
            Some(gate) if gate.open => Hold::Free { from: gate.due },
            Some(gate) if gate.has_data => Hold::Window,
            _ => Hold::Sent,
        }
    }
    /// A queue pair has bytes to send that its window and its pacing let go now.
    #[inline]
    pub fn may_send(&self, gate: u32, now: Time) -> bool {
        let gate = &self.gates[gate as usize];
        gate.open && gate.due <= now
    }
    pub fn set_due(&mut self, gate: u32, due: Time) {
        self.gates[gate as usize].due = due;
    }

    #[inline]
    pub fn update(&mut self, gate: u32, has_data: bool, open: bool, finished: bool) {
        let gate = &mut self.gates[gate as usize];
        let open = open && has_data && !finished;
        self.open = self.open + u32::from(open) - u32::from(gate.open);
        gate.open = open;
        gate.has_data = has_data;
        gate.finished = finished;
    }

    /// When this NIC, free at `free`, is to be looked at next.
    #[inline]
    pub fn next_look(&mut self, paused: u8, free: Time) -> Look {
        if self.open == 0 {
            return Look::NoMore;
        }
        let mut first = Time::MAX;
        for gate in self.gates.iter().filter(|gate| gate.open && paused & (1 << gate.class) == 0) {
            if gate.due <= free {
                return Look::WhenFree;
            }
            first = first.min(gate.due);
        }
        if first == Time::MAX || self.wake_at.is_some_and(|at| at <= first) {
            return Look::NoMore;
        }
        Look::Wake { at: first, serial: self.arm(first) }
    }

    /// The queue pair among `pairs` to serve now by a port with these classes paused: one that `may` leave by it. `moved` learns of
    /// gates that got another number.
    #[inline]
    pub fn choose<P>(
        &mut self,
        now: Time,
        paused: u8,
        rules: &Rules,
        pairs: &mut P,
        may: impl Fn(&P, u32) -> bool,
        mut moved: impl FnMut(&mut P, u32, u32),
    ) -> Choice {
        let count = self.gates.len();
        if count == 0 {
            return Choice::Nothing;
        }
        let mut chosen = None;
        let mut first_finished = usize::MAX;
        // It is seldom beyond the end: no division for each packet.
        let mut at = self.last + 1;
        if at >= count {
            at %= count;
        }
        for _ in 0..count {
            let gate = &self.gates[at];
            if gate.open && paused & (1 << gate.class) == 0 {
                if gate.due <= now && may(pairs, gate.slot) {
                    chosen = Some(at);
                    break;
                }
            } else if gate.finished {
                first_finished = first_finished.min(at);
            }
            at += 1;
            if at == count {
                at = 0;
            }
        }
        if first_finished != usize::MAX {
            chosen = self.remove_finished(first_finished, chosen, |slot, gate| moved(pairs, slot, gate));
        }
        match chosen {
            Some(at) => {
                self.last = at;
                Choice::Send(self.gates[at].slot)
            }
            None => self.wait(paused, rules, |slot| may(pairs, slot)),
        }
    }

    /// Closes the gaps that finished queue pairs leave from `first` on; the chosen gate's new number. The pointer of the
    /// round robin stays, as in the authors' simulator.
    #[cold]
    fn remove_finished(
        &mut self,
        first: usize,
        mut chosen: Option<usize>,
        mut moved: impl FnMut(u32, u32),
    ) -> Option<usize> {
        let mut to = first;
        for from in first + 1..self.gates.len() {
            if self.gates[from].finished {
                continue;
            }
            if chosen == Some(from) {
                chosen = Some(to);
            }
            self.gates[to] = self.gates[from];
            moved(self.gates[to].slot, to as u32);
            to += 1;
        }
        self.gates.truncate(to);
        chosen
    }

    /// When the next packet may leave.
    fn wait(&self, paused: u8, rules: &Rules, may: impl Fn(u32) -> bool) -> Choice {
        let counts = |gate: &&Gate| match rules.held_back_wake_ups {
            true => gate.has_data,
            false => gate.open && paused & (1 << gate.class) == 0 && may(gate.slot),
        };
        let earliest = self.gates.iter().filter(counts).map(|gate| gate.due).min();
        earliest.map_or(Choice::Nothing, Choice::WaitUntil)
    }

    /// Sets the wake-up for paced packets, none in the past.
    #[inline]
    pub fn set_wake(&mut self, due: Time, port: PortId, cx: &mut HostContext) {
        let kept = self.wake_at.is_some_and(|at| cx.settings.rules.kept_wake_ups || at <= due);
        if !kept && due > cx.net.now {
            let serial = self.arm(due);
            cx.set_wake(due, port, serial);
        }
    }

    /// A rate change brought a packet's time forward, and a wake-up that would be kept with it.
    pub fn bring_wake_forward(&mut self, gate: u32, port: PortId, cx: &mut HostContext) {
        if !cx.settings.rules.kept_wake_ups {
            // The port is looked at after every acknowledgement, which sets the wake-up anew.
            return;
        }
        let due = self.gates[gate as usize].due;
        if self.wake_at.is_some_and(|at| due < at) {
            let at = due.max(cx.now());
            let serial = self.arm(at);
            cx.set_wake(at, port, serial);
        }
    }

    /// A wake-up is being set; its serial number.
    fn arm(&mut self, at: Time) -> u32 {
        self.wake_serial = (self.wake_serial + 1) % (1 << SERIAL_BITS);
        self.wake_at = Some(at);
        self.wake_serial
    }

    /// A wake-up has come: whether it is the one in force, which it then no longer is.
    pub fn wake_is(&mut self, serial: u32) -> bool {
        let current = self.wake_at.is_some() && serial == self.wake_serial;
        if current {
            self.wake_at = None;
        }
        current
    }
}

#[cfg(test)]
mod tests;
