//! Tests of `external`.

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
        stated: None,
        make: Some(Arc::new(move |_: &FlowContext, _| Box::new(Absurd(bps)) as Box<_>)),
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
