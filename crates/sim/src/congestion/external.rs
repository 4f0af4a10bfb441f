//! A controller from outside this crate, such as one written in Python.
//!
//! It costs an allocation a flow and a call through a pointer per acknowledgement. Its rate is held between 1 bit/s and
//! the line rate here, so that it cannot break what the transport relies on.

use std::fmt;
use std::sync::Arc;

use super::{Ack, CongestionController, Control, FlowContext, Needs, Rate, Time};

/// CPU time of a packet-hop under a controller in Python, in ns, which is called for every acknowledgement: `pod` with two of a few lines.
pub const NS_PER_HOP: f64 = 300.0;

/// Makes the controller of one flow.
pub type MakeController = dyn Fn(&FlowContext) -> Box<dyn CongestionController + Send> + Send + Sync;

/// A controller by name and by what makes it. Equal when made by the very same function.
#[derive(Clone)]
pub struct ExternalController {
    pub name: String,
    pub needs: Needs,
    pub make: Arc<MakeController>,
}

impl ExternalController {
    pub(super) fn start(&self, flow: &FlowContext, control: &mut Control) -> External {
        let mut external = External { law: (self.make)(flow), line_rate: flow.line_rate };
        external.on_start(control);
        external
    }
}

impl fmt::Debug for ExternalController {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("ExternalController").field("name", &self.name).field("needs", &self.needs).finish()
    }
}

impl PartialEq for ExternalController {
    fn eq(&self, other: &ExternalController) -> bool {
        self.name == other.name && self.needs == other.needs && Arc::ptr_eq(&self.make, &other.make)
    }
}

/// The state of one flow.
pub struct External {
    law: Box<dyn CongestionController + Send>,
    line_rate: Rate,
}

impl External {
    fn hold(&self, control: &mut Control) {
        control.rate = Rate(control.rate.0.clamp(1, self.line_rate.0.max(1)));
    }
}

impl CongestionController for External {
    fn on_start(&mut self, control: &mut Control) {
        self.law.on_start(control);
        self.hold(control);
    }
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        self.law.on_ack(ack, control);
        self.hold(control);
    }
    fn on_timer(&mut self, timer: usize, now: Time, control: &mut Control) {
        self.law.on_timer(timer, now, control);
        self.hold(control);
    }
    fn on_timeout(&mut self, now: Time, control: &mut Control) {
        self.law.on_timeout(now, control);
        self.hold(control);
    }
    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        self.law.internals(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{ControllerConfig, Window, situations};

    struct Absurd(u64);
    impl CongestionController for Absurd {
        fn on_start(&mut self, control: &mut Control) {
            control.rate = Rate(self.0);
        }
        fn on_ack(&mut self, _ack: &Ack, control: &mut Control) {
            control.rate = Rate(self.0);
        }
    }

    #[test]
    fn the_rate_of_a_foreign_controller_stays_between_one_and_the_line_rate() {
        let make = |bps| ExternalController {
            name: "absurd".into(),
            needs: Needs::window(Window::None),
            make: Arc::new(move |_: &FlowContext| Box::new(Absurd(bps)) as Box<_>),
        };
        for (asked, held) in [(0, 1), (7, 7), (u64::MAX, 100_000_000_000)] {
            let config = ControllerConfig::External(make(asked));
            let (mut controller, mut control) = config.start(&situations::flow(), 5);
            assert_eq!(control.rate.0, held, "from the start");
            control.rate = Rate::from_gbps(1);
            controller.on_ack(&situations::ack(1_000, 2_000), &mut control);
            assert_eq!(control.rate.0, held);
        }
        let one = make(1);
        assert_eq!(one, one.clone());
        assert_ne!(one, make(1));
    }
}
