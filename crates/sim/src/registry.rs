//! How a room registers its schemes: one line each.
//!
//! From a line follow the variant of the room's enum of parameters, the name in scenarios, the text of
//! `weftline list` and `weftline explain`, the keys of the schema, and the tests that every scheme must pass.

/// Defines the enum of parameters of a room from one line per scheme.
///
/// `Trait` is implemented by the parameters of every scheme of the room: at least `const DOC: SchemeDoc` and
/// `fn read(p: &mut Parameters) -> Self`, with one more argument if a type stands in brackets. The macro also
/// defines `DOCS`, `KINDS` (name and title, in the order of the lines) and the macro `each_kind!`, which
/// evaluates an expression with the parameters of the scheme at hand.
///
/// With `=> State` after the trait there is also the enum of what runs, one variant a scheme, which holds the
/// type `State` that the scheme's parameters name (boxed there, where it is large), and the macro
/// `each_state!`.
macro_rules! registry {
    (
        $(#[$about:meta])* $config:ident: $trait:ident$(($context:ty))? => $(#[$of_state:meta])* $state:ident
        { $($lines:tt)+ }
    ) => {
        registry! { $(#[$about])* $config: $trait$(($context))? { $($lines)+ } }
        registry! { @state $(#[$of_state])* $state: $trait { $($lines)+ } }
    };
    (
        @state $(#[$of_state:meta])* $state:ident: $trait:ident
        { $($variant:ident = $file:ident::$parameters:ident;)+ }
    ) => {
        $(#[$of_state])*
        pub enum $state {
            $($variant(<$file::$parameters as $trait>::State),)+
        }

        #[allow(unused_macros)]
        macro_rules! each_state {
            ($self:expr, $it:ident => $call:expr) => {
                match $self {
                    $($state::$variant($it) => $call,)+
                }
            };
        }
    };
    ($(#[$about:meta])* $config:ident: $trait:ident { $($variant:ident = $file:ident::$parameters:ident;)+ }) => {
        registry!(@common $(#[$about])* $config: $trait { $($variant = $file::$parameters;)+ });

        impl $config {
            /// Reads the parameters of the scheme named `kind`; none where [`KINDS`] has no such name.
            pub fn read(kind: &str, p: &mut $crate::parameters::Parameters) -> Option<$config> {
                $(if kind == <$file::$parameters as $trait>::DOC.name {
                    return Some($config::$variant(<$file::$parameters as $trait>::read(p)));
                })+
                None
            }
        }
    };
    (
        $(#[$about:meta])* $config:ident: $trait:ident($context:ty)
        { $($variant:ident = $file:ident::$parameters:ident;)+ }
    ) => {
        registry!(@common $(#[$about])* $config: $trait { $($variant = $file::$parameters;)+ });

        impl $config {
            /// Reads the parameters of the scheme named `kind`; none where [`KINDS`] has no such name.
            pub fn read(kind: &str, p: &mut $crate::parameters::Parameters, cx: $context) -> Option<$config> {
                $(if kind == <$file::$parameters as $trait>::DOC.name {
                    return Some($config::$variant(<$file::$parameters as $trait>::read(p, cx)));
                })+
                None
            }
        }
    };
    (
        @common $(#[$about:meta])* $config:ident: $trait:ident
        { $($variant:ident = $file:ident::$parameters:ident;)+ }
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $config {
            $($variant($file::$parameters),)+
        }

        /// What each scheme declares about itself.
        pub const DOCS: &[$crate::doc::SchemeDoc] = &[$(<$file::$parameters as $trait>::DOC,)+];

        /// The names that a scenario may use, each with one line of help.
        pub const KINDS: &[(&str, &str)] =
            &[$((<$file::$parameters as $trait>::DOC.name, <$file::$parameters as $trait>::DOC.title),)+];

        #[allow(unused_macros)]
        macro_rules! each_kind {
            ($self:expr, $it:ident => $call:expr) => {
                match $self {
                    $($config::$variant($it) => $call,)+
                }
            };
        }
    };
}
