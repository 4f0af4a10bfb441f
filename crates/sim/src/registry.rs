//! How a room registers its schemes: one line each.
//!
//! From a line follow the variant of the room's enum of parameters, the name in scenarios, the text of
//! `weftline list` and `weftline explain`, the keys of the schema, and the tests that every scheme must pass.

/// Defines the enum of parameters of a room from one line per scheme.
///
/// `Trait` is implemented by the parameters of every scheme of the room: at least `const DOC: SchemeDoc` and
/// `fn read(p: &mut Parameters) -> Self`, with one more argument if a type is given in brackets (then it may
/// return an `Option`). The macro also defines `DOCS`, `KINDS` (name and title, in the order of the lines),
/// the macro `each_kind!`, which evaluates an expression with the parameters of the scheme at hand, and
/// `each_type!`, which makes an array of an expression for the type of every scheme.
///
/// With `=> State` after the trait there is also the enum of what runs, one variant a scheme, which holds the
/// type `State` that the scheme's parameters name (boxed there, where it is large), the macro `each_state!`,
/// and `start_kind!`, which makes the state from the parameters by an expression. `also Variant = State;`
/// after the lines is a second state of one of them. `+ Variant = Parameters => State` after that adds a variant for the schemes of other crates. It has methods of the same names,
/// `named`, which reads the parameters of such a scheme, and `kinds`, the names of all schemes of the room.
macro_rules! registry {
    (
        $(#[$about:meta])* $config:ident: $trait:ident$(($context:ty))? => $(#[$of_state:meta])* $state:ident
        { $($lines:tt)+ } $(also $form:ident = $machine:ty;)* $(+ $extra:ident = $of:ty => $runs:ty)?
    ) => {
        registry! { $(#[$about])* $config: $trait$(($context))? { $($lines)+ } $(+ $extra = $of)? }
        registry! {
            @state $(#[$of_state])* $state: $trait, $config
            { $($lines)+ } $(also $form = $machine;)* $(+ $extra = $runs)?
        }
    };
    (
        @state $(#[$of_state:meta])* $state:ident: $trait:ident, $config:ident
        { $($variant:ident = $parameters:ty;)+ } $(also $form:ident = $machine:ty;)* $(+ $extra:ident = $runs:ty)?
    ) => {
        $(#[$of_state])*
        pub enum $state {
            $($variant(<$parameters as $trait>::State),)+
            $($form($machine),)*
            $($extra($runs),)?
        }

        #[allow(unused_macros)]
        macro_rules! each_state {
            ($self:expr, $it:ident => $call:expr) => {
                match $self {
                    $($state::$variant($it) => $call,)+
                    $($state::$form($it) => $call,)*
                    $($state::$extra($it) => $call,)?
                }
            };
        }

        #[allow(unused_macros)]
        macro_rules! start_kind {
            ($self:expr, $it:ident => $call:expr) => {
                match $self {
                    $($config::$variant($it) => $state::$variant($call),)+
                    $($config::$extra($it) => $state::$extra($call),)?
                }
            };
        }
    };
    (
        $(#[$about:meta])* $config:ident: $trait:ident
        { $($variant:ident = $parameters:ty;)+ } $(+ $extra:ident = $of:ty)?
    ) => {
        registry!(@common $(#[$about])* $config: $trait { $($variant = $parameters;)+ } $(+ $extra = $of)?);

        impl $config {
            /// Reads the parameters of the scheme named `kind`; none where [`KINDS`] has no such name.
            pub fn read(kind: &str, p: &mut $crate::parameters::Parameters) -> Option<$config> {
                $(if kind == <$parameters as $trait>::DOC.name {
                    return Some($config::$variant(<$parameters as $trait>::read(p)));
                })+
                None::<$config>$(.or_else(|| <$of>::named(kind, p).map($config::$extra)))?
            }
        }
    };
    (
        $(#[$about:meta])* $config:ident: $trait:ident($context:ty)
        { $($variant:ident = $parameters:ty;)+ } $(+ $extra:ident = $of:ty)?
    ) => {
        registry!(@common $(#[$about])* $config: $trait { $($variant = $parameters;)+ } $(+ $extra = $of)?);

        impl $config {
            /// Reads the parameters of the scheme named `kind`; none where [`KINDS`] has no such name.
            pub fn read(kind: &str, p: &mut $crate::parameters::Parameters, cx: $context) -> Option<$config> {
                $(if kind == <$parameters as $trait>::DOC.name {
                    let read: Option<$parameters> = <$parameters as $trait>::read(p, cx).into();
                    return read.map($config::$variant);
                })+
                None::<$config>$(.or_else(|| <$of>::named(kind, p, cx).map($config::$extra)))?
            }
        }
    };
    (
        @common $(#[$about:meta])* $config:ident: $trait:ident
        { $($variant:ident = $parameters:ty;)+ } $(+ $extra:ident = $of:ty)?
    ) => {
        $(#[$about])*
        #[derive(Debug, Clone, PartialEq)]
        pub enum $config {
            $($variant($parameters),)+
            $($extra($of),)?
        }

        /// The documentation of each scheme.
        pub const DOCS: &[$crate::doc::SchemeDoc] = &[$(<$parameters as $trait>::DOC,)+];

        /// The names that a scenario may use, each with one line of help.
        pub const KINDS: &[(&str, &str)] =
            &[$((<$parameters as $trait>::DOC.name, <$parameters as $trait>::DOC.title),)+];

        $(
            /// The names that a scenario may use, each with one line of help, those of schemes of other
            /// crates last.
            pub fn kinds() -> &'static [(&'static str, &'static str)] {
                <$of>::kinds(KINDS)
            }
        )?

        #[allow(unused_macros)]
        macro_rules! each_type {
            ($it:ident => $call:expr) => {
                [$({
                    type $it = $parameters;
                    $call
                }),+]
            };
        }

        #[allow(unused_macros)]
        macro_rules! each_kind {
            ($self:expr, $it:ident => $call:expr) => {
                match $self {
                    $($config::$variant($it) => $call,)+
                    $($config::$extra($it) => $call,)?
                }
            };
        }
    };
}
