//! The controllers that the flows of a transport may have.

use crate::congestion::window::{self, Profile, WindowConfig};
use crate::congestion::{self, ExternalController, pair_window};
use crate::parameters::{Nothing, Parameters, Value, nearest};

/// The default controller of TCP.
pub const DEFAULT_WINDOW: &str = "cubic";

/// The controllers that a transport's flows may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Controllers {
    None,
    /// Controllers of a queue pair's rate, and the window controllers of [`pair_window`].
    Pairs,
    /// Window controllers; those that couple subflows only if `several_paths`.
    Windows {
        default: &'static str,
        several_paths: bool,
    },
}

/// A controller as a transport has it.
pub struct Offered {
    /// Its name there.
    pub name: &'static str,
    /// Its name in the list of window controllers or of rate controllers.
    pub listed: &'static str,
    pub is_law: bool,
}

/// The controller from outside that a scenario's `kind` names as `python:NAME`; none if it names another one. Without
/// the prefix a name is that of a built-in controller, even where one from outside has it too.
///
/// Errors: it names none, with what to write instead.
pub fn from_outside<'a>(
    kind: &str,
    given: &'a [ExternalController],
) -> Result<Option<&'a ExternalController>, String> {
    let name = kind.strip_prefix("python:").unwrap_or(kind);
    let found = given.iter().find(|external| *external.name == *name);
    if name == kind {
        let is_built_in = pair_window::kinds().iter().any(|known| known.0 == kind);
        return match found.filter(|_| !is_built_in) {
            Some(_) => Err(format!("controller \"{name}\" is written in Python: set \"python:{name}\"")),
            None => Ok(None),
        };
    }
    let near = nearest(name, given.iter().map(|external| &*external.name));
    let hint = near.map(|near| format!("did you mean \"python:{near}\"? Otherwise ")).unwrap_or_default();
    let missing = || {
        format!(
            "controller \"{name}\" is written in Python; {hint}set its location: --controller \
             {name}=FILE.py:CLASS, {name} = \"FILE.py:CLASS\" below [controllers] of a sweep, or \
             controllers={{\"{name}\": ...}} in Python"
        )
    };
    found.map(Some).ok_or_else(missing)
}

impl Controllers {
    /// Why these flows cannot have this controller; none if they can, or if the name is unknown.
    pub fn refusal(self, controller: &str) -> Option<String> {
        let is = |kinds: &[(&str, &str)]| kinds.iter().any(|kind| kind.0 == controller);
        let bare = controller.strip_prefix("python:");
        let one_path = |what| {
            format!(
                "\"{controller}\" couples the subflows of a multipath connection, but {what} has one path: set \
                 transport.kind = \"mptcp\", or controller.kind = \"newreno\", its equivalent for one path"
            )
        };
        match self {
            Controllers::Pairs if window::couples(controller) => Some(one_path("a queue pair")),
            Controllers::Windows { several_paths, .. }
                if bare.is_some() || is(congestion::kinds()) && !is(window::KINDS) =>
            {
                let offered = window::KINDS.iter().map(|kind| kind.0);
                Some(format!(
                    "\"{controller}\" sets the rate of a NIC's queue pair, but TCP is controlled by a window: set \
                     transport.kind = \"rdma\", or a controller for TCP ({})",
                    names(offered.filter(|kind| several_paths || !window::couples(kind)))
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

    /// Reports an error if the given controller cannot be used. Returns whether it did. What a file gives for another kind of transport is
    /// left out instead.
    pub fn refuse(self, table: &mut Parameters) -> bool {
        let why = match table.peek("kind") {
            Some(Value::Text(name)) => self.refusal(&name),
            Some(_) => return false,
            None => {
                table.put_aside();
                return false;
            }
        };
        let Some(why) = why.filter(|_| !table.put_aside()) else { return false };
        table.refuse_kind(why);
        true
    }

    /// Reads a window controller. Returns it with true; if it is unknown, which is reported, the default with
    /// false, so that errors in other keys are reported too.
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

/// A list of names for a message.
pub fn names<'n>(all: impl Iterator<Item = &'n str>) -> String {
    all.collect::<Vec<_>>().join(", ")
}
