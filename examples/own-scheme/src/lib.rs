//! A congestion controller of one's own, in weftline: AIMD on ECN marks.

use weftline_python::sim::congestion::*;
use weftline_python::sim::parameters::Parameters;
use weftline_python::sim::units::Rate;

weftline_python::module!(own_scheme: controller AimdParameters);

#[derive(Debug)]
struct AimdParameters {
    step: Rate,
    cut: f64,
}

impl ControllerParameters for AimdParameters {
    type State = Aimd;
    const DOC: SchemeDoc = SchemeDoc {
        name: "own-aimd",
        title: "AIMD: adds a step per acknowledgement, multiplies at a mark",
        source: "an example",
        equations: "rate = rate + step per acknowledgement; rate * cut at a mark",
        ..SchemeDoc::NONE
    };
    fn read(p: &mut Parameters) -> AimdParameters {
        AimdParameters {
            step: p.rate("step", Rate::from_mbps(10), "Added per acknowledgement."),
            cut: p.number("cut", 0.5, (0.0, 1.0), "Factor at a mark."),
        }
    }
    fn needs(&self) -> Needs {
        Needs { marks: true, ..Needs::window(Window::FollowsRate) }
    }
    fn start(&self, _: &FlowContext, _: usize) -> Aimd {
        Aimd { step: self.step.0, cut: self.cut }
    }
}

struct Aimd {
    step: u64,
    cut: f64,
}

impl CongestionController for Aimd {
    fn on_ack(&mut self, ack: &Ack, control: &mut Control) {
        let rate = control.rate.0;
        control.rate = Rate(if ack.marked { (rate as f64 * self.cut) as u64 } else { rate + self.step });
    }
}
