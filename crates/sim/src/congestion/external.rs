//! A controller from outside this crate: from another crate, or written in Python.
//!
//! It costs an allocation per flow and an indirect call per acknowledgement. Its rate is limited to 1 bit/s
//! to the line rate here, so that it cannot violate what the transport relies on. A panic in it ends the run with an error that
//! names it, as does a timer in the past, or a series that its text does not declare.

use std::fmt;
use std::sync::Arc;

use super::{
    Ack, CongestionController, Control, ControllerParameters, FlowContext, Needs, Parameters, Rate, Time,
};
use crate::compat::Rules;
use crate::doc::Series;
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
    /// None: its parameters create the controller of a flow.
    pub make: Option<Arc<MakeController>>,
    /// Its parameters. None for a controller in Python, which states nothing but its needs.
    pub stated: Option<Arc<dyn Stated>>,
}

/// [`ControllerParameters`] that are called through a pointer.
pub trait Stated: Send + Sync {
    fn text(&self) -> String;
    fn needs(&self) -> Needs;
    fn follow(&mut self, rules: &Rules);
    fn start(&self, flow: &FlowContext, int_hops: usize) -> Box<dyn CongestionController + Send>;
    fn marks_at_step(&self) -> bool;
    fn queue_at_marks(&self) -> Option<f64>;
    fn ns_per_hop(&self) -> f64;
    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)>;
    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)>;
    fn unfit(&self, base_rtt: Time) -> Option<String>;
    fn unfit_at(&self, line_rate: Rate, packet: u64, base_rtt: Time) -> Option<String>;
    fn series(&self) -> &'static [Series];
}

impl<P> Stated for P
where
    P: ControllerParameters<State: Send + 'static> + fmt::Debug + Send + Sync,
{
    fn text(&self) -> String {
        format!("{self:?}")
    }
    fn needs(&self) -> Needs {
        ControllerParameters::needs(self)
    }
    fn follow(&mut self, rules: &Rules) {
        ControllerParameters::follow(self, rules);
    }
    fn start(&self, flow: &FlowContext, int_hops: usize) -> Box<dyn CongestionController + Send> {
        Box::new(ControllerParameters::start(self, flow, int_hops))
    }
    fn marks_at_step(&self) -> bool {
        P::MARKS_AT_STEP
    }
    fn queue_at_marks(&self) -> Option<f64> {
        P::QUEUE_AT_MARKS
    }
    fn ns_per_hop(&self) -> f64 {
        P::NS_PER_HOP
    }
    fn derived(&self, line_rate: Rate) -> Vec<(&'static str, Rate)> {
        ControllerParameters::derived(self, line_rate)
    }
    fn published(&self, line_rate: Rate) -> Vec<(&'static str, Rate, Rate)> {
        ControllerParameters::published(self, line_rate)
    }
    fn unfit(&self, base_rtt: Time) -> Option<String> {
        ControllerParameters::unfit(self, base_rtt)
    }
    fn unfit_at(&self, line_rate: Rate, packet: u64, base_rtt: Time) -> Option<String> {
        ControllerParameters::unfit_at(self, line_rate, packet, base_rtt)
    }
    fn series(&self) -> &'static [Series] {
        P::DOC.series
    }
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
            make: None,
            stated: Some(Arc::new(parameters)),
        }
    }

    /// The rules of the run. Copies follow them already, because they are made of a controller that does.
    pub(super) fn follow(&mut self, rules: &Rules) {
        let Some(stated) = self.stated.as_mut().and_then(Arc::get_mut) else { return };
        guarded("controller", &self.name, || stated.follow(rules));
        (self.needs, self.parameters) = (stated.needs(), Some(stated.text()));
    }

    /// What its parameters state, as `ask` asks for it; `or` if they state nothing.
    pub(super) fn stated<R>(&self, or: R, ask: impl FnOnce(&dyn Stated) -> R) -> R {
        match &self.stated {
            Some(stated) => guarded("controller", &self.name, || ask(stated.as_ref())),
            None => or,
        }
    }

    pub(super) fn start(&self, flow: &FlowContext, int_hops: usize, control: &mut Control) -> External {
        let law = guarded("controller", &self.name, || match (&self.make, &self.stated) {
            (Some(make), _) => make(flow, int_hops),
            (None, Some(stated)) => stated.start(flow, int_hops),
            (None, None) => unreachable!("nothing creates controllers of this name"),
        });
        let series = self.stated.as_ref().map(|stated| stated.series());
        let mut external = External { name: self.name.clone(), law, line_rate: flow.line_rate, series };
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
            _ => {
                let makes = self.make.as_ref().zip(other.make.as_ref());
                makes.is_some_and(|(ours, theirs)| Arc::ptr_eq(ours, theirs))
            }
        };
        same && self.name == other.name && self.needs == other.needs
    }
}

/// The state of one flow.
pub struct External {
    name: Arc<str>,
    law: Box<dyn CongestionController + Send>,
    line_rate: Rate,
    /// The series that its internals may give. None for a controller in Python, which gives no internals.
    series: Option<&'static [Series]>,
}

impl External {
    fn steer(
        &mut self,
        control: &mut Control,
        after: Time,
        call: impl FnOnce(&mut dyn CongestionController, &mut Control),
    ) {
        guarded("controller", &self.name, || {
            let before = control.timers;
            call(&mut *self.law, control);
            let late = before.iter().zip(control.timers).find(|&(was, is)| *was != is && is < after);
            if let Some((_, at)) = late {
                panic!("it set a timer for {at}: expected {after} or later");
            }
        });
        control.rate = Rate(control.rate.0.clamp(1, self.line_rate.0.max(1)));
    }
}

impl CongestionController for External {
    fn on_start(&mut self, control: &mut Control) {
        self.steer(control, Time::ZERO, |law, control| {
            law.on_start(control);
            let sets = control.timers.iter().any(|&at| at != Time::MAX);
            assert!(!sets, "it set a timer in on_start, where the time is not known: set it in on_ack");
        });
    }
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        self.steer(control, ack.now, |law, control| law.on_ack(ack, control));
    }
    fn on_timer(&mut self, timer: usize, now: Time, control: &mut Control) {
        // A timer that sets itself for the same time would never let time advance.
        self.steer(control, Time(now.0 + 1), |law, control| law.on_timer(timer, now, control));
    }
    fn on_timeout(&mut self, now: Time, control: &mut Control) {
        self.steer(control, now, |law, control| law.on_timeout(now, control));
    }
    fn internals(&self, now: Time, out: &mut Vec<(&'static str, f64)>) {
        guarded("controller", &self.name, || {
            let before = out.len();
            self.law.internals(now, out);
            let Some(series) = self.series else { return };
            for (at, (name, value)) in out.iter().enumerate().skip(before) {
                let declared = series.iter().any(|one| one.name == *name);
                assert!(declared, "internals gave \"{name}\", which the series of its DOC do not have");
                let twice = out[before..at].iter().any(|(other, _)| other == name);
                assert!(!twice, "internals gave \"{name}\" twice");
                assert!(!value.is_nan(), "internals gave \"{name}\" a value that is not a number");
            }
        });
    }
}

#[cfg(test)]
mod tests;
