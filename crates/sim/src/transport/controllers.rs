//! Which controllers the flows of a transport may have.

use crate::congestion::window::{self, Profile, WindowConfig};
use crate::congestion::{self, pair_window};
use crate::parameters::{Nothing, Parameters, Value};

/// The controller of a flow over TCP that does not say.
pub const DEFAULT_WINDOW: &str = "cubic";

/// The controllers that a transport's flows may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controllers {
    None,
    /// Those that steer the rate of a queue pair, and the laws of [`pair_window`].
    Pairs,
    /// Those that steer a window; those that couple subflows only where a flow has several.
    Windows {
        default: &'static str,
        several_paths: bool,
    },
}

/// A controller as a transport has it.
pub struct Offered {
    /// Its name there.
    pub name: &'static str,
    /// Its name among its like: those that steer a window, or those that steer a rate.
    pub listed: &'static str,
    pub is_law: bool,
}

impl Controllers {
    /// Why flows cannot have the controller of this name, though others can; none: they can, or nothing is called so.
    pub fn refusal(self, controller: &str) -> Option<String> {
        let is = |kinds: &[(&str, &str)]| kinds.iter().any(|kind| kind.0 == controller);
        let bare = controller.strip_prefix("python:");
        let one_path = |what| {
            format!(
                "\"{controller}\" couples the subflows of a multipath connection, and {what} has one path: set transport.kind = \
                 \"mptcp\", or controller.kind = \"newreno\", which it is for one path"
            )
        };
        match self {
            Controllers::Pairs if window::couples(controller) => Some(one_path("a queue pair")),
            Controllers::Windows { .. }
                if bare.is_some() || is(congestion::kinds()) && !is(window::KINDS) =>
            {
                Some(format!(
                    "\"{controller}\" steers the rate of a NIC's queue pair, and TCP is steered by its window: set transport.kind = \
                     \"rdma\", or a controller for TCP ({})",
                    names(window::KINDS.iter().map(|kind| kind.0))
                ))
            }
            Controllers::Windows { several_paths: false, .. } if window::couples(controller) => {
                Some(one_path("a TCP connection"))
            }
            _ => None,
        }
    }

    /// The controllers that flows may have.
    pub fn offered(self) -> Vec<Offered> {
        let law = |name, listed| Offered { name, listed, is_law: true };
        let mut all: Vec<Offered> = match self {
            Controllers::Pairs => {
                let own = congestion::kinds().iter().map(|kind| Offered {
                    name: kind.0,
                    listed: kind.0,
                    is_law: false,
                });
                own.chain(pair_window::laws().iter().map(|named| law(named.name, named.law))).collect()
            }
            Controllers::Windows { .. } => window::KINDS.iter().map(|kind| law(kind.0, kind.0)).collect(),
            Controllers::None => Vec::new(),
        };
        all.retain(|offered| self.refusal(offered.name).is_none());
        all
    }

    /// Refuses the controller that is given, if flows cannot have it; whether it was.
    pub fn refuse(self, table: &mut Parameters) -> bool {
        let Some(Value::Text(name)) = table.peek("kind") else { return false };
        let Some(why) = self.refusal(&name) else { return false };
        table.refuse_kind(why);
        true
    }

    /// Reads a controller that steers a window. Those that steer a rate need what TCP's acknowledgements do not bring. Beside it whether
    /// it is known: where it is not, another one stands for it, so that the other keys are looked at too.
    pub fn read_window(self, p: &mut Parameters, profile: Profile) -> Option<(WindowConfig, bool)> {
        let Controllers::Windows { default, .. } = self else { return None };
        let read = |table: &mut Parameters| {
            if self.refuse(table) {
                return None;
            }
            let kind = table.kind("controller", default, window::KINDS, "congestion controller")?;
            WindowConfig::read(kind, table, profile)
        };
        let read = p.scheme("controller", read).flatten();
        let known = read.is_some();
        let fallback =
            || WindowConfig::read(DEFAULT_WINDOW, &mut Parameters::new(&mut Nothing::default()), profile);
        Some((read.or_else(fallback)?, known))
    }
}

/// Names, for a message.
pub fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}
