//! A controller from outside this crate: from another crate, or written in Python.
//!
//! It costs an allocation per flow and an indirect call per acknowledgement. Its rate is limited to 1 bit/s
//! to the line rate here, so that it cannot violate what the transport relies on, and a panic in it names it.

use std::fmt;
use std::sync::Arc;

use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, Parameters, Rate, Time,
};
use crate::external::guarded;

/// CPU time of a packet-hop under a controller in Python, in ns, which is called for every acknowledgement: `pod`
/// with two controllers of a few lines.
pub const NS_PER_HOP: f64 = 300.0;

/// Creates the controller of one flow. The number is the capacity of the INT header in records.
pub type MakeController = dyn Fn(&FlowContext, usize) -> Box<dyn CongestionController + Send> + Send + Sync;

/// A controller with its name and its constructor.
#[derive(Clone)]
pub struct ExternalController {
    pub name: Arc<str>,
    pub needs: Needs,
    /// Its parameters as text: controllers with equal name and text are equal. None: there is no text, and
    /// the controller equals only those with the same constructor.
    pub parameters: Option<String>,
    /// Its flows must run on one thread.
    pub one_thread: bool,
    pub make: Arc<MakeController>,
}

impl ExternalController {
    /// Reads the parameters of a controller of another crate.
    pub(super) fn read<P>(p: &mut Parameters) -> ExternalController
    where
        P: ControllerParameters + fmt::Debug + Send + Sync + 'static,
        P::State: Send + 'static,
    {
        let parameters = P::read(p);
        ExternalController {
            name: P::DOC.name.into(),
            needs: parameters.needs(),
            parameters: Some(format!("{parameters:?}")),
            one_thread: false,
            make: Arc::new(move |flow, int_hops| Box::new(parameters.start(flow, int_hops))),
        }
    }

    pub(super) fn start(&self, flow: &FlowContext, int_hops: usize, control: &mut Control) -> External {
        let law = guarded("controller", &self.name, || (self.make)(flow, int_hops));
        let mut external = External { name: self.name.clone(), law, line_rate: flow.line_rate };
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
        let same = match (&self.parameters, &other.parameters) {
            (Some(ours), Some(theirs)) => ours == theirs,
            _ => Arc::ptr_eq(&self.make, &other.make),
        };
        same && self.name == other.name && self.needs == other.needs
    }
}

/// The state of one flow.
pub struct External {
    name: Arc<str>,
    law: Box<dyn CongestionController + Send>,
    line_rate: Rate,
}

impl External {
    fn steer(
        &mut self,
        control: &mut Control,
        call: impl FnOnce(&mut dyn CongestionController, &mut Control),
    ) {
        guarded("controller", &self.name, || call(&mut *self.law, control));
        control.rate = Rate(control.rate.0.clamp(1, self.line_rate.0.max(1)));
    }
}

impl CongestionController for External {
    fn on_start(&mut self, control: &mut Control) {
        self.steer(control, |law, control| law.on_start(control));
    }
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        self.steer(control, |law, control| law.on_ack(ack, control));
    }
    fn on_timer(&mut self, timer: usize, now: Time, control: &mut Control) {
        self.steer(control, |law, control| law.on_timer(timer, now, control));
    }
    fn on_timeout(&mut self, now: Time, control: &mut Control) {
        self.steer(control, |law, control| law.on_timeout(now, control));
    }
    fn internals(&self, out: &mut Vec<(&'static str, f64)>) {
        guarded("controller", &self.name, || self.law.internals(out));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::congestion::{ControllerConfig, Window, tests::situations};
    use crate::external::caught;

    struct Absurd(u64);
    impl CongestionController for Absurd {
        fn on_start(&mut self, control: &mut Control) {
            control.rate = Rate(self.0);
        }
        fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
            assert!(!ack.negative, "lost");
            control.rate = Rate(self.0);
        }
    }

    fn make(bps: u64) -> ExternalController {
        ExternalController {
            name: "absurd".into(),
            needs: Needs::window(Window::None),
            parameters: None,
            one_thread: false,
            make: Arc::new(move |_: &FlowContext, _| Box::new(Absurd(bps)) as Box<_>),
        }
    }

    #[test]
    fn the_rate_of_a_foreign_controller_stays_between_one_and_the_line_rate() {
        for (asked, held) in [(0, 1), (7, 7), (u64::MAX, 100_000_000_000)] {
            let config = ControllerConfig::External(make(asked));
            let (mut controller, mut control) = config.start(&situations::flow(), 5);
            assert_eq!(control.rate.0, held, "from the start");
            control.rate = Rate::from_gbps(1);
            controller.on_ack(&situations::ack(1_000, 2_000), &mut control);
            assert_eq!(control.rate.0, held);
        }
    }

    #[test]
    fn controllers_are_the_same_by_their_parameters_or_by_what_makes_them() {
        let one = make(1);
        assert_eq!(one, one.clone());
        assert_ne!(one, make(1));
        let with = |text: &str| ExternalController { parameters: Some(text.into()), ..make(1) };
        assert_eq!(with("gain: 1"), with("gain: 1"));
        assert_ne!(with("gain: 1"), with("gain: 2"));
    }

    #[test]
    fn a_panic_names_the_controller() {
        let (mut controller, mut control) = ControllerConfig::External(make(1)).start(&situations::flow(), 5);
        let lost = Ack { negative: true, ..situations::ack(1_000, 2_000) };
        let panic = caught(|| controller.on_ack(&lost, &mut control)).unwrap_err();
        assert_eq!(panic.to_string(), "controller \"absurd\" panicked: lost");
    }
}
